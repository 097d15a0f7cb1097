// SPDX-License-Identifier: Apache-2.0
// Sums of what came before: short lines by a thread each, in the CPU's order;
// long ones by a block, whose threads take a run each.
#include <cstdint>

#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/layer_arguments.h"

namespace pd::cuda {
namespace {

// Goes over elements [begin, end) of a line in its direction.
PD_REAL void SumRun(const CumsumArgsOf<T>& p, int64_t line, int64_t begin,
                    int64_t end, T sum) {
  const int64_t start = line / p.inner * p.n * p.inner + line % p.inner;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t at = start + (p.reverse != 0 ? p.n - 1 - i : i) * p.inner;
    const T before = sum;
    sum += p.x[at];
    p.out[at] = p.exclusive != 0 ? before : sum;
  }
}

template <typename T>
struct CumsumByThread {
  PD_DEVICE static void Run(const Block& block, const CumsumArgsOf<T>& p) {
    block.Spread(p.lines, [&](int64_t line) { SumRun(p, line, 0, p.n, T(0)); });
  }
};

template <typename T>
struct CumsumByBlock {
  PD_DEVICE static void Run(const Block& block, const CumsumArgsOf<T>& p) {
    const int64_t run = (p.n + block.threads() - 1) / block.threads();
    const auto at_most = [&](int64_t i) { return i < p.n ? i : p.n; };
    T* parts = p.parts + block.index() * block.threads();
    for (int64_t line = block.index(); line < p.lines; line += block.blocks()) {
      const int64_t start = line / p.inner * p.n * p.inner + line % p.inner;
      block.Each([&](int thread) {
        T sum = 0;
        for (int64_t i = thread * run; i < at_most((thread + 1) * run); ++i)
          sum += p.x[start + (p.reverse != 0 ? p.n - 1 - i : i) * p.inner];
        parts[thread] = sum;
      });
      block.Each([&](int thread) {
        T sum = 0;
        for (int t = 0; t < thread; ++t) sum += parts[t];
        SumRun(p, line, at_most(thread * run), at_most((thread + 1) * run),
               sum);
      });
    }
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_CUMSUM(suffix, T)                                              \
  PD_KERNEL(cumsum_by_thread##suffix, CumsumByThread<T>, CumsumArgsOf<T>) \
  PD_KERNEL(cumsum_by_block##suffix, CumsumByBlock<T>, CumsumArgsOf<T>)
PD_CUMSUM(, float)
PD_CUMSUM(_int32, int32_t)
PD_CUMSUM(_int64, int64_t)
