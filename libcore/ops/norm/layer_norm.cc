// SPDX-License-Identifier: Apache-2.0
// X is seen as rows [left, right], split at begin_norm_axis. Per row:
//   Mean = mean(X), Variance = mean((X - Mean)^2)
//   h = (X - Mean) / sqrt(Variance + epsilon)
//   Y = h * Scale + Bias, both of `right` elements
// With g = Y@GRAD * Scale:
//   X@GRAD = (g - mean(g) - h * mean(g * h)) / sqrt(Variance + epsilon)
//   Scale@GRAD = sum over rows of Y@GRAD * h; Bias@GRAD = sum of Y@GRAD
#include <algorithm>
#include <cmath>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/optimizer/update.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Rows {
  int64_t left = 1, right = 1;
  double epsilon = 0;
};

absl::Status CheckAxis(int32_t axis, size_t rank) {
  const int32_t last = static_cast<int32_t>(rank) - 1;
  if (axis >= 1 && axis <= last) return absl::OkStatus();
  return InvalidArgument(
      "attr 'begin_norm_axis' is %d; 'X' has rank %d, so it must be in [1, %d]",
      axis, rank, last);
}

absl::StatusOr<Rows> ReadRows(const BindContext& context, const Tensor& x) {
  const int32_t axis = context.Attr<int32_t>("begin_norm_axis");
  PD_RETURN_IF_ERROR(CheckAxis(axis, x.rank()));
  Rows rows;
  rows.epsilon = context.Attr<float>("epsilon");
  rows.left = NumElements(x.shape(), 0, static_cast<size_t>(axis));
  rows.right = NumElements(x.shape(), static_cast<size_t>(axis), x.rank());
  for (const char* slot : {"Scale", "Bias"})
    if (context.Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(ExpectElements(context, slot, x.dtype(), rows.right));
  return rows;
}

template <typename T>
const T* DataOrNull(const Tensor* tensor) {
  return tensor != nullptr ? tensor->data<T>() : nullptr;
}

absl::StatusOr<Step> BindLayerNorm(BindContext* context) {
  Tensor* x = context->Input("X");
  if (StateType(x->dtype()) != x->dtype())
    return Unimplemented("halves are computed as float32");
  Tensor* scale = context->Input("Scale");
  Tensor* bias = context->Input("Bias");
  Tensor* y = context->Output("Y");
  Tensor* mean_out = context->Output("Mean");
  Tensor* variance_out = context->Output("Variance");
  PD_ASSIGN_OR_RETURN(const Rows rows, ReadRows(*context, *x));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* s = DataOrNull<T>(scale);
      const T* b = DataOrNull<T>(bias);
      ParallelFor(rows.left, 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T* in = x->data<T>() + r * rows.right;
          T* out = y->data<T>() + r * rows.right;
          double sum = 0, squares = 0;
          for (int64_t i = 0; i < rows.right; ++i) sum += in[i];
          const double mean = sum / rows.right;
          for (int64_t i = 0; i < rows.right; ++i)
            squares += (in[i] - mean) * (in[i] - mean);
          const double variance = squares / rows.right;
          const double inverse = 1 / std::sqrt(variance + rows.epsilon);
          for (int64_t i = 0; i < rows.right; ++i) {
            const T h = static_cast<T>((in[i] - mean) * inverse);
            out[i] =
                h * (s != nullptr ? s[i] : T(1)) + (b != nullptr ? b[i] : T(0));
          }
          if (mean_out != nullptr) mean_out->data<T>()[r] = mean;
          if (variance_out != nullptr) variance_out->data<T>()[r] = variance;
        }
      });
      return absl::OkStatus();
    });
  });
}

// The tensors of layer_norm_grad. A null output is not wanted.
struct LayerNormGradTensors {
  Tensor *x, *scale, *mean, *variance, *dy;
  Tensor *dx, *dscale, *dbias;
};

template <typename T>
void BackwardX(const Rows& rows, const LayerNormGradTensors& t) {
  const T* s = DataOrNull<T>(t.scale);
  ParallelFor(rows.left, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* x = t.x->data<T>() + r * rows.right;
      const T* dy = t.dy->data<T>() + r * rows.right;
      T* dx = t.dx->data<T>() + r * rows.right;
      const double mean = t.mean->data<T>()[r];
      const double inverse =
          1 / std::sqrt(t.variance->data<T>()[r] + rows.epsilon);
      double sum = 0, dot = 0;
      for (int64_t i = 0; i < rows.right; ++i) {
        const double g = dy[i] * (s != nullptr ? double{s[i]} : 1.0);
        sum += g;
        dot += g * (x[i] - mean) * inverse;
      }
      sum /= rows.right;
      dot /= rows.right;
      for (int64_t i = 0; i < rows.right; ++i) {
        const double g = dy[i] * (s != nullptr ? double{s[i]} : 1.0);
        const double h = (x[i] - mean) * inverse;
        dx[i] = static_cast<T>((g - sum - h * dot) * inverse);
      }
    }
  });
}

