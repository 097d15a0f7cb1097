// SPDX-License-Identifier: Apache-2.0
// Where the values of a plan for a GPU are, in the host's memory or the
// device's, and the steps that copy them. A persistable variable has a tensor
// in both; a constant is copied to the device when a step of it first reads it;
// any other value is where its step writes it. Internal to libcore/exec.
#ifndef PD_LIBCORE_EXEC_RESIDENCY_H_
#define PD_LIBCORE_EXEC_RESIDENCY_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "libcore/exec/offer.h"
#include "libcore/exec/plan_device.h"
#include "libcore/exec/plan_tensors.h"

namespace pd {

class Residency {
 public:
  /// Both outlive this.
  Residency(PlanTensors* tensors, PlanDevice* device)
      : tensors_(tensors), device_(device) {}

  /// Whether a step of the device can read the value without a copy step: the
  /// device's memory holds it. Persistable floats, which a run copies to the
  /// device before its first step, count unless the host writes them; float64
  /// counts only if a kernel computed it.
  bool OnDevice(Tensor* tensor);
  /// The tensor that a step on the device (or host) reads: `tensor`, its
  /// counterpart in the other memory, or null when a copy step is needed.
  absl::StatusOr<Tensor*> Read(Tensor* tensor, bool device);
  /// The tensor that a step on the device (or host) writes.
  absl::StatusOr<Tensor*> Write(Tensor* tensor, bool device);
  /// Records the outputs of a bound op.
  void NoteWritten(const TensorMap& outputs);
  /// The tensor of a variable, on host or device, that was written last.
  Tensor* Newest(Tensor* tensor);
  /// Whether an op that updates the variable should run on the device: steps
  /// there use it, or no step on the host does.
  bool IsUpdatedOnDevice(Tensor* persistable);

  /// Copies a value between host and device, with the rows of selected rows.
  absl::StatusOr<Step> Transfer(Tensor* from, Tensor* to);
  /// Copies bytes between two tensors of the device.
  Step CopyOnDevice(Tensor* in, Tensor* out);

  /// Every run needs the host, for a step or a fetch: it cannot be captured.
  void NeedsHost() { needs_host_ = true; }
  bool needs_host() const { return needs_host_; }
  /// Tells the device which persistable variables runs read and write.
  void AddUses();

 private:
  // The two copies of a persistable.
  struct Sides {
    enum class Writer { kNone, kHost, kDevice };
    Tensor *host = nullptr, *on_device = nullptr;
    // Its value from before the run is read there.
    bool host_reads = false, device_reads = false;
    Writer writer = Writer::kNone;  // the last one so far
  };
  using Writer = Sides::Writer;

  Sides* SidesOf(Tensor* persistable);
  absl::StatusOr<Tensor*> DeviceSide(Sides* sides);
  absl::StatusOr<Tensor*> ConstantOnDevice(Tensor* host);

  PlanTensors* tensors_;
  PlanDevice* device_;
  std::map<Tensor*, Sides> sides_;                  // by the host's tensor
  std::unordered_map<Tensor*, Tensor*> hosts_;      // device's -> host's tensor
  std::unordered_map<Tensor*, Tensor*> constants_;  // -> the device's copy
  bool needs_host_ = false;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_RESIDENCY_H_
