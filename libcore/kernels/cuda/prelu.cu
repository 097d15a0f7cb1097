// SPDX-License-Identifier: Apache-2.0
// Activations of more than one element: prelu, whose slopes are a parameter,
// and maxout. The formulas are those of libcore/ops.
#include <cstdint>

#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/sums.h"

namespace pd::cuda {
namespace {

struct Prelu {
  PD_DEVICE static void Run(const Block& block, const PreluArgs& p) {
    block.Spread(p.outer * p.n * p.inner, [&](int64_t i) {
      const float x = p.x[i];
      p.out[i] = x > 0 ? x : p.alpha[i / p.inner % p.n] * x;
    });
  }
};
struct PreluGradX {
  PD_DEVICE static void Run(const Block& block, const PreluArgs& p) {
    block.Spread(p.outer * p.n * p.inner, [&](int64_t i) {
      const float d = p.dout[i];
      p.out[i] = p.x[i] > 0 ? d : p.alpha[i / p.inner % p.n] * d;
    });
  }
};
// A block takes a slope.
struct PreluGradAlpha {
  PD_DEVICE static void Run(const Block& block, const PreluArgs& p) {
    for (int64_t k = block.index(); k < p.n; k += block.blocks()) {
      const float sum = SumOf(block, p.outer * p.inner, [&](int64_t e) {
        const int64_t i = (e / p.inner * p.n + k) * p.inner + e % p.inner;
        return p.x[i] > 0 ? 0.0f : p.dout[i] * p.x[i];
      });
      block.Each([&](int thread) {
        if (thread == 0) p.dalpha[k] = sum;
      });
    }
  }
};

struct Maxout {
  PD_DEVICE static void Run(const Block& block, const MaxoutArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      const FloatsIn x = p.x + i / p.inner * p.groups * p.inner + i % p.inner;
      float most = x[0];
      for (int64_t g = 1; g < p.groups; ++g)
        if (x[g * p.inner] > most) most = x[g * p.inner];
      p.to[i] = most;
    });
  }
};
// To the first that is the maximum.
struct MaxoutGrad {
  PD_DEVICE static void Run(const Block& block, const MaxoutArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      const int64_t first = i / p.inner * p.groups * p.inner + i % p.inner;
      bool found = false;
      for (int64_t g = 0; g < p.groups; ++g) {
        const int64_t at = first + g * p.inner;
        const bool is = !found && p.x[at] == p.out[i];
        p.to[at] = is ? p.dout[i] : 0.0f;
        found = found || is;
      }
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(prelu, Prelu, PreluArgs)
PD_KERNEL(prelu_grad_x, PreluGradX, PreluArgs)
PD_KERNEL(prelu_grad_alpha, PreluGradAlpha, PreluArgs)
PD_KERNEL(maxout, Maxout, MaxoutArgs)
PD_KERNEL(maxout_grad, MaxoutGrad, MaxoutArgs)
