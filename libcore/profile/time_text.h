// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_PROFILE_TIME_TEXT_H_
#define PD_LIBCORE_PROFILE_TIME_TEXT_H_

#include <string>

#include "absl/strings/str_format.h"

namespace pd {

/// Nanoseconds in a unit (s, ms, us, ns) with two decimals.
inline std::string TimeText(double ns, const std::string& unit) {
  const double per = unit == "s"    ? 1e9
                     : unit == "ms" ? 1e6
                     : unit == "us" ? 1e3
                                    : 1;
  return absl::StrFormat("%.2f", ns / per);
}

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_TIME_TEXT_H_
