// SPDX-License-Identifier: Apache-2.0
// Resizing, and its gradient: an element of the result is the sum over what it
// reads along each axis.
#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {
namespace {

struct Resize {
  PD_DEVICE static void Run(const Block& block, const ResizeArgs& p) {
    const ResizeAxis &d = p.axes[0], &h = p.axes[1], &w = p.axes[2];
    block.Spread(p.n, [&](int64_t e) {
      const int64_t inner = e % p.inner, x = e / p.inner % w.to;
      const int64_t y = e / p.inner / w.to % h.to;
      const int64_t z = e / p.inner / w.to / h.to % d.to;
      const int64_t plane = e / p.inner / w.to / h.to / d.to;
      float sum = 0;
      for (int32_t i = d.begins[z]; i < d.begins[z + 1]; ++i)
        for (int32_t j = h.begins[y]; j < h.begins[y + 1]; ++j)
          for (int32_t k = w.begins[x]; k < w.begins[x + 1]; ++k) {
            const int64_t row =
                (plane * d.from + d.index[i]) * h.from + h.index[j];
            sum += p.in[(row * w.from + w.index[k]) * p.inner + inner] *
                   (d.weight[i] * h.weight[j] * w.weight[k]);
          }
      p.out[e] = sum;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(resize, Resize, ResizeArgs)
