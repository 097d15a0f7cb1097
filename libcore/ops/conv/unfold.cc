// SPDX-License-Identifier: Apache-2.0
// Windows of images as columns:
//   unfold: X [N, C, H, W] to Y [N, C kh kw, windows]
//   fold: the way back, to images of `output_sizes`; elements that meet are
//     added
// The windows are those of a convolution with kernel_sizes, strides, dilations
// and paddings (top, left, bottom, right), from left to right, then down.
// Each is the gradient of the other.
#include "libcore/ops/conv/unfold.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Columns> ReadAttrs(const OpDesc& op, int64_t height,
                                  int64_t width) {
  Columns c;
  const auto kernel = IntsAttr(op, "kernel_sizes");
  const auto strides = IntsAttr(op, "strides");
  const auto dilations = IntsAttr(op, "dilations");
  auto paddings = IntsAttr(op, "paddings");
  if (paddings.size() == 2)
    paddings = {paddings[0], paddings[1], paddings[0], paddings[1]};
  if (kernel.size() != 2 || strides.size() != 2 || dilations.size() != 2 ||
      paddings.size() != 4)
    return InvalidArgument(
        "attrs 'kernel_sizes', 'strides', 'dilations', 'paddings' have %d, %d, "
        "%d, %d elements; expected 2, 2, 2, 4",
        kernel.size(), strides.size(), dilations.size(), paddings.size());
  c.down = {height,       kernel[0],   strides[0],
            dilations[0], paddings[0], paddings[2]};
  c.across = {width,        kernel[1],   strides[1],
              dilations[1], paddings[1], paddings[3]};
  for (const Direction& d : {c.down, c.across}) {
    if (d.kernel < 1 || d.stride < 1 || d.dilation < 1 || d.before < 0 ||
        d.after < 0)
      return InvalidArgument(
          "kernel %d, stride %d, dilation %d, paddings %d and %d; expected "
          "positive ones, and paddings of 0 or more",
          d.kernel, d.stride, d.dilation, d.before, d.after);
    if (d.Windows() == 0)
      return InvalidArgument(
          "no window of %d with dilation %d fits into %d with paddings %d and "
          "%d",
          d.kernel, d.dilation, d.extent, d.before, d.after);
  }
  return c;
}

}  // namespace

absl::StatusOr<Columns> ColumnsOfImage(const OpDesc& op, const Shape& x) {
  if (x.size() != 4)
    return InvalidArgument("X has shape %s; expected [N, C, H, W]",
                           ToString(x));
  return ReadAttrs(op, x[2], x[3]);
}

absl::StatusOr<Columns> ColumnsOfFold(const OpDesc& op, const Shape& x) {
  const auto sizes = IntsAttr(op, "output_sizes");
  if (x.size() != 3 || sizes.size() != 2 || sizes[0] < 1 || sizes[1] < 1)
    return InvalidArgument(
        "X has shape %s, attr 'output_sizes' is %s; expected rank 3 and 2 "
        "positive sizes",
        ToString(x), ToString(sizes));
  PD_ASSIGN_OR_RETURN(const Columns c, ReadAttrs(op, sizes[0], sizes[1]));
  if ((x[1] >= 0 && x[1] % c.kernel() != 0) ||
      (x[2] >= 0 && x[2] != c.windows()))
    return InvalidArgument(
        "X has shape %s; expected a multiple of %d channels, and %d windows",
        ToString(x), c.kernel(), c.windows());
  return c;
}

namespace {

absl::Status InferUnfold(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Columns c, ColumnsOfImage(context->op(), x.shape));
  context->SetOutput(
      "Y",
      {x.shape[0], x.shape[1] < 0 ? -1 : x.shape[1] * c.kernel(), c.windows()},
      x.dtype);
  return absl::OkStatus();
}

absl::Status InferFold(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Columns c, ColumnsOfFold(context->op(), x.shape));
  context->SetOutput("Y",
                     {x.shape[0], x.shape[1] < 0 ? -1 : x.shape[1] / c.kernel(),
                      c.down.extent, c.across.extent},
                     x.dtype);
  return absl::OkStatus();
}

