// SPDX-License-Identifier: Apache-2.0
#include "libcore/trace/trace_clock.h"

#include <fstream>
#include <string>

namespace pd {
namespace {

// The kernel keeps its own time by the counter only after it has checked that
// it is constant and the same on all cores.
bool KernelTrustsTsc() {
  std::ifstream file(
      "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return file >> source && source == "tsc";
}

}  // namespace

const bool TraceClock::uses_tsc_ = KernelTrustsTsc();

TraceClock::Anchor TraceClock::Mark() {
  // The best of a few: an interrupt may come between the two readings.
  Anchor best;
  uint64_t narrowest = UINT64_MAX;
  for (int i = 0; i < 8; ++i) {
    const uint64_t before = Now();
    const uint64_t ns = MonotonicNs();
    const uint64_t after = Now();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {before + (after - before) / 2, ns};
  }
  return best;
}

int64_t TraceClock::Nanoseconds(const Anchor& from, const Anchor& to,
                                uint64_t ticks) {
  const auto since = static_cast<int64_t>(ticks - from.ticks);
  if (!uses_tsc_ || to.ticks <= from.ticks) return since;
  const double rate = static_cast<double>(to.ns - from.ns) /
                      static_cast<double>(to.ticks - from.ticks);
  return static_cast<int64_t>(static_cast<double>(since) * rate);
}

}  // namespace pd
