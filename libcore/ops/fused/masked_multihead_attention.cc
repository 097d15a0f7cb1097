// SPDX-License-Identifier: Apache-2.0
// masked_multihead_attention: a step of generation with a cache. x [batch, (3
// heads) width] is a query, a key and a value, bias [3, heads, width] is added;
// cache_kv [2, batch, heads, steps, width] has the t keys and values so far and
// gets these as number t; t is sequence_lengths of the row, or the last extent
// of src_mask less 1. out [batch, heads width] =
//   softmax(q K^T / sqrt(width) + src_mask) V over the t + 1 steps
// Rotary embeddings, beams, shared heads of keys and 8 bits are refused.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct MaskedAttention {
  int64_t batch = 0, heads = 0, steps = 0, width = 0;
  Tensor *x = nullptr, *cache = nullptr, *bias = nullptr, *mask = nullptr,
         *lengths = nullptr;

  int64_t Time(int64_t n) const {
    return lengths != nullptr ? LabelAt(*lengths, n) : mask->shape().back() - 1;
  }
  int64_t CacheAt(int64_t part, int64_t n, int64_t h) const {
    return ((part * batch + n) * heads + h) * steps * width;
  }
};

// The query and the cache of one head; writes its part of the result.
template <typename T>
void AttendOne(const MaskedAttention& m, int64_t n, int64_t h, T* cache,
               T* scores, T* query, T* out) {
  const int64_t time = m.Time(n);
  const T* x = m.x->data<T>() + n * 3 * m.heads * m.width;
  T* keys = cache + m.CacheAt(0, n, h);
  T* values = cache + m.CacheAt(1, n, h);
  for (int64_t d = 0; d < m.width; ++d) {
    const auto part = [&](int64_t k) {
      const int64_t at = (k * m.heads + h) * m.width + d;
      return x[at] + (m.bias != nullptr ? m.bias->data<T>()[at] : T(0));
    };
    query[d] = part(0);
    keys[time * m.width + d] = part(1);
    values[time * m.width + d] = part(2);
  }
  const T scale = T(1) / std::sqrt(static_cast<T>(m.width));
  T most = -std::numeric_limits<T>::infinity();
  for (int64_t t = 0; t <= time; ++t) {
    T dot = T(0);
    for (int64_t d = 0; d < m.width; ++d)
      dot += query[d] * keys[t * m.width + d];
    scores[t] = dot * scale;
    if (m.mask != nullptr)
      scores[t] += m.mask->data<T>()[n * m.mask->shape().back() + t];
    most = std::max(most, scores[t]);
  }
  T sum = T(0);
  for (int64_t t = 0; t <= time; ++t)
    sum += scores[t] = std::exp(scores[t] - most);
  std::fill_n(out, m.width, T(0));
  for (int64_t t = 0; t <= time; ++t)
    for (int64_t d = 0; d < m.width; ++d)
      out[d] += scores[t] / sum * values[t * m.width + d];
}

absl::Status CheckMaskedArguments(const BindContext& context) {
  for (const char* slot : {"cum_offsets", "rotary_tensor", "beam_cache_offset",
                           "qkv_out_scale", "out_shift", "out_smooth"})
    if (context.Input(slot) != nullptr)
      return Unimplemented(
          "'%s' is given; the op is computed without rotary embeddings, beams "
          "and 8 bits alone",
          slot);
  if (context.Attr<int32_t>("rotary_emb_dims") != 0 ||
      context.Attr<float>("out_scale") > 0)
    return Unimplemented(
        "attrs 'rotary_emb_dims' and 'out_scale' are %d and %g",
        context.Attr<int32_t>("rotary_emb_dims"),
        context.Attr<float>("out_scale"));
  return absl::OkStatus();
}

