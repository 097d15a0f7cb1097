// SPDX-License-Identifier: Apache-2.0
// Devices whose drivers are plug-ins (api/paddle_device_ext.h). A device is
// PlanDevice's like a GPU: its memory and its stream through the driver's
// table, its kernels those that plug-ins declare for its type.
#ifndef PD_LIBCORE_PLUGIN_PLUGIN_DEVICE_H_
#define PD_LIBCORE_PLUGIN_PLUGIN_DEVICE_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/device/device.h"
#include "libcore/ops/device_place.h"
#include "libcore/ops/registry.h"
#include "libcore/plugin/api/paddle_device_ext.h"
#include "libcore/plugin/bind_kernel.h"
#include "libcore/plugin/plugin_scope.h"

namespace pd {

/// A driver: one type of devices.
struct PluginDriver {
  PluginPart part;       // "device", its type, its file
  std::string sub_type;  // as the driver says it: a version
  C_DeviceInterface table = {};
  std::mutex mutex;
  std::vector<size_t> ids;  // once it is started
  bool started = false;

  /// Calls a function of the table and checks what it returns; `name` is its
  /// name there. Unavailable where it is null.
  template <typename F, typename... Args>
  absl::Status Call(const char* name, F function, Args... args) const {
    if (function == nullptr) return Missing(name);
    C_Status status = C_SUCCESS;
    const absl::Status called =
        CallPlugin(part, [&] { status = function(args...); });
    return called.ok() ? Check(name, status) : called;
  }

 private:
  absl::Status Missing(const char* name) const;
  absl::Status Check(const char* name, C_Status status) const;
};

/// Calls InitPlugin of a library that has one, and keeps its driver. False: it
/// has none. InvalidArgument where it fills in no type, another version, or
/// leaves out a function that every driver has; AlreadyExists for a type that
/// is there.
absl::StatusOr<bool> AddDriver(void* library, const std::string& file);

/// Types of the drivers so far.
std::vector<std::string> DriverTypes();

/// A device as a list of them shows it.
struct PluginDeviceInfo {
  std::string name;   ///< "small:0"
  std::string title;  ///< "small:0 v7"
  std::string file;   ///< of the plug-in
  // Where the driver tells:
  std::optional<size_t> memory_bytes, free_bytes;
  std::optional<size_t> driver_version, runtime_version, capability;
};
/// Every device of a driver, each started for a moment. The errors are those
/// of PluginDevice::Open.
absl::StatusOr<std::vector<PluginDeviceInfo>> ListPluginDevices(
    const std::string& type);

class PluginCollectives;

class PluginDevice : public Device,
                     public std::enable_shared_from_this<PluginDevice> {
 public:
  /// Starts device `id` of a type. NotFound names those that there are.
  static absl::StatusOr<std::shared_ptr<PluginDevice>> Open(
      const std::string& type, int id);
  ~PluginDevice() override;
  PluginDevice(const PluginDevice&) = delete;
  PluginDevice& operator=(const PluginDevice&) = delete;

  const std::string& type() const { return driver_->part.type; }
  std::string name() const override;
  std::string title() const override;
  /// In units of the driver's smallest chunk.
  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) override;
  bool Holds(const void* address) const override;
  size_t peak_bytes() const override;
  absl::StatusOr<std::shared_ptr<void>> AllocatePinned(size_t bytes) override;
  absl::Status ToDevice(void* to, const void* from, size_t bytes) override;
  absl::Status SendBeside(void* to, const void* from, size_t bytes) override;
  absl::Status AwaitSent() override;
  absl::Status ToHost(void* to, const void* from, size_t bytes) override;
  absl::Status Copy(void* to, const void* from, size_t bytes) override;
  absl::Status Clear(void* to, size_t bytes) override;
  absl::Status Synchronize() override;
  absl::StatusOr<std::unique_ptr<DeviceMark>> MakeMark() override;
  /// Waits for the work so far, since drivers tell no times of events.
  absl::Status Put(const DeviceMark& mark) override;
  absl::Status WaitFor(const DeviceMark& mark) override;
  absl::StatusOr<double> SecondsBetween(const DeviceMark& from,
                                        const DeviceMark& to) override;
  bool captures() const override { return false; }
  absl::Status BeginCapture() override;
  absl::StatusOr<std::unique_ptr<CapturedWork>> EndCapture() override;
  absl::Status Run(const CapturedWork& work) override;

  PluginDeviceInfo Describe();
  const PluginDriver& driver() const { return *driver_; }
  C_Stream stream() const { return stream_; }
  /// As the driver's functions take it.
  C_Device handle() { return &device_; }
  /// Makes it the current one of this thread.
  absl::Status Enter();
  /// Its operations together with other processes.
  PluginCollectives& collectives() { return *collectives_; }
  /// The side of its kernels; it does not outlive the device.
  std::shared_ptr<const KernelSide> side();

 private:
  PluginDevice(PluginDriver* driver, int id);
  absl::Status Start();
  absl::Status Free(void* pointer, size_t bytes);
  size_t Rounded(size_t bytes) const;
  std::string FreeText();

  PluginDriver* driver_;
  C_Device_st device_ = {0};  // the driver may put its own number there
  int number_ = 0;
  bool initialized_ = false;
  C_Stream stream_ = nullptr;
  size_t chunk_ = 1, padding_ = 0;
  std::optional<size_t> largest_piece_;  // bytes of one allocation
  std::shared_ptr<const KernelSide> side_;
  std::unique_ptr<PluginCollectives> collectives_;
  mutable std::mutex mutex_;  // of what follows
  std::map<const char*, size_t> allocated_;
  size_t bytes_ = 0, peak_bytes_ = 0;
};

/// A place on device `id` of a type.
absl::StatusOr<std::shared_ptr<const DevicePlace>> OpenPluginDevice(
    const std::string& type, int id);

/// Adds the sum of tensors by the driver's blas_axpby, where it has that.
absl::Status AttachAxpbySum(const PluginDevice& device, OpRegistry* registry);

/// A DeviceBindFn of every op for which plug-ins have kernels of the device.
absl::StatusOr<Step> BindDeviceKernel(BindContext* context,
                                      DeviceBinding* binding);

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_PLUGIN_DEVICE_H_
