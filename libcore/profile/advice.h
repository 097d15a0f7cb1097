// SPDX-License-Identifier: Apache-2.0
// Advice on making a job faster, most important first, in plain words,
// each with the numbers that say so.
#ifndef PD_LIBCORE_PROFILE_ADVICE_H_
#define PD_LIBCORE_PROFILE_ADVICE_H_

#include <string>
#include <vector>

#include "formats/profile_trace.h"
#include "libcore/profile/summary.h"

namespace pd {

struct Advice {
  std::string topic;     ///< "data", "reorders", "small ops", ...
  std::string text;      ///< the action to take
  std::string evidence;  ///< the measurements
  double share = 0;      ///< of the steps' time that it is about
};

/// The most important advice first; empty when nothing stands out.
std::vector<Advice> Advise(const ProfileTrace& trace,
                           const ProfileSummary& summary);

std::string AdviceText(const std::vector<Advice>& advice);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_ADVICE_H_
