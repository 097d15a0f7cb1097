// SPDX-License-Identifier: Apache-2.0
// moe: a feed-forward layer of experts that choose their tokens (Y. Zhou et
// al., "Mixture-of-experts with expert choice routing", 2022). Of the tokens of
// each batch in X [batch, tokens, n], expert e takes the tokens / 16 with the
// greatest Gate [batch, tokens, experts], and
//   Out = X + sum over the experts that took it of
//     softmax(Gate)[e] (u(X Bmm0[e] + Bias0[e]) Bmm1[e] + Bias1[e])
// u is gelu or relu. No gradient, as in PaddlePaddle.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kTokensPerChoice = 16;

struct MoeDims {
  int64_t batch = 0, tokens = 0, width = 0, experts = 0, inner = 0;
  bool gelu = true;
};

template <typename T>
struct MoeData {
  const T *x, *gate, *w0, *b0, *w1, *b1;
  T* out;
};

// `out` = bias + x times w [n, columns].
template <typename T>
void Affine(const T* x, int64_t n, const T* w, const T* bias,
            std::vector<T>* out) {
  const auto columns = static_cast<int64_t>(out->size());
  std::copy_n(bias, columns, out->data());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < columns; ++j)
      (*out)[static_cast<size_t>(j)] += x[i] * w[i * columns + j];
}

// The share of an expert in a token.
template <typename T>
T ShareOf(const T* gates, int64_t n, int64_t expert) {
  const T most = *std::max_element(gates, gates + n);
  T sum = T(0);
  for (int64_t e = 0; e < n; ++e) sum += std::exp(gates[e] - most);
  return std::exp(gates[expert] - most) / sum;
}

template <typename T>
void AddExpert(const MoeDims& d, const MoeData<T>& m, int64_t batch,
               int64_t expert) {
  const T* gates = m.gate + batch * d.tokens * d.experts;
  std::vector<int64_t> order(static_cast<size_t>(d.tokens));
  std::iota(order.begin(), order.end(), 0);
  // NaN comes first, so that any numbers have an order.
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    const T u = gates[a * d.experts + expert];
    const T v = gates[b * d.experts + expert];
    return u > v || (u != u && v == v);
  });
  std::vector<T> inner(static_cast<size_t>(d.inner));
  std::vector<T> result(static_cast<size_t>(d.width));
  for (int64_t k = 0; k < d.tokens / kTokensPerChoice; ++k) {
    const int64_t token = order[static_cast<size_t>(k)];
    const int64_t at = (batch * d.tokens + token) * d.width;
    Affine(m.x + at, d.width, m.w0 + expert * d.width * d.inner,
           m.b0 + expert * d.inner, &inner);
    for (T& v : inner)
      v = d.gelu ? v * T(0.5) * (T(1) + std::erf(v * static_cast<T>(M_SQRT1_2)))
                 : std::max(v, T(0));
    Affine(inner.data(), d.inner, m.w1 + expert * d.inner * d.width,
           m.b1 + expert * d.width, &result);
    const T share = ShareOf(gates + token * d.experts, d.experts, expert);
    for (int64_t j = 0; j < d.width; ++j)
      m.out[at + j] += share * result[static_cast<size_t>(j)];
  }
}

absl::StatusOr<MoeDims> MoeDimsOf(const OpDesc& op, const Shape& x,
                                  const Shape& bmm0) {
  const std::string& act = op.Attr<std::string>("act_type");
  if (act != "gelu" && act != "relu")
    return InvalidArgument("attr 'act_type' is '%s'; expected gelu or relu",
                           act);
  if (x.size() != 3 || bmm0.size() != 3)
    return InvalidArgument(
        "'X' has shape %s and 'Bmm0' %s; expected [batch, tokens, n] and "
        "[experts, n, m]",
        ToString(x), ToString(bmm0));
  return MoeDims{x[0], x[1], x[2], bmm0[0], bmm0[2], act == "gelu"};
}

absl::StatusOr<Step> BindMoe(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(
      const MoeDims d,
      MoeDimsOf(context->op(), x->shape(), context->Input("Bmm0")->shape()));
  const DType dtype = x->dtype();
  const auto expect = [&](const char* slot, const Shape& shape) {
    PD_RETURN_IF_ERROR(CheckedBytes(shape, SizeOf(dtype)).status());
    return ExpectElements(*context, slot, dtype, NumElements(shape));
  };
  PD_RETURN_IF_ERROR(expect("Gate", {d.batch, d.tokens, d.experts}));
  PD_RETURN_IF_ERROR(expect("Bmm0", {d.experts, d.width, d.inner}));
  PD_RETURN_IF_ERROR(expect("Bias0", {d.experts, d.inner}));
  PD_RETURN_IF_ERROR(expect("Bmm1", {d.experts, d.inner, d.width}));
  PD_RETURN_IF_ERROR(expect("Bias1", {d.experts, d.width}));
  Tensor *gate = context->Input("Gate"), *w0 = context->Input("Bmm0"),
         *b0 = context->Input("Bias0"), *w1 = context->Input("Bmm1"),
         *b1 = context->Input("Bias1");
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const MoeData<T> m = {x->data<T>(),  gate->data<T>(), w0->data<T>(),
                            b0->data<T>(), w1->data<T>(),   b1->data<T>(),
                            out->data<T>()};
      std::copy_n(m.x, x->size(), m.out);
      ParallelFor(d.batch, 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b)
          for (int64_t e = 0; e < d.experts; ++e) AddExpert(d, m, b, e);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferMoe(InferContext* context) {
  PD_RETURN_IF_ERROR(MoeDimsOf(context->op(), context->Input("X").shape,
                               context->Input("Bmm0").shape)
                         .status());
  context->SetOutput("Out", context->Input("X").shape,
                     context->Input("X").dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterMoe(OpRegistry* registry) {
  OpDef op("moe");
  for (const char* slot : {"X", "Gate", "Bmm0", "Bias0", "Bmm1", "Bias1"})
    op.Input(slot);
  op.Output("Out").Attr("act_type", std::string("gelu"));
  op.Infer(InferMoe).NoGrad().Reference(BindMoe);
  return registry->Add(std::move(op));
}

}  // namespace pd
