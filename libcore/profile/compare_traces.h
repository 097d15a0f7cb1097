// SPDX-License-Identifier: Apache-2.0
// Two traces beside each other: what got faster or slower, op by op, and
// whether that is more than the steps differ among themselves.
#ifndef PD_LIBCORE_PROFILE_COMPARE_TRACES_H_
#define PD_LIBCORE_PROFILE_COMPARE_TRACES_H_

#include <optional>
#include <string>
#include <vector>

#include "libcore/profile/summary.h"

namespace pd {

struct OpComparison {
  std::string name;              ///< "conv2d -> conv1.tmp_0"
  double before = 0, after = 0;  ///< medians of a step's time, ns; 0: absent
  bool in_both = false;
  /// How likely a difference of this size is where there is none (Mann and
  /// Whitney's test of the steps' times, two-sided); nothing when an op is in
  /// one trace only.
  std::optional<double> p;

  /// after / before - 1.
  double change() const { return before > 0 ? after / before - 1 : 0; }
  /// "***" below 0.001, "**" below 0.01, "*" below 0.05, else "".
  std::string mark() const;
};

struct TraceComparison {
  OpComparison step;              ///< the whole step
  std::vector<OpComparison> ops;  ///< the largest difference first
  size_t steps_before = 0, steps_after = 0;
  /// Whether so few steps can tell anything apart (p below 0.05).
  bool enough = false;
};

TraceComparison CompareTraces(const ProfileSummary& before,
                              const ProfileSummary& after);

/// The probability of Mann and Whitney's U: exact for small samples without
/// equal values, else by the normal distribution with corrections for equal
/// values and continuity. 1 when a sample is empty.
double MannWhitney(const std::vector<double>& a, const std::vector<double>& b);

std::string ComparisonText(const TraceComparison& comparison,
                           const std::string& time_unit);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_COMPARE_TRACES_H_
