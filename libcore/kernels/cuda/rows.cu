// SPDX-License-Identifier: Apache-2.0
// layer_norm, lookup_table and dropout. The formulas are those of libcore/ops.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/philox.h"
#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/sums.h"
#include "libcore/kernels/cuda/strided_index.h"

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

PD_REAL int64_t IdOf(const LookupArgsOf<T>& p, int64_t i) {
  return p.ids64 ? static_cast<const int64_t*>(p.ids)[i]
                 : static_cast<const int32_t*>(p.ids)[i];
}

template <typename T>
struct Lookup {
  PD_DEVICE static void Run(const Block& block, const LookupArgsOf<T>& p) {
    block.Spread(p.count * p.width, [&](int64_t k) {
      const int64_t id = IdOf(p, k / p.width);
      const bool good = id >= 0 && id < p.rows;
      if (!good && id != p.padding) *p.bad = 1;
      p.to[k] =
          good && id != p.padding ? p.from[id * p.width + k % p.width] : T(0);
    });
  }
};

// A thread owns a column, so equal ids are summed in their order. `to` is 0.
template <typename T>
struct LookupGrad {
  PD_DEVICE static void Run(const Block& block, const LookupArgsOf<T>& p) {
    block.Spread(p.width, [&](int64_t column) {
      for (int64_t i = 0; i < p.count; ++i) {
        const int64_t id = IdOf(p, i);
        if (id == p.padding) continue;
        if (id >= 0 && id < p.rows)
          p.to[id * p.width + column] += p.from[i * p.width + column];
        else
          *p.bad = 1;
      }
    });
  }
};

template <typename T>
struct Dropout {
  PD_DEVICE static void Run(const Block& block, const DropoutArgsOf<T>& p) {
    // The numbers of DropoutSource::At.
    const DrawArgs draws = {p.run, p.seed, p.stream};
    block.Spread(p.n, [&](int64_t i) {
      const bool kept =
          PhiloxUniform(draws, static_cast<uint64_t>(p.first + i)) >=
          p.threshold;
      p.mask[i] = kept;
      if (p.out != nullptr) p.out[i] = kept ? p.x[i] * p.factor : T(0);
    });
  }
};

// By a mask that serves for several elements.
struct DropoutByMask {
  PD_DEVICE static void Run(const Block& block, const MaskArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t at = 0;
      Place(p.walk, i, &at);
      p.out[i] = p.mask[at] != 0 ? p.x[i] * p.factor : 0.0f;
    });
  }
};

template <typename T>
struct DropoutGrad {
  PD_DEVICE static void Run(const Block& block, const DropoutArgsOf<T>& p) {
    block.Spread(p.n, [&](int64_t i) {
      p.out[i] = p.mask[i] != 0 ? p.x[i] * p.factor : T(0);
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
PD_KERNEL(dropout_by_mask, DropoutByMask, MaskArgs)
#define PD_ROWS(suffix, T)                                       \
  PD_KERNEL(lookup##suffix, Lookup<T>, LookupArgsOf<T>)          \
  PD_KERNEL(lookup_grad##suffix, LookupGrad<T>, LookupArgsOf<T>) \
  PD_KERNEL(dropout##suffix, Dropout<T>, DropoutArgsOf<T>)       \
  PD_KERNEL(dropout_grad##suffix, DropoutGrad<T>, DropoutArgsOf<T>)
PD_ROWS(, float)
PD_ROWS(_64, double)
