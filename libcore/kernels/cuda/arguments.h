// SPDX-License-Identifier: Apache-2.0
// What the kernels are given: plain structs that host and device lay out alike.
// Pointers are of device memory.
#ifndef PD_LIBCORE_KERNELS_CUDA_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

inline constexpr int kMostDims = 8;

/// From the number of an element to its place in K tensors. Dimensions without
/// an extent are not there.
template <int K>
struct Walk {
  int32_t dims = 0;
  int64_t extents[kMostDims] = {};
  int64_t strides[kMostDims][K] = {};
};

/// out = F(x), or out = dout * D(v) with v = x or the forward's out.
struct UnaryArgs {
  const float *v, *dout;
  float* out;
  int64_t n;
  float a, b, c;  ///< attributes of the function
};

/// out = F(x, y) over `walk`, which gives the places in x and y.
struct BinaryArgs {
  const float *x, *y;
  void* out;
  int64_t n;
  int32_t same;  ///< no place differs: the walk is not looked at
  Walk<2> walk;
};

/// out[i] = factor * sum (or maximum, ...) over j of F at the place of i and j
/// in x, y and z (the forward's out and its gradient have one shape).
struct ReduceArgs {
  const float *x, *y, *z, *dz;
  float* out;
  int64_t n, m;
  float factor;
  Walk<3> outer, inner;
};

/// to[walk 1] = from[walk 0] for n elements of `bytes` bytes.
struct CopyArgs {
  const void* from;
  void* to;
  int64_t n;
  Walk<2> walk;
};

struct FillArgs {
  void* out;
  int64_t n;
  uint64_t bits;  ///< of the value, in the lowest bytes
};

/// Lines of n elements, `inner` apart, as in AxisView.
struct LinesArgs {
  const float *x, *y, *z;
  float *out, *second;
  const void* label;
  int64_t lines, n, inner;
  int64_t ignore;
  int32_t label64;  ///< labels are int64, else int32
  int32_t* bad;     ///< set to 1 by a label that is out of range
};

inline constexpr int64_t kUpdateChunk = 4096;

/// One of the tensors of an update, in a table in device memory, as there may
/// be hundreds. Blocks first_block and on take kUpdateChunk elements each.
struct UpdateTensor {
  float* param;
  const float* grad;
  float *first, *second;   ///< moments, where the rule has them
  float *power1, *power2;  ///< of adam's betas
  int64_t n;
  int64_t first_block;
  float decay, unused;
};
struct UpdateArgs {
  const UpdateTensor* tensors;
  const float* rate;
  int32_t count, nesterov;
  float mu, beta1, beta2, epsilon, rescale;
};

/// layer_norm over rows of n elements, and its gradients.
struct NormArgs {
  const float *x, *scale, *bias, *dy;
  float *y, *mean, *variance;  ///< of the gradients: inputs but y, which is dx
  float *dscale, *dbias;
  int64_t rows, n;
  float epsilon;
};

/// Rows of a table by number.
struct LookupArgs {
  const float* from;  ///< the table, or Out's gradient
  float* to;
  const void* ids;
  int64_t count, rows, width, padding;
  int32_t ids64;  ///< else int32
  int32_t* bad;   ///< set to 1 by an id that is out of range
};

/// out = x * mask * factor.
struct DropoutArgs {
  const float* x;
  float* out;
  uint8_t* mask;
  int64_t n;
  uint64_t seed, stream;
  float threshold, factor;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ARGUMENTS_H_
