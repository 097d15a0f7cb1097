// SPDX-License-Identifier: Apache-2.0
// Products that PaddlePaddle's inference passes make of chains of ops; they
// have no gradients.
//   fc: Out = Input W + Bias, then relu if activation_type says so. Input's
//     axes from in_num_col_dims on are one. padding_weights: W has 4 unused
//     rows and columns at its end
//   fusion_repeated_fc_relu: such products with relu in a row; ReluOut are all
//     results but the last, which is Out
//   fusion_squared_mat_sub: Out = scalar * ((X Y)^2 - X^2 Y^2), squares by
//     element; SquaredX, SquaredY, SquaredXY are the three squares
#include <algorithm>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kPadding = 4;  // of padded weights

const GemmBatch& One() {
  static const auto* one = new GemmBatch{{{0, 0}}};
  return *one;
}

// out = x w + bias, [m, n] = [m, k] [k, n].
template <typename T>
void Product(const GemmShape& s, const T* x, const T* w, const T* bias,
             bool relu, T* out) {
  Gemm<T>(s, One(), T(1), x, w, out);
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      T& v = out[i * s.n + j];
      if (bias != nullptr) v += bias[j];
      if (relu && v < T(0)) v = T(0);
    }
}

struct Fc {
  GemmShape shape;
  bool relu, padded;
};

// Shapes may hold -1.
absl::StatusOr<Shape> FcShape(const OpDesc& op, const Shape& x,
                              const Shape& w) {
  const int32_t axis = op.Attr<int32_t>("in_num_col_dims");
  const int64_t padding = op.Attr<bool>("padding_weights") ? kPadding : 0;
  const auto activation = op.Attr<std::string>("activation_type");
  if (axis < 1 || axis >= static_cast<int32_t>(x.size()) || w.size() != 2)
    return InvalidArgument(
        "attr 'in_num_col_dims' is %d, 'Input' has shape %s and 'W' %s", axis,
        ToString(x), ToString(w));
  if (activation != "" && activation != "relu")
    return InvalidArgument("attr 'activation_type' is '%s'; expected relu",
                           activation);
  const Shape inner(x.begin() + axis, x.end());
  if ((w[0] >= 0 && w[0] < padding) || (w[1] >= 0 && w[1] < padding) ||
      (!IsDynamic(inner) && w[0] >= 0 && NumElements(inner) != w[0] - padding))
    return InvalidArgument("'Input' has shape %s and 'W' %s", ToString(x),
                           ToString(w));
  Shape out(x.begin(), x.begin() + axis);
  out.push_back(w[1] < 0 ? -1 : w[1] - padding);
  return out;
}

