// SPDX-License-Identifier: Apache-2.0
// Out = X where X > 0, else Alpha * X. Alpha has one element (mode "all"), one
// a channel ("channel"; axis 1, or the last one for NHWC), or one for each
// element of a row X[0] ("element").
//   X@GRAD = Out@GRAD, times Alpha where X <= 0
//   Alpha@GRAD = sum of Out@GRAD * X where X <= 0
#include "libcore/ops/activation/prelu.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {

absl::StatusOr<Slopes> ReadSlopes(const OpDesc& op, const Shape& x,
                                  int64_t alpha) {
  const auto mode = op.Attr<std::string>("mode");
  const auto format = op.Attr<std::string>("data_format");
  const int64_t size = NumElements(x);
  Slopes s{1, 1, size};
  if (mode == "channel") {
    if (x.size() < 2)
      return InvalidArgument("'X' has shape %s; expected rank 2 or more",
                             ToString(x));
    const size_t at = format == "NHWC" ? x.size() - 1 : 1;
    s = {NumElements(x, 0, at), x[at], NumElements(x, at + 1, x.size())};
  } else if (mode == "element") {
    if (x.empty())
      return InvalidArgument("'X' is a scalar; expected rank 1 or more");
    s = {x[0], NumElements(x, 1, x.size()), 1};
  } else if (mode != "all") {
    return InvalidArgument(
        "attr 'mode' is '%s'; expected all, channel or element", mode);
  }
  if (s.n != alpha)
    return InvalidArgument("'Alpha' has %d elements; expected %d", alpha, s.n);
  return s;
}

namespace {

// Operands are chosen, not products: the compiler makes no vectors of products
// that only some elements need, since they could trap.
template <typename T>
void PreluRun(const T* x, T alpha, int64_t n, T* out) {
  if (!std::isfinite(alpha)) {  // positive numbers stay what they are
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] > T(0) ? x[i] : alpha * x[i];
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T high = x[i] > T(0) ? x[i] : T(0);
    const T low = x[i] > T(0) ? T(0) : x[i];
    out[i] = high + alpha * low;
  }
}
template <typename T>
void PreluGradRun(const T* x, const T* d, T alpha, int64_t n, T* dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T factor = x[i] > T(0) ? T(1) : alpha;
    dx[i] = factor * d[i];
  }
}
template <typename T>
double PreluSlope(const T* x, const T* d, int64_t n) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) {
    const T low = x[i] > T(0) ? T(0) : x[i];
    const T g = x[i] > T(0) ? T(0) : d[i];
    sum += double{g} * double{low};
  }
  return sum;
}

absl::StatusOr<Step> BindPrelu(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* alpha = context->Input("Alpha");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const Slopes s,
                      ReadSlopes(context->op(), x->shape(), alpha->size()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Alpha", x->dtype(), alpha->shape()));
  context->MayShare(x, out);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      T* result = out->data<T>();
      ParallelFor(s.n, 4096 / (s.outer * s.inner + 1) + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t n = begin; n < end; ++n) {
                      const T a = alpha->data<T>()[n];
                      for (int64_t o = 0; o < s.outer; ++o) {
                        const int64_t first = (o * s.n + n) * s.inner;
                        PreluRun(in + first, a, s.inner, result + first);
                      }
                    }
                  });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindPreluGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* alpha = context->Input("Alpha");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dalpha = context->Output("Alpha@GRAD");
  PD_ASSIGN_OR_RETURN(const Slopes s,
                      ReadSlopes(context->op(), x->shape(), alpha->size()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Alpha", x->dtype(), alpha->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const T* in = x->data<T>();
      const T* d = dout->data<T>();
      T* to_x = dx != nullptr ? dx->data<T>() : nullptr;
      ParallelFor(s.n, 4096 / (s.outer * s.inner + 1) + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t n = begin; n < end; ++n) {
                      const T a = alpha->data<T>()[n];
                      double sum = 0;
                      for (int64_t o = 0; o < s.outer; ++o) {
                        const int64_t first = (o * s.n + n) * s.inner;
                        sum += PreluSlope(in + first, d + first, s.inner);
                        if (to_x == nullptr) continue;
                        PreluGradRun(in + first, d + first, a, s.inner,
                                     to_x + first);
                      }
                      if (dalpha != nullptr)
                        dalpha->data<T>()[n] = static_cast<T>(sum);
                    }
                  });
      return absl::OkStatus();
    });
  });
}

void AddAttrs(OpDef* def) {
  def->Attr("data_format", std::string("NCHW"));
  def->Attr("mode", std::string("all"));
}

}  // namespace

absl::Status RegisterPrelu(OpRegistry* registry) {
  OpDef op("prelu");
  op.Input("X").Input("Alpha").Output("Out");
  AddAttrs(&op);
  op.Infer(InferUnary).Reference(BindPrelu);
  op.Grad(GradSpec{"prelu_grad", {"X", "Alpha"}, {}, {"Out"}, {"X", "Alpha"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("prelu_grad");
  grad.Input("X").Input("Alpha").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Alpha@GRAD");
  AddAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindPreluGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
