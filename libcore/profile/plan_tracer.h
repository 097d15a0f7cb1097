// SPDX-License-Identifier: Apache-2.0
// Records the steps of a plan, and the phases (forward, backward, update) that
// they make up. Of a plan on a GPU, the thread's events are the starting of
// work, and KernelTracer adds the work; where CUPTI is missing, DeviceTracer.
#ifndef PD_LIBCORE_PROFILE_PLAN_TRACER_H_
#define PD_LIBCORE_PROFILE_PLAN_TRACER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "libcore/exec/plan.h"
#include "libcore/profile/device_tracer.h"
#include "libcore/profile/kernel_tracer.h"
#include "libcore/trace/recorder.h"

namespace pd {

class PlanTracer : public StepHook {
 public:
  /// Makes a site of every step; the plan is not needed afterwards. `number`
  /// tells plans apart in the trace. `kernels` records a plan on a GPU; it
  /// may be null.
  PlanTracer(const Plan& plan, int64_t number, KernelTracer* kernels);

  void Before(size_t step) override {
    if (step == 0) ring_ = Recorder::Get().ThisThread();
    if (device_ != nullptr) {
      if (step == 0) device_->BeginRun();
      device_->Before(step);
    }
    if (kernels_ != nullptr) kernels_->Before();
    begin_ = TraceClock::Now();
    if (step > 0 && phase_begin_ != 0) return;
    phase_ = phases_[step];
    phase_begin_ = begin_;
  }
  absl::Status After(size_t step) override {
    end_ = TraceClock::Now();
    const int64_t work = device_ != nullptr ? device_->After(step) : 0;
    if (kernels_ != nullptr)
      kernels_->After(first_source_ + step, ring_, begin_, end_);
    // The phase first: of events of one time, the earlier is around the other.
    const bool last = step + 1 == phases_.size();
    if (last || phases_[step + 1] != phase_) EndPhase();
    ring_->Push(first_ + static_cast<SiteId>(step), begin_, end_, work);
    if (!last) return absl::OkStatus();
    return device_ != nullptr ? device_->EndRun() : absl::OkStatus();
  }

  /// The tensors in memory when the plan needs the most, the largest first.
  const std::vector<TraceTensor>& peak() const { return peak_; }
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  void EndPhase() {
    ring_->Push(phase_, phase_begin_, end_, 0);
    phase_begin_ = 0;
  }
  void FindPeak(const Plan& plan, const std::vector<int64_t>& alive);

  // Of a plan on a GPU, one of them.
  std::unique_ptr<DeviceTracer> device_;
  KernelTracer* kernels_ = nullptr;
  size_t first_source_ = 0;  // of step 0 in kernels_
  EventRing* ring_ = nullptr;
  SiteId first_ = 0;              // of step 0
  std::vector<SiteId> phases_;    // by step
  SiteId phase_ = 0;              // that is open
  uint64_t begin_ = 0, end_ = 0;  // of the step at hand
  uint64_t phase_begin_ = 0;      // 0: no phase is open
  std::vector<TraceTensor> peak_;
  int64_t peak_bytes_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_PLAN_TRACER_H_
