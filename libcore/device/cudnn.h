// SPDX-License-Identifier: Apache-2.0
// cuDNN 9 as a library, found at run time: its handle, and numbers that all of
// its graphs share. The declarations are ours, as in cuda_driver.h, and tested
// against NVIDIA's.
#ifndef PD_LIBCORE_DEVICE_CUDNN_H_
#define PD_LIBCORE_DEVICE_CUDNN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/device/cuda_device.h"

namespace pd {

// Handles and descriptors are pointers.
using CudnnStatus = int;
inline constexpr int kCudnnFloat32 = 0, kCudnnFloat16 = 2, kCudnnBFloat16 = 9;
inline constexpr int kCudnnCrossCorrelation = 1;

// PD_CUDNN(X): X(member, parameters); the exported name is "cudnn" and the
// member.
#define PD_CUDNN(X)   \
  X(Create, (void**)) \
  X(SetStream, (void*, CudaStream))

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
