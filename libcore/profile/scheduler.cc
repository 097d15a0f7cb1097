// SPDX-License-Identifier: Apache-2.0
#include "libcore/profile/scheduler.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr int64_t kMost = 1000000000;  // so that sums do not overflow

absl::StatusOr<int64_t> Number(absl::string_view what, absl::string_view text) {
  int64_t number = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &number) || number > kMost)
    return InvalidArgument("%s is '%s'; expected an integer from 0 to %d", what,
                           text, kMost);
  return number;
}

}  // namespace

absl::StatusOr<Scheduler> Scheduler::Parse(absl::string_view text) {
  Scheduler scheduler;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (text.find('=') == absl::string_view::npos) {
    if (parts.size() != 2)
      return InvalidArgument(
          "'%s' is neither START,END nor closed=N,ready=N,record=N,repeat=N,"
          "skip_first=N",
          text);
    PD_ASSIGN_OR_RETURN(const int64_t start,
                        Number("the first step", parts[0]));
    PD_ASSIGN_OR_RETURN(const int64_t end, Number("the end", parts[1]));
    if (end <= start)
      return InvalidArgument(
          "steps %d to %d: nothing is recorded, since the end is left out",
          start, end);
    // As PaddlePaddle: the step before the window is for getting ready.
    scheduler.ready_ = start > 0 ? 1 : 0;
    scheduler.closed_ = start - scheduler.ready_;
    scheduler.record_ = end - start;
    scheduler.repeat_ = 1;
    return scheduler;
  }
  std::set<absl::string_view> seen;
  for (const absl::string_view part : parts) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    int64_t* field = pair.first == "closed"       ? &scheduler.closed_
                     : pair.first == "ready"      ? &scheduler.ready_
                     : pair.first == "record"     ? &scheduler.record_
                     : pair.first == "repeat"     ? &scheduler.repeat_
                     : pair.first == "skip_first" ? &scheduler.skip_first_
                                                  : nullptr;
    if (field == nullptr)
      return InvalidArgument(
          "'%s' is none of closed, ready, record, repeat, skip_first",
          pair.first);
    if (!seen.insert(pair.first).second)
      return InvalidArgument("'%s' is given twice", pair.first);
    PD_ASSIGN_OR_RETURN(*field, Number(pair.first, pair.second));
  }
  if (scheduler.record_ == 0)
    return InvalidArgument("nothing is recorded: record is 0 or missing");
  return scheduler;
}

ProfilerState Scheduler::StateOf(int64_t step) const {
  step -= skip_first_;
  if (step < 0) return ProfilerState::kClosed;
  const int64_t period = closed_ + ready_ + record_;
  if (repeat_ > 0 && step / period >= repeat_) return ProfilerState::kClosed;
  const int64_t at = step % period;
  if (at < closed_) return ProfilerState::kClosed;
  if (at < closed_ + ready_) return ProfilerState::kReady;
  return at == period - 1 ? ProfilerState::kRecordAndReturn
                          : ProfilerState::kRecord;
}

std::optional<int64_t> Scheduler::end() const {
  if (repeat_ == 0) return std::nullopt;
  return skip_first_ + (closed_ + ready_ + record_) * repeat_;
}

std::optional<int64_t> Scheduler::cycles() const {
  if (repeat_ == 0) return std::nullopt;
  return repeat_;
}

}  // namespace pd
