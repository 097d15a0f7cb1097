// SPDX-License-Identifier: Apache-2.0
// warpctc and its gradient; the kernels are in warpctc.cu.
#include <algorithm>

#include "libcore/kernels/cuda/spans.h"
#include "libcore/kernels/cuda/warpctc_arguments.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/loss/warpctc.h"

namespace pd::cuda {
namespace {

absl::StatusOr<CtcArgs> WarpctcArgsOf(const BindContext& context,
                                      DeviceBinding* binding,
                                      const CtcBatch& batch) {
  CtcArgs args{};
  PD_ASSIGN_OR_RETURN(
      args.logits, KeepSpans(context, binding, batch.logits, "LogitsLength"));
  args.count = batch.count;
  args.classes = batch.classes;
  args.steps = batch.max_steps;
  args.blank = batch.blank;
  args.padded = batch.padded ? 1 : 0;
  if (args.count * args.classes * args.steps == 0)
    return Unimplemented("no elements");
  return args;
}

// The most tokens that a label may have.
int64_t MostTokens(const SequenceSpans& labels) {
  if (labels.lengths() != nullptr) return labels.width();
  int64_t most = 0;
  for (size_t i = 0; i + 1 < labels.offsets().size(); ++i)
    most = std::max(most, labels.offsets()[i + 1] - labels.offsets()[i]);
  return most;
}

Tensor* ScratchDoubles(BindContext* context, int64_t doubles) {
  return context->Scratch(static_cast<size_t>(doubles) * sizeof(double));
}

absl::StatusOr<Step> BindCtc(BindContext* context, DeviceBinding* binding) {
  Tensor *logits = context->Input("Logits"), *label = context->Input("Label"),
         *loss = context->Output("Loss"),
         *kept = context->Output("WarpCTCGrad");
  PD_RETURN_IF_ERROR(OnlyFloat32({logits, loss}));
  PD_ASSIGN_OR_RETURN(CtcBatch batch, ReadCtcLogits(*context));
  PD_RETURN_IF_ERROR(ReadCtcLabels(*context, &batch));
  PD_ASSIGN_OR_RETURN(CtcArgs args, WarpctcArgsOf(*context, binding, batch));
  PD_ASSIGN_OR_RETURN(
      args.labels, KeepSpans(*context, binding, batch.labels, "LabelLength"));
  PD_ASSIGN_OR_RETURN(args.wide, IsWide(*label));
  PD_ASSIGN_OR_RETURN(args.bad_label,
                      binding->ErrorFlag(absl::StrFormat(
                          "'Label' of %s holds a number outside [0, %d)",
                          context->op().type, batch.classes)));
  args.states = 2 * MostTokens(batch.labels) + 1;
  const int64_t rows = args.steps * args.count;
  const size_t kept_bytes =
      static_cast<size_t>(rows * args.classes) * sizeof(float);
  if (kept == nullptr) kept = context->Scratch(kept_bytes);
  Tensor* const log_sums = ScratchDoubles(context, rows);
  Tensor* const prefixes = ScratchDoubles(context, rows * args.states);
  Tensor* const suffixes =
      ScratchDoubles(context, args.count * 3 * args.states);
  using Start = Starter<CtcArgs>;
  PD_ASSIGN_OR_RETURN(const auto softmax, Start::Find(binding, "ctc_softmax"));
  PD_ASSIGN_OR_RETURN(const auto align, Start::Find(binding, "ctc_align"));
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    PD_RETURN_IF_ERROR(device->Clear(kept->raw(), kept_bytes));
    CtcArgs run = args;
    run.logits.lengths = LengthsOf(batch.logits);
    run.labels.lengths = LengthsOf(batch.labels);
    run.x = At(logits);
    run.label = label->raw();
    run.kept = At(kept);
    run.loss = At(loss);
    run.log_sums = log_sums->data<double>();
    run.prefixes = prefixes->data<double>();
    run.suffixes = suffixes->data<double>();
    PD_RETURN_IF_ERROR(softmax.Items(rows, run));
    return align.Items(run.count, run);
  });
}

absl::StatusOr<Step> BindCtcGrad(BindContext* context, DeviceBinding* binding) {
  Tensor *logits = context->Input("Logits"),
         *kept = context->Input("WarpCTCGrad"),
         *dloss = context->Input("Loss@GRAD"),
         *dx = context->Output("Logits@GRAD");
  context->NoBuffer(logits);
  PD_RETURN_IF_ERROR(OnlyFloat32({logits, dx}));
  PD_ASSIGN_OR_RETURN(const CtcBatch batch, ReadCtcLogits(*context));
  PD_ASSIGN_OR_RETURN(CtcArgs args, WarpctcArgsOf(*context, binding, batch));
  args.by_times = context->Attr<bool>("norm_by_times") ? 1 : 0;
  const int64_t rows = args.steps * args.count;
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Loss@GRAD", DType::kFloat32, batch.count));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "WarpCTCGrad", DType::kFloat32,
                                    rows * args.classes));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<CtcArgs>::Find(binding, "ctc_grad"));
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    PD_RETURN_IF_ERROR(device->Clear(dx->raw(), dx->bytes()));
    CtcArgs run = args;
    run.logits.lengths = LengthsOf(batch.logits);
    run.kept = At(kept);
    run.dloss = At(dloss);
    run.dx = At(dx);
    return start.Items(rows, run);
  });
}

}  // namespace

void AddWarpctc(KernelTable* kernels) {
  kernels->Add("warpctc", {"cuda", BindCtc});
  kernels->Add("warpctc_grad", {"cuda", BindCtcGrad});
}

}  // namespace pd::cuda
