// SPDX-License-Identifier: Apache-2.0
// linear_chain_crf, its gradient and crf_decoding; the kernels are in
// linear_chain_crf.cu.
#include "libcore/ops/loss/linear_chain_crf.h"
#include "libcore/kernels/cuda/linear_chain_crf_arguments.h"
#include "libcore/kernels/cuda/spans.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

absl::StatusOr<int32_t*> ComplainOfTags(const BindContext& context,
                                        DeviceBinding* binding, int64_t tags) {
  return binding->ErrorFlag(absl::StrFormat(
      "'Label' of %s holds a number outside [0, %d)", context.op().type, tags));
}

size_t FloatBytes(int64_t floats) {
  return static_cast<size_t>(floats) * sizeof(float);
}

absl::StatusOr<Step> BindCrf(BindContext* context, DeviceBinding* binding) {
  Tensor *emission = context->Input("Emission"),
         *transition = context->Input("Transition"),
         *label = context->Input("Label"),
         *cost = context->Output("LogLikelihood"),
         *alpha = context->Output("Alpha"),
         *exps = context->Output("EmissionExps"),
         *transition_exps = context->Output("TransitionExps");
  PD_RETURN_IF_ERROR(OnlyFloat32({emission, transition, cost}));
  PD_ASSIGN_OR_RETURN(const CrfRows r,
                      ReadCrfRows(*context, emission->shape(), "Label"));
  PD_RETURN_IF_ERROR(CheckCrfTags(*context, r.rows));
  if (emission->size() == 0) return Unimplemented("no elements");
  if (alpha == nullptr) alpha = context->Scratch(emission->bytes());
  if (exps == nullptr) exps = context->Scratch(emission->bytes());
  if (transition_exps == nullptr)
    transition_exps = context->Scratch(transition->bytes());
  Tensor* const max = context->Scratch(FloatBytes(r.rows));
  CrfArgs args{};
  args.rows = r.rows;
  args.tags = r.tags;
  PD_ASSIGN_OR_RETURN(args.spans,
                      KeepSpans(*context, binding, r.spans, "Length"));
  PD_ASSIGN_OR_RETURN(args.wide, IsWide(*label));
  PD_ASSIGN_OR_RETURN(args.bad_tag, ComplainOfTags(*context, binding, r.tags));
  using Start = Starter<CrfArgs>;
  PD_ASSIGN_OR_RETURN(const auto first, Start::Find(binding, "crf_exps"));
  PD_ASSIGN_OR_RETURN(const auto then, Start::Find(binding, "crf_cost"));
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    PD_RETURN_IF_ERROR(device->Clear(alpha->raw(), emission->bytes()));
    CrfArgs run = args;
    run.spans.lengths = LengthsOf(r.spans);
    run.emission = At(emission);
    run.transition = At(transition);
    run.label = label->raw();
    run.alpha = At(alpha);
    run.exps = At(exps);
    run.transition_exps = At(transition_exps);
    run.cost = At(cost);
    run.max = At(max);
    PD_RETURN_IF_ERROR(
        first.Elements(std::max(r.rows, transition->size()), run));
    return then.Items(run.spans.count, run);
  });
}

