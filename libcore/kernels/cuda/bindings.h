// SPDX-License-Identifier: Apache-2.0
// What the bindings of this room share, and their functions.
#ifndef PD_LIBCORE_KERNELS_CUDA_BINDINGS_H_
#define PD_LIBCORE_KERNELS_CUDA_BINDINGS_H_

#include <algorithm>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/error.h"
#include "libcore/base/shape.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cuda/arguments.h"
#include "libcore/ops/device_kernels.h"

namespace pd::cuda {

inline constexpr int kThreads = 256;

/// Starts one kernel with arguments that are known when it runs.
template <typename Args>
class Starter {
 public:
  static absl::StatusOr<Starter> Find(DeviceBinding* binding,
                                      const std::string& name) {
    Starter starter;
    starter.device_ = binding->device();
    PD_ASSIGN_OR_RETURN(starter.kernel_, starter.device_->Kernel(name));
    return starter;
  }

  /// Enough threads for n elements, and no more blocks than keep the GPU busy:
  /// a kernel's threads go on with what is left.
  absl::Status Elements(int64_t n, const Args& args) const {
    const int64_t most = int64_t{device_->info().multiprocessors} * 32;
    return Blocks(std::min((n + kThreads - 1) / kThreads, most), args);
  }
  absl::Status Blocks(int64_t blocks, const Args& args) const {
    return device_->Launch(kernel_, blocks, kThreads, &args);
  }

 private:
  CudaDevice* device_ = nullptr;
  CudaFunction kernel_ = nullptr;
};

/// Unimplemented unless every tensor that is there is float32.
inline absl::Status OnlyFloat32(std::initializer_list<const Tensor*> tensors) {
  for (const Tensor* tensor : tensors)
    if (tensor != nullptr && tensor->dtype() != DType::kFloat32)
      return Unimplemented("no kernel for dtype %s", Name(tensor->dtype()));
  return absl::OkStatus();
}

/// Adds an extent to a walk, the next inner one; false when there are too many.
template <int K>
bool AddExtent(int64_t extent, const int64_t (&strides)[K], Walk<K>* walk) {
  if (extent == 1) return true;
  if (walk->dims > 0) {
    const int last = walk->dims - 1;
    bool continues = true;
    for (int k = 0; k < K; ++k)
      continues &= walk->strides[last][k] == strides[k] * extent;
    if (continues) {
      walk->extents[last] *= extent;
      for (int k = 0; k < K; ++k) walk->strides[last][k] = strides[k];
      return true;
    }
  }
  if (walk->dims == kMostDims) return false;
  walk->extents[walk->dims] = extent;
  for (int k = 0; k < K; ++k) walk->strides[walk->dims][k] = strides[k];
  ++walk->dims;
  return true;
}

inline absl::Status TooManyDims() {
  return Unimplemented("more than %d dimensions that do not merge", kMostDims);
}

/// The step that copies n elements of `size` bytes along a walk.
absl::StatusOr<Step> BindCopy(DeviceBinding* binding, size_t size, int64_t n,
                              const Walk<2>& walk, Tensor* from, Tensor* to);

// Each adds its ops.
void AddElementwise(DeviceKernels* kernels);
void AddReductions(DeviceKernels* kernels);
void AddMoves(DeviceKernels* kernels);
void AddLines(DeviceKernels* kernels);
void AddUpdates(DeviceKernels* kernels);
void AddRows(DeviceKernels* kernels);
void AddProducts(DeviceKernels* kernels);

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_BINDINGS_H_
