// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in grid_sampler.cu.
#ifndef PD_LIBCORE_KERNELS_CUDA_GRID_SAMPLER_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_GRID_SAMPLER_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

/// Numbered as pd::GridPadding.
enum SamplePadding : int32_t { kZerosOutside, kBorderOutside, kReflected };

/// grid_sampler over channels of `in_size` positions, at `out_size` places of
/// each image. Of the gradient of x: `keys` has lines of `line` numbers an
/// image, cell << 32 | place in the order of the cells, of which there are
/// extent + 1 along each axis: between the positions, and around them.
struct SampleArgs {
  const float *x, *grid, *dout;
  float* to;  ///< Output, X@GRAD or Grid@GRAD
  uint64_t* keys;
  int64_t images, channels, in_size, out_size, line;
  int64_t extent[3], step[3];  ///< as in pd::GridSampler
  int32_t axes, nearest, ties_to_even, align_corners, padding;
};

/// Grids [images, (depth,) height, width, axes] of affine maps.
struct AffineArgs {
  const float* from;  ///< Theta, or Output's gradient
  float* to;
  int64_t images, positions;
  int64_t extent[3];  ///< x, y, z
  int32_t axes, align_corners;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_GRID_SAMPLER_ARGUMENTS_H_