absl::StatusOr<Step> BindCrfGrad(BindContext* context, DeviceBinding* binding) {
  Tensor *label = context->Input("Label"), *alpha = context->Input("Alpha"),
         *exps = context->Input("EmissionExps"),
         *transition_exps = context->Input("TransitionExps"),
         *dcost = context->Input("LogLikelihood@GRAD"),
         *de = context->Output("Emission@GRAD"),
         *dw = context->Output("Transition@GRAD");
  context->NoBuffer(context->Input("Emission"));
  context->NoBuffer(context->Input("Transition"));
  PD_RETURN_IF_ERROR(OnlyFloat32({exps}));
  PD_ASSIGN_OR_RETURN(const CrfRows r,
                      ReadCrfRows(*context, exps->shape(), "Label"));
  PD_RETURN_IF_ERROR(CheckCrfTags(*context, r.rows));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Alpha", exps->dtype(), exps->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "TransitionExps", exps->dtype(),
                                    (r.tags + 2) * r.tags));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "LogLikelihood@GRAD",
                                    exps->dtype(), r.spans.count()));
  if (exps->size() == 0) return Unimplemented("no elements");
  if (de == nullptr) de = context->Scratch(exps->bytes());
  Tensor* const beta = context->Scratch(exps->bytes());
  Tensor* const sums = context->Scratch(FloatBytes(r.rows));
  CrfGradArgs args{};
  args.rows = r.rows;
  args.tags = r.tags;
  PD_ASSIGN_OR_RETURN(args.spans,
                      KeepSpans(*context, binding, r.spans, "Length"));
  PD_ASSIGN_OR_RETURN(args.wide, IsWide(*label));
  PD_ASSIGN_OR_RETURN(args.bad_tag, ComplainOfTags(*context, binding, r.tags));
  using Start = Starter<CrfGradArgs>;
  PD_ASSIGN_OR_RETURN(const auto first, Start::Find(binding, "crf_grad"));
  PD_ASSIGN_OR_RETURN(const auto then,
                      Start::Find(binding, "crf_transition_grad"));
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    PD_RETURN_IF_ERROR(device->Clear(de->raw(), exps->bytes()));
    CrfGradArgs run = args;
    run.spans.lengths = LengthsOf(r.spans);
    run.alpha = At(alpha);
    run.exps = At(exps);
    run.transition_exps = At(transition_exps);
    run.dcost = At(dcost);
    run.label = label->raw();
    run.beta = At(beta);
    run.de = At(de);
    run.dw = At(dw);
    run.sums = At(sums);
    PD_RETURN_IF_ERROR(first.Items(run.spans.count, run));
    return dw == nullptr ? absl::OkStatus() : then.Elements(dw->size(), run);
  });
}

absl::StatusOr<Step> BindDecoding(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *emission = context->Input("Emission"),
         *transition = context->Input("Transition"),
         *label = context->Input("Label"),
         *path = context->Output("ViterbiPath");
  PD_RETURN_IF_ERROR(OnlyFloat32({emission, transition}));
  PD_ASSIGN_OR_RETURN(const CrfRows r,
                      ReadCrfRows(*context, emission->shape(), "Emission"));
  if (label != nullptr) PD_RETURN_IF_ERROR(CheckCrfTags(*context, r.rows));
  if (emission->size() == 0) return Unimplemented("no elements");
  CrfDecodeArgs args{};
  args.tags = r.tags;
  PD_ASSIGN_OR_RETURN(args.spans,
                      KeepSpans(*context, binding, r.spans, "Length"));
  if (label != nullptr) {
    PD_ASSIGN_OR_RETURN(args.wide, IsWide(*label));
  }
  Tensor* const scores =
      context->Scratch(FloatBytes(r.spans.count() * 2 * r.tags));
  Tensor* const from =
      context->Scratch(static_cast<size_t>(emission->size()) * sizeof(int32_t));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<CrfDecodeArgs>::Find(binding, "crf_decode"));
  return Step([=, device = CudaOf(binding)](const RunContext&) {
    PD_RETURN_IF_ERROR(device->Clear(path->raw(), path->bytes()));
    CrfDecodeArgs run = args;
    run.spans.lengths = LengthsOf(r.spans);
    run.emission = At(emission);
    run.transition = At(transition);
    run.label = label == nullptr ? nullptr : label->raw();
    run.scores = At(scores);
    run.from = from->data<int32_t>();
    run.path = path->data<int64_t>();
    return start.Items(run.spans.count, run);
  });
}

}  // namespace

void AddLinearChainCrf(KernelTable* kernels) {
  kernels->Add("linear_chain_crf", {"cuda", BindCrf});
  kernels->Add("linear_chain_crf_grad", {"cuda", BindCrfGrad});
  kernels->Add("crf_decoding", {"cuda", BindDecoding});
}

}  // namespace pd::cuda
