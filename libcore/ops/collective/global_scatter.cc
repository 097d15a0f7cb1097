// SPDX-License-Identifier: Apache-2.0
// The rows of a mixture of experts travel to the processes that hold their
// experts, and back. Each of N processes holds E experts; counts are int64
// [N * E], and index r * E + e is expert e of process r.
// global_scatter: the rows of X are sorted by that index, local_count[i] of
//   them for index i. Out = the rows that arrive here, sorted by expert of this
//   process, then by sender: global_count[r * E + e] come from process r for
//   expert e.
// global_gather: the way back: X is sorted as global_scatter's Out, and Out as
//   its X.
// Each is the other's gradient, with the same counts.
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/collective/ring.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferRows(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  if (x.shape.size() != 2)
    return InvalidArgument("X has shape %s; expected [rows, width]",
                           ToString(x.shape));
  context->SetOutput("Out", {-1, x.shape[1]}, x.dtype);
  return absl::OkStatus();
}

// Rows for each index, checked: none negative, the sum below 2^62.
absl::StatusOr<std::vector<int64_t>> CountsOf(const char* slot,
                                              const Tensor& counts) {
  if (counts.dtype() != DType::kInt64)
    return InvalidArgument("%s is %s; expected int64", slot,
                           Name(counts.dtype()));
  std::vector<int64_t> rows(counts.data<int64_t>(),
                            counts.data<int64_t>() + counts.size());
  int64_t sum = 0;
  for (const int64_t count : rows) {
    if (count < 0 || __builtin_add_overflow(sum, count, &sum) ||
        sum > (int64_t{1} << 62))
      return InvalidArgument("%s has a count of %d rows", slot, count);
  }
  return rows;
}

// Copies blocks of rows that stand in order (process, expert) to order
// (expert, process), or back.
void Reorder(const std::vector<int64_t>& counts, size_t experts, size_t width,
             bool to_experts, const std::byte* from, std::byte* to) {
  const size_t processes = counts.size() / experts;
  std::vector<size_t> by_process(counts.size(), 0);
  size_t at = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    by_process[i] = at;
    at += static_cast<size_t>(counts[i]) * width;
  }
  at = 0;
  for (size_t e = 0; e < experts; ++e) {
    for (size_t r = 0; r < processes; ++r) {
      const size_t i = r * experts + e;
      const size_t bytes = static_cast<size_t>(counts[i]) * width;
      if (bytes > 0 && to_experts)
        std::memcpy(to + at, from + by_process[i], bytes);
      if (bytes > 0 && !to_experts)
        std::memcpy(to + by_process[i], from + at, bytes);
      at += bytes;
    }
  }
}

// The bytes of each process's rows.
std::vector<size_t> BytesByProcess(const std::vector<int64_t>& counts,
                                   size_t experts, size_t width) {
  std::vector<size_t> bytes(counts.size() / experts, 0);
  for (size_t i = 0; i < counts.size(); ++i)
    bytes[i / experts] += static_cast<size_t>(counts[i]) * width;
  return bytes;
}

absl::StatusOr<Step> BindRows(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* local = context->Input("local_count");
  Tensor* global = context->Input("global_count");
  Tensor* out = context->Output("Out");
  const bool scatters = context->op().type == "global_scatter";
  const size_t width = static_cast<size_t>(x->dim(1)) * SizeOf(x->dtype());
  return Step([=, id = context->Attr<int32_t>("ring_id")](
                  const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const Communicator* ring, RingOf(run, id));
    PD_ASSIGN_OR_RETURN(const auto here, CountsOf("local_count", *local));
    PD_ASSIGN_OR_RETURN(const auto there, CountsOf("global_count", *global));
    const size_t size = static_cast<size_t>(ring->size());
    if (here.size() != there.size() || here.empty() || here.size() % size != 0)
      return InvalidArgument(
          "local_count has %d elements, global_count %d; expected the same "
          "multiple of the ring's %d processes",
          here.size(), there.size(), size);
    const auto& in = scatters ? here : there;
    const auto& made = scatters ? there : here;
    const int64_t rows = std::accumulate(made.begin(), made.end(), int64_t{0});
    const int64_t given = std::accumulate(in.begin(), in.end(), int64_t{0});
    if (given != x->dim(0))
      return InvalidArgument("X has %d rows; the counts sum up to %d",
                             x->dim(0), given);
    PD_RETURN_IF_ERROR(
        CheckedBytes({rows, x->dim(1)}, SizeOf(x->dtype())).status());
    PD_RETURN_IF_ERROR(out->Resize({rows, x->dim(1)}));
    const size_t experts = here.size() / size;
    std::vector<std::byte> moved(scatters ? out->bytes() : x->bytes());
    const auto* from = static_cast<const std::byte*>(x->raw());
    auto* to = static_cast<std::byte*>(out->raw());
    if (!scatters) Reorder(in, experts, width, false, from, moved.data());
    PD_RETURN_IF_ERROR(ring->AllToAll(
        scatters ? from : moved.data(), BytesByProcess(in, experts, width),
        scatters ? moved.data() : to, BytesByProcess(made, experts, width)));
    if (scatters) Reorder(made, experts, width, true, moved.data(), to);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::vector<OpDesc>> RowsGrad(const GradRequest& request) {
  std::vector<OpDesc> ops;
  const OpDesc& forward = request.op;
  if (!request.needs_grad(forward.In("X"))) return ops;
  OpDesc op;
  op.type =
      forward.type == "global_scatter" ? "global_gather" : "global_scatter";
  op.SetInput("X", {GradName(forward.Out("Out"))});
  op.SetInput("local_count", {forward.In("local_count")});
  op.SetInput("global_count", {forward.In("global_count")});
  op.SetOutput("Out", {GradName(forward.In("X"))});
  op.attrs["ring_id"] = forward.Attr<int32_t>("ring_id");
  ops.push_back(std::move(op));
  return ops;
}

}  // namespace

absl::Status RegisterGlobalScatter(OpRegistry* registry) {
  for (const char* type : {"global_scatter", "global_gather"}) {
    OpDef op(type);
    op.Input("X").Input("local_count").Input("global_count").Output("Out");
    op.Attr("ring_id", int32_t{0}).Attr("use_calc_stream", false);
    op.Infer(InferRows).Grad(GradMaker(RowsGrad)).ShapeFromData();
    op.With(Trait::kCommunicates).Reference(BindRows);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  return absl::OkStatus();
}

}  // namespace pd
