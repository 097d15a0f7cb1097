// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in int8.cu and int8_dynamic.cu (arguments.h).
// libcore/ops/quantize/int8.h says what they compute.
#ifndef PD_LIBCORE_KERNELS_CUDA_INT8_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_INT8_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"

namespace pd::cuda {

/// As Int8Act::Kind.
enum class Int8Activation : int32_t {
  kNone,
  kRelu,
  kClip,
  kLeaky,
  kHardSwish,
  kHardSigmoid,
};

/// Of a number: activation, and the byte that it becomes.
struct Int8Finish {
  Int8Activation activation;
  float a, b, c;
  float factor;  ///< 0: it stays a number
  int32_t zero, low, high;
  float y_scale;  ///< of what is added or multiplied
  int32_t y_zero;
};

/// Depths of products are multiples of it: what one thread gathers.
inline constexpr int64_t kInt8Depth = 16;
/// Widths of products are multiples of it: the sums that one thread finishes.
inline constexpr int64_t kInt8Width = 4;

/// Inputs of output positions, as rows of int8 [groups, rows, depth]: element k
/// of a row is channel k % channels under tap k / channels, less `shift`.
struct Int8WindowArgs {
  const uint8_t* x;
  int8_t* rows_out;
  int64_t rows;  ///< images * out_h * out_w
  int64_t groups, channels, taps;
  int64_t depth;  ///< at least channels * taps; 0 behind them
  int64_t image_step, channel_step;
  int64_t in_h, in_w, out_h, out_w, kernel_w;
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int32_t transposed;
  int32_t zero;   ///< of x, which padding is
  int32_t shift;  ///< 0 or 128
};

/// Sums [groups, rows, width] become numbers or bytes [images, channels,
/// positions], where a group has `outputs` channels.
struct Int8SumArgs {
  const int32_t* sums;
  const float *scales, *bias;    ///< of each channel
  const int32_t* corrections;    ///< added to the sums of each channel
  const float* residual_floats;  ///< or null
  const uint8_t* residual_bytes;
  uint8_t* bytes;  ///< or null
  float* floats;   ///< or null
  int64_t rows, positions, groups, outputs, width;
  Int8Finish finish;
};

/// A convolution of few channels a group, without a product of matrices.
struct Int8DepthwiseArgs {
  Int8WindowArgs window;
  const int8_t* weights;  ///< [channels out, taps, channels]
  Int8SumArgs sum;
};

/// Element by element; y has one element for `repeats` of x.
struct Int8MapArgs {
  const float* floats_in;  ///< or null: bytes
  const uint8_t *x, *y;
  uint8_t* bytes;  ///< or null
  float* floats;   ///< or null
  int64_t n, repeats;
  float scale;
  int32_t zero, adds;
  Int8Finish finish;
};

struct Int8PoolArgs {
  PoolWindows windows;  ///< of planes; the last two axes
  const uint8_t* x;
  uint8_t* bytes;
  float* floats;
  float scale;
  int32_t zero;
  Int8Finish finish;
};

/// A product whose rows of floats become bytes first.
struct Int8DynamicArgs {
  const float* x;  ///< [rows, size]
  int8_t* bytes;   ///< [rows, depth], less 128
  float* scales;   ///< of each row
  int32_t* zeros;
  const int32_t* sums;  ///< [rows, width]
  const float* weight_scales;
  const int32_t* weight_sums;
  float* out;  ///< [rows, columns]
  int64_t rows, size, depth, columns, width;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_INT8_ARGUMENTS_H_
