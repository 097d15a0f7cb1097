// SPDX-License-Identifier: Apache-2.0
// On which side the values of a plan for a GPU lie while it is made, and the
// steps that move them. A persistable variable has a tensor on each side; a
// constant is sent to the device where it is read first; everything else lies
// where its step writes it. Internal to libcore/exec.
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

  /// Whether a step of the device can read the value without a copy step: its
  /// bytes, or a copy, are in the device's memory. That holds of persistable
  /// floats too, which a run copies there before its first step, unless the
  /// host writes them; of float64 only where a kernel made the value.
  bool OnDevice(Tensor* tensor);
  /// The tensor that a step of that side reads: itself, its other side, or null
  /// where the value must be copied.
  absl::StatusOr<Tensor*> Read(Tensor* tensor, bool device);
  /// The tensor that a step of that side writes.
  absl::StatusOr<Tensor*> Write(Tensor* tensor, bool device);
  /// Records the outputs of an op that was bound.
  void NoteWritten(const TensorMap& outputs);
  /// The side of a variable that was written last.
  Tensor* Newest(Tensor* tensor);
  /// Whether an op that updates the variable belongs on the device: steps of
  /// the device read or write it, or none of the host does.
  bool IsUpdatedOnDevice(Tensor* persistable);

  /// Copies a value to the other side, with the row numbers of selected rows.
  absl::StatusOr<Step> Transfer(Tensor* from, Tensor* to);
  /// Copies bytes between two tensors of the device.
  Step CopyOnDevice(Tensor* in, Tensor* out);

  /// A step or a fetch needs the host in every run, so runs cannot be captured.
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
