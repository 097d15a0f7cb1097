// SPDX-License-Identifier: Apache-2.0
// Traces the work of GPUs in a window through CUPTI: each kernel, copy
// and clear becomes an event of a row of its stream, and each call of CUDA's
// API that a step has made one inside the step's; a call and its work are tied
// by a number.
#ifndef PD_LIBCORE_PROFILE_KERNEL_TRACER_H_
#define PD_LIBCORE_PROFILE_KERNEL_TRACER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/device/cuda_device.h"
#include "libcore/device/gpu_recorder.h"
#include "libcore/exec/plan.h"
#include "libcore/trace/recorder.h"

namespace pd {

class KernelTracer {
 public:
  /// Unavailable when CUPTI is missing or does not record here.
  static absl::StatusOr<std::unique_ptr<KernelTracer>> Open();

  /// Gives the number of step 0 of a plan on a GPU; others follow.
  size_t AddPlan(const Plan& plan);

  /// A window begins. The Recorder has started.
  absl::Status Start();
  /// Around step `step` of the plans, which the calling thread records in
  /// `ring` as lasting from `begin` to `end`. What goes wrong is told by Stop.
  void Before();
  void After(size_t step, EventRing* ring, uint64_t begin, uint64_t end);
  /// Waits for the devices and makes the events, before the Recorder stops.
  absl::Status Stop();

  /// "130001 of '/usr/local/cuda/lib64/libcupti.so.13'".
  std::string LibraryText() const;

 private:
  // The op's output and layer that the work of a step is traced with.
  struct Source {
    std::string output, layer;
  };
  // A step that ran.
  struct Ran {
    size_t source;
    EventRing* ring;
    uint64_t begin, end;
  };
  explicit KernelTracer(GpuRecorder* recorder) : recorder_(recorder) {}
  void Note(const absl::Status& status);
  void PushCalls(const GpuActivity& activity);
  void PushWork(GpuActivity* activity);
  const Ran* RanOf(const GpuActivity& activity, uint32_t correlation) const;
  SiteId SiteOf(const GpuWork& work, size_t source);
  EventRing* RingOf(uint32_t device, uint32_t stream, size_t lane);
  uint64_t Ticks(uint64_t ns) const;

  GpuRecorder* const recorder_;
  std::map<int, std::shared_ptr<CudaDevice>> devices_;  // by index
  std::vector<Source> sources_ = {{}};                  // the first: of no step
  bool recording_ = false;
  absl::Status status_;
  std::vector<Ran> ran_;  // number 1 is the first
  TraceClock::Anchor begun_;
  double ticks_per_ns_ = 1;
  std::unordered_map<uint32_t, int64_t> links_;  // by correlation
  using SiteKey = std::tuple<size_t, std::string, std::array<int64_t, 9>>;
  std::map<SiteKey, SiteId> sites_;
  using RingKey = std::tuple<uint32_t, uint32_t, size_t>;
  std::map<RingKey, std::shared_ptr<EventRing>> rings_;
};

}  // namespace pd

#endif  // PD_LIBCORE_PROFILE_KERNEL_TRACER_H_
