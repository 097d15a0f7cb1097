// SPDX-License-Identifier: Apache-2.0
// The kernels of bilinear_tensor_product beside its matrix products.
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/layer_arguments.h"

namespace pd::cuda {
namespace {

// out [n, k] = sum over a of x part + bias
struct BilinearOut {
  PD_DEVICE static void Run(const Block& block, const BilinearArgs& p) {
    block.Spread(p.n * p.k, [&](int64_t e) {
      const float *x = p.x + e / p.k * p.a, *part = p.part + e * p.a;
      float sum = p.bias != nullptr ? p.bias[e % p.k] : 0.0f;
      for (int64_t i = 0; i < p.a; ++i) sum += x[i] * part[i];
      p.to[e] = sum;
    });
  }
};

// dx [n, a] = sum over k of dout part
struct BilinearGradX {
  PD_DEVICE static void Run(const Block& block, const BilinearArgs& p) {
    block.Spread(p.n * p.a, [&](int64_t e) {
      const int64_t row = e / p.a * p.k;
      float sum = 0;
      for (int64_t k = row; k < row + p.k; ++k)
        sum += p.dout[k] * p.part[k * p.a + e % p.a];
      p.to[e] = sum;
    });
  }
};

// to [n, k, a] = dout x
struct BilinearSpread {
  PD_DEVICE static void Run(const Block& block, const BilinearArgs& p) {
    block.Spread(p.n * p.k * p.a, [&](int64_t e) {
      p.to[e] = p.dout[e / p.a] * p.x[e / p.a / p.k * p.a + e % p.a];
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(bilinear_out, BilinearOut, BilinearArgs)
PD_KERNEL(bilinear_grad_x, BilinearGradX, BilinearArgs)
PD_KERNEL(bilinear_spread, BilinearSpread, BilinearArgs)
