// SPDX-License-Identifier: Apache-2.0
// The part of a plan that is about a GPU: its arena there, the persistable
// variables that runs read and write on either side, and what kernels complain
// about. Internal to libcore/exec.
//
// A plan for a device has two arenas. Every op is bound on the device where it
// has an implementation there that takes it, else on the host with row-major
// kernels; copies stand between the two where a value crosses, each once, until
// it is written again. All work goes to the device's one stream, so steps of
// the device wait for nobody; a copy to the host is waited for by the step that
// makes it. A persistable variable has a copy on each side (DeviceValue): a run
// brings up to date, before its first step, what its steps will read.
#ifndef PD_LIBCORE_EXEC_PLAN_DEVICE_H_
#define PD_LIBCORE_EXEC_PLAN_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "libcore/exec/plan.h"
#include "libcore/exec/scope.h"

namespace pd {

class PlanDevice : public DeviceBinding {
 public:
  /// What the runs do to one persistable.
  struct Use {
    Scope::Entry* entry = nullptr;
    bool host_reads = false, device_reads = false;
    /// Who writes it last.
    bool host_writes = false, device_writes = false;
  };

  explicit PlanDevice(std::shared_ptr<const DevicePlace> place)
      : place_(std::move(place)) {}

  CudaDevice* device() override { return place_->device.get(); }
  absl::StatusOr<int32_t*> Complaint(std::string message) override;
  absl::StatusOr<void*> Keep(size_t bytes) override;

  const DevicePlace& place() const { return *place_; }
  /// ResourceExhausted names the largest of `buffers`.
  absl::StatusOr<void*> AllocateArena(
      size_t bytes, const std::vector<PlannedBuffer>& buffers);
  void AddUse(const Use& use) { uses_.push_back(use); }

  /// Before the first step.
  absl::Status Begin();
  /// After the last one, or the one that failed: who has written what.
  void NoteWrites();
  /// Waits for the device. InvalidArgument with the first complaint.
  absl::Status End();

 private:
  static constexpr size_t kMostComplaints = 4096;

  std::shared_ptr<const DevicePlace> place_;
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<Use> uses_;
  std::vector<std::string> complaints_;
  int32_t* flags_ = nullptr;       // of the complaints, on the device
  std::shared_ptr<void> answers_;  // the same on the host
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_PLAN_DEVICE_H_
