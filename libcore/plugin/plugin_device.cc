// SPDX-License-Identifier: Apache-2.0
#include "libcore/plugin/plugin_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/array.h"
#include "libcore/ops/device_binding.h"
#include "libcore/plugin/plugin_collectives.h"
#include "libcore/plugin/plugin_drivers.h"
#include "libcore/tensor/magnitude.h"

namespace pd {
namespace {

class PluginMark : public DeviceMark {
 public:
  PluginMark(const PluginDriver* driver, C_Device device, C_Event event)
      : driver_(driver), device_(device), event_(event) {}
  ~PluginMark() override {
    const absl::Status status = driver_->Call(
        "destroy_event", driver_->table.destroy_event, device_, event_);
    if (!status.ok()) LogWarning("%s", std::string(status.message()));
  }
  C_Event event() const { return event_; }
  mutable std::chrono::steady_clock::time_point time;

 private:
  const PluginDriver* driver_;
  C_Device device_;
  C_Event event_;
};

const PluginMark& MarkOf(const DeviceMark& mark) {
  return static_cast<const PluginMark&>(mark);
}

// Drivers have no kernel for this: the values are looked at on the host.
absl::Status FindNonFiniteOnHost(Device* device,
                                 const NonFiniteRequest& request) {
  for (int i = 0; i < request.count; ++i) {
    const NonFiniteRequest::Value& value = request.values[i];
    Tensor here(value.dtype, {value.n});
    PD_RETURN_IF_ERROR(here.Allocate());
    NonFinite found;
    PD_RETURN_IF_ERROR(device->ToHost(here.raw(), value.numbers, here.bytes()));
    PD_RETURN_IF_ERROR(device->ToHost(&found, value.found, sizeof(found)));
    PD_RETURN_IF_ERROR(device->Synchronize());
    // A double that no float holds is large, and finite.
    double largest =
        std::abs(LargestMagnitude(value.dtype, here.raw(), value.n));
    if (std::isfinite(largest))
      largest = std::min<double>(largest, std::numeric_limits<float>::max());
    const auto magnitude = static_cast<float>(largest);
    uint32_t bits = 0;
    std::memcpy(&bits, &magnitude, sizeof(bits));
    found.largest = std::max(found.largest, bits);
    if (!std::isfinite(largest)) {
      const auto one = [&](int64_t k) {
        return LargestMagnitude(
            value.dtype,
            static_cast<const char*>(here.raw()) + k * SizeOf(value.dtype), 1);
      };
      for (int64_t k = 0; k < value.n; ++k) {
        const double number = one(k);
        found.nan += std::isnan(number);
        if (!std::isinf(number)) continue;
        ++found.inf;
        const auto* last = static_cast<const unsigned char*>(here.raw()) +
                           (k + 1) * SizeOf(value.dtype) - 1;
        found.plus += (*last & 0x80u) == 0;
      }
    }
    PD_RETURN_IF_ERROR(device->ToDevice(value.found, &found, sizeof(found)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> NoReorder(DeviceBinding* binding, Tensor*, Tensor*) {
  return Unimplemented("%s has row-major tensors only",
                       binding->device()->name());
}

}  // namespace

absl::StatusOr<std::shared_ptr<PluginDevice>> PluginDevice::Open(
    const std::string& type, int id) {
  PD_ASSIGN_OR_RETURN(PluginDriver * driver, StartedDriver(type));
  const auto& ids = driver->ids;
  if (std::find(ids.begin(), ids.end(), static_cast<size_t>(id)) == ids.end())
    return NotFound("%s has no device %d; it has %s", driver->part.Describe(),
                    id, ids.empty() ? "none" : absl::StrJoin(ids, ", "));
  std::shared_ptr<PluginDevice> device(new PluginDevice(driver, id));
  PD_RETURN_IF_ERROR(device->Start());
  return device;
}

PluginDevice::PluginDevice(PluginDriver* driver, int id)
    : driver_(driver), collectives_(std::make_unique<PluginCollectives>(this)) {
  device_.id = id;
  number_ = id;
}

absl::Status PluginDevice::Start() {
  const C_DeviceInterface& table = driver_->table;
  if (table.init_device != nullptr)
    PD_RETURN_IF_ERROR(
        driver_->Call("init_device", table.init_device, &device_));
  initialized_ = true;
  PD_RETURN_IF_ERROR(Enter());
  if (table.create_stream != nullptr)
    PD_RETURN_IF_ERROR(driver_->Call("create_stream", table.create_stream,
                                     &device_, &stream_));
  if (table.device_min_chunk_size != nullptr)
    PD_RETURN_IF_ERROR(driver_->Call("device_min_chunk_size",
                                     table.device_min_chunk_size, &device_,
                                     &chunk_));
  if (table.device_extra_padding_size != nullptr)
    PD_RETURN_IF_ERROR(driver_->Call("device_extra_padding_size",
                                     table.device_extra_padding_size, &device_,
                                     &padding_));
  chunk_ = std::max<size_t>(chunk_, 1);
  if (table.device_max_alloc_size != nullptr) {
    size_t largest = 0;
    PD_RETURN_IF_ERROR(driver_->Call("device_max_alloc_size",
                                     table.device_max_alloc_size, &device_,
                                     &largest));
    largest_piece_ = largest;
  }
  auto side = std::make_shared<KernelSide>();
  side->backend = type();
  side->id = number_;
  side->allocate = [this](size_t bytes) { return Allocate(bytes); };
  side->copy = [this](void* to, const void* from, size_t bytes) {
    return Copy(to, from, bytes);
  };
  side->enter = [this]() -> absl::StatusOr<PD_Stream> {
    PD_RETURN_IF_ERROR(Enter());
    return stream_;
  };
  side_ = std::move(side);
  return absl::OkStatus();
}

PluginDevice::~PluginDevice() {
  const C_DeviceInterface& table = driver_->table;
  const auto report = [](const absl::Status& status) {
    if (!status.ok()) LogWarning("%s", std::string(status.message()));
  };
  if (!initialized_) return;
  report(Enter());
  collectives_.reset();
  if (table.create_stream != nullptr && table.destroy_stream != nullptr)
    report(driver_->Call("destroy_stream", table.destroy_stream, &device_,
                         stream_));
  if (table.deinit_device != nullptr)
    report(driver_->Call("deinit_device", table.deinit_device, &device_));
}

absl::Status PluginDevice::Enter() {
  return driver_->Call("set_device", driver_->table.set_device, &device_);
}

std::string PluginDevice::name() const {
  return absl::StrCat(type(), ":", number_);
}

std::string PluginDevice::title() const {
  return driver_->sub_type.empty()
             ? name()
             : absl::StrCat(name(), " ", driver_->sub_type);
}

size_t PluginDevice::Rounded(size_t bytes) const {
  bytes = std::max<size_t>(bytes, 1) + padding_;
  const size_t over = bytes % chunk_;
  return over == 0 ? bytes : bytes + (chunk_ - over);
}

PluginDeviceInfo PluginDevice::Describe() {
  PluginDeviceInfo info = {name(), title(), driver_->part.file};
  size_t total = 0, free = 0;
  const auto stats = driver_->table.device_memory_stats;
  if (stats != nullptr &&
      driver_->Call("device_memory_stats", stats, &device_, &total, &free)
          .ok()) {
    info.memory_bytes = total;
    info.free_bytes = free;
  }
  const C_DeviceInterface& table = driver_->table;
  const auto ask = [this](const char* name, C_Status (*function)(size_t*),
                          std::optional<size_t>* to) {
    size_t number = 0;
    if (function != nullptr && driver_->Call(name, function, &number).ok())
      *to = number;
  };
  ask("get_driver_version", table.get_driver_version, &info.driver_version);
  ask("get_runtime_version", table.get_runtime_version, &info.runtime_version);
  ask("get_compute_capability", table.get_compute_capability, &info.capability);
  return info;
}

std::string PluginDevice::FreeText() {
  const PluginDeviceInfo info = Describe();
  if (!info.memory_bytes.has_value()) return "";
  return absl::StrCat(", of which ", *info.free_bytes >> 20, " of ",
                      *info.memory_bytes >> 20, " MiB are free");
}

absl::StatusOr<std::shared_ptr<void>> PluginDevice::Allocate(size_t bytes) {
  PD_RETURN_IF_ERROR(Enter());
  const size_t rounded = Rounded(bytes);
  if (rounded < bytes) return ResourceExhausted("%d bytes of memory", bytes);
  if (largest_piece_.has_value() && rounded > *largest_piece_)
    return ResourceExhausted(
        "%s gives at most %d MiB of memory in one piece; %d are needed", name(),
        *largest_piece_ >> 20, (rounded >> 20) + 1);
  void* pointer = nullptr;
  const absl::Status status = driver_->Call(
      "device_memory_allocate", driver_->table.device_memory_allocate, &device_,
      &pointer, rounded);
  if (!status.ok() || pointer == nullptr)
    return ResourceExhausted(
        "%s has no %d MiB of memory%s (%s)", name(), (rounded >> 20) + 1,
        FreeText(),
        status.ok() ? "it gives null" : std::string(status.message()));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    allocated_[static_cast<char*>(pointer)] = rounded;
    bytes_ += rounded;
    peak_bytes_ = std::max(peak_bytes_, bytes_);
  }
  return std::shared_ptr<void>(
      pointer, [self = shared_from_this(), rounded](void* p) {
        const absl::Status freed = self->Free(p, rounded);
        if (!freed.ok()) LogWarning("%s", std::string(freed.message()));
      });
}

absl::Status PluginDevice::Free(void* pointer, size_t bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    allocated_.erase(static_cast<char*>(pointer));
    bytes_ -= bytes;
  }
  PD_RETURN_IF_ERROR(Synchronize());
  return driver_->Call("device_memory_deallocate",
                       driver_->table.device_memory_deallocate, &device_,
                       pointer, bytes);
}

bool PluginDevice::Holds(const void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const char* at = static_cast<const char*>(address);
  auto after = allocated_.upper_bound(at);
  if (after == allocated_.begin()) return false;
  --after;
  return at < after->first + after->second;
}

size_t PluginDevice::peak_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peak_bytes_;
}

absl::StatusOr<std::shared_ptr<void>> PluginDevice::AllocatePinned(
    size_t bytes) {
  void* pointer = nullptr;
  const C_DeviceInterface& table = driver_->table;
  const size_t size = std::max<size_t>(bytes, 1);
  if (table.host_memory_allocate == nullptr ||
      table.host_memory_deallocate == nullptr) {
    if (::posix_memalign(&pointer, 64, size) != 0)
      return ResourceExhausted("no memory is left for %d bytes", bytes);
    return std::shared_ptr<void>(pointer, [](void* p) { std::free(p); });
  }
  PD_RETURN_IF_ERROR(Enter());
  PD_RETURN_IF_ERROR(driver_->Call("host_memory_allocate",
                                   table.host_memory_allocate, &device_,
                                   &pointer, size));
  if (pointer == nullptr)
    return ResourceExhausted("%s gives no host memory for %d bytes", name(),
                             bytes);
  return std::shared_ptr<void>(pointer, [self = shared_from_this(),
                                         size](void* p) {
    absl::Status status = self->Synchronize();
    if (status.ok())
      status = self->driver_->Call("host_memory_deallocate",
                                   self->driver_->table.host_memory_deallocate,
                                   &self->device_, p, size);
    if (!status.ok()) LogWarning("%s", std::string(status.message()));
  });
}

absl::Status PluginDevice::ToDevice(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  // The host may change its bytes when this returns, so nothing is gained by
  // a copy that goes on.
  PD_RETURN_IF_ERROR(Synchronize());
  return driver_->Call("memory_copy_h2d", driver_->table.memory_copy_h2d,
                       &device_, to, from, bytes);
}

absl::Status PluginDevice::SendBeside(void* to, const void* from,
                                      size_t bytes) {
  return ToDevice(to, from, bytes);
}
absl::Status PluginDevice::AwaitSent() { return absl::OkStatus(); }

absl::Status PluginDevice::ToHost(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (driver_->table.async_memory_copy_d2h != nullptr) {
    PD_RETURN_IF_ERROR(Enter());
    return driver_->Call("async_memory_copy_d2h",
                         driver_->table.async_memory_copy_d2h, &device_,
                         stream_, to, from, bytes);
  }
  PD_RETURN_IF_ERROR(Synchronize());
  return driver_->Call("memory_copy_d2h", driver_->table.memory_copy_d2h,
                       &device_, to, from, bytes);
}

absl::Status PluginDevice::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  const C_DeviceInterface& table = driver_->table;
  if (table.async_memory_copy_d2d != nullptr) {
    PD_RETURN_IF_ERROR(Enter());
    return driver_->Call("async_memory_copy_d2d", table.async_memory_copy_d2d,
                         &device_, stream_, to, from, bytes);
  }
  PD_RETURN_IF_ERROR(Synchronize());
  if (table.memory_copy_d2d != nullptr)
    return driver_->Call("memory_copy_d2d", table.memory_copy_d2d, &device_, to,
                         from, bytes);
  PD_ASSIGN_OR_RETURN(auto here, AllocatePinned(bytes));
  PD_RETURN_IF_ERROR(driver_->Call("memory_copy_d2h", table.memory_copy_d2h,
                                   &device_, here.get(), from, bytes));
  return driver_->Call("memory_copy_h2d", table.memory_copy_h2d, &device_, to,
                       here.get(), bytes);
}

absl::Status PluginDevice::Clear(void* to, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  PD_RETURN_IF_ERROR(Synchronize());
  const C_DeviceInterface& table = driver_->table;
  if (table.device_memory_set != nullptr)
    return driver_->Call("device_memory_set", table.device_memory_set, &device_,
                         to, static_cast<unsigned char>(0), bytes);
  const std::vector<char> zeros(bytes, 0);
  return driver_->Call("memory_copy_h2d", table.memory_copy_h2d, &device_, to,
                       zeros.data(), bytes);
}

absl::Status PluginDevice::Synchronize() {
  PD_RETURN_IF_ERROR(Enter());
  const C_DeviceInterface& table = driver_->table;
  if (table.synchronize_stream != nullptr)
    return driver_->Call("synchronize_stream", table.synchronize_stream,
                         &device_, stream_);
  return driver_->Call("synchronize_device", table.synchronize_device,
                       &device_);
}

absl::StatusOr<std::unique_ptr<DeviceMark>> PluginDevice::MakeMark() {
  PD_RETURN_IF_ERROR(Enter());
  C_Event event = nullptr;
  PD_RETURN_IF_ERROR(driver_->Call("create_event", driver_->table.create_event,
                                   &device_, &event));
  return std::make_unique<PluginMark>(driver_, &device_, event);
}

absl::Status PluginDevice::Put(const DeviceMark& mark) {
  PD_RETURN_IF_ERROR(Enter());
  PD_RETURN_IF_ERROR(driver_->Call("record_event", driver_->table.record_event,
                                   &device_, stream_, MarkOf(mark).event()));
  PD_RETURN_IF_ERROR(WaitFor(mark));
  MarkOf(mark).time = std::chrono::steady_clock::now();
  return absl::OkStatus();
}

absl::Status PluginDevice::WaitFor(const DeviceMark& mark) {
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Call("synchronize_event", driver_->table.synchronize_event,
                       &device_, MarkOf(mark).event());
}

absl::StatusOr<double> PluginDevice::SecondsBetween(const DeviceMark& from,
                                                    const DeviceMark& to) {
  return std::chrono::duration<double>(MarkOf(to).time - MarkOf(from).time)
      .count();
}

absl::Status PluginDevice::BeginCapture() {
  return Unimplemented("%s records no work", name());
}
absl::StatusOr<std::unique_ptr<CapturedWork>> PluginDevice::EndCapture() {
  return Unimplemented("%s records no work", name());
}
absl::Status PluginDevice::Run(const CapturedWork&) {
  return Unimplemented("%s records no work", name());
}

std::shared_ptr<const KernelSide> PluginDevice::side() { return side_; }

absl::StatusOr<std::vector<PluginDeviceInfo>> ListPluginDevices(
    const std::string& type) {
  PD_ASSIGN_OR_RETURN(const PluginDriver* driver, StartedDriver(type));
  std::vector<PluginDeviceInfo> devices;
  for (const size_t id : driver->ids) {
    PD_ASSIGN_OR_RETURN(const auto device,
                        PluginDevice::Open(type, static_cast<int>(id)));
    devices.push_back(device->Describe());
  }
  return devices;
}

absl::StatusOr<std::shared_ptr<const DevicePlace>> OpenPluginDevice(
    const std::string& type, int id) {
  auto place = std::make_shared<DevicePlace>();
  PD_ASSIGN_OR_RETURN(place->device, PluginDevice::Open(type, id));
  place->is_gpu = false;
  place->find_non_finite = FindNonFiniteOnHost;
  place->reorder = NoReorder;
  return place;
}

absl::StatusOr<Step> BindDeviceKernel(BindContext* context,
                                      DeviceBinding* binding) {
  return BindKernel(context,
                    static_cast<PluginDevice*>(binding->device())->side());
}

}  // namespace pd
