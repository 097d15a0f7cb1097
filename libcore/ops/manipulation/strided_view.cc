// SPDX-License-Identifier: Apache-2.0
// Views by strides. A tensor here is dense, so what PaddlePaddle only looks at
// is copied:
//   as_strided: out[i] = input[offset + sum of i[k] * stride[k]] of shape
//     `dims`; strides count elements, the offset counts bytes
//   index_select_strided: x at `index` of an axis, which goes away
//   tensor_unfold: windows of `size` along an axis, `step` apart; the places in
//     a window are a last axis
//   view_shape: the same elements in another shape
// An input's gradient is the sum over all elements that were read there.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/composed.h"

namespace pd {
namespace {

// Where each element of the result lies in the input.
struct StridedPlaces {
  Shape dims;
  std::vector<int64_t> strides;
  int64_t offset = 0;

  template <typename Body>
  void ForEach(const Body& body) const {
    const int64_t n = NumElements(dims);
    std::vector<int64_t> at(dims.size(), 0);
    int64_t place = offset;
    for (int64_t i = 0; i < n; ++i) {
      body(i, place);
      for (size_t k = dims.size(); k-- > 0;) {
        place += strides[k];
        if (++at[k] < dims[k]) break;
        place -= strides[k] * dims[k];
        at[k] = 0;
      }
    }
  }
};

std::vector<int64_t> DenseStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;)
    strides[k - 1] = strides[k] * std::max<int64_t>(shape[k], 1);
  return strides;
}

// Refuses places outside of `size` elements.
absl::Status CheckPlaces(const StridedPlaces& p, int64_t size) {
  int64_t low = p.offset, high = p.offset;
  bool fits = p.dims.size() == p.strides.size();
  for (size_t k = 0; fits && k < p.dims.size(); ++k) {
    int64_t reach = 0;
    int64_t& end = p.strides[k] < 0 ? low : high;
    fits = p.dims[k] >= 0 &&
           !__builtin_mul_overflow(std::max<int64_t>(p.dims[k] - 1, 0),
                                   p.strides[k], &reach) &&
           !__builtin_add_overflow(end, reach, &end);
  }
  const bool empty = std::find(p.dims.begin(), p.dims.end(), 0) != p.dims.end();
  if (fits && (empty || (low >= 0 && high < size))) return absl::OkStatus();
  return InvalidArgument(
      "a view of shape %s with strides %s from element %d does not fit into %d "
      "elements",
      ToString(p.dims), ToString(p.strides), p.offset, size);
}

const char* InputSlot(const OpDesc& op) {
  return op.Input("input").empty() ? "x" : "input";
}

absl::StatusOr<StridedPlaces> PlacesOfUnfold(const OpDesc& op,
                                             const Shape& shape) {
  StridedPlaces p;
  p.dims = shape;
  p.strides = DenseStrides(shape);
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = op.Attr<int64_t>("axis");
  const int64_t size = op.Attr<int64_t>("size");
  const int64_t step = op.Attr<int64_t>("step");
  if (axis < 0 && axis >= -rank) axis += rank;
  if (axis < 0 || axis >= rank || size < 0 || step < 1 ||
      (shape[static_cast<size_t>(axis)] >= 0 &&
       size > shape[static_cast<size_t>(axis)]))
    return InvalidArgument(
        "attrs 'axis', 'size' and 'step' are %d, %d and %d; the input has "
        "shape %s",
        axis, size, step, ToString(shape));
  const auto a = static_cast<size_t>(axis);
  const int64_t stride = p.strides[a];
  p.dims[a] = shape[a] < 0 ? -1 : (shape[a] - size) / step + 1;
  // A single window has no next one.
  p.strides[a] = p.dims[a] > 1 ? stride * step : 0;
  p.dims.push_back(size);
  p.strides.push_back(stride);
  return p;
}

absl::StatusOr<StridedPlaces> PlacesOf(const OpDesc& op, const Shape& shape,
                                       DType dtype) {
  if (op.type.rfind("tensor_unfold", 0) == 0) return PlacesOfUnfold(op, shape);
  StridedPlaces p;
  if (op.type.rfind("as_strided", 0) == 0) {
    const auto bytes = static_cast<int64_t>(SizeOf(dtype));
    p.dims = op.Attr<std::vector<int64_t>>("dims");
    p.strides = op.Attr<std::vector<int64_t>>("stride");
    p.offset = op.Attr<int64_t>("offset");
    if (p.dims.size() != p.strides.size() || p.offset % bytes != 0 ||
        std::any_of(p.dims.begin(), p.dims.end(),
                    [](int64_t d) { return d < 0; }))
      return InvalidArgument(
          "attrs 'dims', 'stride' and 'offset' are %s, %s and %d; expected as "
          "many strides, extents of 0 or more, and whole elements of %d bytes",
          ToString(p.dims), ToString(p.strides), p.offset, bytes);
    p.offset /= bytes;
    return p;
  }
  p.dims = shape;
  p.strides = DenseStrides(shape);
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = op.Attr<int32_t>("axis");
  int64_t index = op.Attr<int64_t>("index");
  if (axis < 0) axis += rank;
  const int64_t extent =
      axis >= 0 && axis < rank ? shape[static_cast<size_t>(axis)] : 0;
  if (index < 0 && extent > 0) index += extent;
  if (axis < 0 || axis >= rank || index < 0 || (extent >= 0 && index >= extent))
    return InvalidArgument(
        "attrs 'index' and 'axis' are %d and %d; the input has shape %s",
        op.Attr<int64_t>("index"), op.Attr<int32_t>("axis"), ToString(shape));
  p.offset = extent < 0 ? 0 : index * p.strides[static_cast<size_t>(axis)];
  p.dims.erase(p.dims.begin() + axis);
  p.strides.erase(p.strides.begin() + axis);
  return p;
}

