// SPDX-License-Identifier: Apache-2.0
// unfold and fold, each of which is the gradient of the other; the kernels are
// in unfold.cu.
#include "libcore/ops/conv/unfold.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layer_arguments.h"

namespace pd::cuda {
namespace {

UnfoldAxis AxisOf(const Direction& d) {
  return {d.extent, d.kernel, d.stride, d.dilation, d.before, d.Windows()};
}

absl::StatusOr<Step> BindUnfoldWindows(BindContext* context,
                                       DeviceBinding* binding) {
  const std::string& type = context->op().type;
  const bool grad = context->Output("X@GRAD") != nullptr;
  const bool of_images = type.rfind("unfold", 0) == 0;
  Tensor* x = context->Input("X");
  Tensor* from = grad ? context->Input("Y@GRAD") : x;
  Tensor* to = grad ? context->Output("X@GRAD") : context->Output("Y");
  PD_RETURN_IF_ERROR(OnlyFloat32({from, to}));
  if (grad) context->NoBuffer(x);
  const Shape& shape = grad ? to->shape() : from->shape();
  PD_ASSIGN_OR_RETURN(const Columns c,
                      of_images ? ColumnsOfImage(context->op(), shape)
                                : ColumnsOfFold(context->op(), shape));
  WindowArgs args{};
  args.down = AxisOf(c.down);
  args.across = AxisOf(c.across);
  const bool to_columns = of_images != grad;
  const int64_t plane = c.down.extent * c.across.extent;
  const Tensor& images = to_columns ? *from : *to;
  const Tensor& columns = to_columns ? *to : *from;
  args.planes = plane == 0 ? 0 : images.size() / plane;
  if (args.planes * c.kernel() * c.windows() != columns.size() ||
      columns.size() == 0)
    return Unimplemented("%d planes make columns of shape %s", args.planes,
                         ToString(columns.shape()));
  PD_ASSIGN_OR_RETURN(
      const auto start,
      Starter<WindowArgs>::Find(binding, to_columns ? "unfold" : "fold"));
  return Step([=](const RunContext&) {
    WindowArgs run = args;
    run.from = At(from);
    run.to = At(to);
    return start.Elements(to->size(), run);
  });
}

}  // namespace

void AddUnfold(KernelTable* kernels) {
  for (const char* type : {"unfold", "unfold_grad", "fold", "fold_grad"})
    kernels->Add(type, {"cuda", BindUnfoldWindows});
}

}  // namespace pd::cuda
