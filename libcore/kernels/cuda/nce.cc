// SPDX-License-Identifier: Apache-2.0
// nce and its gradient; the kernels are in nce.cu and linear_rows.cu.
#include "libcore/ops/loss/nce.h"

#include "absl/strings/str_format.h"
#include "libcore/kernels/cuda/device_tables.h"
#include "libcore/kernels/cuda/linear_rows.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

absl::StatusOr<NceArgs> NceArgsOf(const BindContext& context,
                                  DeviceBinding* binding, const NceProblem& p) {
  PD_RETURN_IF_ERROR(OnlyFloat32({p.input}));
  NceArgs args{};
  args.samples = p.rows;
  args.labels = p.labels;
  args.columns = p.columns;
  args.width = p.width;
  args.total = p.sampler.classes;
  args.known = std::min(p.sampler.classes, p.weight->dim(0));
  args.sampler = p.sampler.kind;
  args.negatives = p.negatives;
  if (args.known == 0 || args.samples * args.columns * args.width == 0)
    return Unimplemented("no elements");
  PD_ASSIGN_OR_RETURN(args.wide, IsWide(*p.label));
  PD_ASSIGN_OR_RETURN(
      args.bad, binding->ErrorFlag(absl::StrFormat(
                    "a label of %s or a class that it draws is outside [0, %d)",
                    context.op().type, args.known)));
  return args;
}

// With what is known when a step runs.
NceArgs NceArgsNow(NceArgs args, const NceProblem& p) {
  args.x = At(p.input);
  args.w = At(p.weight);
  args.bias = At(p.bias);
  args.sample_weight = At(p.sample_weight);
  args.label = p.label->raw();
  args.probs = At(p.sampler.probs);
  args.alias_probs = At(p.sampler.alias_probs);
  if (p.sampler.alias != nullptr) args.alias = p.sampler.alias->data<int32_t>();
  return args;
}

absl::StatusOr<Step> BindNce(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const NceProblem p, ReadNceProblem(*context));
  PD_ASSIGN_OR_RETURN(const NceDraws draws, ReadNceDraws(*context, p));
  PD_ASSIGN_OR_RETURN(NceArgs args, NceArgsOf(*context, binding, p));
  Tensor *cost = context->Output("Cost"),
         *logits = context->Output("SampleLogits"),
         *classes = context->Output("SampleLabels");
  const auto pairs = static_cast<size_t>(p.rows * p.columns);
  if (logits == nullptr) logits = context->Scratch(pairs * sizeof(float));
  if (classes == nullptr) classes = context->Scratch(pairs * sizeof(int64_t));
  PD_ASSIGN_OR_RETURN(args.given, KeepTable(binding, draws.given));
  args.draws.seed = draws.seed;
  args.draws.stream = draws.stream;
  if (draws.seed == 0) {
    PD_ASSIGN_OR_RETURN(args.draws.run, binding->SeedAndStep());
  }
  using Start = Starter<NceArgs>;
  PD_ASSIGN_OR_RETURN(const auto choose, Start::Find(binding, "nce_classes"));
  PD_ASSIGN_OR_RETURN(const auto multiply, Start::Find(binding, "nce_logits"));
  PD_ASSIGN_OR_RETURN(const auto sum, Start::Find(binding, "nce_cost"));
  return Step([=](const RunContext&) {
    NceArgs run = NceArgsNow(args, p);
    run.classes = classes->data<int64_t>();
    run.logits = At(logits);
    run.cost = At(cost);
    PD_RETURN_IF_ERROR(choose.Elements(run.samples * run.columns, run));
    PD_RETURN_IF_ERROR(multiply.Elements(run.samples * run.columns, run));
    return sum.Elements(run.samples, run);
  });
}

absl::StatusOr<Step> BindNceGrad(BindContext* context, DeviceBinding* binding) {
  PD_ASSIGN_OR_RETURN(const NceProblem p, ReadNceProblem(*context));
  PD_ASSIGN_OR_RETURN(const NceArgs args, NceArgsOf(*context, binding, p));
  Tensor *logits = context->Input("SampleLogits"),
         *classes = context->Input("SampleLabels"),
         *dcost = context->Input("Cost@GRAD");
  const int64_t pairs = p.rows * p.columns;
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "SampleLogits", DType::kFloat32, pairs));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "SampleLabels", DType::kInt64, pairs));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Cost@GRAD", DType::kFloat32, p.rows));
  const LinearRowsGrad to{
      context->Output("Input@GRAD"), context->Output("Weight@GRAD"),
      p.bias != nullptr ? context->Output("Bias@GRAD") : nullptr,
      context->Attr<bool>("is_sparse"), pairs};
  PD_ASSIGN_OR_RETURN(
      const LinearRows grads,
      LinearRows::Make(context, binding, p.input, p.weight, p.columns, to));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<NceArgs>::Find(binding, "nce_slopes"));
  return Step([=](const RunContext&) {
    NceArgs run = NceArgsNow(args, p);
    run.classes = classes->data<int64_t>();
    run.logits = At(logits);
    run.dcost = At(dcost);
    run.dz = grads.dz();
    run.rows = grads.rows();
    PD_RETURN_IF_ERROR(start.Elements(pairs, run));
    return grads.Run();
  });
}

}  // namespace

void AddNce(KernelTable* kernels) {
  kernels->Add("nce", {"cuda", BindNce});
  kernels->Add("nce_grad",
               Implementation("cuda", BindNceGrad).TakesSelectedRows());
}

}  // namespace pd::cuda
