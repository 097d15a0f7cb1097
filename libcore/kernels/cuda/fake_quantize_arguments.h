// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels in fake_quantize.cu (arguments.h).
#ifndef PD_LIBCORE_KERNELS_CUDA_FAKE_QUANTIZE_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_FAKE_QUANTIZE_ARGUMENTS_H_

#include <cstdint>

namespace pd::cuda {

inline constexpr int64_t kAbsMaxParts = 256;

/// Element i is of channel i / inner % channels.
struct QuantizeArgs {
  const void* x;  ///< float32, but for dequantize_linear
  float* out;
  int64_t n, channels, inner;
  const float* scales;  ///< of each channel
  const float* whole;   ///< a scale that all have besides, or null
  float levels;         ///< 2^(bits - 1) - 1, or what is divided by
  int32_t to_even, back;
  float* parts;  ///< max |x| of each of `blocks` blocks
  int64_t blocks;
  /// A moving average of the scale, or null.
  const float *in_state, *in_accum;
  float *out_state, *out_accum;
  float* out_scale;  ///< of each channel, or null
  float rate;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_FAKE_QUANTIZE_ARGUMENTS_H_
