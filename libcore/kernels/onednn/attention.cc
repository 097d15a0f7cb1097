// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention: a block of a head's rows of scores is made and
// used in the second-level cache. A thread takes whole blocks of queries; in
// the gradient, where blocks are summed, whole heads, and where there are fewer
// heads than threads, all threads take one product together.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/cache_product.h"
#include "libcore/kernels/cpu/dropout.h"
#include "libcore/kernels/cpu/row_softmax.h"
#include "libcore/kernels/onednn/bindings.h"
#include "libcore/kernels/onednn/dnnl.h"
#include "libcore/ops/fused/attention.h"

namespace pd {
namespace onednn {
namespace {

constexpr int64_t kBlockFloats = 32768;  // of scores
constexpr int64_t kLeastRows = 16;       // of a block, for the products' sake
constexpr int64_t kSmallProduct = 64 * 64 * 64;
// Probabilities of the whole op up to here are kept for the gradient: to read
// them back is faster than one more product and softmax, by 5 to 12 % of both
// directions; beyond it by as much slower.
constexpr int64_t kMostKept = int64_t{4} << 20;

// `count` queries of a head, from `first` on.
struct Block {
  int64_t head, first, count;
};

// The op on its tensors' bytes.
struct AttentionProblem {
  Attention a;
  Tensor *query = nullptr, *key = nullptr, *value = nullptr;
  Tensor *bias = nullptr, *mask = nullptr;  // null for none
  Tensor* kept = nullptr;  // probabilities; null where they are made anew
  int64_t rows = 0;        // of a block, except for the last one of a head

  int64_t BlockFloats() const { return rows * a.keys; }
  int64_t RowOf(const Block& b) const { return b.head * a.queries + b.first; }
  const float* Queries(const Block& b) const {
    return query->data<float>() + RowOf(b) * a.width;
  }
  const float* Keys(const Block& b) const {
    return key->data<float>() + b.head * a.keys * a.width;
  }
  const float* Values(const Block& b) const {
    return value->data<float>() + b.head * a.keys * a.values;
  }
  uint8_t* Mask(const Block& b) const {
    return mask == nullptr ? nullptr
                           : mask->data<uint8_t>() + RowOf(b) * a.keys;
  }
  bool IsSmall() const {
    return BlockFloats() * std::max(a.width, a.values) <= kSmallProduct;
  }
};

// Scratch memory and products of one thread, or of all threads together.
class Bench {
 public:
  // Floats of the scratch memory: two blocks, the sums of its rows, a factor.
  static int64_t Floats(const AttentionProblem& p) {
    const int64_t factor =
        p.IsSmall()
            ? cpu::CacheProductFloats(
                  {0, p.a.keys, std::max(p.a.width, p.a.values), false, true})
            : 0;
    return 2 * p.BlockFloats() + p.rows + factor;
  }

  Bench(const AttentionProblem& p, bool alone, float* scratch)
      : alone_(alone),
        small_(alone && p.IsSmall()),
        block_floats_(p.BlockFloats()),
        scratch_(scratch),
        factor_(scratch + 2 * p.BlockFloats() + p.rows) {}

  bool alone() const { return alone_; }
  float* block() const { return scratch_; }
  float* second_block() const { return scratch_ + block_floats_; }
  float* row_sums() const { return scratch_ + 2 * block_floats_; }
  // c = alpha op(a) op(b) [+ c]
  void Multiply(const GemmShape& shape, float alpha, const float* a,
                const float* b, bool add, float* c) const {
    // A factor is not worth copying for a few rows.
    if (small_ && (!shape.trans_b || shape.m >= 8))
      cpu::CacheProduct(shape, alpha, a, b, add, c, factor_);
    else
      Sgemm(shape, alpha, a, b, add ? 1.0f : 0.0f, c);
  }

