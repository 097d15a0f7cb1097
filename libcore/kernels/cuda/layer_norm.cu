// SPDX-License-Identifier: Apache-2.0
// Layer norm, with the formulas of libcore/ops/norm/layer_norm.cc.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

// The mean first: the variance is of what differs from it.
template <typename T>
struct LayerNorm {
  PD_DEVICE static void Run(const Block& block, const NormArgsOf<T>& p) {
    for (int64_t row = block.index(); row < p.rows; row += block.blocks()) {
      const auto x = p.x + row * p.n;
      const T n = static_cast<T>(p.n);
      const T mean = SumOf(block, p.n, [&](int64_t i) { return x[i]; }) / n;
      const T variance =
          SumOf(block, p.n,
                [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) /
          n;
      const T inverse = 1 / Sqrt(variance + p.epsilon);
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads()) {
          const T h = (x[i] - mean) * inverse;
          p.y[row * p.n + i] = h * (p.scale != nullptr ? p.scale[i] : T(1)) +
                               (p.bias != nullptr ? p.bias[i] : T(0));
        }
        if (thread != 0) return;
        if (p.mean != nullptr) p.mean[row] = mean;
        if (p.variance != nullptr) p.variance[row] = variance;
      });
    }
  }
};

template <typename T>
struct LayerNormGradX {
  PD_DEVICE static void Run(const Block& block, const NormArgsOf<T>& p) {
    for (int64_t row = block.index(); row < p.rows; row += block.blocks()) {
      const auto x = p.x + row * p.n;
      const auto dy = p.dy + row * p.n;
      const T mean = p.mean[row];
      const T inverse = 1 / Sqrt(p.variance[row] + p.epsilon);
      const T n = static_cast<T>(p.n);
      const auto g = [&](int64_t i) {
        return dy[i] * (p.scale != nullptr ? p.scale[i] : T(1));
      };
      const auto h = [&](int64_t i) { return (x[i] - mean) * inverse; };
      const T sum = SumOf(block, p.n, g) / n;
      const T dot =
          SumOf(block, p.n, [&](int64_t i) { return g(i) * h(i); }) / n;
      block.Each([&](int thread) {
        for (int64_t i = thread; i < p.n; i += block.threads())
          p.y[row * p.n + i] = (g(i) - sum - h(i) * dot) * inverse;
      });
    }
  }
};

// A thread owns a column: no two write to one sum.
template <typename T>
struct LayerNormGradScale {
  PD_DEVICE static void Run(const Block& block, const NormArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      T scale = 0, bias = 0;
      for (int64_t row = 0; row < p.rows; ++row) {
        const T dy = p.dy[row * p.n + i];
        const T inverse = 1 / Sqrt(p.variance[row] + p.epsilon);
        scale += dy * (p.x[row * p.n + i] - p.mean[row]) * inverse;
        bias += dy;
      }
      if (p.dscale != nullptr) p.dscale[i] = scale;
      if (p.dbias != nullptr) p.dbias[i] = bias;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_LAYER_NORM(suffix, T)                                         \
  PD_KERNEL(layer_norm##suffix, LayerNorm<T>, NormArgsOf<T>)             \
  PD_KERNEL(layer_norm_grad_x##suffix, LayerNormGradX<T>, NormArgsOf<T>) \
  PD_KERNEL(layer_norm_grad_scale##suffix, LayerNormGradScale<T>, NormArgsOf<T>)
PD_LAYER_NORM(, float)
PD_LAYER_NORM(_64, double)
