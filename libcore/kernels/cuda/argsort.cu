// SPDX-License-Identifier: Apache-2.0
// Bitonic merges: which keys are compared does not depend on them.
#include "libcore/kernels/cuda/argsort_arguments.h"

#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {
namespace {

// Compares the pair t of those `distance` apart, in runs of `run` keys that go
// up and down in turn.
PD_DEVICE void ComparePair(const SortArgs& p, int64_t t, int64_t run,
                           int64_t distance) {
  const int64_t i = t / distance * 2 * distance + t % distance;
  uint64_t &a = p.keys[i], &b = p.keys[i + distance];
  const bool up = (i % p.line & run) == 0;
  if ((a > b) != up) return;
  const uint64_t kept = a;
  a = b;
  b = kept;
}

// A block takes a part.
struct SortParts {
  PD_DEVICE static void Run(const Block& block, const SortArgs& p) {
    for (int64_t part = block.index(); part < p.total / p.part;
         part += block.blocks()) {
      const int64_t pairs = p.part / 2;
      for (int64_t run = p.first; run <= p.last; run *= 2)
        for (int64_t distance = run / 2 < pairs ? run / 2 : pairs; distance > 0;
             distance /= 2)
          block.Each([&](int thread) {
            for (int64_t t = thread; t < pairs; t += block.threads())
              ComparePair(p, part * pairs + t, run, distance);
          });
    }
  }
};

struct SortStep {
  PD_DEVICE static void Run(const Block& block, const SortArgs& p) {
    block.Spread(p.total / 2,
                 [&](int64_t t) { ComparePair(p, t, p.last, p.distance); });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(sort_parts, SortParts, SortArgs)
PD_KERNEL(sort_step, SortStep, SortArgs)
