// SPDX-License-Identifier: Apache-2.0
// Attention of each head, query [batch, heads, queries, width], key [batch,
// heads, keys, width], value [batch, heads, keys, values]:
//   P = softmax(scale * query key^T + bias), output = D(P) value
// where bias is broadcast to [batch, heads, queries, keys] and D is dropout
// with the attributes of that op; mask is dropout's, absent where nothing is
// dropped. logsumexp [batch, heads, queries] is of what softmax is applied to.
// The gradient op makes P anew, unless the forward kernel kept it under the
// name of `output`: with G = D'(output@GRAD value^T)
//   S = P * (G - rowsum(P * G)), value@GRAD = D(P)^T output@GRAD
//   query@GRAD = scale * S key, key@GRAD = scale * S^T query, bias@GRAD = S,
//   summed over what bias was broadcast to
// It does so from the scores, not from logsumexp: a row whose bias is -1e9
// throughout has a softmax, but no log(keys) is left in a float32 beside 1e9.
//
// The pass fuse_attention makes this op; no program of PaddlePaddle has it.
// Slots are those of its memory_efficient_attention, which has the lengths
// before the heads, a `causal`, and draws other numbers for what it drops: here
// it is those of the dropout op whose output was called `dropout_name`.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/fused/attention.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Pointers that all rows of a head share.
template <typename T>
struct Head {
  const T *query, *key, *value;
  const T* bias;        // null for none
  const uint8_t* mask;  // null where nothing is dropped
};

template <typename T>
Head<T> HeadAt(const Attention& a, const Tensor& query, const Tensor& key,
               const Tensor& value, const Tensor* bias, const Tensor* mask,
               int64_t h) {
  return {query.data<T>() + h * a.queries * a.width,
          key.data<T>() + h * a.keys * a.width,
          value.data<T>() + h * a.keys * a.values,
          bias != nullptr ? bias->data<T>() + a.BiasOf(h) : nullptr,
          mask != nullptr ? mask->data<uint8_t>() + h * a.queries * a.keys
                          : nullptr};
}

// Query i's row of P; returns its logsumexp.
template <typename T>
T Probabilities(const Attention& a, const Head<T>& head, int64_t i, T* p) {
  const T* q = head.query + i * a.width;
  T max = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < a.keys; ++j) {
    const T* k = head.key + j * a.width;
    T dot = T(0);
    for (int64_t d = 0; d < a.width; ++d) dot += q[d] * k[d];
    p[j] = static_cast<T>(a.scale) * dot;
    if (head.bias != nullptr) p[j] += head.bias[i * a.bias[2] + j * a.bias[3]];
    max = std::max(max, p[j]);
  }
  T sum = T(0);
  for (int64_t j = 0; j < a.keys; ++j) sum += p[j] = std::exp(p[j] - max);
  for (int64_t j = 0; j < a.keys; ++j) p[j] /= sum;
  return max + std::log(sum);
}

// The factor that dropout applies to element (i, j).
template <typename T>
T Kept(const Attention& a, const Head<T>& head, int64_t i, int64_t j) {
  const bool dropped = head.mask != nullptr && head.mask[i * a.keys + j] == 0;
  return dropped ? T(0) : static_cast<T>(a.dropout.KeptFactor());
}

template <typename T>
void Attend(const Attention& a, const Head<T>& head, T* out, T* logsumexp) {
  std::vector<T> p(static_cast<size_t>(a.keys));
  for (int64_t i = 0; i < a.queries; ++i) {
    const T sum = Probabilities(a, head, i, p.data());
    if (logsumexp != nullptr) logsumexp[i] = sum;
    T* row = out + i * a.values;
    std::fill_n(row, a.values, T(0));
    for (int64_t j = 0; j < a.keys; ++j) {
      const T weight = p[static_cast<size_t>(j)] * Kept(a, head, i, j);
      const T* v = head.value + j * a.values;
      for (int64_t d = 0; d < a.values; ++d) row[d] += weight * v[d];
    }
  }
}

// The gradients of a head; null for those that are not wanted.
template <typename T>
struct HeadGrad {
  T *query, *key, *value, *bias;
};

// s = P * (G - rowsum(P * G)) of query i, from p = P.
template <typename T>
void ScoreGrad(const Attention& a, const Head<T>& head, const T* dout,
               int64_t i, const T* p, T* s) {
  T dot = T(0);
  for (int64_t j = 0; j < a.keys; ++j) {
    const T* v = head.value + j * a.values;
    T g = T(0);
    for (int64_t d = 0; d < a.values; ++d) g += dout[i * a.values + d] * v[d];
    s[j] = g * Kept(a, head, i, j);
    dot += p[j] * s[j];
  }
  for (int64_t j = 0; j < a.keys; ++j) s[j] = p[j] * (s[j] - dot);
}

