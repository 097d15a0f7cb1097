// SPDX-License-Identifier: Apache-2.0
#include "tests/bundle/bundle_fixture.h"

#include <cstring>
#include <new>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "tests/ops/registry.h"

namespace pd {
namespace {

DType TypeOf(pd_run_dtype dtype) {
  const DType types[] = {DType::kFloat32, DType::kInt64, DType::kInt32,
                         DType::kUInt8, DType::kBool};
  return types[dtype];
}

absl::Status Checked(pd_run_status status) {
  return status == PD_RUN_OK ? absl::OkStatus()
                             : InvalidArgument("%s", pd_run_error());
}

}  // namespace

std::shared_ptr<const void> AlignedBytes(absl::string_view bytes) {
  constexpr std::align_val_t kAt{64};
  void* copy = ::operator new(bytes.size(), kAt);
  std::memcpy(copy, bytes.data(), bytes.size());
  return {copy, [](void* p) { ::operator delete(p, kAt); }};
}

absl::StatusOr<OpenBundle> OpenBytes(absl::string_view bytes, int threads,
                                     size_t memory_limit) {
  OpenBundle open;
  open.bytes = AlignedBytes(bytes);
  const pd_run_options options = {threads, memory_limit};
  PD_RETURN_IF_ERROR(Checked(pd_run_open_memory(open.bytes.get(), bytes.size(),
                                                &options, &open.model)));
  return open;
}

absl::StatusOr<NamedArrays> RunModel(pd_run_model* model,
                                     const NamedArrays& feeds) {
  const size_t inputs = pd_run_count(model, PD_RUN_INPUT);
  pd_run_tensor x, y;
  for (size_t i = 0; i < inputs; ++i) {
    PD_RETURN_IF_ERROR(Checked(pd_run_get(model, PD_RUN_INPUT, i, &x)));
    const Array& feed = feeds.at(x.name);
    if (feed.dtype != TypeOf(x.dtype))
      return InvalidArgument("feed '%s' has another dtype", x.name);
    PD_RETURN_IF_ERROR(Checked(pd_run_set_shape(
        model, i, static_cast<int32_t>(feed.shape.size()), feed.shape.data())));
  }
  for (size_t i = 0; i < inputs; ++i) {
    PD_RETURN_IF_ERROR(Checked(pd_run_get(model, PD_RUN_INPUT, i, &x)));
    if (x.bytes > 0) std::memcpy(x.data, feeds.at(x.name).bytes.get(), x.bytes);
  }
  PD_RETURN_IF_ERROR(Checked(pd_run_run(model)));
  NamedArrays answers;
  for (size_t i = 0; i < pd_run_count(model, PD_RUN_OUTPUT); ++i) {
    PD_RETURN_IF_ERROR(Checked(pd_run_get(model, PD_RUN_OUTPUT, i, &y)));
    std::byte* bytes = nullptr;
    PD_ASSIGN_OR_RETURN(
        Array answer,
        NewArray(TypeOf(y.dtype), {y.dims, y.dims + y.rank}, &bytes));
    if (y.bytes > 0) std::memcpy(bytes, y.data, y.bytes);
    answers[y.name] = std::move(answer);
  }
  return answers;
}

absl::StatusOr<NamedArrays> BundleAnswers(const InferenceModel& model,
                                          const NamedArrays& feeds,
                                          int threads) {
  PD_ASSIGN_OR_RETURN(const BundleGraph graph, LowerModel(Registry(), model));
  PD_ASSIGN_OR_RETURN(const std::string bytes, BundleBytes(graph));
  PD_ASSIGN_OR_RETURN(const OpenBundle open, OpenBytes(bytes, threads));
  return RunModel(open.model, feeds);
}

void RunAsItSays(pd_run_model* model) {
  for (size_t i = 0; i < pd_run_count(model, PD_RUN_INPUT); ++i) {
    pd_run_tensor x;
    if (pd_run_get(model, PD_RUN_INPUT, i, &x) != PD_RUN_OK) return;
    for (int d = 0; d < x.rank; ++d)
      if (x.dims[d] == -1) x.dims[d] = 2;
    if (pd_run_set_shape(model, i, x.rank, x.dims) != PD_RUN_OK) return;
    if (pd_run_get(model, PD_RUN_INPUT, i, &x) != PD_RUN_OK) return;
    if (x.bytes > 0) std::memset(x.data, 1, x.bytes);
  }
  if (pd_run_run(model) != PD_RUN_OK) return;
  unsigned sum = 0;
  for (size_t i = 0; i < pd_run_count(model, PD_RUN_OUTPUT); ++i) {
    pd_run_tensor y;
    if (pd_run_get(model, PD_RUN_OUTPUT, i, &y) != PD_RUN_OK) return;
    for (size_t b = 0; b < y.bytes; ++b)
      sum += static_cast<const unsigned char*>(y.data)[b];
  }
  // All of the results has been read.
  EXPECT_LE(sum, ~0u);
}

}  // namespace pd
