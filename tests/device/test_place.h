// SPDX-License-Identifier: Apache-2.0
// Where tests of the device compute: on the fake driver, or, with
// PD_TEST_GPU=real, on a GPU.
#ifndef PD_TESTS_DEVICE_TEST_PLACE_H_
#define PD_TESTS_DEVICE_TEST_PLACE_H_

#include <cstdlib>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cuda/place.h"
#include "tests/device/fake_driver.h"

namespace pd {

inline bool OnRealGpu() {
  const char* which = std::getenv("PD_TEST_GPU");
  return which != nullptr && absl::string_view(which) == "real";
}

/// The same one for all tests of a process. That there is no GPU is a reason to
/// skip them.
inline const absl::StatusOr<std::shared_ptr<const DevicePlace>>& TestPlace() {
  using Place = absl::StatusOr<std::shared_ptr<const DevicePlace>>;
  static const Place* const kPlace = new Place([]() -> Place {
    if (OnRealGpu()) return OpenGpu(0);
    PD_RETURN_IF_ERROR(UseFakeDriver());
    return MakePlace(0, FakeDriverImages());
  }());
  return *kPlace;
}

}  // namespace pd

#endif  // PD_TESTS_DEVICE_TEST_PLACE_H_
