// SPDX-License-Identifier: Apache-2.0
// row_conv and its gradients, whose sums go as those of libcore/ops/sequence/row_conv.cc
// do. A thread owns an element of the result.
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/row_conv_arguments.h"

namespace pd::cuda {
namespace {

PD_DEVICE int64_t Least(int64_t a, int64_t b) { return a < b ? a : b; }

struct RowConv {
  PD_DEVICE static void Run(const Block& block, const RowConvArgs& p) {
    block.Spread(p.rows * p.columns, [&](int64_t e) {
      const int64_t row = e / p.columns, k = e % p.columns;
      const int64_t reach = Least(p.context, p.ends[row] - row);
      float sum = 0;
      for (int64_t w = 0; w < reach; ++w)
        sum += p.filter[w * p.columns + k] * p.x[e + w * p.columns];
      p.to[e] = sum;
    });
  }
};

struct RowConvGradX {
  PD_DEVICE static void Run(const Block& block, const RowConvArgs& p) {
    block.Spread(p.rows * p.columns, [&](int64_t e) {
      const int64_t row = e / p.columns, k = e % p.columns;
      float sum = 0;
      for (int64_t w = Least(p.context, row - p.begins[row] + 1); w-- > 0;)
        sum += p.filter[w * p.columns + k] * p.dout[e - w * p.columns];
      p.to[e] = sum;
    });
  }
};

struct RowConvGradFilter {
  PD_DEVICE static void Run(const Block& block, const RowConvArgs& p) {
    block.Spread(p.context * p.columns, [&](int64_t e) {
      const int64_t w = e / p.columns, k = e % p.columns;
      float sum = 0;
      for (int64_t row = 0; row + w < p.rows; ++row)
        if (row + w < p.ends[row])
          sum += p.x[(row + w) * p.columns + k] * p.dout[row * p.columns + k];
      p.to[e] = sum;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(row_conv, RowConv, RowConvArgs)
PD_KERNEL(row_conv_grad_x, RowConvGradX, RowConvArgs)
PD_KERNEL(row_conv_grad_filter, RowConvGradFilter, RowConvArgs)
