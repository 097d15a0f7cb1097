// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN 9, found at run time. The declarations are ours, as in
// cuda_driver.h, and tested against NVIDIA's. We call the functions that take
// one convolution at a time: their results are plain numbers, and all three
// parts of a convolution have one form.
#ifndef PD_LIBCORE_DEVICE_CUDNN_H_
#define PD_LIBCORE_DEVICE_CUDNN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/device/cuda_device.h"

namespace pd {

/// Extents are [batch, channels, positions...] and, of filters, [outputs,
/// inputs / groups, taps...], whatever order they lie in: data are row-major
/// unless channels_last, filters unless filter_last, which wants both. float32,
/// float16 or bfloat16; sums are float32.
struct Convolution {
  std::vector<int64_t> input, filter, output;
  std::vector<int64_t> paddings, strides, dilations;
  int64_t groups = 1;
  bool channels_last = false;
  bool filter_last = false;
  DType dtype = DType::kFloat32;
  bool tf32 = false;  ///< float32 may be rounded to 10 bits of mantissa
  bool deterministic = false;  ///< the same bits in every run
  bool exhaustive = false;     ///< takes the algorithm that ran the fastest
  size_t most_workspace = 0;   ///< bytes
};

/// The part of a convolution that is computed, and its operands.
enum class ConvolutionPart {
  kOutput,  ///< of input and filter
  kInput,   ///< its gradient, of filter and output's gradient
  kFilter,  ///< its gradient, of input and output's gradient
};

/// One part with its descriptors and the algorithm that was chosen for it.
class BoundConvolution {
 public:
  virtual ~BoundConvolution() = default;
  /// Bytes of device memory that Run wants, 256-byte aligned.
  virtual size_t workspace() const = 0;
  /// `first` and `second` in the order of ConvolutionPart's comments.
  virtual absl::Status Run(const void* first, const void* second, void* result,
                           void* workspace) const = 0;
};

/// Chooses the algorithm that cuDNN expects to be the fastest of those that
/// fit; where the convolution says `exhaustive`, the one that was the fastest
/// when it ran on memory that is taken for that, now or in an earlier process:
/// such choices are kept (choice_cache.h). Unavailable when the library is
/// missing; Unimplemented when it knows none.
absl::StatusOr<std::shared_ptr<const BoundConvolution>> BindConvolution(
    CudaDevice* device, const Convolution& convolution, ConvolutionPart part);

// The functions and numbers of cudnn.h; handles and descriptors are pointers.
using CudnnStatus = int;
inline constexpr int kCudnnFloat32 = 0, kCudnnFloat16 = 2, kCudnnBFloat16 = 9;
inline constexpr int kCudnnDefaultMath = 0, kCudnnTensorMath = 1,
                     kCudnnConvertingMath = 2, kCudnnFmaMath = 3;
inline constexpr int kCudnnNchw = 0, kCudnnNhwc = 1;
inline constexpr int kCudnnCrossCorrelation = 1;
inline constexpr int kCudnnDeterministic = 1;

/// One algorithm as the library rates it.
struct CudnnRated {
  int algorithm;
  CudnnStatus status;
  float time;
  size_t memory;
  int determinism;
  int math;
  int reserved[3];
};

// PD_CUDNN(X): X(member, parameters); the exported name is "cudnn" and the
// member. The three parts have functions of one form each.
#define PD_CUDNN_CHOOSE \
  (void*, void*, void*, void*, void*, int, int*, CudnnRated*)
#define PD_CUDNN_RUN                                                       \
  (void*, const void*, void*, const void*, void*, const void*, void*, int, \
   void*, size_t, const void*, void*, void*)
#define PD_CUDNN_TRY                                                        \
  (void*, void*, const void*, void*, const void*, void*, void*, void*, int, \
   int*, CudnnRated*, void*, size_t)
#define PD_CUDNN_MEASURE (void*, void*, void*, void*, void*, int, size_t*)
#define PD_CUDNN(X)                                                   \
  X(Create, (void**))                                                 \
  X(SetStream, (void*, CudaStream))                                   \
  X(CreateTensorDescriptor, (void**))                                 \
  X(DestroyTensorDescriptor, (void*))                                 \
  X(SetTensorNdDescriptor, (void*, int, int, const int*, const int*)) \
  X(CreateFilterDescriptor, (void**))                                 \
  X(DestroyFilterDescriptor, (void*))                                 \
  X(SetFilterNdDescriptor, (void*, int, int, int, const int*))        \
  X(CreateConvolutionDescriptor, (void**))                            \
  X(DestroyConvolutionDescriptor, (void*))                            \
  X(SetConvolutionNdDescriptor,                                       \
    (void*, int, const int*, const int*, const int*, int, int))       \
  X(SetConvolutionGroupCount, (void*, int))                           \
  X(SetConvolutionMathType, (void*, int))                             \
  X(GetConvolutionForwardAlgorithm_v7, PD_CUDNN_CHOOSE)               \
  X(GetConvolutionBackwardDataAlgorithm_v7, PD_CUDNN_CHOOSE)          \
  X(GetConvolutionBackwardFilterAlgorithm_v7, PD_CUDNN_CHOOSE)        \
  X(FindConvolutionForwardAlgorithmEx, PD_CUDNN_TRY)                  \
  X(FindConvolutionBackwardDataAlgorithmEx, PD_CUDNN_TRY)             \
  X(FindConvolutionBackwardFilterAlgorithmEx, PD_CUDNN_TRY)           \
  X(GetConvolutionForwardWorkspaceSize, PD_CUDNN_MEASURE)             \
  X(GetConvolutionBackwardDataWorkspaceSize, PD_CUDNN_MEASURE)        \
  X(GetConvolutionBackwardFilterWorkspaceSize, PD_CUDNN_MEASURE)      \
  X(ConvolutionForward, PD_CUDNN_RUN)                                 \
  X(ConvolutionBackwardData, PD_CUDNN_RUN)                            \
  X(ConvolutionBackwardFilter, PD_CUDNN_RUN)

struct Cudnn {
#define PD_MEMBER(member, parameters) CudnnStatus(*member) parameters = nullptr;
  PD_CUDNN(PD_MEMBER)
#undef PD_MEMBER
  void* handle = nullptr;
  std::string version;  ///< "9.19.2"
};

/// cuDNN's number of a dtype; Unimplemented for what it does not convolve.
absl::StatusOr<int> CudnnTypeOf(DType dtype);
/// Elements between neighbours of each extent, [batch, channels,
/// positions...], row-major or with channels last.
std::vector<int64_t> CudnnStrides(const std::vector<int64_t>& extents,
                                  bool channels_last);

/// The library with a handle, once for the process.
absl::StatusOr<const Cudnn*> LoadCudnn();

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUDNN_H_
