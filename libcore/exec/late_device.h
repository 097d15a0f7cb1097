// SPDX-License-Identifier: Apache-2.0
// Late ops on a device. Internal to libcore/exec.
//
// A late op computes on the device where an implementation there takes it and
// either an input lies there or its outputs are floats. Other ops stay on the
// host, above all those on integers that decide loops and branches, and so does
// an op that writes a variable of the host. A value lies on one side, which its
// address tells (Device::Holds); an op of the other side gets a copy.
//
// Outputs on the device are allocated from a pool. Their bytes are written
// once, by the op that makes them, so copies of the value share them (Clone);
// they return to the pool when the last copy ends. The row numbers of selected
// rows lie behind the rows.
#ifndef PD_LIBCORE_EXEC_LATE_DEVICE_H_
#define PD_LIBCORE_EXEC_LATE_DEVICE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libcore/device/device_pool.h"
#include "libcore/exec/late_op.h"
#include "libcore/exec/plan_device.h"
#include "libcore/ops/values.h"

namespace pd {

/// The dtypes of floats that kernels of late ops compute with.
inline bool IsDeviceFloat(DType dtype) {
  return IsFloating(dtype) && dtype != DType::kFloat64;
}

class LateDevice : public Values {
 public:
  /// Both outlive this. `version` is the program's.
  LateDevice(const OpRegistry* registry, PlanDevice* plan, int64_t version)
      : registry_(registry),
        plan_(plan),
        version_(version),
        pool_(plan->place().device) {}

  /// The bytes are in the device's memory.
  bool Holds(const Tensor& tensor) const {
    return tensor.raw() != nullptr && plan_->device()->Holds(tensor.raw());
  }
  const DevicePool& pool() const { return pool_; }

  /// Computes an op, on the device or on the host. Not for ops that hand values
  /// on (LateOp::MovesValues).
  absl::Status Run(const LateOp& op, const RunContext& context,
                   const LateOp::Variables& inputs,
                   const LateOp::Variables& outputs, const Metas& metas);

  /// The ops that Run has computed since the last call: on the device, and on
  /// the host though their outputs are floats.
  struct Placed {
    int64_t here = 0, on_host = 0;
  };
  Placed TakePlaced() { return std::exchange(placed_, {}); }

  absl::StatusOr<Tensor> Clone(const Tensor& value) override;
  absl::StatusOr<Tensor> OnHost(const Tensor& value) override;
  absl::StatusOr<Tensor> Join(const std::vector<Tensor>& parts, int64_t outer,
                              const Shape& shape) override;
  absl::StatusOr<std::vector<Tensor>> Split(
      const Tensor& whole, int64_t outer,
      const std::vector<Tensor>& like) override;

 protected:
  absl::Status CopyBytes(const Tensor& from, Tensor* to) override;
  absl::StatusOr<Tensor> Zeros(const Tensor& like) override;
  absl::Status Add(const Tensor& part, Tensor* sum) override;
  absl::StatusOr<Tensor> Append(const Tensor& a, const Tensor& b) override;

 private:
  class Binding;
  struct Call;
  struct Work;

  // Bytes of the pool, with room for row numbers.
  absl::Status Allocate(Tensor* tensor);
  absl::StatusOr<int64_t*> RowsOf(const Tensor& selected);
  absl::Status Send(const Tensor& from, const Tensor& to);
  bool IsWanted(const Call& call) const;
  // False: no implementation of the device takes it.
  absl::StatusOr<bool> RunHere(const Call& call);
  absl::Status Bind(const Implementation& implementation, const Call& call,
                    Work* work);
  absl::Status RunOnHost(const Call& call);
  // Runs an op that the program does not have, such as a sum of parts.
  absl::Status Compute(const OpDesc& op,
                       const std::map<std::string, Frame::Variable>& variables);

  const OpRegistry* registry_;
  PlanDevice* plan_;
  const int64_t version_;
  DevicePool pool_;
  Placed placed_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_LATE_DEVICE_H_
