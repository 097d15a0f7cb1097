// SPDX-License-Identifier: Apache-2.0
// Norms over axes.
//   p_norm along `axis` (of all elements with asvector):
//     Out = (sum |X|^p)^(1/p); p = inf, -inf: the largest, the smallest |X|;
//     p = 0: how many are not 0
//     X@GRAD = dOut sign(X) (|X| / Out)^(p-1), 0 where Out is 0; for +-inf
//     dOut sign(X) where |X| == Out; 0 for p = 0
//   frobenius_norm over the axes `dim`: Out = sqrt(sum X^2),
//     X@GRAD = dOut X / Out
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/reduce_loop.h"
#include "libcore/ops/common/strided_loop.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

bool IsPNorm(const OpDesc& op) { return op.type.rfind("p_norm", 0) == 0; }

// Which axes are reduced.
absl::StatusOr<std::vector<bool>> NormReducedAxes(const OpDesc& op,
                                                  size_t rank) {
  std::vector<int64_t> axes;
  bool all = false;
  if (IsPNorm(op)) {
    axes = {op.Attr<int32_t>("axis")};
    all = op.Attr<bool>("asvector") || rank == 0;
  } else {
    axes = IntsAttr(op, "dim");
    all = op.Attr<bool>("reduce_all") || axes.empty();
  }
  std::vector<bool> reduced(rank, all);
  for (size_t i = 0; !all && i < axes.size(); ++i) {
    PD_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(axes[i], rank));
    reduced[static_cast<size_t>(axis)] = true;
  }
  return reduced;
}

absl::Status InferNorm(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const auto reduced,
                      NormReducedAxes(context->op(), x.shape.size()));
  const bool keep =
      context->Attr<bool>(IsPNorm(context->op()) ? "keepdim" : "keep_dim");
  Shape shape;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!reduced[i])
      shape.push_back(x.shape[i]);
    else if (keep)
      shape.push_back(1);
  }
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

double Order(const OpDesc& op) {
  return IsPNorm(op) ? op.Attr<float>("porder") : 2.0;
}

// Sums |x|^p, or finds the extremum of |x|.
template <typename T>
struct NormReducer {
  using Acc = T;
  double p;
  T Identity() const {
    return std::isinf(p) && p < 0 ? std::numeric_limits<T>::infinity() : T(0);
  }
  T Load(T v) const {
    v = std::fabs(v);
    if (std::isinf(p) || p == 1) return v;
    if (p == 2) return v * v;
    if (p == 0) return v == T(0) ? T(0) : T(1);
    return std::pow(v, static_cast<T>(p));
  }
  template <typename W>
  W Combine(W a, W b) const {
    if (!std::isinf(p)) return a + b;
    return (p > 0 ? b > a : b < a) || b != b ? b : a;
  }
};

absl::StatusOr<Step> BindNorm(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const double p = Order(context->op());
  PD_ASSIGN_OR_RETURN(const auto reduced,
                      NormReducedAxes(context->op(), x->rank()));
  const ReducePlan plan = MakeReducePlan(x->shape(), reduced);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([x, out, plan, p](const RunContext&) {
      T* result = out->data<T>();
      if (p == 2) {
        Reduce(plan, x->data<T>(), SquareReducer<T>(),
               [&](int64_t i, double total) {
                 result[i] = static_cast<T>(std::sqrt(total));
               });
        return absl::OkStatus();
      }
      Reduce(
          plan, x->data<T>(), NormReducer<T>{p}, [&](int64_t i, double total) {
            const bool root = !std::isinf(p) && p != 0 && p != 1;
            result[i] = static_cast<T>(root ? std::pow(total, 1.0 / p) : total);
          });
      return absl::OkStatus();
    });
  });
}

template <typename T>
T NormSlope(T x, T out, double p) {
  const T sign = x > T(0) ? T(1) : (x < T(0) ? T(-1) : T(0));
  if (p == 0) return T(0);
  if (std::isinf(p)) return std::fabs(x) == out ? sign : T(0);
  if (p == 1) return sign;
  if (out == T(0)) return T(0);
  if (p == 2) return x / out;
  if (x == T(0)) return T(0);
  return sign * std::pow(std::fabs(x) / out, static_cast<T>(p - 1));
}

// The usual one, without questions about p for each element.
template <typename T>
void EuclideanSlopes(const T* x, const T* norm, const T* dout, int64_t stride,
                     int64_t n, T* dx) {
  if (stride == 0) {
    const T d = *dout, by = *norm;
    if (by == T(0)) {
      std::fill_n(dx, n, d * T(0));
      return;
    }
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) dx[j] = d * (x[j] / by);
    return;
  }
  for (int64_t j = 0; j < n; ++j)
    dx[j] = dout[j] * (norm[j] == T(0) ? T(0) : x[j] / norm[j]);
}

absl::StatusOr<Step> BindNormGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const double p = Order(context->op());
  PD_ASSIGN_OR_RETURN(const auto reduced,
                      NormReducedAxes(context->op(), x->rank()));
  Shape kept = x->shape();
  for (size_t i = 0; i < kept.size(); ++i)
    if (reduced[i]) kept[i] = 1;
  if (NumElements(kept) != dout->size())
    return InvalidArgument("Out@GRAD has %d elements; X reduces to %d",
                           dout->size(), NumElements(kept));
  const auto strides = RowMajorStrides(x->shape());
  const auto out_strides = RowMajorStrides(kept);
  StridedLoop<2> loop;
  for (size_t i = 0; i < kept.size(); ++i)
    loop.Add(x->dim(i), {strides[i], reduced[i] ? 0 : out_strides[i]});
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t stride = loop.row_strides()[1];
      ParallelFor(loop.size(), 4096, [&](int64_t begin, int64_t end) {
        loop.ForParts(begin, end, [&](const auto& at, int64_t n) {
          const T* in = x->data<T>() + at[0];
          const T* norm = out->data<T>() + at[1];
          const T* d = dout->data<T>() + at[1];
          T* to = dx->data<T>() + at[0];
          if (p == 2)
            EuclideanSlopes(in, norm, d, stride, n, to);
          else
            for (int64_t j = 0; j < n; ++j)
              to[j] = d[j * stride] * NormSlope(in[j], norm[j * stride], p);
        });
      });
      return absl::OkStatus();
    });
  });
}

void AddNormAttrs(bool frobenius, OpDef* op) {
  if (frobenius) {
    op->Attr("dim", std::vector<int32_t>{0}).Attr("keep_dim", false);
    op->Attr("reduce_all", false);
    // PaddlePaddle's gradient asks for them, though it has no use for them.
    op->Attr("in_dtype", int32_t{-1}).Attr("out_dtype", int32_t{-1});
    return;
  }
  op->Attr("porder", 2.0f).Attr("axis", int32_t{-1}).Attr("epsilon", 1e-12f);
  op->Attr("keepdim", false).Attr("asvector", false);
}

absl::Status AddNorm(OpRegistry* registry, const std::string& type) {
  const bool frobenius = type == "frobenius_norm";
  OpDef op(type);
  op.Input("X").Output("Out").Infer(InferNorm).Reference(BindNorm);
  AddNormAttrs(frobenius, &op);
  op.Grad(GradSpec{type + "_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  AddNormAttrs(frobenius, &grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindNormGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterNorm(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddNorm(registry, "p_norm"));
  return AddNorm(registry, "frobenius_norm");
}

}  // namespace pd
