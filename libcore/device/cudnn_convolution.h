// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN's graphs: each of the three parts of one is a graph of
// one operation; a forward one may have sums and a ReLU behind it.
#ifndef PD_LIBCORE_DEVICE_CUDNN_CONVOLUTION_H_
#define PD_LIBCORE_DEVICE_CUDNN_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/device/cuda_device.h"

namespace pd {

/// Extents are [batch, channels, positions...] and, of filters, [outputs,
/// inputs / groups, taps...], whatever order they lie in: data and filters are
/// row-major, or both have channels last. float32, float16 or bfloat16; sums
/// are float32.
struct Convolution {
  std::vector<int64_t> input, filter, output;
  std::vector<int64_t> paddings, strides, dilations;
  int64_t groups = 1;
  bool channels_last = false;
  DType dtype = DType::kFloat32;
  bool tf32 = false;  ///< float32 may be rounded to 10 bits of mantissa
  bool deterministic = false;  ///< the same bits in every run
  bool exhaustive = false;     ///< takes the engine that ran the fastest
  size_t most_workspace = 0;   ///< bytes
};

/// The part of a convolution that is computed, and its operands.
enum class ConvolutionPart {
  kOutput,  ///< of input and filter
  kInput,   ///< its gradient, of filter and output's gradient
  kFilter,  ///< its gradient, of input and output's gradient
};

/// output = activation(convolution + residual + bias)
struct ConvolutionTail {
  bool residual = false;  ///< of the output's extents
  bool bias = false;      ///< a number for each channel
  bool relu = false;
  float top = 0;  ///< where relu's results end; 0: nowhere
};

/// Where the parts of one lie: `first` and `second` in the order of
/// ConvolutionPart's comments. What the tail does not have is not read.
struct ConvolutionData {
  const void *first, *second;
  void* result;
  const void *residual = nullptr, *bias = nullptr;
};

/// One part, for an output with its tail, and the engine that was chosen for
/// it. Convolutions that are described alike share one.
class BoundConvolution {
 public:
  virtual ~BoundConvolution() = default;
  /// Bytes of device memory that Run wants, 256-byte aligned.
  virtual size_t workspace() const = 0;
  virtual absl::Status Run(const ConvolutionData& data,
                           void* workspace) const = 0;
};

/// Takes the engine that cuDNN recommends first of those that fit and compute
/// as the convolution says; where it says `exhaustive`, the one that was the
/// fastest when it ran on memory that is taken for that, now or in an earlier
/// process: such choices are kept (choice_cache.h). `tail` is for kOutput.
/// Unavailable when the library is missing; Unimplemented when it has no
/// engine for the whole.
absl::StatusOr<std::shared_ptr<const BoundConvolution>> BindConvolution(
    CudaDevice* device, const Convolution& convolution, ConvolutionPart part,
    const ConvolutionTail& tail = {});

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUDNN_CONVOLUTION_H_
