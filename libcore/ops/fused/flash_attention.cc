// SPDX-License-Identifier: Apache-2.0
// Attention as PaddlePaddle's libraries for GPUs compute it; with queries,
// keys and values [batch, steps, heads, width] per head
//   out = softmax(scale q k^T + mask) v, softmax_lse = log of the softmax's sum
//   flash_attn: scale is 1 / sqrt(width); attn_mask [batch, heads, queries,
//     keys] (heads or queries may be 1)
//   flash_attn_unpadded: sequences one after the other, [total, heads, width],
//     from cu_seqlens[i] to cu_seqlens[i + 1]; softmax_lse has a row for each
//     sequence
//   memory_efficient_attention: with a bias and a scale; scale < 0 is
//     1 / sqrt(width)
//   variable_length_memory_efficient_attention: [batch, heads, steps, width],
//     of which seq_lens and kv_seq_lens say how many steps there are; other
//     rows of out are 0
// Heads of keys may be fewer: several heads of queries then share one. causal:
// query i sees the keys up to i + keys - queries. Dropout is refused where it
// is not 0; PaddlePaddle's masks are those of its GPU's generator.
// Gradients, with p the softmax and g = out@GRAD: v@GRAD = p^T g,
//   s = p (g v^T - sum(g out)), q@GRAD = scale s k, k@GRAD = scale s^T q
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// The steps from batch to batch, from step to step, from head to head.
struct HeadStrides {
  int64_t batch = 0, step = 0, head = 0;
};

struct FlashShape {
  int64_t batch = 0, heads = 0, key_heads = 0;
  int64_t queries = 0, keys = 0;  // at most
  int64_t width = 0, values = 0;
  HeadStrides q, k, v, out;
  double scale = 1;
  bool causal = false;
  std::vector<int64_t> bias = {0, 0, 0, 0};
  int64_t lse = 0;  // rows of softmax_lse for a head

  int64_t KeyHead(int64_t h) const { return h / (heads / key_heads); }
};

// A sequence: where it begins in each tensor, and how long it is.
struct FlashSpan {
  int64_t q = 0, k = 0, v = 0, out = 0;
  int64_t queries = 0, keys = 0;
};

