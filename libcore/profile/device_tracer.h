// SPDX-License-Identifier: Apache-2.0
// When the steps of a plan ran on a GPU: a mark before and after each, whose
// times are asked for when the run has ended. They become events of a row of
// their own, tied by numbers to those of the thread that started the work. This
// is for machines without CUPTI (kernel_tracer.h).
#ifndef PD_LIBCORE_PROFILE_DEVICE_TRACER_H_
#define PD_LIBCORE_PROFILE_DEVICE_TRACER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "libcore/exec/plan.h"
#include "libcore/trace/recorder.h"

namespace pd {

class DeviceTracer {
 public:
  /// Of a plan that has a place; it is not needed afterwards. What goes wrong
  /// is told by EndRun.
  explicit DeviceTracer(const Plan& plan);

  /// Waits for the device, so that its time is known beside the host's.
  void BeginRun();
  void Before(size_t step) { Put(step, 0); }
  /// The number of the work that the step has started; 0 for the host's steps.
  int64_t After(size_t step);
  /// Waits, and records the run.
  absl::Status EndRun();

 private:
  // Of a step on the device.
  struct Traced {
    std::unique_ptr<DeviceMark> marks[2];
    SiteId site = 0;
    int64_t number = 0;
  };
  void Put(size_t step, int which);
  void Note(const absl::Status& status);

  std::shared_ptr<Device> device_;
  std::shared_ptr<EventRing> ring_;
  std::unique_ptr<DeviceMark> begin_;
  TraceClock::Anchor begun_;
  std::vector<std::unique_ptr<Traced>> steps_;  // null: the host's
  std::vector<Traced*> order_;
  absl::Status status_;
};

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_DEVICE_TRACER_H_