template <typename T>
void AttendGrad(const Attention& a, const Head<T>& head, const T* dout,
                const HeadGrad<T>& to) {
  std::vector<T> row(static_cast<size_t>(2 * a.keys));
  T *p = row.data(), *s = p + a.keys;
  if (to.query != nullptr) std::fill_n(to.query, a.queries * a.width, T(0));
  if (to.key != nullptr) std::fill_n(to.key, a.keys * a.width, T(0));
  if (to.value != nullptr) std::fill_n(to.value, a.keys * a.values, T(0));
  const T scale = static_cast<T>(a.scale);
  for (int64_t i = 0; i < a.queries; ++i) {
    Probabilities(a, head, i, p);
    ScoreGrad(a, head, dout, i, p, s);
    for (int64_t j = 0; j < a.keys; ++j) {
      const T weight = p[j] * Kept(a, head, i, j);
      if (to.value != nullptr)
        for (int64_t d = 0; d < a.values; ++d)
          to.value[j * a.values + d] += weight * dout[i * a.values + d];
      for (int64_t d = 0; d < a.width; ++d) {
        if (to.query != nullptr)
          to.query[i * a.width + d] += scale * s[j] * head.key[j * a.width + d];
        if (to.key != nullptr)
          to.key[j * a.width + d] += scale * s[j] * head.query[i * a.width + d];
      }
      if (to.bias != nullptr) to.bias[i * a.bias[2] + j * a.bias[3]] += s[j];
    }
  }
}