struct FlashTensors {
  Tensor *q = nullptr, *k = nullptr, *v = nullptr, *out = nullptr,
         *lse = nullptr, *mask = nullptr;
  Tensor *dout = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

// The softmax of one query in `scores`; answers the log of its sum.
template <typename T>
T FlashScores(const FlashShape& s, const FlashSpan& span, const FlashTensors& t,
              int64_t n, int64_t h, int64_t i, T* scores) {
  const T *q = t.q->data<T>(), *k = t.k->data<T>();
  const T* mask = t.mask != nullptr ? t.mask->data<T>() : nullptr;
  const int64_t seen =
      s.causal ? std::min(span.keys, i + 1 + span.keys - span.queries)
               : span.keys;
  const T* query = q + span.q + i * s.q.step + h * s.q.head;
  T most = -std::numeric_limits<T>::infinity();
  for (int64_t j = 0; j < span.keys; ++j) {
    scores[j] = -std::numeric_limits<T>::infinity();
    if (j >= seen) continue;
    const T* key = k + span.k + j * s.k.step + s.KeyHead(h) * s.k.head;
    T dot = T(0);
    for (int64_t d = 0; d < s.width; ++d) dot += query[d] * key[d];
    scores[j] = dot * static_cast<T>(s.scale);
    if (mask != nullptr)
      scores[j] +=
          mask[n * s.bias[0] + h * s.bias[1] + i * s.bias[2] + j * s.bias[3]];
    most = std::max(most, scores[j]);
  }
  // A query that sees no key attends to nothing.
  if (most == -std::numeric_limits<T>::infinity()) {
    std::fill_n(scores, span.keys, T(0));
    return most;
  }
  T sum = T(0);
  for (int64_t j = 0; j < span.keys; ++j)
    sum += scores[j] = std::exp(scores[j] - most);
  for (int64_t j = 0; j < span.keys; ++j) scores[j] /= sum;
  return most + std::log(sum);
}

template <typename T>
void FlashForward(const FlashShape& s, const std::vector<FlashSpan>& spans,
                  const FlashTensors& t) {
  std::fill_n(t.out->data<T>(), t.out->size(), T(0));
  if (t.lse != nullptr) std::fill_n(t.lse->data<float>(), t.lse->size(), 0.0f);
  const auto count = static_cast<int64_t>(spans.size());
  ParallelFor(count * s.heads, 1, [&](int64_t begin, int64_t end) {
    std::vector<T> scores(static_cast<size_t>(s.keys));
    for (int64_t p = begin; p < end; ++p) {
      const int64_t n = p / s.heads, h = p % s.heads;
      const FlashSpan& span = spans[static_cast<size_t>(n)];
      for (int64_t i = 0; i < span.queries; ++i) {
        const T lse = FlashScores(s, span, t, n, h, i, scores.data());
        if (t.lse != nullptr)
          t.lse->data<float>()[p * s.lse + i] = static_cast<float>(lse);
        T* out = t.out->data<T>() + span.out + i * s.out.step + h * s.out.head;
        for (int64_t j = 0; j < span.keys; ++j) {
          const T* value =
              t.v->data<T>() + span.v + j * s.v.step + s.KeyHead(h) * s.v.head;
          for (int64_t d = 0; d < s.values; ++d) out[d] += scores[j] * value[d];
        }
      }
    }
  });
}

template <typename T>
void FlashBackward(const FlashShape& s, const std::vector<FlashSpan>& spans,
                   const FlashTensors& t) {
  for (Tensor* to : {t.dq, t.dk, t.dv})
    if (to != nullptr) std::fill_n(to->data<T>(), to->size(), T(0));
  std::vector<T> p(static_cast<size_t>(s.keys)), ds(p.size());
  for (size_t n = 0; n < spans.size(); ++n) {
    const FlashSpan& span = spans[n];
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < span.queries; ++i) {
        FlashScores(s, span, t, static_cast<int64_t>(n), h, i, p.data());
        const T* g =
            t.dout->data<T>() + span.out + i * s.out.step + h * s.out.head;
        T total = T(0);
        for (int64_t j = 0; j < span.keys; ++j) {
          const int64_t at = span.v + j * s.v.step + s.KeyHead(h) * s.v.head;
          T dot = T(0);
          for (int64_t d = 0; d < s.values; ++d) {
            dot += g[d] * t.v->data<T>()[at + d];
            if (t.dv != nullptr) t.dv->data<T>()[at + d] += p[j] * g[d];
          }
          ds[j] = dot;
          total += p[j] * dot;
        }
        const int64_t query = span.q + i * s.q.step + h * s.q.head;
        for (int64_t j = 0; j < span.keys; ++j) {
          const int64_t key = span.k + j * s.k.step + s.KeyHead(h) * s.k.head;
          const T slope = static_cast<T>(s.scale) * p[j] * (ds[j] - total);
          for (int64_t d = 0; d < s.width; ++d) {
            if (t.dq != nullptr)
              t.dq->data<T>()[query + d] += slope * t.k->data<T>()[key + d];
            if (t.dk != nullptr)
              t.dk->data<T>()[key + d] += slope * t.q->data<T>()[query + d];
          }
        }
      }
  }
}

struct FlashSlots {
  const char *q, *k, *v, *mask, *out, *lse;
};

FlashSlots SlotsOf(const std::string& type) {
  if (type.rfind("flash", 0) == 0)
    return {"q", "k", "v", "attn_mask", "out", "softmax_lse"};
  if (type.rfind("memory", 0) == 0)
    return {"query", "key", "value", "bias", "output", "logsumexp"};
  return {"query", "key", "value", "mask", "out", ""};
}
bool IsUnpadded(const std::string& type) {
  return type.rfind("flash_attn_unpadded", 0) == 0;
}
bool IsVariable(const std::string& type) {
  return type.rfind("variable", 0) == 0;
}