absl::Status InferStridedView(InferContext* context) {
  const TensorMeta& in = context->Input(InputSlot(context->op()));
  PD_ASSIGN_OR_RETURN(const StridedPlaces p,
                      PlacesOf(context->op(), in.shape, in.dtype));
  if (!IsDynamic(in.shape))
    PD_RETURN_IF_ERROR(CheckPlaces(p, NumElements(in.shape)));
  context->SetOutput("out", p.dims, in.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindStridedView(BindContext* context) {
  Tensor* in = context->Input(InputSlot(context->op()));
  Tensor* out = context->Output("out");
  PD_ASSIGN_OR_RETURN(const StridedPlaces p,
                      PlacesOf(context->op(), in->shape(), in->dtype()));
  PD_RETURN_IF_ERROR(CheckPlaces(p, in->size()));
  return DispatchAll(in->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* from = in->data<T>();
      T* to = out->data<T>();
      p.ForEach([&](int64_t i, int64_t place) { to[i] = from[place]; });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindStridedViewGrad(BindContext* context) {
  const std::string slot = InputSlot(context->op());
  Tensor* in = context->Input(slot);
  Tensor* dout = context->Input("out@GRAD");
  Tensor* din = context->Output(GradName(slot));
  context->NoBuffer(in);
  PD_ASSIGN_OR_RETURN(const StridedPlaces p,
                      PlacesOf(context->op(), in->shape(), in->dtype()));
  PD_RETURN_IF_ERROR(CheckPlaces(p, in->size()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "out@GRAD", in->dtype(), NumElements(p.dims)));
  return DispatchArithmetic(in->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = in->size()](const RunContext&) {
      const T* from = dout->data<T>();
      T* to = din->data<T>();
      std::fill_n(to, n, T(0));
      p.ForEach([&](int64_t i, int64_t place) { to[place] += from[i]; });
      return absl::OkStatus();
    });
  });
}

absl::Status ComposeViewShape(Composition* parts) {
  std::vector<int32_t> shape;
  for (int64_t v : parts->Attr<std::vector<int64_t>>("dims")) {
    if (v != static_cast<int32_t>(v))
      return InvalidArgument("attr 'dims' has an extent of %d", v);
    shape.push_back(static_cast<int32_t>(v));
  }
  parts->Add("reshape2", {{"X", {parts->In("input")}}},
             {{"Out", {parts->Out("out")}}}, {{"shape", std::move(shape)}});
  return absl::OkStatus();
}

void AddViewAttrs(OpDef* def, const std::string& type) {
  if (type == "as_strided") {
    def->Attr("dims", std::vector<int64_t>());
    def->Attr("stride", std::vector<int64_t>()).Attr("offset", int64_t{0});
  } else if (type == "tensor_unfold") {
    for (const char* name : {"axis", "size", "step"})
      def->RequiredAttr(name, AttrType::kLong);
  } else {
    def->RequiredAttr("index", AttrType::kLong).Attr("axis", int32_t{0});
  }
}

}  // namespace

absl::Status RegisterStridedView(OpRegistry* registry) {
  for (const std::string type :
       {"as_strided", "index_select_strided", "tensor_unfold"}) {
    const char* slot = type == "index_select_strided" ? "x" : "input";
    OpDef op(type), grad(type + "_grad");
    op.Input(slot).Output("out");
    AddViewAttrs(&op, type);
    op.Infer(InferStridedView).Reference(BindStridedView);
    op.Grad(GradSpec{type + "_grad", {slot}, {}, {"out"}, {slot}});
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
    grad.Input(slot).Input("out@GRAD").Output(GradName(slot));
    AddViewAttrs(&grad, type);
    grad.Infer(InferGradLikeInput).NoGrad().Reference(BindStridedViewGrad);
    PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  }
  OpDef shape("view_shape");
  shape.Input("input").Output("out").Attr("dims", std::vector<int64_t>());
  shape.Infer(InferComposed<ComposeViewShape>);
  shape.Reference(BindComposed<ComposeViewShape>);
  return AddWithComposedGrad(registry, std::move(shape), {"out"}, {"input"},
                             BindComposedGrad<ComposeViewShape>);
}

}  // namespace pd
