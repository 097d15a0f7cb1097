// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and softmax_with_cross_entropy; the kernels are in
// lines.cu.
#include <string>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/ops/axis_view.h"
#include "libcore/ops/check.h"

namespace pd::cuda {
namespace {

absl::StatusOr<LinesArgs> ViewLines(const BindContext& context,
                                    const Tensor& tensor) {
  PD_ASSIGN_OR_RETURN(const AxisView view,
                      ViewAxis(tensor.shape(), context.Attr<int32_t>("axis")));
  LinesArgs args{};
  args.lines = view.lines();
  args.n = view.n;
  args.inner = view.inner;
  return args;
}

absl::StatusOr<Step> BindSoftmax(BindContext* context, DeviceBinding* binding) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameFloats({x, out}));
  context->MayShare(x, out);
  PD_ASSIGN_OR_RETURN(const LinesArgs args, ViewLines(*context, *x));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<LinesArgs>::Find(binding, context->op().type));
  return Step([=](const RunContext&) {
    LinesArgs run = args;
    run.x = ReadFloats(x);
    run.out = WriteFloats(out);
    return start.Items(run.lines, run);
  });
}

absl::StatusOr<Step> BindSoftmaxGrad(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameFloats({out, dout, dx}));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", out->dtype(), out->shape()));
  context->MayShare(dout, dx);
  PD_ASSIGN_OR_RETURN(const LinesArgs args, ViewLines(*context, *out));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<LinesArgs>::Find(binding, context->op().type));
  return Step([=](const RunContext&) {
    LinesArgs run = args;
    run.x = ReadFloats(out);
    run.y = ReadFloats(dout);
    run.out = WriteFloats(dx);
    return start.Items(run.lines, run);
  });
}

// Attributes and the label of either op; refuses what the kernels do not do.
absl::StatusOr<LinesArgs> ReadEntropy(BindContext* context,
                                      const Tensor& logits, bool* soft) {
  PD_ASSIGN_OR_RETURN(LinesArgs args, ViewLines(*context, logits));
  args.given = context->Attr<bool>("use_softmax") ? 0 : 1;
  *soft = context->Attr<bool>("soft_label");
  args.ignore = context->Attr<int32_t>("ignore_index");
  const Tensor* label = context->Input("Label");
  if (!*soft && label->dtype() != DType::kInt64 &&
      label->dtype() != DType::kInt32)
    return Unimplemented("labels of dtype %s", Name(label->dtype()));
  args.label64 = label->dtype() == DType::kInt64;
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Label",
                                    *soft ? logits.dtype() : label->dtype(),
                                    *soft ? logits.size() : args.lines));
  return args;
}

absl::StatusOr<Step> BindEntropy(BindContext* context, DeviceBinding* binding) {
  Tensor* x = context->Input("Logits");
  Tensor* label = context->Input("Label");
  Tensor* out = context->Output("Softmax");
  Tensor* loss = context->Output("Loss");
  if (out == nullptr || loss == nullptr)
    return Unimplemented("an output is missing");
  PD_RETURN_IF_ERROR(SameFloats({x, out, loss}));
  bool soft = false;
  PD_ASSIGN_OR_RETURN(LinesArgs args, ReadEntropy(context, *x, &soft));
  PD_ASSIGN_OR_RETURN(
      args.bad,
      binding->Complaint(absl::StrFormat(
          "'Label' of softmax_with_cross_entropy that makes '%s' holds a "
          "number outside [0, %d) that is not ignore_index %d",
          context->op().Out("Loss"), args.n, args.ignore)));
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<LinesArgs>::Find(binding, "cross_entropy"));
  return Step([=](const RunContext&) {
    LinesArgs run = args;
    run.x = ReadFloats(x);
    if (soft) run.y = ReadFloats(label);
    run.label = label->raw();
    run.out = WriteFloats(out);
    run.second = WriteFloats(loss);
    return start.Items(run.lines, run);
  });
}

absl::StatusOr<Step> BindEntropyGrad(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor* softmax = context->Input("Softmax");
  Tensor* label = context->Input("Label");
  Tensor* dloss = context->Input("Loss@GRAD");
  Tensor* dx = context->Output("Logits@GRAD");
  PD_RETURN_IF_ERROR(SameFloats({softmax, dloss, dx}));
  bool soft = false;
  PD_ASSIGN_OR_RETURN(const LinesArgs args,
                      ReadEntropy(context, *softmax, &soft));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Loss@GRAD", softmax->dtype(), args.lines));
  context->MayShare(softmax, dx);
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<LinesArgs>::Find(binding, "cross_entropy_grad"));
  return Step([=](const RunContext&) {
    LinesArgs run = args;
    run.x = ReadFloats(softmax);
    if (soft) run.y = ReadFloats(label);
    run.label = label->raw();
    run.z = ReadFloats(dloss);
    run.out = WriteFloats(dx);
    return start.Elements(run.lines * run.n, run);
  });
}

}  // namespace

void AddLines(DeviceKernels* kernels) {
  for (const std::string type : {"softmax", "log_softmax"}) {
    kernels->Add(type, {"cuda", BindSoftmax});
    kernels->Add(type + "_grad", {"cuda", BindSoftmaxGrad});
  }
  kernels->Add("softmax_with_cross_entropy", {"cuda", BindEntropy});
  kernels->Add("softmax_with_cross_entropy_grad", {"cuda", BindEntropyGrad});
}

}  // namespace pd::cuda