absl::Status CheckFlashShapes(const Shape& q, const Shape& k, const Shape& v,
                              const std::string& type) {
  const size_t rank = IsUnpadded(type) ? 3 : 4;
  const size_t head = IsVariable(type) ? 1 : rank - 2;
  const auto same = [](int64_t a, int64_t b) {
    return a == b || a < 0 || b < 0;
  };
  bool fits = q.size() == rank && k.size() == rank && v.size() == rank;
  fits = fits && same(q[rank - 1], k[rank - 1]);
  for (size_t i = 0; fits && i + 1 < rank; ++i) fits = same(k[i], v[i]);
  fits = fits && (rank == 3 || same(q[0], k[0]));
  // Heads of queries share those of keys evenly.
  if (fits && q[head] > 0 && k[head] >= 0)
    fits = k[head] > 0 && q[head] % k[head] == 0;
  if (fits) return absl::OkStatus();
  return InvalidArgument(
      "queries, keys and values have shapes %s, %s and %s; they do not fit",
      ToString(q), ToString(k), ToString(v));
}

// Dense strides of [.., step, head, width], or [.., head, step, width].
HeadStrides StridesOfHeads(const Shape& shape, bool heads_first) {
  const int64_t width = shape.back();
  const size_t rank = shape.size();
  HeadStrides s;
  if (heads_first) {
    s.step = width;
    s.head = shape[rank - 2] * width;
    s.batch = shape[1] * s.head;
    return s;
  }
  s.head = width;
  s.step = shape[rank - 2] * width;
  s.batch = rank == 4 ? shape[1] * s.step : 0;
  return s;
}

double ScaleOf(const OpDesc& op, int64_t width) {
  const double natural =
      1 / std::sqrt(static_cast<double>(std::max<int64_t>(width, 1)));
  if (op.type == "flash_attn" || op.type == "flash_attn_grad") return natural;
  const double scale = op.Attr<float>("scale");
  return op.type.rfind("memory", 0) == 0 && scale < 0 ? natural : scale;
}

double DropoutOf(const OpDesc& op) {
  if (op.FindAttr("is_test") != nullptr && op.Attr<bool>("is_test")) return 0;
  if (op.FindAttr("dropout") != nullptr) return op.Attr<float>("dropout");
  return op.FindAttr("dropout_p") != nullptr ? op.Attr<double>("dropout_p") : 0;
}

