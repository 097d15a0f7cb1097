// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_BASE_CLOCK_H_
#define PD_LIBCORE_BASE_CLOCK_H_

#include <chrono>

namespace pd {

/// Seconds from some start that stays the same; never goes back.
inline double SteadySeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace pd

#endif  // PD_LIBCORE_BASE_CLOCK_H_
