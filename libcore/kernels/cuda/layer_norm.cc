// SPDX-License-Identifier: Apache-2.0
// Layer norm; the kernels are in layer_norm.cu.
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

// Rows of X at begin_norm_axis.
template <typename T>
absl::StatusOr<NormArgsOf<T>> ReadNorm(BindContext* context, const Tensor& x) {
  const int32_t axis = context->Attr<int32_t>("begin_norm_axis");
  if (axis < 1 || axis >= static_cast<int32_t>(x.rank()))
    return Unimplemented("attr 'begin_norm_axis' is %d", axis);
  NormArgsOf<T> args{};
  args.epsilon = T{context->Attr<float>("epsilon")};
  args.rows = NumElements(x.shape(), 0, static_cast<size_t>(axis));
  args.n = NumElements(x.shape(), static_cast<size_t>(axis), x.rank());
  for (const char* slot : {"Scale", "Bias"})
    if (const Tensor* t = context->Input(slot))
      PD_RETURN_IF_ERROR(ExpectElements(*context, slot, t->dtype(), args.n));
  return args;
}

template <typename T>
absl::StatusOr<Step> BindLayerNormOf(BindContext* context,
                                     DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *scale = context->Input("Scale"),
         *bias = context->Input("Bias"), *y = context->Output("Y"),
         *mean = context->Output("Mean"),
         *variance = context->Output("Variance");
  PD_RETURN_IF_ERROR(SameAs<T>({x, y}));
  PD_RETURN_IF_ERROR(SameAs<T>({scale, bias}));
  PD_RETURN_IF_ERROR(OneDType({mean, variance}, {DTypeOf<T>()}));
  PD_ASSIGN_OR_RETURN(const NormArgsOf<T> args, ReadNorm<T>(context, *x));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<NormArgsOf<T>>::Find(binding, KernelFor<T>("layer_norm")));
  return Step([=](const RunContext&) {
    NormArgsOf<T> run = args;
    run.x = Read<T>(x);
    run.scale = Read<T>(scale);
    run.bias = Read<T>(bias);
    run.y = Write<T>(y);
    run.mean = At<T>(mean);
    run.variance = At<T>(variance);
    return start.Items(run.rows, run);
  });
}

absl::StatusOr<Step> BindLayerNorm(BindContext* context,
                                   DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindLayerNormOf<typename decltype(tag)::type>(context, binding);
  });
}

template <typename T>
absl::StatusOr<Step> BindLayerNormGradOf(BindContext* context,
                                         DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *scale = context->Input("Scale"),
         *mean = context->Input("Mean"), *variance = context->Input("Variance"),
         *dy = context->Input("Y@GRAD"), *dx = context->Output("X@GRAD"),
         *dscale = context->Output("Scale@GRAD"),
         *dbias = context->Output("Bias@GRAD");
  PD_RETURN_IF_ERROR(SameAs<T>({x, dy, dx}));
  PD_RETURN_IF_ERROR(SameAs<T>({scale, dscale, dbias}));
  PD_RETURN_IF_ERROR(OneDType({mean, variance}, {DTypeOf<T>()}));
  PD_ASSIGN_OR_RETURN(const NormArgsOf<T> args, ReadNorm<T>(context, *x));
  for (const char* slot : {"Mean", "Variance"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, DTypeOf<T>(), args.rows));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", x->dtype(), x->shape()));
  if (Tensor* bias = context->Input("Bias")) context->NoBuffer(bias);
  using Start = Starter<NormArgsOf<T>>;
  PD_ASSIGN_OR_RETURN(const auto by_x,
                      Start::Find(binding, KernelFor<T>("layer_norm_grad_x")));
  PD_ASSIGN_OR_RETURN(
      const auto by_scale,
      Start::Find(binding, KernelFor<T>("layer_norm_grad_scale")));
  return Step([=](const RunContext&) {
    NormArgsOf<T> run = args;
    run.x = Read<T>(x);
    run.scale = Read<T>(scale);
    run.mean = At<T>(mean);
    run.variance = At<T>(variance);
    run.dy = Read<T>(dy);
    run.y = Write<T>(dx);
    run.dscale = Write<T>(dscale);
    run.dbias = Write<T>(dbias);
    if (dx != nullptr) PD_RETURN_IF_ERROR(by_x.Items(run.rows, run));
    return dscale != nullptr || dbias != nullptr ? by_scale.Elements(run.n, run)
                                                 : absl::OkStatus();
  });
}

absl::StatusOr<Step> BindLayerNormGrad(BindContext* context,
                                       DeviceBinding* binding) {
  return ForReal(*context->Input("X"), [&](auto tag) {
    return BindLayerNormGradOf<typename decltype(tag)::type>(context, binding);
  });
}

}  // namespace

void AddLayerNorm(KernelTable* kernels) {
  kernels->Add("layer_norm", {"cuda", BindLayerNorm});
  kernels->Add("layer_norm_grad", {"cuda", BindLayerNormGrad});
}

}  // namespace pd::cuda