absl::StatusOr<FlashShape> ReadFlash(const BindContext& context,
                                     const FlashTensors& t) {
  const OpDesc& op = context.op();
  const FlashSlots slots = SlotsOf(op.type);
  PD_RETURN_IF_ERROR(
      CheckFlashShapes(t.q->shape(), t.k->shape(), t.v->shape(), op.type));
  const DType dtype = t.q->dtype();
  PD_RETURN_IF_ERROR(ExpectInput(context, slots.k, dtype, t.k->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(context, slots.v, dtype, t.v->shape()));
  if (DropoutOf(op) != 0)
    return Unimplemented(
        "dropout %g; its mask is that of a GPU's generator, so attention is "
        "computed without dropout alone",
        DropoutOf(op));
  const bool variable = IsVariable(op.type);
  const size_t rank = t.q->rank(), head = variable ? 1 : rank - 2;
  const size_t step = variable ? 2 : rank - 3;
  FlashShape s;
  s.batch = rank == 4 ? t.q->dim(0) : 1;
  s.heads = t.q->dim(head);
  s.key_heads = std::max<int64_t>(t.k->dim(head), 1);
  s.queries = s.lse = t.q->dim(step);
  s.keys = t.k->dim(step);
  s.width = t.q->dim(rank - 1);
  s.values = t.v->dim(rank - 1);
  s.q = StridesOfHeads(t.q->shape(), variable);
  s.k = StridesOfHeads(t.k->shape(), variable);
  s.v = StridesOfHeads(t.v->shape(), variable);
  Shape out = t.q->shape();
  out.back() = s.values;
  s.out = StridesOfHeads(out, variable);
  s.scale = ScaleOf(op, s.width);
  s.causal = op.Attr<bool>("causal");
  if (t.mask == nullptr) return s;
  if (rank == 3) return Unimplemented("a mask for sequences without padding");
  const Shape scores = {s.batch, s.heads, s.queries, s.keys};
  PD_ASSIGN_OR_RETURN(const Broadcast b,
                      BroadcastShapes(t.mask->shape(), scores, -1));
  if (b.out != scores || t.mask->dtype() != dtype)
    return InvalidArgument("'%s' is %s %s; the scores are %s %s", slots.mask,
                           Name(t.mask->dtype()), ToString(t.mask->shape()),
                           Name(dtype), ToString(scores));
  s.bias = BroadcastStrides(b.x, b.out);
  return s;
}

// The sequences of a run.
struct FlashLengths {
  Tensor *q = nullptr, *k = nullptr;  // offsets or lengths; null: all steps
  bool offsets = false;
};

FlashLengths ReadLengths(const BindContext& context) {
  FlashLengths lengths;
  lengths.offsets = IsUnpadded(context.op().type);
  const bool variable = IsVariable(context.op().type);
  if (lengths.offsets || variable) {
    lengths.q = context.Input(variable ? "seq_lens" : "cu_seqlens_q");
    lengths.k = context.Input(variable ? "kv_seq_lens" : "cu_seqlens_k");
  }
  return lengths;
}

absl::StatusOr<std::vector<FlashSpan>> SpansOf(const FlashShape& s,
                                               const FlashLengths& lengths) {
  std::vector<FlashSpan> spans;
  int64_t count = s.batch;
  if (lengths.q != nullptr) {
    count = lengths.q->size() - (lengths.offsets ? 1 : 0);
    if (lengths.q->size() != lengths.k->size() || count < 0 ||
        (!lengths.offsets && count != s.batch))
      return InvalidArgument(
          "there are %d and %d lengths of queries and keys, and %d sequences",
          lengths.q->size(), lengths.k->size(), s.batch);
    PD_RETURN_IF_ERROR(CheckIndices("seqlens_q", *lengths.q, 0, s.queries + 1));
    PD_RETURN_IF_ERROR(CheckIndices("seqlens_k", *lengths.k, 0, s.keys + 1));
  }
  for (int64_t n = 0; n < count; ++n) {
    FlashSpan span{n * s.q.batch,   n * s.k.batch, n * s.v.batch,
                   n * s.out.batch, s.queries,     s.keys};
    if (lengths.offsets) {
      const int64_t q = LabelAt(*lengths.q, n), k = LabelAt(*lengths.k, n);
      span = {q * s.q.step,
              k * s.k.step,
              k * s.v.step,
              q * s.out.step,
              LabelAt(*lengths.q, n + 1) - q,
              LabelAt(*lengths.k, n + 1) - k};
      if (span.queries < 0 || span.keys < 0)
        return InvalidArgument("the offsets of sequence %d fall", n);
    } else if (lengths.q != nullptr) {
      span.queries = LabelAt(*lengths.q, n);
      span.keys = LabelAt(*lengths.k, n);
    }
    spans.push_back(span);
  }
  return spans;
}

absl::StatusOr<Step> BindFlashForward(BindContext* context) {
  const FlashSlots slots = SlotsOf(context->op().type);
  FlashTensors t;
  t.q = context->Input(slots.q);
  t.k = context->Input(slots.k);
  t.v = context->Input(slots.v);
  t.mask = context->Input(slots.mask);
  t.out = context->Output(slots.out);
  if (*slots.lse != '\0') t.lse = context->Output(slots.lse);
  for (const char* unused : {"cu_seqlens_q", "cu_seqlens_k", "seqlen_k"})
    if (slots.mask == std::string("bias") && context->Input(unused) != nullptr)
      return Unimplemented("'%s' is given; expected sequences of one length",
                           unused);
  PD_ASSIGN_OR_RETURN(FlashShape s, ReadFlash(*context, t));
  const FlashLengths lengths = ReadLengths(*context);
  if (IsVariable(context->op().type) &&
      context->Attr<int32_t>("pre_cache_length") != 0)
    return Unimplemented("attr 'pre_cache_length' is %d; expected 0",
                         context->Attr<int32_t>("pre_cache_length"));
  Tensor* softmax = context->Output("softmax");
  if (softmax != nullptr && context->Attr<bool>("return_softmax"))
    return Unimplemented("attr 'return_softmax' is true");
  Tensor* seeds = context->Output(
      slots.mask == std::string("bias") ? "seed_and_offset" : "seed_offset");
  if (t.lse != nullptr && IsUnpadded(context->op().type)) s.lse = t.lse->dim(2);
  return DispatchFloat(t.q->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_ASSIGN_OR_RETURN(const std::vector<FlashSpan> spans,
                          SpansOf(s, lengths));
      for (const FlashSpan& span : spans)
        if (t.lse != nullptr && span.queries > s.lse)
          return InvalidArgument(
              "a sequence has %d queries; attr 'max_seqlen_q' is %d",
              span.queries, s.lse);
      FlashForward<T>(s, spans, t);
      if (seeds != nullptr) std::fill_n(seeds->data<int64_t>(), 2, 0);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindFlashBackward(BindContext* context) {
  const FlashSlots slots = SlotsOf(context->op().type);
  FlashTensors t;
  t.q = context->Input(slots.q);
  t.k = context->Input(slots.k);
  t.v = context->Input(slots.v);
  t.mask = context->Input(slots.mask);
  const std::string dout = GradName(slots.out);
  t.dout = context->Input(dout);
  t.dq = context->Output(GradName(slots.q));
  t.dk = context->Output(GradName(slots.k));
  t.dv = context->Output(GradName(slots.v));
  PD_ASSIGN_OR_RETURN(const FlashShape s, ReadFlash(*context, t));
  Shape out = t.q->shape();
  out.back() = s.values;
  PD_RETURN_IF_ERROR(ExpectInput(*context, dout, t.q->dtype(), out));
  if (context->Output(GradName(slots.mask)) != nullptr)
    return Unimplemented("the gradient of '%s'", slots.mask);
  const FlashLengths lengths = ReadLengths(*context);
  return DispatchFloat(t.q->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      PD_ASSIGN_OR_RETURN(const std::vector<FlashSpan> spans,
                          SpansOf(s, lengths));
      FlashBackward<T>(s, spans, t);
      return absl::OkStatus();
    });
  });
}

