// SPDX-License-Identifier: Apache-2.0
// State kept over the steps: auc's counts, the sums of average_accumulates.
// The formulas are those of libcore/ops.
#include "libcore/kernels/cuda/auc_arguments.h"

#include <cmath>

#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

PD_DEVICE int64_t LabelOf(const AucArgs& p, int64_t row) {
  return p.labels64 != 0 ? static_cast<const int64_t*>(p.labels)[row]
                         : static_cast<const int32_t*>(p.labels)[row];
}

// A thread has a bucket and looks through the batch for what falls into it.
struct AucCount {
  PD_DEVICE static void Run(const Block& block, const AucArgs& p) {
    const bool counts = p.weight == nullptr || *p.weight != 0;
    const int64_t sum = p.slide * p.buckets, end = sum + p.buckets;
    const int64_t batches = p.slide > 0 ? p.in[0][end] : 0;
    const int64_t now = p.slide > 0 && batches >= 0 ? batches % p.slide : 0;
    block.Spread(p.buckets, [&](int64_t bucket) {
      if (batches < 0) *p.ended = 1;
      int64_t counted[2] = {0, 0};
      for (int64_t row = 0; row < p.rows; ++row) {
        const float x = p.predict[row * p.width + p.width - 1];
        if (!(x >= 0 && x <= 1)) {
          *p.bad = 1;
        } else if (static_cast<int64_t>(
                       x * static_cast<float>(p.buckets - 1)) == bucket) {
          const int64_t label = LabelOf(p, row);
          counted[0] += label > 0 ? 1 : 0;
          counted[1] += label == 0 ? 1 : 0;
        }
      }
      for (int k = 0; k < 2; ++k) {
        const int64_t* in = p.in[k] + bucket;
        int64_t* out = p.out[k] + bucket;
        int64_t total = in[sum] + (counts ? counted[k] : 0);
        if (p.slide > 0) total -= in[now * p.buckets];
        for (int64_t i = 0; i < p.slide; ++i)
          out[i * p.buckets] = i == now ? counted[k] : in[i * p.buckets];
        out[sum] = total;
      }
    });
  }
};

// One block, whose threads take a run of buckets each, from the highest. All
// sums are integers, or halves, that doubles hold: in any order the same.
struct AucArea {
  PD_DEVICE static void Run(const Block& block, const AucArgs& p) {
    const int64_t sum = p.slide * p.buckets;
    const int64_t *positive = p.out[0] + sum, *negative = p.out[1] + sum;
    const int64_t run = (p.buckets + block.threads() - 1) / block.threads();
    const auto first = [&](int64_t thread) {
      return p.buckets - 1 - thread * run;
    };
    const auto last = [&](int64_t thread) {
      return first(thread) - run < -1 ? -1 : first(thread) - run;
    };
    block.Each([&](int thread) {
      double count = 0;
      for (int64_t i = first(thread); i > last(thread); --i)
        count += static_cast<double>(positive[i]);
      p.parts[thread] = count;
    });
    PerThread<double> area(0.0), positives(0.0), negatives(0.0);
    block.Each([&](int thread) {
      double before = 0;
      for (int t = 0; t < thread; ++t) before += p.parts[t];
      for (int64_t i = first(thread); i > last(thread); --i) {
        const auto step = static_cast<double>(negative[i]);
        const double after = before + static_cast<double>(positive[i]);
        area[thread] += fabs(step) * (after + before) / 2;
        negatives[thread] += step;
        before = after;
      }
      positives[thread] = p.parts[thread];
    });
    const double whole = block.Reduce(&area, Plus());
    const double all = block.Reduce(&positives, Plus());
    const double none = block.Reduce(&negatives, Plus());
    block.Each([&](int thread) {
      if (thread != 0) return;
      *p.area = all > 0 && none > 0 ? whole / all / none : whole;
      for (int k = 0; k < 2 && p.slide > 0; ++k)
        p.out[k][sum + p.buckets] = p.in[k][sum + p.buckets] + 1;
    });
  }
};

constexpr int64_t kMostInOneSum = 16384;

// The effect of this update on the sums.
struct Move {
  int64_t accumulates, updates;
  bool moves, restarts;

  PD_DEVICE explicit Move(const AverageArgs& p) {
    accumulates = *p.counts_in[0] + 1;
    updates = *p.counts_in[2] + 1;
    moves = updates % kMostInOneSum == 0;
    const float window = static_cast<float>(updates) * p.window;
    const int64_t whole =
        window < 9e18f ? static_cast<int64_t>(window) : p.most;
    restarts = accumulates >= p.least &&
               accumulates >= (whole < p.most ? whole : p.most);
  }
};

struct AverageSums {
  PD_DEVICE static void Run(const Block& block, const AverageArgs& p) {
    const Move move(p);
    block.Spread(p.n, [&](int64_t i) {
      const float in1 = p.in[0][i], in2 = p.in[1][i];
      float s1 = in1 + p.param[i], s2 = in2, s3 = p.in[2][i];
      if (move.moves) {
        s2 += p.in_place != 0 ? s1 : in1;
        s1 = 0;
      }
      if (move.restarts) {
        s3 = p.in_place != 0 ? s1 + s2 : in1 + in2;
        s1 = s2 = 0;
      }
      p.out[0][i] = s1;
      p.out[1][i] = s2;
      p.out[2][i] = s3;
    });
  }
};

// One block.
struct AverageCounts {
  PD_DEVICE static void Run(const Block& block, const AverageArgs& p) {
    block.Each([&](int thread) {
      if (thread != 0) return;
      const Move move(p);
      const int64_t old = *p.counts_in[1];
      *p.counts_out[0] = move.restarts ? 0 : move.accumulates;
      *p.counts_out[1] = move.restarts ? move.accumulates : old;
      *p.counts_out[2] = move.updates;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(auc_count, AucCount, AucArgs)
PD_KERNEL(auc_area, AucArea, AucArgs)
PD_KERNEL(average_sums, AverageSums, AverageArgs)
PD_KERNEL(average_counts, AverageCounts, AverageArgs)
