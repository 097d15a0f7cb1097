// SPDX-License-Identifier: Apache-2.0
// Windows of images as columns, and the way back.
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/layer_arguments.h"

namespace pd::cuda {
namespace {

// columns[plane, i, j, row, column] = an element of the plane, or padding.
struct Unfold {
  PD_DEVICE static void Run(const Block& block, const WindowArgs& p) {
    const int64_t rows = p.down.windows, columns = p.across.windows;
    const int64_t each = p.down.kernel * p.across.kernel * rows * columns;
    block.Spread(p.planes * each, [&](int64_t e) {
      const int64_t column = e % columns, row = e / columns % rows;
      const int64_t tap = e / columns / rows;
      const int64_t j = tap % p.across.kernel;
      const int64_t i = tap / p.across.kernel % p.down.kernel;
      const int64_t y =
          row * p.down.stride - p.down.before + i * p.down.dilation;
      const int64_t x =
          column * p.across.stride - p.across.before + j * p.across.dilation;
      const bool inside =
          y >= 0 && y < p.down.extent && x >= 0 && x < p.across.extent;
      p.to[e] =
          inside ? p.from[(e / each * p.down.extent + y) * p.across.extent + x]
                 : 0.0f;
    });
  }
};

// The window whose tap k is at `at`; -1: there is none.
PD_DEVICE int64_t WindowAt(const UnfoldAxis& axis, int64_t at, int64_t k) {
  const int64_t begin = at + axis.before - k * axis.dilation;
  if (begin < 0 || begin % axis.stride != 0) return -1;
  const int64_t window = begin / axis.stride;
  return window < axis.windows ? window : -1;
}

// A thread takes an element of the image: no two write to one sum.
struct Fold {
  PD_DEVICE static void Run(const Block& block, const WindowArgs& p) {
    const int64_t rows = p.down.windows, columns = p.across.windows;
    const int64_t each = p.down.kernel * p.across.kernel * rows * columns;
    block.Spread(p.planes * p.down.extent * p.across.extent, [&](int64_t e) {
      const int64_t x = e % p.across.extent;
      const int64_t y = e / p.across.extent % p.down.extent;
      const float* from = p.from + e / p.across.extent / p.down.extent * each;
      float sum = 0;
      for (int64_t i = 0; i < p.down.kernel; ++i) {
        const int64_t row = WindowAt(p.down, y, i);
        if (row < 0) continue;
        for (int64_t j = 0; j < p.across.kernel; ++j) {
          const int64_t column = WindowAt(p.across, x, j);
          if (column < 0) continue;
          sum +=
              from[((i * p.across.kernel + j) * rows + row) * columns + column];
        }
      }
      p.to[e] = sum;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(unfold, Unfold, WindowArgs)
PD_KERNEL(fold, Fold, WindowArgs)
