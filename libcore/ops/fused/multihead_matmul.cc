// SPDX-License-Identifier: Apache-2.0
// Attention as PaddlePaddle's inference passes fuse it; no gradients. With
// queries, keys and values [batch, steps, 3, heads, width] per head
//   Out = softmax(alpha * Q K^T + B) V, [batch, steps, heads, width]
//   self_dp_attention: X is the queries, keys and values, B is 0
//   multihead_matmul: they are Input [batch, steps, n] times W [n, 3, heads *
//     width] plus Bias [3, heads * width]; B is BiasQK, broadcast to [batch,
//     heads, steps, steps]; Out is [batch, steps, heads * width]
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct PackedAttention {
  int64_t batch = 0, steps = 0, heads = 0, width = 0;
  double alpha = 1;
  std::vector<int64_t> bias = {0, 0, 0, 0};  // strides

  int64_t row() const { return heads * width; }
};

// Softmax(alpha q K^T + b) V of one query.
template <typename T>
void Attend(const PackedAttention& a, const T* qkv, const T* bias, int64_t n,
            int64_t h, int64_t i, T* scores, T* out) {
  const int64_t step = 3 * a.row();
  const T* base = qkv + n * a.steps * step + h * a.width;
  const T* q = base + i * step;
  T most = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < a.steps; ++j) {
    const T* k = base + j * step + a.row();
    T dot = T(0);
#pragma omp simd reduction(+ : dot)
    for (int64_t d = 0; d < a.width; ++d) dot += q[d] * k[d];
    scores[j] = dot * static_cast<T>(a.alpha);
    if (bias != nullptr)
      scores[j] +=
          bias[n * a.bias[0] + h * a.bias[1] + i * a.bias[2] + j * a.bias[3]];
    most = std::max(most, scores[j]);
  }
  T sum = T(0);
  for (int64_t j = 0; j < a.steps; ++j)
    sum += scores[j] = std::exp(scores[j] - most);
  std::fill_n(out, a.width, T(0));
  for (int64_t j = 0; j < a.steps; ++j) {
    const T* v = base + j * step + 2 * a.row();
    const T weight = scores[j] / sum;
#pragma omp simd
    for (int64_t d = 0; d < a.width; ++d) out[d] += weight * v[d];
  }
}

template <typename T>
void AttendAll(const PackedAttention& a, const T* qkv, const T* bias, T* out) {
  ParallelFor(a.batch * a.steps * a.heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> scores(static_cast<size_t>(a.steps));
    for (int64_t r = begin; r < end; ++r)
      Attend(a, qkv, bias, r / a.heads / a.steps, r % a.heads,
             r / a.heads % a.steps, scores.data(), out + r * a.width);
  });
}

absl::StatusOr<Step> BindSelfDp(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PackedAttention a;
  a.batch = x->dim(0);
  a.steps = x->dim(1);
  a.heads = x->dim(3);
  a.width = x->dim(4);
  a.alpha = context->Attr<float>("alpha");
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      AttendAll<T>(a, x->data<T>(), nullptr, out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferSelfDp(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const int64_t heads = context->Attr<int32_t>("head_number");
  if (x.shape.size() != 5 || (x.shape[2] != 3 && x.shape[2] >= 0) ||
      (x.shape[3] != heads && x.shape[3] >= 0))
    return InvalidArgument(
        "'X' has shape %s; expected [batch, steps, 3, %d, width]",
        ToString(x.shape), heads);
  context->SetOutput("Out", {x.shape[0], x.shape[1], x.shape[3], x.shape[4]},
                     x.dtype);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMultihead(BindContext* context) {
  Tensor* x = context->Input("Input");
  Tensor* w = context->Input("W");
  Tensor* bias = context->Input("Bias");
  Tensor* bias_qk = context->Input("BiasQK");
  Tensor* out = context->Output("Out");
  const DType dtype = x->dtype();
  PackedAttention a;
  a.batch = x->dim(0);
  a.steps = x->dim(1);
  a.heads = context->Attr<int32_t>("head_number");
  a.width = w->dim(2) / a.heads;
  a.alpha = context->Attr<float>("alpha");
  PD_RETURN_IF_ERROR(ExpectInput(*context, "W", dtype, w->shape()));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", dtype, 3 * a.row()));
  if (bias_qk != nullptr) {
    const Shape scores = {a.batch, a.heads, a.steps, a.steps};
    PD_ASSIGN_OR_RETURN(const Broadcast b,
                        BroadcastShapes(bias_qk->shape(), scores, -1));
    if (b.out != scores || bias_qk->dtype() != dtype)
      return InvalidArgument("'BiasQK' is %s %s; the scores are %s",
                             Name(bias_qk->dtype()), ToString(bias_qk->shape()),
                             ToString(scores));
    a.bias = BroadcastStrides(b.x, b.out);
  }
  const GemmShape shape{a.batch * a.steps, 3 * a.row(), w->dim(0)};
  Tensor* qkv =
      context->Scratch(static_cast<size_t>(shape.m * shape.n) * SizeOf(dtype));
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      Gemm<T>(shape, {{{0, 0}}}, T(1), x->data<T>(), w->data<T>(),
              qkv->data<T>());
      for (int64_t r = 0; r < shape.m; ++r)
        for (int64_t i = 0; i < shape.n; ++i)
          qkv->data<T>()[r * shape.n + i] += bias->data<T>()[i];
      AttendAll<T>(a, qkv->data<T>(),
                   bias_qk != nullptr ? bias_qk->data<T>() : nullptr,
                   out->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::Status InferMultihead(InferContext* context) {
  const TensorMeta& x = context->Input("Input");
  const Shape& w = context->Input("W").shape;
  const int64_t heads = context->Attr<int32_t>("head_number");
  if (x.shape.size() != 3 || w.size() != 3 || (w[1] != 3 && w[1] >= 0) ||
      (w[0] >= 0 && x.shape[2] >= 0 && w[0] != x.shape[2]) || heads < 1 ||
      (w[2] >= 0 && w[2] % heads != 0))
    return InvalidArgument(
        "'Input' has shape %s, 'W' %s, attr 'head_number' is %d",
        ToString(x.shape), ToString(w), heads);
  context->SetOutput("Out", {x.shape[0], x.shape[1], w[2]}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterMultiheadMatmul(OpRegistry* registry) {
  OpDef self("self_dp_attention");
  self.Input("X").Output("Out");
  self.Attr("alpha", 1.0f).Attr("head_number", int32_t{1});
  self.Infer(InferSelfDp).NoGrad().Reference(BindSelfDp);
  PD_RETURN_IF_ERROR(registry->Add(std::move(self)));

  OpDef multihead("multihead_matmul");
  multihead.Input("Input").Input("W").Input("Bias").OptionalInput("BiasQK");
  multihead.Output("Out");
  multihead.Attr("alpha", 1.0f).Attr("head_number", int32_t{1});
  multihead.Infer(InferMultihead).NoGrad().Reference(BindMultihead);
  return registry->Add(std::move(multihead));
}

}  // namespace pd
