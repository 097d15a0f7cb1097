// SPDX-License-Identifier: Apache-2.0
// One row for each sequence of rows, softmax over sequences, sums at places
// that sequences name, the gradients, and masks. The formulas are those of
// libcore/ops/sequence/sequence_pool.cc, sequence_softmax.cc and sequence_scatter.cc.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/sums.h"
#include "libcore/kernels/cuda/integer_at.h"

namespace pd::cuda {
namespace {

PD_DEVICE float FactorOf(int32_t kind, int64_t rows) {
  if (kind == kSequenceAverage) return 1 / static_cast<float>(rows);
  if (kind == kSequenceSqrt) return 1 / sqrtf(static_cast<float>(rows));
  return 1.0f;
}

// A thread takes a column of a sequence.
struct PoolSequences {
  PD_DEVICE static void Run(const Block& block, const SequenceArgs& p) {
    block.Spread(p.count * p.width, [&](int64_t e) {
      const int64_t i = e / p.width, k = e % p.width;
      const int64_t begin = p.offsets[i], end = p.offsets[i + 1];
      const float* x = p.from + k;
      int64_t taken = -1;
      float result = p.pad;
      if (begin < end && p.kind <= kSequenceSqrt) {
        result = 0;
        for (int64_t r = begin; r < end; ++r) result += x[r * p.width];
        result *= FactorOf(p.kind, end - begin);
      } else if (begin < end) {
        taken = p.kind == kSequenceLast ? end - 1 : begin;
        if (p.kind == kSequenceMax)
          for (int64_t r = begin + 1; r < end; ++r)
            if (x[r * p.width] > x[taken * p.width]) taken = r;
        result = x[taken * p.width];
      }
      p.to[e] = result;
      if (p.index != nullptr) p.index[e] = static_cast<int32_t>(taken);
    });
  }
};

struct PoolSequencesGrad {
  PD_DEVICE static void Run(const Block& block, const SequenceArgs& p) {
    block.Spread(p.count * p.width, [&](int64_t e) {
      const int64_t i = e / p.width, k = e % p.width;
      const int64_t begin = p.offsets[i], end = p.offsets[i + 1];
      if (begin == end) return;
      float* dx = p.to + k;
      const float d = p.from[e];
      if (p.kind <= kSequenceSqrt) {
        const float part = d * FactorOf(p.kind, end - begin);
        for (int64_t r = begin; r < end; ++r) dx[r * p.width] = part;
      } else {
        const int64_t taken = p.kind == kSequenceMax     ? p.index[e]
                              : p.kind == kSequenceFirst ? begin
                                                         : end - 1;
        if (taken >= begin && taken < end) dx[taken * p.width] = d;
      }
    });
  }
};

// A block takes a sequence.
struct SequenceSoftmax {
  PD_DEVICE static void Run(const Block& block, const SequenceSoftmaxArgs& p) {
    for (int64_t i = block.index(); i < p.count; i += block.blocks()) {
      const int64_t begin = p.offsets[i], n = p.offsets[i + 1] - begin;
      if (n == 0) continue;
      const float* const x = p.x + begin;
      float* const to = p.to + begin;
      PerThread<float> part(x[0]);
      block.Each([&](int thread) {
        for (int64_t r = thread; r < n; r += block.threads())
          if (x[r] > part[thread]) part[thread] = x[r];
      });
      const float most =
          block.Reduce(&part, [](float a, float b) { return a > b ? a : b; });
      const float sum =
          SumOf(block, n, [&](int64_t r) { return to[r] = expf(x[r] - most); });
      block.Each([&](int thread) {
        for (int64_t r = thread; r < n; r += block.threads()) to[r] /= sum;
      });
    }
  }
};

struct SequenceSoftmaxGrad {
  PD_DEVICE static void Run(const Block& block, const SequenceSoftmaxArgs& p) {
    for (int64_t i = block.index(); i < p.count; i += block.blocks()) {
      const int64_t begin = p.offsets[i], n = p.offsets[i + 1] - begin;
      const float *const y = p.y + begin, *const dy = p.dy + begin;
      const float dot =
          SumOf(block, n, [&](int64_t r) { return y[r] * dy[r]; });
      block.Each([&](int thread) {
        for (int64_t r = thread; r < n; r += block.threads())
          p.to[begin + r] = y[r] * (dy[r] - dot);
      });
    }
  }
};

struct SequenceMask {
  PD_DEVICE static void Run(const Block& block, const SequenceMaskArgs& p) {
    block.Spread(p.n * p.width, [&](int64_t e) {
      const int64_t length = WholeAt(p.lengths, p.wide, e / p.width);
      p.to[e] = e % p.width < length ? 1.0f : 0.0f;
    });
  }
};

// A thread owns an element of the result.
struct SequenceScatter {
  PD_DEVICE static void Run(const Block& block, const SequenceScatterArgs& p) {
    block.Spread(p.rows * p.width, [&](int64_t e) {
      const int64_t i = e / p.width;
      float sum = p.x[e];
      for (int64_t j = i < p.count ? p.offsets[i] : 0;
           i < p.count && j < p.offsets[i + 1]; ++j) {
        const int64_t id = WholeAt(p.ids, p.wide, j);
        if (id < 0 || id >= p.width) *p.bad = 1;
        if (id == e % p.width) sum += p.updates[j];
      }
      p.out[e] = sum;
    });
  }
};

// A thread takes the ids of a row.
struct SequenceScatterGrad {
  PD_DEVICE static void Run(const Block& block, const SequenceScatterArgs& p) {
    block.Spread(p.count, [&](int64_t i) {
      for (int64_t j = p.offsets[i]; j < p.offsets[i + 1]; ++j) {
        const int64_t id = WholeAt(p.ids, p.wide, j);
        const bool good = id >= 0 && id < p.width;
        if (!good) *p.bad = 1;
        p.dupdates[j] = good ? p.dout[i * p.width + id] : 0.0f;
      }
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(pool_sequences, PoolSequences, SequenceArgs)
PD_KERNEL(pool_sequences_grad, PoolSequencesGrad, SequenceArgs)
PD_KERNEL(sequence_softmax, SequenceSoftmax, SequenceSoftmaxArgs)
PD_KERNEL(sequence_softmax_grad, SequenceSoftmaxGrad, SequenceSoftmaxArgs)
PD_KERNEL(sequence_mask, SequenceMask, SequenceMaskArgs)
PD_KERNEL(sequence_scatter, SequenceScatter, SequenceScatterArgs)
PD_KERNEL(sequence_scatter_grad, SequenceScatterGrad, SequenceScatterArgs)