absl::Status InferFlash(InferContext* context) {
  const std::string& type = context->op().type;
  const FlashSlots slots = SlotsOf(type);
  const TensorMeta& q = context->Input(slots.q);
  const Shape &k = context->Input(slots.k).shape,
              &v = context->Input(slots.v).shape;
  PD_RETURN_IF_ERROR(CheckFlashShapes(q.shape, k, v, type));
  Shape out = q.shape;
  out.back() = v.back();
  context->SetOutput(slots.out, out, q.dtype);
  if (IsVariable(type)) return absl::OkStatus();
  Shape lse = {q.shape[0], q.shape[q.shape.size() - 2], -1};
  if (IsUnpadded(type)) {
    const Shape& offsets = context->Input("cu_seqlens_q").shape;
    for (const char* slot : {"cu_seqlens_q", "cu_seqlens_k"})
      PD_RETURN_IF_ERROR(CheckIndexType(slot, context->Input(slot).dtype));
    if (offsets.size() != 1 || offsets[0] == 0)
      return InvalidArgument("'cu_seqlens_q' has shape %s; expected offsets",
                             ToString(offsets));
    lse[0] = offsets[0] < 0 ? -1 : offsets[0] - 1;
    lse[2] = context->Attr<int64_t>("max_seqlen_q");
    if (lse[2] < 0) return InvalidArgument("attr 'max_seqlen_q' is %d", lse[2]);
  } else {
    lse[2] = q.shape[1];
  }
  context->SetOutput(slots.lse, lse, DType::kFloat32);
  context->SetOutput("softmax", {0}, q.dtype);
  context->SetOutput("seed_offset", {2}, DType::kInt64);
  context->SetOutput("seed_and_offset", {2}, DType::kInt64);
  return absl::OkStatus();
}

