// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and softmax_with_cross_entropy; the kernels are in
// softmax.cu.
#include <string>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/line_starter.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// Lines without their numbers.
template <typename T>
LinesArgsOf<T> SoftmaxArgsOf(const AxisView& view) {
  LinesArgsOf<T> args{};
  args.lines = view.lines();
  args.n = view.n;
  args.inner = view.inner;
  return args;
}

absl::StatusOr<AxisView> ViewLines(const BindContext& context,
                                   const Tensor& tensor) {
  return ViewAxis(tensor.shape(), context.Attr<int32_t>("axis"));
}

absl::StatusOr<Step> BindSoftmax(BindContext* context, DeviceBinding* binding) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  context->MayShare(x, out);
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewLines(*context, *x));
  return ForReal(*x, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto start,
                        LineStarter<T>::Find(binding, context->op().type));
    return Step([=, args = SoftmaxArgsOf<T>(view)](const RunContext&) {
      LinesArgsOf<T> run = args;
      run.x = Read<T>(x);
      run.out = Write<T>(out);
      return start(run);
    });
  });
}

absl::StatusOr<Step> BindSoftmaxGrad(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameNumbers({out, dout, dx}));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", out->dtype(), out->shape()));
  context->MayShare(dout, dx);
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewLines(*context, *out));
  return ForReal(*out, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto start,
                        LineStarter<T>::Find(binding, context->op().type));
    return Step([=, args = SoftmaxArgsOf<T>(view)](const RunContext&) {
      LinesArgsOf<T> run = args;
      run.x = Read<T>(out);
      run.y = Read<T>(dout);
      run.out = Write<T>(dx);
      return start(run);
    });
  });
}

// Attributes and the label of either op; refuses what the kernels do not do.
template <typename T>
absl::StatusOr<LinesArgsOf<T>> ReadEntropy(BindContext* context,
                                           const Tensor& logits, bool* soft) {
  PD_ASSIGN_OR_RETURN(const AxisView view, ViewLines(*context, logits));
  LinesArgsOf<T> args = SoftmaxArgsOf<T>(view);
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

template <typename T>
absl::StatusOr<Step> BindEntropyOf(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor* x = context->Input("Logits");
  Tensor* label = context->Input("Label");
  Tensor* out = context->Output("Softmax");
  Tensor* loss = context->Output("Loss");
  if (out == nullptr || loss == nullptr)
    return Unimplemented("an output is missing");
  PD_RETURN_IF_ERROR(SameNumbers({x, out, loss}));
  bool soft = false;
  PD_ASSIGN_OR_RETURN(LinesArgsOf<T> args, ReadEntropy<T>(context, *x, &soft));
  PD_ASSIGN_OR_RETURN(
      args.bad,
      binding->ErrorFlag(absl::StrFormat(
          "'Label' of softmax_with_cross_entropy that makes '%s' holds a "
          "number outside [0, %d) that is not ignore_index %d",
          context->op().Out("Loss"), args.n, args.ignore)));
  PD_ASSIGN_OR_RETURN(const auto start,
                      LineStarter<T>::Find(binding, "cross_entropy"));
  return Step([=](const RunContext&) {
    LinesArgsOf<T> run = args;
    run.x = Read<T>(x);
    if (soft) run.y = Read<T>(label);
    run.label = label->raw();
    run.out = Write<T>(out);
    run.second = Write<T>(loss);
    return start(run);
  });
}

absl::StatusOr<Step> BindEntropy(BindContext* context, DeviceBinding* binding) {
  return ForReal(*context->Input("Logits"), [&](auto tag) {
    return BindEntropyOf<typename decltype(tag)::type>(context, binding);
  });
}

template <typename T>
absl::StatusOr<Step> BindEntropyGradOf(BindContext* context,
                                       DeviceBinding* binding) {
  Tensor* softmax = context->Input("Softmax");
  Tensor* label = context->Input("Label");
  Tensor* dloss = context->Input("Loss@GRAD");
  Tensor* dx = context->Output("Logits@GRAD");
  PD_RETURN_IF_ERROR(SameNumbers({softmax, dloss, dx}));
  bool soft = false;
  PD_ASSIGN_OR_RETURN(const LinesArgsOf<T> args,
                      ReadEntropy<T>(context, *softmax, &soft));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Loss@GRAD", softmax->dtype(), args.lines));
  context->MayShare(softmax, dx);
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<LinesArgsOf<T>>::Find(
                          binding, KernelFor<T>("cross_entropy_grad")));
  return Step([=](const RunContext&) {
    LinesArgsOf<T> run = args;
    run.x = Read<T>(softmax);
    if (soft) run.y = Read<T>(label);
    run.label = label->raw();
    run.z = Read<T>(dloss);
    run.out = Write<T>(dx);
    return start.Elements(run.lines * run.n, run);
  });
}

absl::StatusOr<Step> BindEntropyGrad(BindContext* context,
                                     DeviceBinding* binding) {
  return ForReal(*context->Input("Softmax"), [&](auto tag) {
    return BindEntropyGradOf<typename decltype(tag)::type>(context, binding);
  });
}

}  // namespace

void AddSoftmax(KernelTable* kernels) {
  for (const std::string type : {"softmax", "log_softmax"}) {
    kernels->Add(type, {"cuda", BindSoftmax});
    kernels->Add(type + "_grad", {"cuda", BindSoftmaxGrad});
  }
  kernels->Add("softmax_with_cross_entropy", {"cuda", BindEntropy});
  kernels->Add("softmax_with_cross_entropy_grad", {"cuda", BindEntropyGrad});
}

}  // namespace pd::cuda
