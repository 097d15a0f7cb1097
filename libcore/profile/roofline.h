// SPDX-License-Identifier: Apache-2.0
// The peak rates of this machine, measured: multiply-adds in registers, and
// memory read and written by STREAM's triad. An op's arithmetic intensity says
// which of the two bounds it (Williams, Waterman, Patterson, "Roofline", 2009).
#ifndef PD_LIBCORE_PROFILE_ROOFLINE_H_
#define PD_LIBCORE_PROFILE_ROOFLINE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/profile_trace.h"

namespace pd {

struct Roofline {
  double gflops = 0;  ///< 1e9 operations of float32 a second, all threads
  double gbytes = 0;  ///< 1e9 bytes a second to and from memory, all threads
  size_t triad_bytes = 0;  ///< that the triad went over

  /// The most that an op of this intensity can reach, in GFLOP/s.
  double Attainable(double flops_a_byte) const;
};

/// Measures with Threads() threads in about `seconds`; ResourceExhausted
/// without memory for the triad.
absl::StatusOr<Roofline> MeasureRoofline(double seconds);

/// As facts of a trace, and back; nothing when they are not there.
std::vector<std::pair<std::string, std::string>> RooflineFacts(
    const Roofline& roofline);
std::optional<Roofline> RooflineOf(const ProfileTrace& trace);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_ROOFLINE_H_
