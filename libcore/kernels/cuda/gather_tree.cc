// SPDX-License-Identifier: Apache-2.0
// gather_tree and edit_distance, of tokens that are on the device already; the
// kernels are in gather_tree.cu.
#include <algorithm>

#include "libcore/kernels/cuda/gather_tree_arguments.h"
#include "libcore/kernels/cuda/spans.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/metric/edit_distance.h"

namespace pd::cuda {
namespace {

absl::StatusOr<Step> BindGatherTree(BindContext* context,
                                    DeviceBinding* binding) {
  Tensor *ids = context->Input("Ids"), *parents = context->Input("Parents"),
         *out = context->Output("Out");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Parents", ids->dtype(), ids->shape()));
  GatherTreeArgs args{};
  args.steps = ids->dim(0);
  args.batch = ids->dim(1);
  args.beams = ids->dim(2);
  PD_ASSIGN_OR_RETURN(args.wide, IsWide(*ids));
  PD_ASSIGN_OR_RETURN(args.bad,
                      binding->ErrorFlag(absl::StrFormat(
                          "'Parents' of %s holds a number outside [0, %d)",
                          context->op().type, args.beams)));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<GatherTreeArgs>::Find(binding, "gather_tree"));
  return Step([=](const RunContext&) {
    GatherTreeArgs run = args;
    run.ids = ids->raw();
    run.parents = parents->raw();
    run.out = out->raw();
    return start.Elements(run.batch * run.beams, run);
  });
}

// More than any sequence has tokens.
int64_t WidthFor(const SequenceSpans& spans) {
  int64_t longest = spans.width();
  for (size_t i = 0; i + 1 < spans.offsets().size(); ++i)
    longest = std::max(longest, spans.offsets()[i + 1] - spans.offsets()[i]);
  return longest + 1;
}

absl::StatusOr<Step> BindEditDistance(BindContext* context,
                                      DeviceBinding* binding) {
  Tensor *hyps = context->Input("Hyps"), *refs = context->Input("Refs"),
         *out = context->Output("Out"),
         *number = context->Output("SequenceNum");
  PD_ASSIGN_OR_RETURN(const SequenceSpans of_hyps,
                      EditDistanceSpans(*context, "Hyps", "HypsLength"));
  PD_ASSIGN_OR_RETURN(const SequenceSpans of_refs,
                      EditDistanceSpans(*context, "Refs", "RefsLength"));
  if (of_refs.count() != of_hyps.count() || of_hyps.count() == 0)
    return Unimplemented("%d and %d sequences", of_hyps.count(),
                         of_refs.count());
  EditDistanceArgs args{};
  PD_ASSIGN_OR_RETURN(args.hyps,
                      KeepSpans(*context, binding, of_hyps, "HypsLength"));
  PD_ASSIGN_OR_RETURN(args.refs,
                      KeepSpans(*context, binding, of_refs, "RefsLength"));
  PD_ASSIGN_OR_RETURN(args.hyp_wide, IsWide(*hyps));
  PD_ASSIGN_OR_RETURN(args.ref_wide, IsWide(*refs));
  args.normalized = context->Attr<bool>("normalized") ? 1 : 0;
  args.width = WidthFor(of_hyps);
  PD_ASSIGN_OR_RETURN(
      args.empty,
      binding->ErrorFlag(
          "a sequence of 'Refs' of edit_distance is empty; its length is the "
          "divisor"));
  Tensor* const rows = context->Scratch(
      static_cast<size_t>(of_hyps.count() * 3 * args.width) * sizeof(int32_t));
  PD_ASSIGN_OR_RETURN(const auto start, Starter<EditDistanceArgs>::Find(
                                            binding, "edit_distance"));
  return Step([=](const RunContext&) {
    EditDistanceArgs run = args;
    run.hyps.lengths = LengthsOf(of_hyps);
    run.refs.lengths = LengthsOf(of_refs);
    run.hyp = hyps->raw();
    run.ref = refs->raw();
    run.out = At(out);
    run.number = number == nullptr ? nullptr : number->data<int64_t>();
    run.rows = rows->data<int32_t>();
    return start.Items(run.hyps.count, run);
  });
}

}  // namespace

void AddGatherTree(KernelTable* kernels) {
  kernels->Add("gather_tree",
               Implementation("cuda", BindGatherTree).FollowsInputs());
  kernels->Add("edit_distance",
               Implementation("cuda", BindEditDistance).FollowsInputs());
}

}  // namespace pd::cuda
