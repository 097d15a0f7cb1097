// SPDX-License-Identifier: Apache-2.0
// A device that plans compute on, with the functions of its kernels that are
// no op's: the search for NaN and Inf, changes of layout.
#ifndef PD_LIBCORE_OPS_DEVICE_PLACE_H_
#define PD_LIBCORE_OPS_DEVICE_PLACE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/device/device.h"
#include "libcore/ops/bind_context.h"

namespace pd {

class DeviceBinding;

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
using FindNonFiniteFn = absl::Status (*)(Device*, const NonFiniteRequest&);

/// Copies elements into a tensor of another layout.
using DeviceReorderFn = absl::StatusOr<Step> (*)(DeviceBinding*, Tensor* from,
                                                 Tensor* to);

/// A GPU with the functions that `kernels` gives for it, or the device of a
/// plug-in.
struct DevicePlace {
  std::shared_ptr<Device> device;
  /// A GPU: it has the kernels of kernels/cuda, and passes make ops for them.
  bool is_gpu = true;
  FindNonFiniteFn find_non_finite = nullptr;
  DeviceReorderFn reorder = nullptr;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_DEVICE_PLACE_H_