absl::StatusOr<Step> BindFc(BindContext* context) {
  Tensor* x = context->Input("Input");
  Tensor* w = context->Input("W");
  Tensor* bias = context->Input("Bias");
  Tensor* out = context->Output("Out");
  const DType dtype = x->dtype();
  PD_RETURN_IF_ERROR(FcShape(context->op(), x->shape(), w->shape()).status());
  const bool padded = context->Attr<bool>("padding_weights");
  const bool relu = context->Attr<std::string>("activation_type") == "relu";
  GemmShape shape;
  shape.n = w->dim(1) - (padded ? kPadding : 0);
  shape.k = w->dim(0) - (padded ? kPadding : 0);
  shape.m = NumElements(
      x->shape(), 0,
      static_cast<size_t>(context->Attr<int32_t>("in_num_col_dims")));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "W", dtype, w->shape()));
  if (bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", dtype, shape.n));
  Tensor* packed =
      padded ? context->Scratch(static_cast<size_t>(shape.n * shape.k) *
                                SizeOf(dtype))
             : nullptr;
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* weights = w->data<T>();
      if (padded) {
        for (int64_t k = 0; k < shape.k; ++k)
          std::copy_n(w->data<T>() + k * w->dim(1), shape.n,
                      packed->data<T>() + k * shape.n);
        weights = packed->data<T>();
      }
      Product<T>(shape, x->data<T>(), weights,
                 bias != nullptr ? bias->data<T>() : nullptr, relu,
                 out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferFc(InferContext* context) {
  TensorMeta out = context->Input("Input");
  PD_ASSIGN_OR_RETURN(
      out.shape, FcShape(context->op(), out.shape, context->Input("W").shape));
  out.value = nullptr;
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::Status InferRepeated(InferContext* context) {
  TensorMeta meta = context->Input("X");
  meta.value = nullptr;
  const size_t n = context->InputCount("W");
  if (meta.shape.size() != 2 || n < 1 || context->InputCount("Bias") != n)
    return InvalidArgument(
        "'X' has shape %s, with %d weights and %d biases; expected a matrix "
        "and as many",
        ToString(meta.shape), n, context->InputCount("Bias"));
  for (size_t i = 0; i < n; ++i) {
    const Shape& w = context->Input("W", i).shape;
    const int64_t k = meta.shape[1];
    if (w.size() != 2 || (w[0] >= 0 && k >= 0 && w[0] != k))
      return InvalidArgument("'W' %d has shape %s; its input has %d columns", i,
                             ToString(w), k);
    meta.shape[1] = w[1];
    if (i + 1 < n)
      context->SetOutput("ReluOut", meta, i);
    else
      context->SetOutput("Out", meta);
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindRepeated(BindContext* context) {
  struct Layer {
    GemmShape shape;
    Tensor *x, *w, *bias, *out;
  };
  const size_t n = context->InputCount("W");
  const DType dtype = context->Input("X")->dtype();
  std::vector<Layer> layers;
  for (size_t i = 0; i < n; ++i) {
    Layer layer;
    layer.x = i == 0 ? context->Input("X") : layers.back().out;
    layer.w = context->Input("W", i);
    layer.bias = context->Input("Bias", i);
    layer.shape = {context->Input("X")->dim(0), layer.w->dim(1),
                   layer.w->dim(0)};
    if (layer.w->dtype() != dtype || layer.bias->dtype() != dtype ||
        layer.bias->size() != layer.shape.n)
      return InvalidArgument("'Bias' %d has shape %s; 'W' %s", i,
                             ToString(layer.bias->shape()),
                             ToString(layer.w->shape()));
    layer.out =
        i + 1 < n ? context->Output("ReluOut", i) : context->Output("Out");
    if (layer.out == nullptr)
      layer.out = context->Scratch(
          static_cast<size_t>(layer.shape.m * layer.shape.n) * SizeOf(dtype));
    layers.push_back(layer);
  }
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([layers](const RunContext&) {
      for (const Layer& l : layers)
        Product<T>(l.shape, l.x->data<T>(), l.w->data<T>(), l.bias->data<T>(),
                   true, l.out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferSquared(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  if (x.shape.size() != 2 || y.shape.size() != 2 ||
      (x.shape[1] >= 0 && y.shape[0] >= 0 && x.shape[1] != y.shape[0]))
    return InvalidArgument("'X' has shape %s and 'Y' %s", ToString(x.shape),
                           ToString(y.shape));
  context->SetOutput("SquaredX", x.shape, x.dtype);
  context->SetOutput("SquaredY", y.shape, y.dtype);
  for (const char* slot : {"SquaredXY", "Out"})
    context->SetOutput(slot, {x.shape[0], y.shape[1]}, x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindSquared(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  const float scalar = context->Attr<float>("scalar");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  const GemmShape shape{x->dim(0), y->dim(1), x->dim(1)};
  const auto output = [&](const char* slot, int64_t size) {
    Tensor* t = context->Output(slot);
    return t != nullptr ? t
                        : context->Scratch(static_cast<size_t>(size) *
                                           SizeOf(x->dtype()));
  };
  Tensor* xx = output("SquaredX", x->size());
  Tensor* yy = output("SquaredY", y->size());
  Tensor* xy = output("SquaredXY", out->size());
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const auto square = [](const T* from, int64_t n, T* to) {
        for (int64_t i = 0; i < n; ++i) to[i] = from[i] * from[i];
      };
      square(x->data<T>(), x->size(), xx->data<T>());
      square(y->data<T>(), y->size(), yy->data<T>());
      Gemm<T>(shape, One(), T(1), x->data<T>(), y->data<T>(), xy->data<T>());
      square(xy->data<T>(), out->size(), xy->data<T>());
      Gemm<T>(shape, One(), T(1), xx->data<T>(), yy->data<T>(), out->data<T>());
      for (int64_t i = 0; i < out->size(); ++i)
        out->data<T>()[i] =
            static_cast<T>(scalar) * (xy->data<T>()[i] - out->data<T>()[i]);
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterFc(OpRegistry* registry) {
  OpDef fc("fc");
  fc.Input("Input").Input("W").OptionalInput("Bias").Output("Out");
  fc.Attr("in_num_col_dims", int32_t{1});
  fc.Attr("activation_type", std::string()).Attr("padding_weights", false);
  fc.Infer(InferFc).NoGrad().Reference(BindFc);
  PD_RETURN_IF_ERROR(registry->Add(std::move(fc)));

  OpDef repeated("fusion_repeated_fc_relu");
  repeated.Input("X").Inputs("W").Inputs("Bias");
  repeated.OptionalOutputs("ReluOut").Output("Out");
  repeated.Infer(InferRepeated).NoGrad().Reference(BindRepeated);
  PD_RETURN_IF_ERROR(registry->Add(std::move(repeated)));

  OpDef squared("fusion_squared_mat_sub");
  squared.Input("X").Input("Y").Output("Out").Attr("scalar", 1.0f);
  for (const char* slot : {"SquaredX", "SquaredY", "SquaredXY"})
    squared.IntermediateOutput(slot);
  squared.Infer(InferSquared).NoGrad().Reference(BindSquared);
  return registry->Add(std::move(squared));
}

}  // namespace pd
