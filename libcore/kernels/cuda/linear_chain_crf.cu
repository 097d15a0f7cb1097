// SPDX-License-Identifier: Apache-2.0
// linear_chain_crf, its gradient and crf_decoding. A block takes a sequence and
// its threads the tags, row after row; sums go in the order of
// libcore/ops/loss/linear_chain_crf.cc, each thread forming those that it needs.
#include <cfloat>
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/linear_chain_crf_arguments.h"

namespace pd::cuda {
namespace {

// Row k's tag; 0 for a number that is none.
template <typename Args>
PD_DEVICE int64_t TagAt(const Args& p, int64_t row) {
  const int64_t tag = WholeAt(p.label, p.wide, row);
  if (tag >= 0 && tag < p.tags) return tag;
  *p.bad_tag = 1;
  return 0;
}

PD_DEVICE float Sum(const float* x, int64_t n) {
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

// f(i) for every tag, spread over the threads of the block.
template <typename F>
PD_DEVICE void EachTag(const Block& block, int64_t tags, const F& f) {
  block.Each([&](int thread) {
    for (int64_t i = thread; i < tags; i += block.threads()) f(thread, i);
  });
}

// Scales a row to sum 1; every thread gets the sum.
PD_DEVICE void Normalize(const Block& block, float* row, int64_t tags,
                         PerThread<float>* sums) {
  block.Each([&](int thread) { (*sums)[thread] = Sum(row, tags); });
  EachTag(block, tags,
          [&](int thread, int64_t i) { row[i] /= (*sums)[thread]; });
}

struct CrfExps {
  PD_DEVICE static void Run(const Block& block, const CrfArgs& p) {
    const int64_t n = (p.tags + 2) * p.tags;
    block.Spread(
        n, [&](int64_t i) { p.transition_exps[i] = expf(p.transition[i]); });
    block.Spread(p.rows, [&](int64_t row) {
      const float* const e = p.emission + row * p.tags;
      float top = e[0];
      for (int64_t i = 1; i < p.tags; ++i) top = e[i] > top ? e[i] : top;
      p.max[row] = top;
      for (int64_t i = 0; i < p.tags; ++i)
        p.exps[row * p.tags + i] = expf(e[i] - top);
    });
  }
};

struct CrfCost {
  PD_DEVICE static void Run(const Block& block, const CrfArgs& p) {
    for (int64_t s = block.index(); s < p.spans.count; s += block.blocks()) {
      const DeviceSpan span = SpanAt(p.spans, s);
      PerThread<float> log_z(0.0f);
      if (span.length > 0) Messages(block, p, span, &log_z);
      block.Each([&](int thread) {
        if (thread != 0) return;
        p.cost[s] = span.length > 0 ? Cost(p, span, log_z[0]) : 0.0f;
      });
    }
  }

  // Alpha's rows, and the log of the partition function up to the last one.
  PD_DEVICE static void Messages(const Block& block, const CrfArgs& p,
                                 const DeviceSpan& span,
                                 PerThread<float>* log_z) {
    const int64_t d = p.tags;
    const float* const w = p.transition_exps;
    PerThread<float> sums(0.0f);
    for (int64_t k = 0; k < span.length; ++k) {
      float* const row = p.alpha + (span.start + k) * d;
      const float* const x = p.exps + (span.start + k) * d;
      EachTag(block, d, [&](int, int64_t i) {
        if (k == 0) {
          row[i] = w[i] * x[i];
          return;
        }
        float sum = 0;
        for (int64_t j = 0; j < d; ++j) sum += row[j - d] * w[(j + 2) * d + i];
        row[i] = x[i] * sum;
      });
      Normalize(block, row, d, &sums);
      block.Each([&](int thread) { (*log_z)[thread] += logf(sums[thread]); });
    }
  }

  PD_DEVICE static float Cost(const CrfArgs& p, const DeviceSpan& span,
                              float log_z) {
    const int64_t d = p.tags, last = span.start + span.length - 1;
    const float* const w = p.transition;
    float sum = 0;
    for (int64_t i = 0; i < d; ++i)
      sum += p.alpha[last * d + i] * p.transition_exps[d + i];
    float cost = log_z + logf(sum);
    cost -= w[TagAt(p, span.start)] + w[d + TagAt(p, last)];
    for (int64_t row = span.start; row <= last; ++row) {
      const int64_t tag = TagAt(p, row);
      cost += p.max[row] - p.emission[row * d + tag];
      if (row > span.start) cost -= w[(TagAt(p, row - 1) + 2) * d + tag];
    }
    return cost;
  }
};

// alpha * w * x * beta of a pair of tags, the latter in this row.
PD_DEVICE float PairOf(const CrfGradArgs& p, int64_t row, int64_t i,
                       int64_t j) {
  const int64_t d = p.tags;
  return p.alpha[(row - 1) * d + i] * p.transition_exps[(i + 2) * d + j] *
         p.exps[row * d + j] * p.beta[row * d + j];
}

struct CrfGrad {
  PD_DEVICE static void Run(const Block& block, const CrfGradArgs& p) {
    for (int64_t s = block.index(); s < p.spans.count; s += block.blocks()) {
      const DeviceSpan span = SpanAt(p.spans, s);
      if (span.length == 0) continue;
      Messages(block, p, span);
      // A thread takes a row.
      block.Each([&](int thread) {
        for (int64_t k = thread; k < span.length; k += block.threads())
          RowOf(p, span.start + k, k > 0, p.dcost[s]);
      });
    }
  }

  PD_DEVICE static void Messages(const Block& block, const CrfGradArgs& p,
                                 const DeviceSpan& span) {
    const int64_t d = p.tags;
    const float* const w = p.transition_exps;
    PerThread<float> sums(0.0f);
    for (int64_t k = span.length; k-- > 0;) {
      float* const row = p.beta + (span.start + k) * d;
      const float* const emit = p.exps + (span.start + k + 1) * d;
      EachTag(block, d, [&](int, int64_t i) {
        if (k + 1 == span.length) {
          row[i] = w[d + i];
          return;
        }
        float sum = 0;
        for (int64_t j = 0; j < d; ++j)
          sum += w[(i + 2) * d + j] * emit[j] * row[d + j];
        row[i] = sum;
      });
      Normalize(block, row, d, &sums);
    }
  }

  PD_DEVICE static void RowOf(const CrfGradArgs& p, int64_t row, bool follows,
                              float g) {
    const int64_t d = p.tags;
    float* const de = p.de + row * d;
    for (int64_t i = 0; i < d; ++i)
      de[i] = p.alpha[row * d + i] * p.beta[row * d + i];
    const float sum = Sum(de, d);
    for (int64_t i = 0; i < d; ++i) de[i] = de[i] / sum * g;
    de[TagAt(p, row)] -= g;
    if (!follows || p.dw == nullptr) return;
    float pairs = 0;
    for (int64_t i = 0; i < d; ++i)
      for (int64_t j = 0; j < d; ++j) pairs += PairOf(p, row, i, j);
    p.sums[row] = pairs;
  }
};

// A thread owns an element of Transition@GRAD, once CrfGrad has run.
struct CrfTransitionGrad {
  PD_DEVICE static void Run(const Block& block, const CrfGradArgs& p) {
    const int64_t d = p.tags;
    block.Spread((d + 2) * d, [&](int64_t e) {
      const int64_t from = e / d - 2, i = e % d;
      float sum = 0;
      for (int64_t s = 0; s < p.spans.count; ++s) {
        const DeviceSpan span = SpanAt(p.spans, s);
        const int64_t end = span.start + span.length;
        if (span.length == 0) continue;
        if (from < 0) {
          sum += p.de[(from == -2 ? span.start : end - 1) * d + i];
          continue;
        }
        const float g = p.dcost[s];
        for (int64_t row = span.start + 1; row < end; ++row) {
          sum += g * (PairOf(p, row, from, i) / p.sums[row]);
          if (TagAt(p, row - 1) == from && TagAt(p, row) == i) sum -= g;
        }
      }
      p.dw[e] = sum;
    });
  }
};

struct CrfDecode {
  PD_DEVICE static void Run(const Block& block, const CrfDecodeArgs& p) {
    for (int64_t s = block.index(); s < p.spans.count; s += block.blocks()) {
      const DeviceSpan span = SpanAt(p.spans, s);
      if (span.length > 0) One(block, p, span, p.scores + s * 2 * p.tags);
    }
  }

  struct Best {
    int64_t tag;
    float score;
  };
  // Over the tags before, of their scores and `base`.
  PD_DEVICE static Best BestOf(const CrfDecodeArgs& p, const float* scores,
                               const float* base, int64_t stride) {
    Best best = {0, -FLT_MAX};
    for (int64_t j = 0; j < p.tags; ++j) {
      const float sum = scores[j] + base[j * stride];
      if (sum > best.score) best = {j, sum};
    }
    return best;
  }

  PD_DEVICE static void One(const Block& block, const CrfDecodeArgs& p,
                            const DeviceSpan& span, float* scores) {
    const int64_t d = p.tags, length = span.length;
    const float* const w = p.transition;
    const float* const x = p.emission + span.start * d;
    int32_t* const from = p.from + span.start * d;
    EachTag(block, d, [&](int, int64_t i) { scores[i] = w[i] + x[i]; });
    for (int64_t k = 1; k < length; ++k) {
      const float* const now = scores + (k + 1) % 2 * d;
      float* const next = scores + k % 2 * d;
      EachTag(block, d, [&](int, int64_t i) {
        const Best best = BestOf(p, now, w + 2 * d + i, d);
        from[k * d + i] = static_cast<int32_t>(best.tag);
        next[i] = best.score + x[k * d + i];
      });
    }
    int64_t* const path = p.path + span.start;
    block.Each([&](int thread) {
      if (thread != 0) return;
      path[length - 1] = BestOf(p, scores + (length + 1) % 2 * d, w + d, 1).tag;
      for (int64_t k = length - 1; k > 0; --k)
        path[k - 1] = from[k * d + path[k]];
      if (p.label == nullptr) return;
      for (int64_t k = 0; k < length; ++k)
        path[k] = WholeAt(p.label, p.wide, span.start + k) == path[k] ? 1 : 0;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(crf_exps, CrfExps, CrfArgs)
PD_KERNEL(crf_cost, CrfCost, CrfArgs)
PD_KERNEL(crf_grad, CrfGrad, CrfGradArgs)
PD_KERNEL(crf_transition_grad, CrfTransitionGrad, CrfGradArgs)
PD_KERNEL(crf_decode, CrfDecode, CrfDecodeArgs)
