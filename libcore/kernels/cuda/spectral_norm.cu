// SPDX-License-Identifier: Apache-2.0
// spectral_norm, in doubles as in libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

// The weight at row r and column c.
PD_DEVICE double Entry(const SpectralArgs& p, int64_t r, int64_t c) {
  return p.weight[(c / p.inner * p.h + r) * p.inner + c % p.inner];
}

// The sum of f(i) over i in [0, n), given to all threads; in one order.
template <typename F>
PD_DEVICE double WideSum(const Block& block, int64_t n, const F& f) {
  PerThread<double> part(0.0);
  block.Each([&](int thread) {
    for (int64_t i = thread; i < n; i += block.threads()) part[thread] += f(i);
  });
  return block.Reduce(&part, Plus());
}

// A block's work: vector / (|vector| + eps)
PD_DEVICE void Normalize(const Block& block, double eps, int64_t n,
                         double* vector) {
  const double squares =
      WideSum(block, n, [&](int64_t i) { return vector[i] * vector[i]; });
  const double norm = sqrt(squares) + eps;
  block.Each([&](int thread) {
    for (int64_t i = thread; i < n; i += block.threads()) vector[i] /= norm;
  });
}

struct SpectralStart {
  PD_DEVICE static void Run(const Block& block, const SpectralArgs& p) {
    block.Spread(p.h, [&](int64_t r) { p.u[r] = p.first_u[r]; });
    block.Spread(p.w, [&](int64_t c) { p.v[c] = p.first_v[c]; });
  }
};

// v = W^T u: neighbouring threads read neighbouring columns.
struct SpectralColumns {
  PD_DEVICE static void Run(const Block& block, const SpectralArgs& p) {
    block.Spread(p.w, [&](int64_t c) {
      double sum = 0;
      for (int64_t r = 0; r < p.h; ++r) sum += Entry(p, r, c) * p.u[r];
      p.v[c] = sum;
    });
  }
};

// W v and the rows' sums: a block for each row.
struct SpectralRows {
  PD_DEVICE static void Run(const Block& block, const SpectralArgs& p) {
    for (int64_t r = block.index(); r < p.h; r += block.blocks()) {
      const double product = WideSum(
          block, p.w, [&](int64_t c) { return Entry(p, r, c) * p.v[c]; });
      const double sum =
          WideSum(block, p.w, [&](int64_t c) { return Entry(p, r, c); });
      block.Each([&](int thread) {
        if (thread != 0) return;
        p.products[r] = product;
        p.sums[r] = sum;
      });
    }
  }
};

// One block each.
struct SpectralUnitV {
  PD_DEVICE static void Run(const Block& block, const SpectralArgs& p) {
    Normalize(block, p.eps, p.w, p.v);
  }
};
struct SpectralUnitU {
  PD_DEVICE static void Run(const Block& block, const SpectralArgs& p) {
    block.Each([&](int thread) {
      for (int64_t r = thread; r < p.h; r += block.threads())
        p.u[r] = p.products[r];
    });
    Normalize(block, p.eps, p.h, p.u);
  }
};
struct SpectralResults {
  PD_DEVICE static void Run(const Block& block, const SpectralArgs& p) {
    const double sigma =
        WideSum(block, p.h, [&](int64_t r) { return p.u[r] * p.products[r]; });
    const double total =
        WideSum(block, p.h, [&](int64_t r) { return p.sums[r]; });
    block.Each([&](int thread) {
      if (thread != 0) return;
      p.results[0] = sigma;
      p.results[1] = total;
    });
  }
};

struct SpectralOut {
  PD_DEVICE static void Run(const Block& block, const SpectralArgs& p) {
    block.Spread(p.h * p.w, [&](int64_t i) {
      p.to[i] = static_cast<float>(p.weight[i] / p.results[0]);
    });
  }
};

struct SpectralGrad {
  PD_DEVICE static void Run(const Block& block, const SpectralArgs& p) {
    block.Spread(p.h * p.w, [&](int64_t i) {
      const int64_t r = i / p.inner % p.h;
      const int64_t c = i / p.inner / p.h * p.inner + i % p.inner;
      const double sigma = p.results[0], sum = p.results[1] / sigma;
      p.to[i] =
          static_cast<float>(p.dout[i] * (1 - p.u[r] * p.v[c] * sum) / sigma);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(spectral_start, SpectralStart, SpectralArgs)
PD_KERNEL(spectral_columns, SpectralColumns, SpectralArgs)
PD_KERNEL(spectral_unit_v, SpectralUnitV, SpectralArgs)
PD_KERNEL(spectral_rows, SpectralRows, SpectralArgs)
PD_KERNEL(spectral_unit_u, SpectralUnitU, SpectralArgs)
PD_KERNEL(spectral_results, SpectralResults, SpectralArgs)
PD_KERNEL(spectral_out, SpectralOut, SpectralArgs)
PD_KERNEL(spectral_grad, SpectralGrad, SpectralArgs)
