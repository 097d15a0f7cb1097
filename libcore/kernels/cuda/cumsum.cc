// SPDX-License-Identifier: Apache-2.0
// cumsum and its gradient, which is one the other way; the kernels are in
// cumsum.cu.
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/ops/common/axis_view.h"

namespace pd::cuda {
namespace {

template <typename T>
absl::StatusOr<Step> SumLines(BindContext* context, DeviceBinding* binding,
                              const AxisView& view, bool backward, Tensor* x,
                              Tensor* out) {
  CumsumArgsOf<T> args{};
  args.lines = view.lines();
  args.n = view.n;
  args.inner = view.inner;
  args.exclusive = context->Attr<bool>("exclusive");
  args.reverse = context->Attr<bool>("reverse") != backward;
  // Integers have one sum in any order.
  const int64_t long_line = std::is_integral_v<T> ? 32 : 1024;
  const bool by_block = args.n >= long_line && args.lines <= 4096;
  const char* const dtype = std::is_same_v<T, int64_t>   ? "_int64"
                            : std::is_same_v<T, int32_t> ? "_int32"
                                                         : "";
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<CumsumArgsOf<T>>::Find(
          binding,
          absl::StrCat("cumsum_by_", by_block ? "block" : "thread", dtype)));
  Tensor* const parts =
      by_block ? context->Scratch(static_cast<size_t>(args.lines * kThreads) *
                                  sizeof(T))
               : nullptr;
  return Step([=](const RunContext&) {
    CumsumArgsOf<T> run = args;
    run.x = At<T>(x);
    run.out = At<T>(out);
    run.parts = At<T>(parts);
    return by_block ? start.Items(run.lines, run)
                    : start.Elements(run.lines, run);
  });
}

absl::StatusOr<Step> BindCumsum(BindContext* context, DeviceBinding* binding) {
  Tensor* const dx = context->Output("X@GRAD");
  Tensor* x = dx != nullptr ? context->Input("Out@GRAD") : context->Input("X");
  Tensor* out = dx != nullptr ? dx : context->Output("Out");
  PD_RETURN_IF_ERROR(
      OneDType({x, out}, {DType::kFloat32, DType::kInt32, DType::kInt64}));
  if (x->size() != out->size() || x->size() == 0)
    return Unimplemented("sums of %d of %d elements", out->size(), x->size());
  AxisView view;
  view.n = x->size();
  if (!context->Attr<bool>("flatten")) {
    PD_ASSIGN_OR_RETURN(view,
                        ViewAxis(out->shape(), context->Attr<int32_t>("axis")));
  }
  if (dx != nullptr) context->NoBuffer(context->Input("X"));
  return DispatchTypes<float, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        return SumLines<typename decltype(tag)::type>(context, binding, view,
                                                      dx != nullptr, x, out);
      });
}

}  // namespace

void AddCumsum(KernelTable* kernels) {
  AddMove<BindCumsum>("cumsum", kernels);
  AddMove<BindCumsum>("cumsum_grad", kernels);
}

}  // namespace pd::cuda
