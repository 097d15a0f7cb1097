// SPDX-License-Identifier: Apache-2.0
// Gradients of products of rows by number, as libcore/ops/loss/linear_rows.h. A
// thread owns an element; W's are summed by selected_rows.cu.
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/linear_rows_arguments.h"

namespace pd::cuda {
namespace {

struct LinearRowsGradX {
  PD_DEVICE static void Run(const Block& block, const LinearRowsArgs& p) {
    block.Spread(p.samples * p.width, [&](int64_t e) {
      const int64_t sample = e / p.width, k = e % p.width;
      float sum = 0;
      for (int64_t j = 0; j < p.columns; ++j) {
        const int64_t pair = sample * p.columns + j;
        sum += p.dz[pair] * p.w[p.rows[pair] * p.width + k];
      }
      p.dx[e] = sum;
    });
  }
};

struct LinearRowsValues {
  PD_DEVICE static void Run(const Block& block, const LinearRowsArgs& p) {
    block.Spread(p.samples * p.columns * p.width, [&](int64_t e) {
      const int64_t pair = e / p.width, k = e % p.width;
      p.values[e] = p.dz[pair] * p.x[pair / p.columns * p.width + k];
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(linear_rows_grad_x, LinearRowsGradX, LinearRowsArgs)
PD_KERNEL(linear_rows_values, LinearRowsValues, LinearRowsArgs)