absl::StatusOr<Step> BindAttentionForward(BindContext* context) {
  Tensor* query = context->Input("query");
  Tensor* key = context->Input("key");
  Tensor* value = context->Input("value");
  Tensor* bias = context->Input("bias");
  Tensor* out = context->Output("output");
  Tensor* logsumexp = context->Output("logsumexp");
  Tensor* mask = context->Output("mask");
  PD_ASSIGN_OR_RETURN(const Attention a, ReadAttention(*context));
  const int64_t draws = a.Heads() * a.queries * a.keys;
  if (!a.Drops())
    mask = nullptr;
  else if (mask == nullptr)
    mask = context->Scratch(static_cast<size_t>(draws));
  return DispatchFloat(query->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext& run) {
      if (mask != nullptr)
        DrawMask(a.source.At(run), a.dropout, draws, mask->data<uint8_t>());
      ParallelFor(a.Heads(), 1, [&](int64_t begin, int64_t end) {
        for (int64_t h = begin; h < end; ++h)
          Attend(a, HeadAt<T>(a, *query, *key, *value, bias, mask, h),
                 out->data<T>() + h * a.queries * a.values,
                 logsumexp != nullptr ? logsumexp->data<T>() + h * a.queries
                                      : nullptr);
      });
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindAttentionBackward(BindContext* context) {
  Tensor* query = context->Input("query");
  Tensor* key = context->Input("key");
  Tensor* value = context->Input("value");
  Tensor* bias = context->Input("bias");
  Tensor* dout = context->Input("output@GRAD");
  Tensor* dquery = context->Output("query@GRAD");
  Tensor* dkey = context->Output("key@GRAD");
  Tensor* dvalue = context->Output("value@GRAD");
  Tensor* dbias = context->Output("bias@GRAD");
  PD_ASSIGN_OR_RETURN(const Attention a, ReadAttention(*context));
  Tensor* mask = a.Drops() ? context->Input("mask") : nullptr;
  if (Tensor* out = context->Input("output")) context->NoBuffer(out);
  return DispatchFloat(query->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    const auto at = [](Tensor* t, int64_t offset) {
      return t != nullptr ? t->data<T>() + offset : nullptr;
    };
    return Step([=](const RunContext&) {
      if (dbias != nullptr) std::fill_n(dbias->data<T>(), dbias->size(), T(0));
      // Heads share a bias.
      const int64_t grain = dbias != nullptr ? a.Heads() + 1 : 1;
      ParallelFor(a.Heads(), grain, [&](int64_t begin, int64_t end) {
        for (int64_t h = begin; h < end; ++h)
          AttendGrad(a, HeadAt<T>(a, *query, *key, *value, bias, mask, h),
                     dout->data<T>() + h * a.queries * a.values,
                     HeadGrad<T>{at(dquery, h * a.queries * a.width),
                                 at(dkey, h * a.keys * a.width),
                                 at(dvalue, h * a.keys * a.values),
                                 at(dbias, a.BiasOf(h))});
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferAttentionForward(InferContext* context) {
  const TensorMeta& query = context->Input("query");
  const Shape& key = context->Input("key").shape;
  const Shape& value = context->Input("value").shape;
  if (query.shape.size() != 4 || key.size() != 4 || value.size() != 4)
    return InvalidArgument(
        "'query' has shape %s, 'key' %s, 'value' %s; expected [batch, heads, "
        "length, width]",
        ToString(query.shape), ToString(key), ToString(value));
  Shape shape = query.shape;
  shape[3] = value[3];
  context->SetOutput("output", shape, query.dtype);
  shape[3] = key[2];
  context->SetOutput("mask", shape, DType::kUInt8);
  shape.pop_back();
  context->SetOutput("logsumexp", shape, query.dtype);
  return absl::OkStatus();
}

void AddAttentionAttrs(OpDef* def) {
  def->Attr("scale", 1.0f)
      .Attr("dropout_prob", 0.0f)
      .Attr("is_test", false)
      .Attr("dropout_implementation", std::string("upscale_in_train"))
      .Attr("fix_seed", false)
      .Attr("seed", int32_t{0})
      .Attr("dropout_name", std::string());
}

}  // namespace

absl::StatusOr<Attention> ReadAttention(const BindContext& context) {
  const Tensor* query = context.Input("query");
  const Shape& q = query->shape();
  const Shape& k = context.Input("key")->shape();
  const Shape& v = context.Input("value")->shape();
  if (q.size() != 4 || k.size() != 4 || v.size() != 4)
    return InvalidArgument(
        "'query' has shape %s, 'key' %s, 'value' %s; expected rank 4",
        ToString(q), ToString(k), ToString(v));
  Attention a;
  a.batch = q[0], a.heads = q[1], a.queries = q[2], a.width = q[3];
  a.keys = k[2], a.values = v[3];
  a.scale = context.Attr<float>("scale");
  const DType type = query->dtype();
  PD_RETURN_IF_ERROR(
      ExpectInput(context, "key", type, {q[0], q[1], k[2], q[3]}));
  PD_RETURN_IF_ERROR(
      ExpectInput(context, "value", type, {q[0], q[1], k[2], v[3]}));
  const Shape scores = {q[0], q[1], q[2], k[2]};
  if (const Tensor* bias = context.Input("bias")) {
    PD_ASSIGN_OR_RETURN(const Broadcast met,
                        BroadcastShapes(scores, bias->shape(), -1));
    if (met.out != scores || bias->dtype() != type)
      return InvalidArgument("'bias' is %s %s; the scores are %s %s",
                             Name(bias->dtype()), ToString(bias->shape()),
                             Name(type), ToString(scores));
    const std::vector<int64_t> strides = BroadcastStrides(met.y, scores);
    std::copy(strides.begin(), strides.end(), a.bias.begin());
  }
  PD_ASSIGN_OR_RETURN(a.dropout, ReadDropout(context));
  const auto& name = context.Attr<std::string>("dropout_name");
  a.source.name = StreamOf(name.empty() ? context.op().Out("output") : name);
  a.source.fixed = context.Attr<bool>("fix_seed");
  a.source.seed = context.Attr<int32_t>("seed");
  if (context.op().type == "scaled_dot_product_attention") return a;
  PD_RETURN_IF_ERROR(
      ExpectInput(context, "output@GRAD", type, {q[0], q[1], q[2], v[3]}));
  if (a.Drops())
    PD_RETURN_IF_ERROR(ExpectInput(context, "mask", DType::kUInt8, scores));
  return a;
}

absl::Status RegisterScaledDotProductAttention(OpRegistry* registry) {
  OpDef op("scaled_dot_product_attention");
  op.Input("query").Input("key").Input("value").OptionalInput("bias");
  op.Output("output")
      .IntermediateOutput("logsumexp")
      .IntermediateOutput("mask");
  AddAttentionAttrs(&op);
  op.Infer(InferAttentionForward).Reference(BindAttentionForward);
  op.Grad(GradSpec{"scaled_dot_product_attention_grad",
                   {"query", "key", "value", "bias"},
                   {"output", "mask"},
                   {"output"},
                   {"query", "key", "value", "bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("scaled_dot_product_attention_grad");
  grad.Input("query").Input("key").Input("value").OptionalInput("bias");
  grad.OptionalInput("output").OptionalInput("mask").Input("output@GRAD");
  grad.OptionalOutput("query@GRAD").OptionalOutput("key@GRAD");
  grad.OptionalOutput("value@GRAD").OptionalOutput("bias@GRAD");
  AddAttentionAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindAttentionBackward);
  return registry->Add(std::move(grad));
}

}  // namespace pd
