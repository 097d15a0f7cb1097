// SPDX-License-Identifier: Apache-2.0
// Convolutions with windows of 3 by 3 and stride 1 by Winograd's minimal
// filtering F(m x m, 3 x 3): an output tile of m x m costs (m + 2)^2 products a
// pair of channels instead of 9 m^2. Images lie in blocks of VectorFloats()
// channels: [N, C / block, H, W, block].
//
// Source of the formulas: S. Winograd, "Arithmetic Complexity of Computations",
// 1980; A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural
// Networks", 2015. With the points 0, +-a, (+-b) and infinity a line d of m + 2
// pixels and a row g of 3 weights give A'[(G g) * (B d)], where
//   B's row of point p holds the coefficients of the product of (x - q) over
//     the other finite points q, infinity's that over all of them,
//   G's row of p is (1, p, p^2) over the product of (p - q), infinity's
//     (0, 0, 1),
//   A's row of p is (1, p, .., p^(m - 1)), infinity's (0, .., 0, 1).
// F(2 x 2) has a = 1. F(4 x 4) has a = 5/8 and b = 3/2: these round less than 1
// and 2.
#ifndef PD_LIBCORE_KERNELS_CPU_WINOGRAD_H_
#define PD_LIBCORE_KERNELS_CPU_WINOGRAD_H_

#include <cstddef>
#include <cstdint>

#include "libcore/kernels/cpu/conv_args.h"

namespace pd {
namespace cpu {

struct WinogradGeometry {
  int64_t batch = 1, in_channels = 1, out_channels = 1;
  int64_t in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  int64_t pad_top = 0, pad_left = 0;
  int64_t tile = 2;  ///< m: 2 or 4

  int64_t Points() const { return (tile + 2) * (tile + 2); }
  int64_t Tiles() const {
    return batch * ((out_h + tile - 1) / tile) * ((out_w + tile - 1) / tile);
  }
};

/// How often a call reads all the weights: once for each block of tiles.
int64_t WinogradReads(const WinogradGeometry& g);

/// Floats of the transformed weights, and of the scratch memory of a call with
/// Threads() threads.
int64_t WinogradWeights(const WinogradGeometry& g);
int64_t WinogradScratch(const WinogradGeometry& g);

/// Transforms weights [out_channels, in_channels, 3, 3] that lie as
/// BlockedWeights().
void WinogradTransform(const WinogradGeometry& g, const float* weights,
                       float* transformed);

/// `args.weights` are transformed ones; the residual may be `y`.
void Winograd(const WinogradGeometry& g, const ConvArgs& args);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_WINOGRAD_H_