void AddFlashAttrs(OpDef* op, bool unpadded) {
  if (unpadded)
    op->RequiredAttr("max_seqlen_q", AttrType::kLong)
        .RequiredAttr("max_seqlen_k", AttrType::kLong)
        .RequiredAttr("scale", AttrType::kFloat);
  op->Attr("dropout", 0.0f).Attr("causal", false);
  op->Attr("return_softmax", false).Attr("is_test", false);
  op->Attr("rng_name", std::string());
}

absl::Status AddFlashAttn(OpRegistry* registry, bool unpadded) {
  const std::string type = unpadded ? "flash_attn_unpadded" : "flash_attn";
  OpDef op(type), grad(type + "_grad");
  for (OpDef* def : {&op, &grad}) {
    def->Input("q").Input("k").Input("v");
    if (unpadded) def->Input("cu_seqlens_q").Input("cu_seqlens_k");
    def->OptionalInput("attn_mask");
    AddFlashAttrs(def, unpadded);
  }
  op.OptionalInput("fixed_seed_offset").Output("out");
  for (const char* slot : {"softmax", "softmax_lse", "seed_offset"})
    op.IntermediateOutput(slot);
  op.Infer(InferFlash).Reference(BindFlashForward);
  op.Grad(GradSpec{grad.type(),
                   {"q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "attn_mask"},
                   {"out", "softmax_lse", "seed_offset"},
                   {"out"},
                   {"q", "k", "v"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  for (const char* slot : {"out", "softmax_lse", "seed_offset"})
    grad.OptionalInput(slot);
  grad.Input("out@GRAD").OptionalOutput("q@GRAD");
  grad.OptionalOutput("k@GRAD").OptionalOutput("v@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindFlashBackward);
  return registry->Add(std::move(grad));
}

absl::Status AddMemoryEfficient(OpRegistry* registry) {
  OpDef op("memory_efficient_attention"), grad(op.type() + "_grad");
  for (OpDef* def : {&op, &grad}) {
    def->Input("query").Input("key").Input("value");
    for (const char* slot : {"bias", "cu_seqlens_q", "cu_seqlens_k"})
      def->OptionalInput(slot);
    def->RequiredAttr("max_seqlen_q", AttrType::kFloat);
    def->RequiredAttr("max_seqlen_k", AttrType::kFloat);
    def->RequiredAttr("causal", AttrType::kBoolean);
    def->RequiredAttr("dropout_p", AttrType::kFloat64);
    def->RequiredAttr("scale", AttrType::kFloat);
  }
  op.RequiredAttr("is_test", AttrType::kBoolean);
  for (const char* slot :
       {"causal_diagonal", "seqlen_k", "MaxSeqlenQTensor", "MaxSeqlenKTensor"})
    op.OptionalInput(slot);
  op.Output("output").IntermediateOutput("logsumexp");
  op.IntermediateOutput("seed_and_offset");
  op.Infer(InferFlash).Reference(BindFlashForward);
  op.Grad(GradSpec{
      grad.type(),
      {"query", "key", "value", "bias", "cu_seqlens_q", "cu_seqlens_k"},
      {"output", "logsumexp", "seed_and_offset"},
      {"output"},
      {"query", "key", "value", "bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  for (const char* slot : {"output", "logsumexp", "seed_and_offset"})
    grad.OptionalInput(slot);
  grad.Input("output@GRAD");
  for (const char* slot : {"query", "key", "value", "bias"})
    grad.OptionalOutput(GradName(slot));
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindFlashBackward);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterFlashAttention(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddFlashAttn(registry, false));
  PD_RETURN_IF_ERROR(AddFlashAttn(registry, true));
  PD_RETURN_IF_ERROR(AddMemoryEfficient(registry));
  OpDef op("variable_length_memory_efficient_attention");
  op.Input("query").Input("key").Input("value");
  op.Input("seq_lens").Input("kv_seq_lens").OptionalInput("mask");
  op.Output("out").RequiredAttr("scale", AttrType::kFloat);
  op.RequiredAttr("causal", AttrType::kBoolean);
  op.RequiredAttr("pre_cache_length", AttrType::kInt);
  op.Infer(InferFlash).NoGrad().Reference(BindFlashForward);
  return registry->Add(std::move(op));
}

}  // namespace pd
