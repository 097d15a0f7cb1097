// SPDX-License-Identifier: Apache-2.0
// unpool, unpool3d: the way back from max pooling with indices. Per channel
//   Out = 0, then Out[Indices] = X, the last one where indices repeat
//   X@GRAD = Out@GRAD[Indices]
// Out's extents are output_size; in older programs, which leave it at zeros,
// (X's - 1) * stride - 2 * padding + ksize.
#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<Shape> OutputShape(const OpDesc& op, const Shape& x) {
  const size_t axes = op.type.rfind("unpool3d", 0) == 0 ? 3 : 2;
  if (x.size() != axes + 2)
    return InvalidArgument("'X' has shape %s; expected rank %d", ToString(x),
                           axes + 2);
  const auto sizes = IntsAttr(op, "output_size");
  const auto ksize = IntsAttr(op, "ksize");
  const auto strides = IntsAttr(op, "strides");
  const auto paddings = IntsAttr(op, "paddings");
  const bool given =
      sizes.size() == axes &&
      std::all_of(sizes.begin(), sizes.end(), [](int64_t v) { return v > 0; });
  if (!given && (ksize.size() != axes || strides.size() != axes ||
                 paddings.size() != axes))
    return InvalidArgument(
        "attrs 'ksize', 'strides', 'paddings' have %d, %d and %d numbers; "
        "expected %d",
        ksize.size(), strides.size(), paddings.size(), axes);
  Shape out = {x[0], x[1]};
  for (size_t i = 0; i < axes; ++i) {
    int64_t extent = -1;
    if (given)
      extent = sizes[i];
    else if (x[i + 2] >= 0)
      extent = (x[i + 2] - 1) * strides[i] - 2 * paddings[i] + ksize[i];
    if (x[i + 2] >= 0 && extent <= 0)
      return InvalidArgument("'X' %s would give extent %d at axis %d",
                             ToString(x), extent, i + 2);
    out.push_back(extent);
  }
  return out;
}

// Calls body(element of X, element of Out) for each.
template <typename Index, typename Body>
absl::Status ForEachPair(const Tensor& indices, int64_t in_size,
                         int64_t out_size, const Body& body) {
  const Index* index = indices.data<Index>();
  for (int64_t i = 0; i < indices.size(); ++i) {
    if (index[i] < 0 || index[i] >= out_size)
      return InvalidArgument(
          "'Indices' holds %d; a channel of 'Out' has %d elements", index[i],
          out_size);
    body(i, i / in_size * out_size + index[i]);
  }
  return absl::OkStatus();
}

template <typename Body>
absl::Status ForEachPair(const Tensor& indices, int64_t in_size,
                         int64_t out_size, const Body& body) {
  return indices.dtype() == DType::kInt64
             ? ForEachPair<int64_t>(indices, in_size, out_size, body)
             : ForEachPair<int32_t>(indices, in_size, out_size, body);
}

absl::Status CheckIndices(const BindContext& context, const Tensor& x) {
  const Tensor* indices = context.Input("Indices");
  const DType dtype =
      indices->dtype() == DType::kInt64 ? DType::kInt64 : DType::kInt32;
  return ExpectInput(context, "Indices", dtype, x.shape());
}

absl::StatusOr<Step> BindUnpool(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* indices = context->Input("Indices");
  Tensor* out = context->Output("Out");
  PD_RETURN_IF_ERROR(CheckIndices(*context, *x));
  const int64_t in_size = NumElements(x->shape(), 2, x->rank());
  const int64_t out_size = NumElements(out->shape(), 2, out->rank());
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      std::fill_n(out->data<T>(), out->size(), T(0));
      return ForEachPair(*indices, in_size, out_size,
                         [&](int64_t from, int64_t to) {
                           out->data<T>()[to] = x->data<T>()[from];
                         });
    });
  });
}

absl::StatusOr<Step> BindUnpoolGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* indices = context->Input("Indices");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(x);
  if (out != nullptr) context->NoBuffer(out);
  PD_RETURN_IF_ERROR(CheckIndices(*context, *x));
  PD_ASSIGN_OR_RETURN(const Shape shape,
                      OutputShape(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), shape));
  const int64_t in_size = NumElements(x->shape(), 2, x->rank());
  const int64_t out_size = NumElements(shape, 2, shape.size());
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      return ForEachPair(*indices, in_size, out_size,
                         [&](int64_t to, int64_t from) {
                           dx->data<T>()[to] = dout->data<T>()[from];
                         });
    });
  });
}

absl::Status InferUnpool(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(Shape shape, OutputShape(context->op(), x.shape));
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

void AddUnpoolAttrs(OpDef* def, size_t axes) {
  def->RequiredAttr("ksize", AttrType::kInts)
      .Attr("strides", std::vector<int32_t>(axes, 1))
      .Attr("paddings", std::vector<int32_t>(axes, 0))
      .Attr("output_size", std::vector<int32_t>(axes, 0));
}

absl::Status AddUnpool(OpRegistry* registry, const std::string& type,
                       size_t axes) {
  OpDef op(type);
  op.Input("X").Input("Indices").Output("Out");
  AddUnpoolAttrs(&op, axes);
  op.Infer(InferUnpool).Reference(BindUnpool);
  op.Grad(GradSpec{type + "_grad", {"X", "Indices"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Indices").OptionalInput("Out").Input("Out@GRAD");
  grad.Output("X@GRAD");
  AddUnpoolAttrs(&grad, axes);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindUnpoolGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterUnpool(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddUnpool(registry, "unpool", 2));
  return AddUnpool(registry, "unpool3d", 3);
}

}  // namespace pd