absl::StatusOr<MaskedAttention> ReadMasked(const BindContext& context) {
  PD_RETURN_IF_ERROR(CheckMaskedArguments(context));
  MaskedAttention m;
  m.x = context.Input("x");
  m.cache = context.Input("cache_kv");
  m.bias = context.Input("bias");
  m.mask = context.Input("src_mask");
  m.lengths = context.Input("sequence_lengths");
  m.batch = m.cache->dim(1);
  m.heads = m.cache->dim(2);
  m.steps = m.cache->dim(3);
  m.width = m.cache->dim(4);
  const DType dtype = m.x->dtype();
  PD_RETURN_IF_ERROR(ExpectInput(context, "cache_kv", dtype, m.cache->shape()));
  const int64_t row = 3 * m.heads * m.width;
  if (m.x->dim(0) != m.batch || m.x->dim(1) != row)
    return InvalidArgument("'x' has shape %s; expected [%d, %d]",
                           ToString(m.x->shape()), m.batch, row);
  if (m.bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(context, "bias", dtype, row));
  if (m.lengths != nullptr) {
    PD_RETURN_IF_ERROR(CheckIndexType("sequence_lengths", m.lengths->dtype()));
    PD_RETURN_IF_ERROR(ExpectElements(context, "sequence_lengths",
                                      m.lengths->dtype(), m.batch));
  }
  if (m.mask == nullptr && m.lengths == nullptr)
    return InvalidArgument(
        "neither 'src_mask' nor 'sequence_lengths' says the step");
  if (m.mask != nullptr && (m.mask->rank() != 4 || m.mask->dtype() != dtype ||
                            m.mask->size() != m.batch * m.mask->shape().back()))
    return InvalidArgument("'src_mask' is %s %s; expected %s [%d, 1, 1, steps]",
                           Name(m.mask->dtype()), ToString(m.mask->shape()),
                           Name(dtype), m.batch);
  return m;
}

absl::StatusOr<Step> BindMasked(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const MaskedAttention m, ReadMasked(*context));
  Tensor* out = context->Output("out");
  Tensor* cache = context->Output("cache_kv_out");
  return DispatchFloat(m.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      for (int64_t n = 0; n < m.batch; ++n) {
        const int64_t t = m.Time(n);
        if (t < 0 || t >= m.steps ||
            (m.mask != nullptr && t >= m.mask->shape().back()))
          return OutOfRange("row %d is at step %d; the cache has %d steps", n,
                            t, m.steps);
      }
      if (cache->raw() != m.cache->raw())
        std::copy_n(m.cache->data<T>(), m.cache->size(), cache->data<T>());
      ParallelFor(m.batch * m.heads, 1, [&](int64_t begin, int64_t end) {
        std::vector<T> scores(static_cast<size_t>(m.steps));
        std::vector<T> query(static_cast<size_t>(m.width));
        for (int64_t p = begin; p < end; ++p)
          AttendOne(m, p / m.heads, p % m.heads, cache->data<T>(),
                    scores.data(), query.data(), out->data<T>() + p * m.width);
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferMasked(InferContext* context) {
  const TensorMeta& x = context->Input("x");
  const Shape& cache = context->Input("cache_kv").shape;
  if (x.shape.size() != 2 || cache.size() != 5 ||
      (cache[0] >= 0 && cache[0] != 2))
    return InvalidArgument(
        "'x' has shape %s, 'cache_kv' has %s; expected [batch, 3 heads width] "
        "and [2, batch, heads, steps, width]",
        ToString(x.shape), ToString(cache));
  context->SetOutput("out", {x.shape[0], x.shape[1] < 0 ? -1 : x.shape[1] / 3},
                     x.dtype);
  context->Share("cache_kv", "cache_kv_out");
  if (context->HasInput("beam_cache_offset"))
    context->Share("beam_cache_offset", "beam_cache_offset_out");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterMaskedMultiheadAttention(OpRegistry* registry) {
  OpDef op("masked_multihead_attention");
  op.Input("x").Input("cache_kv");
  for (const char* slot :
       {"bias", "src_mask", "cum_offsets", "sequence_lengths", "rotary_tensor",
        "beam_cache_offset", "qkv_out_scale", "out_shift", "out_smooth"})
    op.OptionalInput(slot);
  op.Output("out").Output("cache_kv_out");
  op.OptionalOutput("beam_cache_offset_out");
  op.RequiredAttr("seq_len", AttrType::kInt);
  op.RequiredAttr("rotary_emb_dims", AttrType::kInt);
  op.Attr("use_neox_rotary_style", false);
  op.Attr("compute_dtype", std::string("default")).Attr("out_scale", -1.0f);
  op.Attr("quant_round_type", int32_t{1}).Attr("quant_max_bound", 127.0f);
  op.Attr("quant_min_bound", -127.0f);
  op.Infer(InferMasked).NoGrad().Reference(BindMasked);
  return registry->Add(std::move(op));
}

}  // namespace pd
