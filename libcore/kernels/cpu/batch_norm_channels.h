// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of memory that is seen as [outer, groups, inner, lanes],
// where channel c is lane c % lanes of group c / lanes:
//   NCHW     [N, C, HW, 1]        CHWN  [1, C, HWN, 1]
//   nChw16c  [N, C / 16, HW, 16]  NHWC  [1, 1, NHW, C]
#ifndef PD_LIBCORE_KERNELS_CPU_BATCH_NORM_CHANNELS_H_
#define PD_LIBCORE_KERNELS_CPU_BATCH_NORM_CHANNELS_H_

#include <cstddef>
#include <cstdint>

namespace pd {
namespace cpu {

struct ChannelView {
  int64_t outer = 1, groups = 1, inner = 1, lanes = 1;

  /// Channels, padding included.
  int64_t channels() const { return groups * lanes; }
  /// Elements of one channel.
  int64_t count() const { return outer * inner; }
};

/// What is summed: with dy, dy and dy * (x - center[c]); without (null),
/// x - center[c] and its square.
struct ChannelSums {
  const float *x, *dy, *center;
};

/// Bytes that the two functions of sums need as `scratch`.
size_t ChannelSumsScratch(const ChannelView& v);

/// mean[c] and variance[c] of all channels, padding included; the variance is
/// that of the population.
void ChannelMoments(const ChannelView& v, const float* x, void* scratch,
                    float* mean, float* variance);

/// y = (x - mean[c]) * factor[c] + shift[c]; y may be x.
struct ChannelTerms {
  const float *mean, *factor, *shift;
};
void ChannelScale(const ChannelView& v, const float* x,
                  const ChannelTerms& terms, float* y);

/// sum[c] = sum of dy, dot[c] = sum of dy * (x - mean[c]).
void ChannelGradSums(const ChannelView& v, const float* x, const float* dy,
                     const float* mean, void* scratch, float* sum, float* dot);

/// dx = factor[c] * (dy - shift[c] - (x - mean[c]) * slope[c]); dx may be dy.
struct ChannelGradTerms {
  const float *mean, *factor, *shift, *slope;
};
void ChannelGrad(const ChannelView& v, const float* x, const float* dy,
                 const ChannelGradTerms& terms, float* dx);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_BATCH_NORM_CHANNELS_H_
