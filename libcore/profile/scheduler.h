// SPDX-License-Identifier: Apache-2.0
// Which steps are profiled, as paddle.profiler.make_scheduler has it.
#ifndef PD_LIBCORE_PROFILE_SCHEDULER_H_
#define PD_LIBCORE_PROFILE_SCHEDULER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// PaddlePaddle's states and their numbers.
enum class ProfilerState {
  kClosed = 0,           ///< nothing is recorded
  kReady = 1,            ///< everything is set up, nothing is kept
  kRecord = 2,           ///< events are kept
  kRecordAndReturn = 3,  ///< and the trace is handed out after this step
};

class Scheduler {
 public:
  /// Steps "START,END": records from START on, END left out, once. Or
  /// "closed=1,ready=1,record=4,repeat=2,skip_first=0": after `skip_first`
  /// steps, cycles of so many closed, ready and recorded steps, `repeat` times
  /// (0: without end); what is left out is 0. InvalidArgument when it is of
  /// neither form or never records.
  static absl::StatusOr<Scheduler> Parse(absl::string_view text);

  /// The state in a step, counted from 0.
  ProfilerState StateOf(int64_t step) const;

  /// The first step that is recorded.
  int64_t first_recorded() const { return skip_first_ + closed_ + ready_; }
  /// The steps until nothing more is recorded; nothing when there is no end.
  std::optional<int64_t> end() const;
  /// Times that a trace is handed out; nothing when there is no end.
  std::optional<int64_t> cycles() const;
  int64_t recorded_a_cycle() const { return record_; }

 private:
  Scheduler() = default;

  int64_t skip_first_ = 0, closed_ = 0, ready_ = 0, record_ = 0, repeat_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_SCHEDULER_H_
