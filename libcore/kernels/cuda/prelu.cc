// SPDX-License-Identifier: Apache-2.0
// prelu and maxout; the kernels are in prelu.cu.
#include "libcore/ops/activation/prelu.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"

namespace pd::cuda {
namespace {

absl::StatusOr<PreluArgs> ReadPrelu(const BindContext& context, const Tensor& x,
                                    const Tensor& alpha) {
  PD_ASSIGN_OR_RETURN(const Slopes slopes,
                      ReadSlopes(context.op(), x.shape(), alpha.size()));
  PreluArgs args{};
  args.outer = slopes.outer;
  args.n = slopes.n;
  args.inner = slopes.inner;
  return args;
}

absl::StatusOr<Step> BindPrelu(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *alpha = context->Input("Alpha"),
         *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameFloats({x, alpha, out}));
  PD_ASSIGN_OR_RETURN(const PreluArgs args, ReadPrelu(*context, *x, *alpha));
  context->MayShare(x, out);
  PD_ASSIGN_OR_RETURN(const auto start,
                      Starter<PreluArgs>::Find(binding, "prelu"));
  return Step([=](const RunContext&) {
    PreluArgs run = args;
    run.x = Read<float>(x);
    run.alpha = Read<float>(alpha);
    run.out = Write<float>(out);
    return start.Elements(x->size(), run);
  });
}

absl::StatusOr<Step> BindPreluGrad(BindContext* context,
                                   DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *alpha = context->Input("Alpha"),
         *dout = context->Input("Out@GRAD"), *dx = context->Output("X@GRAD"),
         *dalpha = context->Output("Alpha@GRAD");
  PD_RETURN_IF_ERROR(SameFloats({x, alpha, dout, dx, dalpha}));
  PD_ASSIGN_OR_RETURN(const PreluArgs args, ReadPrelu(*context, *x, *alpha));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  using Start = Starter<PreluArgs>;
  PD_ASSIGN_OR_RETURN(const auto by_x, Start::Find(binding, "prelu_grad_x"));
  PD_ASSIGN_OR_RETURN(const auto by_alpha,
                      Start::Find(binding, "prelu_grad_alpha"));
  return Step([=](const RunContext&) {
    PreluArgs run = args;
    run.x = Read<float>(x);
    run.alpha = Read<float>(alpha);
    run.dout = Read<float>(dout);
    run.out = Write<float>(dx);
    run.dalpha = Write<float>(dalpha);
    if (dx != nullptr) PD_RETURN_IF_ERROR(by_x.Elements(x->size(), run));
    return dalpha != nullptr ? by_alpha.Items(run.n, run) : absl::OkStatus();
  });
}

absl::StatusOr<Step> BindMaxout(BindContext* context, DeviceBinding* binding) {
  const bool grad = context->Output("X@GRAD") != nullptr;
  Tensor *x = context->Input("X"),
         *out = grad ? context->Input("Out") : context->Output("Out"),
         *dout = context->Input("Out@GRAD"), *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameFloats({x, out, dout, dx}));
  MaxoutArgs args{};
  args.groups = context->Attr<int32_t>("groups");
  PD_ASSIGN_OR_RETURN(
      const AxisView view,
      ViewAxis(out->shape(), context->op().Attr<int32_t>("axis")));
  args.n = out->size();
  args.inner = view.inner;
  if (x->size() != args.n * args.groups ||
      (grad && (dout->size() != args.n || dx->size() != x->size())))
    return Unimplemented("X has shape %s, Out %s", ToString(x->shape()),
                         ToString(out->shape()));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<MaxoutArgs>::Find(binding, grad ? "maxout_grad" : "maxout"));
  return Step([=](const RunContext&) {
    MaxoutArgs run = args;
    run.x = Read<float>(x);
    run.out = Read<float>(out);
    run.dout = Read<float>(dout);
    run.to = Write<float>(grad ? dx : out);
    return start.Elements(run.n, run);
  });
}

}  // namespace

void AddPrelu(KernelTable* kernels) {
  kernels->Add("prelu", {"cuda", BindPrelu});
  kernels->Add("prelu_grad", {"cuda", BindPreluGrad});
  kernels->Add("maxout", {"cuda", BindMaxout});
  kernels->Add("maxout_grad", {"cuda", BindMaxout});
}

}  // namespace pd::cuda