template <typename T>
void BackwardScaleBias(const Rows& rows, const LayerNormGradTensors& t) {
  // Each thread owns columns and walks down the rows.
  ParallelFor(rows.right, 64, [&](int64_t begin, int64_t end) {
    T* ds = t.dscale != nullptr ? t.dscale->data<T>() : nullptr;
    T* db = t.dbias != nullptr ? t.dbias->data<T>() : nullptr;
    if (ds != nullptr) std::fill(ds + begin, ds + end, T(0));
    if (db != nullptr) std::fill(db + begin, db + end, T(0));
    for (int64_t r = 0; r < rows.left; ++r) {
      const T* x = t.x->data<T>() + r * rows.right;
      const T* dy = t.dy->data<T>() + r * rows.right;
      const T mean = t.mean->data<T>()[r];
      const T inverse = static_cast<T>(
          1 / std::sqrt(t.variance->data<T>()[r] + rows.epsilon));
      for (int64_t i = begin; i < end; ++i) {
        if (ds != nullptr) ds[i] += dy[i] * (x[i] - mean) * inverse;
        if (db != nullptr) db[i] += dy[i];
      }
    }
  });
}

absl::StatusOr<Step> BindLayerNormGrad(BindContext* context) {
  LayerNormGradTensors t;
  t.x = context->Input("X");
  if (StateType(t.x->dtype()) != t.x->dtype())
    return Unimplemented("halves are computed as float32");
  t.scale = context->Input("Scale");
  t.mean = context->Input("Mean");
  t.variance = context->Input("Variance");
  t.dy = context->Input("Y@GRAD");
  t.dx = context->Output("X@GRAD");
  t.dscale = context->Output("Scale@GRAD");
  t.dbias = context->Output("Bias@GRAD");
  if (context->Input("Bias") != nullptr)
    context->NoBuffer(context->Input("Bias"));
  PD_ASSIGN_OR_RETURN(const Rows rows, ReadRows(*context, *t.x));
  for (const char* slot : {"Mean", "Variance"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, t.x->dtype(), rows.left));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Y@GRAD", t.x->dtype(), t.x->shape()));
  return DispatchFloat(t.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (t.dx != nullptr) BackwardX<T>(rows, t);
      if (t.dscale != nullptr || t.dbias != nullptr)
        BackwardScaleBias<T>(rows, t);
      return absl::OkStatus();
    });
  });
}

absl::Status InferLayerNorm(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const int32_t axis = context->Attr<int32_t>("begin_norm_axis");
  PD_RETURN_IF_ERROR(CheckAxis(axis, x.shape.size()));
  const Shape left(x.shape.begin(), x.shape.begin() + axis);
  context->Share("X", "Y");
  context->SetOutput("Mean", left, StateType(x.dtype));
  context->SetOutput("Variance", left, StateType(x.dtype));
  return absl::OkStatus();
}

void AddLayerNormAttrs(OpDef* def) {
  def->Attr("epsilon", 1e-5f).Attr("begin_norm_axis", int32_t{1});
}

}  // namespace

absl::Status RegisterLayerNorm(OpRegistry* registry) {
  OpDef norm("layer_norm");
  norm.Input("X").OptionalInput("Scale").OptionalInput("Bias").Output("Y");
  norm.IntermediateOutput("Mean").IntermediateOutput("Variance");
  AddLayerNormAttrs(&norm);
  norm.Infer(InferLayerNorm).Reference(BindLayerNorm);
  norm.Grad(GradSpec{"layer_norm_grad",
                     {"X", "Scale", "Bias"},
                     {"Mean", "Variance"},
                     {"Y"},
                     {"X", "Scale", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(norm)));

  OpDef grad("layer_norm_grad");
  grad.Input("X").OptionalInput("Scale").OptionalInput("Bias");
  grad.Input("Mean").Input("Variance").Input("Y@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Scale@GRAD");
  grad.OptionalOutput("Bias@GRAD");
  AddLayerNormAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindLayerNormGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