 private:
  bool alone_, small_;
  int64_t block_floats_;
  float *scratch_, *factor_;
};

// Where the probabilities of a block are made, or were.
float* ProbabilitiesOf(const AttentionProblem& p, const Block& b,
                       const Bench& bench) {
  return p.kept == nullptr ? bench.block()
                           : p.kept->data<float>() + p.RowOf(b) * p.a.keys;
}

void MakeScores(const AttentionProblem& p, const Block& b, const Bench& bench,
                float* scores) {
  bench.Multiply({b.count, p.a.keys, p.a.width, false, true},
                 static_cast<float>(p.a.scale), p.Queries(b), p.Keys(b), false,
                 scores);
}

void AddBias(const AttentionProblem& p, const Block& b, float* scores) {
  if (p.bias == nullptr) return;
  const Attention& a = p.a;
  const float* bias = p.bias->data<float>() + a.BiasOf(b.head);
  for (int64_t r = 0; r < b.count; ++r) {
    const float* from = bias + (b.first + r) * a.bias[2];
    float* to = scores + r * a.keys;
    const int64_t step = a.bias[3];
#pragma omp simd
    for (int64_t j = 0; j < a.keys; ++j) to[j] += from[j * step];
  }
}

void ForwardBlock(const AttentionProblem& p, DropoutSource::Numbers numbers,
                  const Block& b, const Bench& bench, float* out,
                  float* logsumexp) {
  const Attention& a = p.a;
  const int64_t n = b.count * a.keys;
  float* weights = ProbabilitiesOf(p, b, bench);
  MakeScores(p, b, bench, weights);
  AddBias(p, b, weights);
  cpu::RowSoftmaxHere(weights, b.count, a.keys, weights, logsumexp,
                      bench.row_sums());
  // Until here the rows' maxima.
  for (int64_t r = 0; r < b.count; ++r) logsumexp[r] += bench.row_sums()[r];
  if (p.mask != nullptr) {
    const int64_t from = p.RowOf(b) * a.keys;
    cpu::DrawMaskHere(numbers, a.dropout.probability, from, from + n,
                      p.mask->data<uint8_t>());
    cpu::ApplyMask(weights, p.Mask(b), 1.0f, n, bench.block());
    weights = bench.block();
  }
  bench.Multiply({b.count, a.values, a.keys},
                 static_cast<float>(a.dropout.KeptFactor()), weights,
                 p.Values(b), false, out);
}

struct Gradients {
  Tensor *out, *query, *key, *value;
};

// Of a tensor [Heads(), rows, columns]; null for none.
float* RowsAt(Tensor* t, int64_t rows, int64_t columns, int64_t head,
              int64_t row) {
  return t == nullptr ? nullptr
                      : t->data<float>() + (head * rows + row) * columns;
}

// From the probabilities, or where they were not kept, the scores in p: what
// dropout leaves of them in `left`, and in g, which holds what comes from the
// values, the gradient of the scores.
void SoftmaxAndGrad(const AttentionProblem& problem, const Block& b, bool alone,
                    float* p, float* left, float* g) {
  const int64_t keys = problem.a.keys;
  const uint8_t* mask = problem.Mask(b);
  const auto some = [=](int64_t first, int64_t count) {
    const int64_t at = first * keys, n = count * keys;
    if (problem.kept == nullptr) {
      AddBias(problem, {b.head, b.first + first, count}, p + at);
      cpu::RowSoftmaxHere(p + at, count, keys, p + at, nullptr, nullptr);
    }
    if (mask != nullptr) cpu::ApplyMask(g + at, mask + at, 1.0f, n, g + at);
    cpu::RowSoftmaxGradHere(p + at, g + at, count, keys, g + at);
    if (mask != nullptr) cpu::ApplyMask(p + at, mask + at, 1.0f, n, left + at);
  };
  // A few rows at a time stay in the first cache.
  const int64_t few = std::max<int64_t>(1, 2048 / keys);
  const auto rows = [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r += few) some(r, std::min(few, end - r));
  };
  if (alone)
    rows(0, b.count);
  else
    ParallelFor(b.count, 1 + 8192 / (keys + 16), rows);
}

// Adds a block to the gradients of its head, the first one to nothing.
void BackwardBlock(const AttentionProblem& problem, const Gradients& t,
                   const Block& b, const Bench& bench) {
  const Attention& a = problem.a;
  float *p = ProbabilitiesOf(problem, b, bench), *g = bench.second_block();
  const float* weights = problem.mask != nullptr ? bench.block() : p;
  const float scale = static_cast<float>(a.scale);
  const float kept = static_cast<float>(a.dropout.KeptFactor());
  const float* dout = RowsAt(t.out, a.queries, a.values, b.head, b.first);
  const bool add = b.first > 0;
  if (problem.kept == nullptr) MakeScores(problem, b, bench, p);
  bench.Multiply({b.count, a.keys, a.values, false, true}, kept, dout,
                 problem.Values(b), false, g);
  SoftmaxAndGrad(problem, b, bench.alone(), p, bench.block(), g);
  if (float* dvalue = RowsAt(t.value, a.keys, a.values, b.head, 0))
    bench.Multiply({a.keys, a.values, b.count, true, false}, kept, weights,
                   dout, add, dvalue);
  if (float* dquery = RowsAt(t.query, a.queries, a.width, b.head, b.first))
    bench.Multiply({b.count, a.width, a.keys}, scale, g, problem.Keys(b), false,
                   dquery);
  if (float* dkey = RowsAt(t.key, a.keys, a.width, b.head, 0))
    bench.Multiply({a.keys, a.width, b.count, true, false}, scale, g,
                   problem.Queries(b), add, dkey);
}

// Rows of a block: few enough for the cache, and for `threads` threads.
int64_t RowsFor(const Attention& a, int64_t threads) {
  const int64_t shared = (a.Heads() * a.queries + threads - 1) / threads;
  const int64_t rows = std::min(kBlockFloats / a.keys, shared);
  return std::min(std::max(rows, kLeastRows), a.queries);
}

std::string KeptName(const std::string& output) {
  return absl::StrCat(output, "@PROBABILITIES");
}

absl::StatusOr<AttentionProblem> ReadAttentionProblem(BindContext* context) {
  AttentionProblem p;
  PD_ASSIGN_OR_RETURN(p.a, ReadAttention(*context));
  const Attention& a = p.a;
  if (context->Input("query")->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (std::min({a.Heads(), a.queries, a.keys, a.width, a.values}) == 0)
    return Unimplemented("there is nothing to multiply");
  if (a.Drops() && a.Heads() * a.queries * a.keys >= cpu::kMostDraws)
    return Unimplemented("it is for masks of less than 2^33 elements");
  PD_ASSIGN_OR_RETURN(p.query, context->In(context->Input("query"), nullptr));
  PD_ASSIGN_OR_RETURN(p.key, context->In(context->Input("key"), nullptr));
  PD_ASSIGN_OR_RETURN(p.value, context->In(context->Input("value"), nullptr));
  p.bias = context->Input("bias");
  if (p.bias != nullptr) {
    PD_ASSIGN_OR_RETURN(p.bias, context->In(p.bias, nullptr));
  }
  return p;
}

Tensor* ScratchOfAll(const AttentionProblem& p, BindContext* context) {
  return context->Scratch(static_cast<size_t>(Bench::Floats(p) * Threads()) *
                          sizeof(float));
}

}  // namespace

absl::StatusOr<Step> BindAttention(BindContext* context) {
  PD_ASSIGN_OR_RETURN(AttentionProblem p, ReadAttentionProblem(context));
  const Attention& a = p.a;
  const int64_t rows = a.Heads() * a.queries;
  p.rows = RowsFor(a, Threads());
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("output"), nullptr));
  Tensor* logsumexp = context->Output("logsumexp");
  if (logsumexp == nullptr)
    logsumexp = context->Scratch(static_cast<size_t>(rows) * sizeof(float));
  if (a.Drops()) {
    p.mask = context->Output("mask");
    if (p.mask == nullptr)
      p.mask = context->Scratch(static_cast<size_t>(rows * a.keys));
  }
  if (context->IsTraining() && rows * a.keys <= kMostKept)
    p.kept =
        context->Keep(KeptName(context->op().Out("output")), DType::kFloat32,
                      {a.batch, a.heads, a.queries, a.keys});
  Tensor* scratch = ScratchOfAll(p, context);
  const int64_t blocks = (a.queries + p.rows - 1) / p.rows;
  return Step([=](const RunContext& run) {
    const Attention& a = p.a;
    const DropoutSource::Numbers numbers = a.source.At(run);
    const int64_t count = a.Heads() * blocks;
    ParallelParts([&](int64_t part, int64_t parts) {
      const Bench bench(p, true,
                        scratch->data<float>() + part * Bench::Floats(p));
      const int64_t end = count * (part + 1) / parts;
      for (int64_t i = count * part / parts; i < end; ++i) {
        const int64_t first = i % blocks * p.rows;
        const Block b = {i / blocks, first,
                         std::min(p.rows, a.queries - first)};
        ForwardBlock(p, numbers, b, bench,
                     out->data<float>() + p.RowOf(b) * a.values,
                     logsumexp->data<float>() + p.RowOf(b));
      }
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindAttentionGrad(BindContext* context) {
  if (context->Output("bias@GRAD") != nullptr)
    return Unimplemented("it has no gradient of the bias");
  PD_ASSIGN_OR_RETURN(AttentionProblem p, ReadAttentionProblem(context));
  const bool alone = p.a.Heads() >= Threads();
  p.rows = RowsFor(p.a, 1);
  p.mask = p.a.Drops() ? context->Input("mask") : nullptr;
  if (Tensor* out = context->Input("output")) {
    context->NoBuffer(out);
    p.kept = context->Kept(KeptName(context->op().In("output")));
  }
  Gradients t = {context->Input("output@GRAD"), context->Output("query@GRAD"),
                 context->Output("key@GRAD"), context->Output("value@GRAD")};
  PD_ASSIGN_OR_RETURN(t.out, context->In(t.out, nullptr));
  for (Tensor** to : {&t.query, &t.key, &t.value})
    if (*to != nullptr) {
      PD_ASSIGN_OR_RETURN(*to, context->Out(*to, nullptr));
    }
  Tensor* scratch = ScratchOfAll(p, context);
  const auto heads = [=](int64_t begin, int64_t end, const Bench& bench) {
    for (int64_t h = begin; h < end; ++h)
      for (int64_t first = 0; first < p.a.queries; first += p.rows)
        BackwardBlock(p, t, {h, first, std::min(p.rows, p.a.queries - first)},
                      bench);
  };
  return Step([=](const RunContext&) {
    const int64_t count = p.a.Heads();
    float* floats = scratch->data<float>();
    if (alone)
      ParallelParts([&](int64_t part, int64_t parts) {
        heads(count * part / parts, count * (part + 1) / parts,
              Bench(p, true, floats + part * Bench::Floats(p)));
      });
    else
      heads(0, count, Bench(p, false, floats));
    return absl::OkStatus();
  });
}

}  // namespace onednn
}  // namespace pd
