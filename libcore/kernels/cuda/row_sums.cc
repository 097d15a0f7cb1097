// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cuda/row_sums.h"

#include <limits>

#include "libcore/kernels/cuda/row_sums_arguments.h"

namespace pd::cuda {
namespace {

// The step that puts the ids in order, into scratch that `keys`, `begins` and
// `ends` are set to.
absl::StatusOr<Step> BindOrder(BindContext* context, DeviceBinding* binding,
                               const RowOrderArgs& args, Tensor* ids,
                               Tensor* (&order)[3]) {
  using Start = Starter<RowOrderArgs>;
  PD_ASSIGN_OR_RETURN(const auto chunks,
                      Start::Find(binding, "row_order_chunks"));
  PD_ASSIGN_OR_RETURN(const auto merge,
                      Start::Find(binding, "row_merge_chunks"));
  PD_ASSIGN_OR_RETURN(const auto find, Start::Find(binding, "row_find"));
  const auto n = static_cast<size_t>(args.count);
  Tensor* const parts = context->Scratch(n * sizeof(uint64_t));
  Tensor* const keys = order[0] = context->Scratch(n * sizeof(uint64_t));
  Tensor* const begins = order[1] = context->Scratch(n * sizeof(int32_t));
  Tensor* const ends = order[2] = context->Scratch(n * sizeof(int32_t));
  return Step([=](const RunContext&) {
    RowOrderArgs run = args;
    run.ids = ids->raw();
    run.chunks = parts->data<uint64_t>();
    run.keys = keys->data<uint64_t>();
    run.begins = begins->data<int32_t>();
    run.ends = ends->data<int32_t>();
    PD_RETURN_IF_ERROR(chunks.Elements(run.count, run));
    PD_RETURN_IF_ERROR(merge.Elements(run.count, run));
    return find.Elements(run.count, run);
  });
}

}  // namespace

template <typename T>
absl::StatusOr<Step> BindRowSums(BindContext* context, DeviceBinding* binding,
                                 const LookupArgsOf<T>& lookup, Tensor* ids,
                                 Tensor* from, Tensor* to) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() - 1;
  if (lookup.count > kMost || lookup.rows > kMost)
    return Unimplemented("%d ids of %d rows", lookup.count, lookup.rows);
  RowOrderArgs order{};
  order.count = lookup.count;
  order.rows = lookup.rows;
  order.padding = lookup.padding;
  order.ids64 = lookup.ids64;
  order.bad = lookup.bad;
  Tensor* ordered[3] = {};
  PD_ASSIGN_OR_RETURN(Step put_in_order,
                      BindOrder(context, binding, order, ids, ordered));
  using Start = Starter<RowSumsArgsOf<T>>;
  PD_ASSIGN_OR_RETURN(const auto sum_runs,
                      Start::Find(binding, KernelFor<T>("row_sum_runs")));
  PD_ASSIGN_OR_RETURN(const auto sum_parts,
                      Start::Find(binding, KernelFor<T>("row_sum_parts")));
  RowSumsArgsOf<T> args{};
  args.count = lookup.count;
  args.rows = lookup.rows;
  args.width = lookup.width;
  const int64_t part_rows = (args.count + kSumRun - 1) / kSumRun * 2;
  Tensor* const parts =
      context->Scratch(static_cast<size_t>(part_rows * args.width) * sizeof(T));
  return Step([=, put_in_order = std::move(put_in_order), keys = ordered[0],
               begins = ordered[1], ends = ordered[2],
               device = CudaOf(binding)](const RunContext& of_run) {
    PD_RETURN_IF_ERROR(device->Clear(to->raw(), to->bytes()));
    PD_RETURN_IF_ERROR(put_in_order(of_run));
    RowSumsArgsOf<T> run = args;
    run.from = Read<T>(from);
    run.to = Write<T>(to);
    run.parts = parts->data<T>();
    run.keys = keys->data<uint64_t>();
    run.begins = begins->data<int32_t>();
    run.ends = ends->data<int32_t>();
    PD_RETURN_IF_ERROR(sum_runs.Elements(run.count * run.width, run));
    return sum_parts.Elements(run.count / kSumRun * run.width, run);
  });
}

template absl::StatusOr<Step> BindRowSums(BindContext*, DeviceBinding*,
                                          const LookupArgsOf<float>&, Tensor*,
                                          Tensor*, Tensor*);
template absl::StatusOr<Step> BindRowSums(BindContext*, DeviceBinding*,
                                          const LookupArgsOf<double>&, Tensor*,
                                          Tensor*, Tensor*);

}  // namespace pd::cuda
