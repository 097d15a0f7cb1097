// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of memory that is seen as [outer, groups, inner, lanes],
// where channel c is lane c % lanes of group c / lanes:
//   NCHW     [N, C, HW, 1]        CHWN  [1, C, HWN, 1]
//   nChw16c  [N, C / 16, HW, 16]  NHWC  [1, 1, NHW, C]
// The data T are floats or BFloat16, which are computed with as floats; the
// numbers of channels are floats.
#ifndef PD_LIBCORE_KERNELS_CPU_BATCH_NORM_CHANNELS_H_
#define PD_LIBCORE_KERNELS_CPU_BATCH_NORM_CHANNELS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/functional/function_ref.h"
#include "libcore/base/half.h"

namespace pd {
namespace cpu {

struct ChannelView {
  int64_t outer = 1, groups = 1, inner = 1, lanes = 1;

  /// Channels, padding included.
  int64_t channels() const { return groups * lanes; }
  /// Elements of one channel.
  int64_t count() const { return outer * inner; }
};

/// The clip after the normalisation, if on: min(max(y, 0), top), without a
/// bound where `top` is NaN. A NaN in y stays.
struct ChannelClip {
  bool on = false;
  float top = std::numeric_limits<float>::quiet_NaN();
};

/// Numbers of every channel, padding included. With factor[c] = scale / sigma:
/// y = clip((x - mean[c]) * factor[c] + shift[c]).
struct ChannelTerms {
  const float *mean, *factor, *shift;
};

/// Bytes that the functions below need as `scratch`.
size_t ChannelScratch(const ChannelView& v);

/// Called with the first and the last channel (excluded) that may be filled
/// in, from several threads, each with channels of its own.
using FillChannels = absl::FunctionRef<void(int64_t, int64_t)>;

/// Normalises a batch: finds mean[c] and variance[c], that of the population,
/// lets `terms` fill factor and shift, and writes y, which may be x. A group of
/// channels is read again while it is in the cache.
struct ChannelNumbers {
  float *mean, *variance, *factor, *shift;
};
template <typename T>
void NormalizeChannels(const ChannelView& v, const T* x,
                       const ChannelClip& clip, void* scratch,
                       const ChannelNumbers& numbers, FillChannels terms, T* y);

/// y alone, of given numbers; y may be x.
template <typename T>
void ScaleChannels(const ChannelView& v, const T* x, const ChannelTerms& t,
                   const ChannelClip& clip, T* y);

/// Inputs of the gradient: x, dy, and the terms of the forward pass.
template <typename T>
struct ChannelPass {
  const T *x, *dy;
  ChannelTerms terms;
  ChannelClip clip;
};

/// With g = dy, or 0 where the clip was active: finds sum[c] of g and dot[c] of
/// g * (x - mean[c]), lets `means` replace them by what is to be subtracted,
/// and writes, unless it is null, dx = factor[c] * (g - sum[c] - (x - mean[c])
/// * dot[c]); dx may be dy.
struct ChannelGradNumbers {
  float *sum, *dot;
};
template <typename T>
void NormalizeChannelsGrad(const ChannelView& v, const ChannelPass<T>& pass,
                           void* scratch, const ChannelGradNumbers& numbers,
                           FillChannels means, T* dx);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_BATCH_NORM_CHANNELS_H_
