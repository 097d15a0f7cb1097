// SPDX-License-Identifier: Apache-2.0
// The contexts of places, of which there is the host's.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_CONTEXT_POOL_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_CONTEXT_POOL_H_

#include "paddle_device_context.h"
#include "paddle_error.h"
#include "paddle_place.h"

namespace paddle {
namespace experimental {

class DeviceContextPool {
 public:
  static DeviceContextPool& Instance() {
    static DeviceContextPool pool;
    return pool;
  }
  /// Unavailable for a place other than the host.
  const phi::CPUContext* Get(const Place& place) const {
    if (place.GetType() != AllocationType::CPU)
      throw phi::enforce::EnforceNotMet(
          "UnavailableError", "there is no context of " + place.DebugString());
    return &cpu_;
  }
  template <AllocationType type>
  const phi::CPUContext* Get(const Place& place) const {
    static_assert(type == AllocationType::CPU,
                  "operators of plug-ins compute on the host");
    return Get(place);
  }

 private:
  DeviceContextPool() = default;
  phi::CPUContext cpu_;
};

}  // namespace experimental
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_CONTEXT_POOL_H_
