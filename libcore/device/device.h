// SPDX-License-Identifier: Apache-2.0
// A device with memory of its own as plans use it: that memory, and one
// stream on which all work runs in the order of the calls. A GPU of NVIDIA
// (cuda_device.h) and the devices of plug-ins (plugin/plugin_device.h) are the
// two kinds. Calls may return before the work is done; what went wrong with it
// is told by a later one, at the latest Synchronize.
#ifndef PD_LIBCORE_DEVICE_DEVICE_H_
#define PD_LIBCORE_DEVICE_DEVICE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pd {

/// Work that was recorded once and is started again as a whole.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
};

/// A place in the stream that can be waited for, and whose time is known.
class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
};

class Device {
 public:
  virtual ~Device() = default;

  /// "gpu:0", "custom_cpu:1".
  virtual std::string name() const = 0;
  /// The name, and what is sold or driven under it.
  virtual std::string title() const = 0;

  /// Device memory, freed with the last reference after the work that may use
  /// it. ResourceExhausted says how much was asked for and how much is free.
  /// Host code must not follow the pointer.
  virtual absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) = 0;
  /// The address is in memory that Allocate has given.
  virtual bool Holds(const void* address) const = 0;
  /// The most bytes that Allocate had given at once.
  virtual size_t peak_bytes() const = 0;
  /// Host memory that the device copies from and to on its own.
  virtual absl::StatusOr<std::shared_ptr<void>> AllocatePinned(
      size_t bytes) = 0;

  /// `from` may be changed when the call returns, unless it is pinned memory:
  /// that must stay as it is until the work is done.
  virtual absl::Status ToDevice(void* to, const void* from, size_t bytes) = 0;
  /// ToDevice beside the work, so that bytes of the next run travel while the
  /// device computes. `from` is pinned memory. The work that is started after
  /// AwaitSent finds them.
  virtual absl::Status SendBeside(void* to, const void* from, size_t bytes) = 0;
  virtual absl::Status AwaitSent() = 0;
  /// The bytes are there after Synchronize.
  virtual absl::Status ToHost(void* to, const void* from, size_t bytes) = 0;
  virtual absl::Status Copy(void* to, const void* from, size_t bytes) = 0;
  /// Zeros.
  virtual absl::Status Clear(void* to, size_t bytes) = 0;

  /// Waits for all work.
  virtual absl::Status Synchronize() = 0;

  /// A mark for places in the stream; it does not outlive the device.
  virtual absl::StatusOr<std::unique_ptr<DeviceMark>> MakeMark() = 0;
  /// Puts the mark behind the work so far.
  virtual absl::Status Put(const DeviceMark& mark) = 0;
  /// Waits for the work before it.
  virtual absl::Status WaitFor(const DeviceMark& mark) = 0;
  /// Between two marks whose work is done.
  virtual absl::StatusOr<double> SecondsBetween(const DeviceMark& from,
                                                const DeviceMark& to) = 0;

  /// Whether work can be recorded: the calls below are made then only.
  virtual bool captures() const = 0;
  /// Between the two, work is recorded instead of run.
  virtual absl::Status BeginCapture() = 0;
  virtual absl::StatusOr<std::unique_ptr<CapturedWork>> EndCapture() = 0;
  virtual absl::Status Run(const CapturedWork& work) = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_DEVICE_H_
