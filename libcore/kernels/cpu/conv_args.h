// SPDX-License-Identifier: Apache-2.0
// Arguments of our own convolutions of images in blocks of channels, and their
// binding for an op.
#ifndef PD_LIBCORE_KERNELS_CPU_CONV_ARGS_H_
#define PD_LIBCORE_KERNELS_CPU_CONV_ARGS_H_

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {
namespace cpu {

/// y = min(max(conv(x) + bias + residual, low), high). `x`, `y` and `residual`
/// lie as BlockedChannels().
struct ConvArgs {
  const float *x = nullptr, *weights = nullptr;      ///< in the kernel's form
  const float *bias = nullptr, *residual = nullptr;  ///< or null
  float low = 0, high = 0;
  float *y = nullptr, *scratch = nullptr;
};

/// The variables of conv2d or fused_conv2d but for the filter.
struct ConvVariables {
  Tensor *x = nullptr, *y = nullptr, *bias = nullptr, *residual = nullptr;
  float low = 0, high = 0;

  /// Without weights and scratch.
  ConvArgs Args() const;
};

/// Binds them. Unimplemented for an activation that is no pair of bounds.
absl::StatusOr<ConvVariables> BindConvVariables(BindContext* context);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_CONV_ARGS_H_
