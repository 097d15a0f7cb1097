// SPDX-License-Identifier: Apache-2.0
// cumsum and its gradient, which is one the other way; the kernels are in
// cumsum.cu.
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/common/axis_view.h"

namespace pd::cuda {
namespace {

absl::StatusOr<Step> BindCumsum(BindContext* context, DeviceBinding* binding) {
  Tensor* const dx = context->Output("X@GRAD");
  Tensor* x = dx != nullptr ? context->Input("Out@GRAD") : context->Input("X");
  Tensor* out = dx != nullptr ? dx : context->Output("Out");
  PD_RETURN_IF_ERROR(OnlyFloat32({x, out}));
  if (x->size() != out->size() || x->size() == 0)
    return Unimplemented("sums of %d of %d elements", out->size(), x->size());
  AxisView view;
  view.n = x->size();
  if (!context->Attr<bool>("flatten")) {
    PD_ASSIGN_OR_RETURN(view,
                        ViewAxis(out->shape(), context->Attr<int32_t>("axis")));
  }
  if (dx != nullptr) context->NoBuffer(context->Input("X"));
  CumsumArgs args{};
  args.lines = view.lines();
  args.n = view.n;
  args.inner = view.inner;
  args.exclusive = context->Attr<bool>("exclusive");
  args.reverse = context->Attr<bool>("reverse") != (dx != nullptr);
  const bool by_block = args.n >= 1024 && args.lines <= 4096;
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<CumsumArgs>::Find(
          binding, by_block ? "cumsum_by_block" : "cumsum_by_thread"));
  Tensor* const parts =
      by_block ? context->Scratch(static_cast<size_t>(args.lines * kThreads) *
                                  sizeof(float))
               : nullptr;
  return Step([=](const RunContext&) {
    CumsumArgs run = args;
    run.x = At(x);
    run.out = At(out);
    run.parts = At(parts);
    return by_block ? start.Items(run.lines, run)
                    : start.Elements(run.lines, run);
  });
}

}  // namespace

void AddCumsum(KernelTable* kernels) {
  kernels->Add("cumsum", {"cuda", BindCumsum});
  kernels->Add("cumsum_grad", {"cuda", BindCumsum});
}

}  // namespace pd::cuda
