// SPDX-License-Identifier: Apache-2.0
// Implementations of ops on a GPU: a table beside the registry's, since they
// are bound to a device as well as to a plan. Tensors of such an op have their
// bytes in the device's memory: a step hands Tensor::raw() to kernels and never
// follows it.
#ifndef PD_LIBCORE_OPS_DEVICE_KERNELS_H_
#define PD_LIBCORE_OPS_DEVICE_KERNELS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/device/cuda_device.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// What an implementation is given besides its op.
class DeviceBinding {
 public:
  virtual ~DeviceBinding() = default;
  virtual CudaDevice* device() = 0;
  /// One int32 in device memory, 0 when a run begins: a run in which a kernel
  /// sets it fails with InvalidArgument and `message` after its last step.
  virtual absl::StatusOr<int32_t*> Complaint(std::string message) = 0;
  /// Device memory for as long as the plan.
  virtual absl::StatusOr<void*> Keep(size_t bytes) = 0;
  /// The value of a persistable variable where the host can read it, for what
  /// is made of a constant once; null for other tensors, and without a value.
  virtual absl::StatusOr<const Tensor*> ValueOf(const Tensor* tensor) = 0;
  /// Seed and step of the run in device memory, there before its first step. A
  /// kernel that follows the pointer does the same work in every run, so it can
  /// be captured; numbers of a RunContext in its arguments would stay those of
  /// the run that was captured.
  virtual absl::StatusOr<const uint64_t*> ThisRun() = 0;
  /// The row numbers of selected rows, one for each of their rows: as many as
  /// dim(0), in device memory for as long as the plan.
  virtual absl::StatusOr<int64_t*> RowsOf(const Tensor* selected) = 0;
};

/// What is not finite among the numbers of a value, in device memory.
struct BadNumbers {
  uint32_t largest = 0;  ///< magnitude, as a float's bits; NaN is above Inf
  uint32_t nan = 0, inf = 0;
  uint32_t plus = 0;  ///< of the infinite ones, +inf
};
/// One pass over some dense values in device memory: floats of any size. Adds
/// to what `found` holds.
struct LookRequest {
  static constexpr int kMost = 64;
  struct Value {
    const void* numbers = nullptr;
    int64_t n = 0;
    BadNumbers* found = nullptr;
    DType dtype = DType::kFloat32;
  };
  Value values[kMost];
  int count = 0;
};
using LookFn = absl::Status (*)(CudaDevice*, const LookRequest&);

/// Copies elements into a tensor of another layout.
using DeviceReorderFn = absl::StatusOr<Step> (*)(DeviceBinding*, Tensor* from,
                                                 Tensor* to);

/// As BindFn: a status of kUnimplemented is a refusal. The step starts work on
/// the device's stream and waits for nothing.
using DeviceBindFn = absl::StatusOr<Step> (*)(BindContext*, DeviceBinding*);

struct DeviceImplementation {
  std::string label;  ///< "cuda", "cublaslt"
  DeviceBindFn bind = nullptr;
  /// Asked only where an input is on the device already: it moves no
  /// byte, so it is not worth a copy.
  bool follows = false;
  /// It knows selected rows too.
  bool selected_rows = false;
  /// It understands layouts (BindContext::In, Out). All that a device has are
  /// permutations of dimensions, without padding.
  bool layout_aware = false;
};

class DeviceKernels {
 public:
  void Add(const std::string& type, DeviceImplementation implementation) {
    table_[type].push_back(std::move(implementation));
  }
  /// In the order in which they are asked; null when there is none.
  const std::vector<DeviceImplementation>* Find(const std::string& type) const {
    const auto it = table_.find(type);
    return it == table_.end() ? nullptr : &it->second;
  }
  const std::map<std::string, std::vector<DeviceImplementation>>& all() const {
    return table_;
  }

 private:
  std::map<std::string, std::vector<DeviceImplementation>> table_;
};

/// A GPU and what it can compute.
struct DevicePlace {
  std::shared_ptr<CudaDevice> device;
  DeviceKernels kernels;
  LookFn look = nullptr;
  DeviceReorderFn reorder = nullptr;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_DEVICE_KERNELS_H_
