// SPDX-License-Identifier: Apache-2.0
// Residual, bias and ReLU after a convolution that cuDNN computes alone.
#include <cstdint>

#include "libcore/kernels/cuda/conv_arguments.h"
#include "libcore/kernels/cuda/low_precision.h"

namespace pd::cuda {
namespace {

struct ConvTail {
  PD_DEVICE static void Run(const Block& block, const ConvTailArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      float v = LoadFloat(p.type, p.out, i);
      if (p.residual != nullptr) v += LoadFloat(p.type, p.residual, i);
      if (p.bias != nullptr)
        v += LoadFloat(p.type, p.bias, i / p.inner % p.channels);
      // NaN stays NaN, as with the references.
      if (p.relu != 0 && v < 0) v = 0;
      if (p.top > 0 && v > p.top) v = p.top;
      StoreFloat(p.type, p.out, i, v);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(conv_tail, ConvTail, ConvTailArgs)