// Calls body(offset in the image's plane or -1 in the padding, offset in the
// columns of the plane) for every element of a plane's columns.
template <typename Body>
void ForEachElement(const Columns& c, const Body& body) {
  const int64_t rows = c.down.Windows(), columns = c.across.Windows();
  int64_t at = 0;
  for (int64_t i = 0; i < c.down.kernel; ++i)
    for (int64_t j = 0; j < c.across.kernel; ++j)
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t y =
            row * c.down.stride - c.down.before + i * c.down.dilation;
        const bool inside = y >= 0 && y < c.down.extent;
        for (int64_t column = 0; column < columns; ++column, ++at) {
          const int64_t x = column * c.across.stride - c.across.before +
                            j * c.across.dilation;
          body(inside && x >= 0 && x < c.across.extent ? y * c.across.extent + x
                                                       : -1,
               at);
        }
      }
}

template <typename Body>
auto DispatchFold(DType dtype, const Body& body) {
  return DispatchTypes<float, double, std::complex<float>,
                       std::complex<double>>(dtype, body);
}

// columns = image, window by window.
absl::StatusOr<Step> Gather(const Columns& c, Tensor* image, Tensor* columns) {
  const int64_t plane = c.down.extent * c.across.extent;
  const int64_t each = c.kernel() * c.windows();
  const int64_t planes = plane == 0 ? 0 : image->size() / plane;
  if (planes * each != columns->size())
    return InvalidArgument("%d planes of %d elements make %d; there are %d",
                           planes, plane, planes * each, columns->size());
  return DispatchFold(image->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ParallelFor(planes, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const T* from = image->data<T>() + p * plane;
          T* to = columns->data<T>() + p * each;
          ForEachElement(c, [&](int64_t source, int64_t target) {
            to[target] = source < 0 ? T(0) : from[source];
          });
        }
      });
      return absl::OkStatus();
    });
  });
}

// image = the sum of the columns where they meet.
absl::StatusOr<Step> Scatter(const Columns& c, Tensor* columns, Tensor* image) {
  const int64_t plane = c.down.extent * c.across.extent;
  const int64_t each = c.kernel() * c.windows();
  const int64_t planes = plane == 0 ? 0 : image->size() / plane;
  if (planes * each != columns->size())
    return InvalidArgument("%d planes of %d elements make %d; there are %d",
                           planes, plane, planes * each, columns->size());
  return DispatchFold(image->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      ParallelFor(planes, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          const T* from = columns->data<T>() + p * each;
          T* to = image->data<T>() + p * plane;
          std::fill_n(to, plane, T(0));
          ForEachElement(c, [&](int64_t target, int64_t source) {
            if (target >= 0) to[target] += from[source];
          });
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindUnfold(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Columns c,
                      ColumnsOfImage(context->op(), x->shape()));
  return Gather(c, x, context->Output("Y"));
}

absl::StatusOr<Step> BindUnfoldGrad(BindContext* context) {
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("X"));
  Tensor* dy = context->Input("Y@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Y@GRAD", dx->dtype(), dy->size()));
  PD_ASSIGN_OR_RETURN(const Columns c,
                      ColumnsOfImage(context->op(), dx->shape()));
  return Scatter(c, dy, dx);
}

absl::StatusOr<Step> BindFold(BindContext* context) {
  Tensor* x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Columns c,
                      ColumnsOfFold(context->op(), x->shape()));
  return Scatter(c, x, context->Output("Y"));
}

absl::StatusOr<Step> BindFoldGrad(BindContext* context) {
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("X"));
  Tensor* dy = context->Input("Y@GRAD");
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Y@GRAD", dx->dtype(), dy->size()));
  PD_ASSIGN_OR_RETURN(const Columns c,
                      ColumnsOfFold(context->op(), dx->shape()));
  return Gather(c, dy, dx);
}

absl::Status AddUnfoldOp(OpRegistry* registry, const std::string& type,
                         InferFn infer, BindFn bind, BindFn bind_grad) {
  OpDef op(type), grad(type + "_grad");
  op.Input("X").Output("Y").Infer(infer).Reference(bind);
  op.Grad(GradSpec{type + "_grad", {"X"}, {}, {"Y"}, {"X"}});
  grad.Input("X").Input("Y@GRAD").Output("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(bind_grad);
  for (OpDef* def : {&op, &grad}) {
    if (type == "fold") def->RequiredAttr("output_sizes", AttrType::kInts);
    for (const char* name :
         {"kernel_sizes", "strides", "paddings", "dilations"})
      def->RequiredAttr(name, AttrType::kInts);
  }
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterUnfold(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(
      AddUnfoldOp(registry, "unfold", InferUnfold, BindUnfold, BindUnfoldGrad));
  return AddUnfoldOp(registry, "fold", InferFold, BindFold, BindFoldGrad);
}

}  // namespace pd
