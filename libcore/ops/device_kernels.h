// SPDX-License-Identifier: Apache-2.0
// A GPU as implementations of ops and plans see it.
#ifndef PD_LIBCORE_OPS_DEVICE_KERNELS_H_
#define PD_LIBCORE_OPS_DEVICE_KERNELS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/device/cuda_device.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// Resources that an implementation is given besides its op.
class DeviceBinding {
 public:
  virtual ~DeviceBinding() = default;
  virtual CudaDevice* device() = 0;
  /// One int32 in device memory, 0 when a run begins: a run in which a kernel
  /// sets it fails with InvalidArgument and `message` after its last step.
  virtual absl::StatusOr<int32_t*> ErrorFlag(std::string message) = 0;
  /// Device memory for as long as the plan.
  virtual absl::StatusOr<void*> Keep(size_t bytes) = 0;
  /// The value of a persistable variable where the host can read it, for what
  /// is made of a constant once; null for other tensors, and without a value.
  virtual absl::StatusOr<const Tensor*> ValueOf(const Tensor* tensor) = 0;
  /// Seed and step of the run in device memory, there before its first step. A
  /// kernel that follows the pointer does the same work in every run, so it can
  /// be captured; numbers of a RunContext in its arguments would stay those of
  /// the run that was captured.
  virtual absl::StatusOr<const uint64_t*> SeedAndStep() = 0;
  /// The row numbers of selected rows, one for each of their rows: as many as
  /// dim(0), in device memory for as long as the plan.
  virtual absl::StatusOr<int64_t*> RowsOf(const Tensor* selected) = 0;
};

/// NaN and Inf statistics of a value's elements, in device memory.
struct NonFinite {
  uint32_t largest = 0;  ///< magnitude, as a float's bits; NaN is above Inf
  uint32_t nan = 0, inf = 0;
  uint32_t plus = 0;  ///< of the infinite ones, +inf
};
/// One pass over some dense values in device memory: floats of any size. Adds
/// to what `found` holds.
struct NonFiniteRequest {
  static constexpr int kMost = 64;
  struct Value {
    const void* numbers = nullptr;
    int64_t n = 0;
    NonFinite* found = nullptr;
    DType dtype = DType::kFloat32;
  };
  Value values[kMost];
  int count = 0;
};
using FindNonFiniteFn = absl::Status (*)(CudaDevice*, const NonFiniteRequest&);

/// Copies elements into a tensor of another layout.
using DeviceReorderFn = absl::StatusOr<Step> (*)(DeviceBinding*, Tensor* from,
                                                 Tensor* to);

/// A GPU, and the functions of its kernels that are no op's.
struct DevicePlace {
  std::shared_ptr<CudaDevice> device;
  FindNonFiniteFn find_non_finite = nullptr;
  DeviceReorderFn reorder = nullptr;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_DEVICE_KERNELS_H_
