// SPDX-License-Identifier: Apache-2.0
// What somebody who wants a faster job should look at first, in plain words,
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
  std::string text;      ///< what to do
  std::string evidence;  ///< what was measured
  double share = 0;      ///< of the steps' time that it is about
};

/// What matters most first; empty when nothing stands out.
std::vector<Advice> Advise(const ProfileTrace& trace,
                           const ProfileSummary& summary);

std::string AdviceText(const std::vector<Advice>& advice);

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_ADVICE_H_
