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
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/op_formula.h"
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

// Values of layer_norm_grad as rows: axes begin_norm_axis to last are one, the
// last, which the means are along. Other ops alone: their gradients reach X
// through the statistics too.
class RowFormula : public OpFormula {
 public:
  explicit RowFormula(const OpDesc& grad) : OpFormula(grad), grad_(grad) {
    const std::string x = Rows(grad.In("X"));
    x_shape_ = last_shape_;
    const std::string centred = Sub(x, Mean(x));
    inverse_ =
        Unary("rsqrt", Scale(Mean(Mul(centred, centred)), 1,
                             static_cast<double>(grad.Attr<float>("epsilon"))));
    h = Mul(centred, inverse_);
  }

  std::string Rows(const std::string& value) {
    OpDesc op = Flatten("flatten_contiguous_range");
    op.SetInput("X", {value});
    last_shape_ = Temporary();
    op.SetOutput("XShape", {last_shape_});
    return Apply(std::move(op));
  }
  // Adds rows to the gradient of a variable with X's shape.
  void GiveRows(const std::string& rows, const std::string& variable) {
    OpDesc op = Flatten("flatten_contiguous_range_grad");
    op.SetInput("XShape", {x_shape_});
    op.SetInput("Out@GRAD", {rows});
    op.SetOutput("X@GRAD", {GradName(variable)});
    Add(std::move(op));
  }
  std::string Mean(const std::string& rows) {
    OpDesc op;
    op.type = "reduce_mean";
    op.SetInput("X", {rows});
    op.attrs["dim"] = std::vector<int32_t>{-1};
    op.attrs["keep_dim"] = true;
    return Apply(std::move(op));
  }
  // v's product with the Jacobian of h, which is symmetric.
  std::string Slope(const std::string& v) {
    return Mul(Sub(Sub(v, Mean(v)), Mul(h, Mean(Mul(v, h)))), inverse_);
  }
  std::string Plus(const std::string& a, const std::string& b) {
    return a.empty() ? b : b.empty() ? a : Binary("elementwise_add", a, b);
  }

  const std::string& inverse() const { return inverse_; }

  std::string h;  // the normalized X

 private:
  OpDesc Flatten(const char* type) const {
    OpDesc op;
    op.type = type;
    op.attrs["start_axis"] = grad_.Attr<int32_t>("begin_norm_axis");
    op.attrs["stop_axis"] = int32_t{-1};
    return op;
  }

  const OpDesc& grad_;
  std::string inverse_, last_shape_, x_shape_;
};

// For the cotangents P, Q, R of X@GRAD, Scale@GRAD and Bias@GRAD, with g as
// above, J v = (v - mean(v) - h mean(v h)) / sqrt(Variance + epsilon):
//   Y@GRAD gets Scale J P + Q h + R; Scale gets the sum over rows of Y@GRAD J P
//   X gets J (Y@GRAD Q)
//     - (h mean(P J g) + J g mean(P h) + J P mean(g h)) / sqrt(...)
// Nothing goes to Mean and Variance: X has it all.
absl::StatusOr<std::vector<OpDesc>> LayerNormSecond(
    const GradRequest& request) {
  const OpDesc& grad = request.op;
  const std::string scale = Present(grad.In("Scale")), dout = grad.In("Y@GRAD");
  const std::string q = CotangentOf(grad, "Scale@GRAD");
  const std::string r = CotangentOf(grad, "Bias@GRAD");
  std::string p = CotangentOf(grad, "X@GRAD");
  RowFormula f(grad);
  const auto scaled = [&](const std::string& rows) {
    return scale.empty() ? rows : f.Mul(rows, scale);
  };
  const std::string dy = f.Rows(dout), g = scaled(dy);
  std::string to_y, to_x;
  if (!p.empty()) {
    p = f.Rows(p);
    const std::string jp = f.Slope(p), jg = f.Slope(g);
    to_y = scaled(jp);
    const auto mean = [&](const std::string& a, const std::string& b) {
      return f.Mean(f.Mul(a, b));
    };
    to_x = f.Scale(
        f.Mul(f.Plus(f.Plus(f.Mul(f.h, mean(p, jg)), f.Mul(jg, mean(p, f.h))),
                     f.Mul(jp, mean(g, f.h))),
              f.inverse()),
        -1);
    if (!scale.empty() && request.needs_grad(scale)) {
      OpDesc sum;
      sum.type = "elementwise_mul_grad";
      sum.attrs["axis"] = int32_t{-1};
      sum.SetInput("X", {jp});
      sum.SetInput("Y", {scale});
      sum.SetInput("Out@GRAD", {dy});
      sum.SetOutput("Y@GRAD", {GradName(scale)});
      f.Add(std::move(sum));
    }
  }
  if (!q.empty()) {
    to_y = f.Plus(to_y, f.Mul(f.h, q));
    to_x = f.Plus(to_x, f.Slope(f.Mul(dy, q)));
  }
  if (!r.empty()) to_y = f.Plus(to_y.empty() ? f.Like(dy, 0) : to_y, r);
  if (!to_y.empty() && request.needs_grad(dout)) f.GiveRows(to_y, dout);
  const std::string x = grad.In("X");
  if (!to_x.empty() && request.needs_grad(x)) f.GiveRows(to_x, x);
  return f.Take();
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
  grad.Infer(InferGradLikeInput).Grad(GradMaker(LayerNormSecond));
  grad.Reference(BindLayerNormGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
