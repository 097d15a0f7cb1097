// SPDX-License-Identifier: Apache-2.0
#include "cmd/export_bundle.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/bundle/runtime/pd_run.h"

namespace pd {
namespace {

absl::Status FromRun(pd_run_status status, const std::string& path) {
  if (status == PD_RUN_OK) return absl::OkStatus();
  const std::string text = absl::StrCat(path, ": ", pd_run_error());
  return status == PD_RUN_NO_MEMORY ? ResourceExhausted("%s", text)
                                    : DataLoss("%s", text);
}

DType TypeOfRun(pd_run_dtype dtype) {
  switch (dtype) {
    case PD_RUN_INT64:
      return DType::kInt64;
    case PD_RUN_INT32:
      return DType::kInt32;
    case PD_RUN_UINT8:
      return DType::kUInt8;
    case PD_RUN_BOOL:
      return DType::kBool;
    case PD_RUN_FLOAT32:
      break;
  }
  return DType::kFloat32;
}

absl::Status FeedInput(pd_run_model* model, size_t i, const std::string& path,
                       const NamedArrays& feeds) {
  pd_run_tensor x;
  PD_RETURN_IF_ERROR(FromRun(pd_run_get(model, PD_RUN_INPUT, i, &x), path));
  const auto feed = feeds.find(x.name);
  if (feed == feeds.end())
    return NotFound("input '%s' has no array; expected one of its name",
                    x.name);
  const Array& array = feed->second;
  if (array.dtype != TypeOfRun(x.dtype))
    return InvalidArgument("input '%s' is %s; the array is %s", x.name,
                           Name(TypeOfRun(x.dtype)), Name(array.dtype));
  return FromRun(
      pd_run_set_shape(model, i, static_cast<int32_t>(array.shape.size()),
                       array.shape.data()),
      path);
}

}  // namespace

absl::StatusOr<NamedArrays> RunBundle(const std::string& path,
                                      const NamedArrays& feeds) {
  pd_run_model* opened = nullptr;
  PD_RETURN_IF_ERROR(
      FromRun(pd_run_open(path.c_str(), nullptr, &opened), path));
  const std::unique_ptr<pd_run_model, void (*)(pd_run_model*)> model(
      opened, pd_run_close);
  const size_t inputs = pd_run_count(opened, PD_RUN_INPUT);
  for (size_t i = 0; i < inputs; ++i)
    PD_RETURN_IF_ERROR(FeedInput(opened, i, path, feeds));
  for (size_t i = 0; i < inputs; ++i) {
    pd_run_tensor x;
    PD_RETURN_IF_ERROR(FromRun(pd_run_get(opened, PD_RUN_INPUT, i, &x), path));
    if (x.bytes > 0) std::memcpy(x.data, feeds.at(x.name).bytes.get(), x.bytes);
  }
  PD_RETURN_IF_ERROR(FromRun(pd_run_run(opened), path));
  NamedArrays answers;
  for (size_t i = 0; i < pd_run_count(opened, PD_RUN_OUTPUT); ++i) {
    pd_run_tensor y;
    PD_RETURN_IF_ERROR(FromRun(pd_run_get(opened, PD_RUN_OUTPUT, i, &y), path));
    std::byte* bytes = nullptr;
    PD_ASSIGN_OR_RETURN(
        Array answer,
        NewArray(TypeOfRun(y.dtype), {y.dims, y.dims + y.rank}, &bytes));
    if (y.bytes > 0) std::memcpy(bytes, y.data, y.bytes);
    answers[absl::StrCat("output_", i)] = std::move(answer);
  }
  return answers;
}

}  // namespace pd
