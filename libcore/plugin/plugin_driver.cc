// SPDX-License-Identifier: Apache-2.0
// Drivers of devices: what InitPlugin fills in, checked.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/plugin/plugin_device.h"
#include "libcore/plugin/plugin_drivers.h"

namespace pd {
namespace {

constexpr size_t kMostDevices = 1024;
constexpr size_t kOurVersion = PADDLE_CUSTOM_RUNTIME_MAJOR_VERSION * 10000 +
                               PADDLE_CUSTOM_RUNTIME_MINOR_VERSION * 100 +
                               PADDLE_CUSTOM_RUNTIME_PATCH_VERSION;

struct DriverTable {
  std::mutex mutex;
  std::deque<PluginDriver> drivers;  // they stay where they are
};
DriverTable& Drivers() {
  static auto* const table = new DriverTable;
  return *table;
}

// Lines of drivers go to standard error: standard output is a tool's.
class OutputAside {
 public:
  OutputAside() : output_(::dup(STDOUT_FILENO)) {
    Flush();
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  ~OutputAside() {
    Flush();
    if (output_ < 0) return;
    ::dup2(output_, STDOUT_FILENO);
    ::close(output_);
  }

 private:
  static void Flush() {
    std::cout.flush();
    std::fflush(stdout);
  }
  int output_;
};

// The functions without which a device is of no use.
std::vector<std::string> MissingFunctions(const C_DeviceInterface& table) {
  std::vector<std::string> missing;
#define PD_NEEDS(function) \
  if (table.function == nullptr) missing.push_back(#function)
  PD_NEEDS(set_device);
  PD_NEEDS(get_device);
  PD_NEEDS(create_event);
  PD_NEEDS(record_event);
  PD_NEEDS(destroy_event);
  PD_NEEDS(synchronize_event);
  PD_NEEDS(device_memory_allocate);
  PD_NEEDS(device_memory_deallocate);
  PD_NEEDS(memory_copy_h2d);
  PD_NEEDS(memory_copy_d2h);
  PD_NEEDS(get_device_count);
  PD_NEEDS(get_device_list);
#undef PD_NEEDS
  if (table.synchronize_stream == nullptr &&
      table.synchronize_device == nullptr)
    missing.push_back("synchronize_device");
  return missing;
}

absl::Status CheckDriver(const CustomRuntimeParams& params,
                         const C_DeviceInterface& table) {
  if (params.device_type == nullptr || *params.device_type == '\0')
    return InvalidArgument(
        "its InitPlugin names no device_type: it knows another version of "
        "CustomRuntimeParams, or has failed");
  const size_t version = params.version.major * 10000 +
                         params.version.minor * 100 + params.version.patch;
  if (version < kOurVersion)
    return InvalidArgument(
        "device '%s' is of version %d.%d.%d of the interface; expected "
        "%d.%d.%d "
        "or later",
        params.device_type, params.version.major, params.version.minor,
        params.version.patch, PADDLE_CUSTOM_RUNTIME_MAJOR_VERSION,
        PADDLE_CUSTOM_RUNTIME_MINOR_VERSION,
        PADDLE_CUSTOM_RUNTIME_PATCH_VERSION);
  for (const char* taken : {"cpu", "gpu", "auto", "xpu", "npu"})
    if (absl::string_view(params.device_type) == taken)
      return AlreadyExists("device type '%s' is PaddlePaddle's own", taken);
  const std::vector<std::string> missing = MissingFunctions(table);
  if (!missing.empty())
    return InvalidArgument(
        "device '%s': its table lacks %s, which every device needs",
        params.device_type, absl::StrJoin(missing, ", "));
  return absl::OkStatus();
}

// Called once the last tool's device is gone.
void FinalizeAll() {
  for (PluginDriver& driver : Drivers().drivers)
    if (driver.started && driver.table.finalize != nullptr) {
      const absl::Status status =
          driver.Call("finalize", driver.table.finalize);
      if (!status.ok()) LogWarning("%s", std::string(status.message()));
    }
}

}  // namespace

absl::Status PluginDriver::Missing(const char* name) const {
  return Unavailable("%s: its table lacks '%s'", part.Describe(), name);
}

absl::Status PluginDriver::Check(const char* name, C_Status status) const {
  static const char* const kNames[] = {"C_SUCCESS", "C_WARNING", "C_FAILED",
                                       "C_ERROR", "C_INTERNAL_ERROR"};
  if (status == C_SUCCESS || status == C_WARNING) return absl::OkStatus();
  const size_t index = static_cast<size_t>(status);
  return Annotate(status == C_FAILED
                      ? ResourceExhausted("'%s' returns C_FAILED", name)
                      : Internal("'%s' returns %s", name,
                                 index < 5 ? kNames[index] : "no status"),
                  part.Describe());
}

absl::StatusOr<bool> AddDriver(void* library, const std::string& file) {
  using InitFn = void (*)(CustomRuntimeParams*);
  const auto init = reinterpret_cast<InitFn>(::dlsym(library, "InitPlugin"));
  if (init == nullptr) return false;
  C_DeviceInterface table = {};
  table.size = sizeof(table);
  CustomRuntimeParams params = {};
  params.size = sizeof(params);
  params.interface = &table;
  {
    const OutputAside aside;
    PD_RETURN_IF_ERROR(
        CallPlugin({"function", "InitPlugin", file}, [&] { init(&params); }));
  }
  PD_RETURN_IF_ERROR(CheckDriver(params, table));
  DriverTable& drivers = Drivers();
  const std::lock_guard<std::mutex> lock(drivers.mutex);
  for (const PluginDriver& other : drivers.drivers)
    if (other.part.type == params.device_type)
      return AlreadyExists("device type '%s' is there already, of '%s'",
                           params.device_type, other.part.file);
  PluginDriver& driver = drivers.drivers.emplace_back();
  driver.part = {"device", params.device_type, file};
  driver.sub_type =
      params.sub_device_type == nullptr ? "" : params.sub_device_type;
  driver.table = table;
  return true;
}

std::vector<std::string> DriverTypes() {
  DriverTable& drivers = Drivers();
  const std::lock_guard<std::mutex> lock(drivers.mutex);
  std::vector<std::string> types;
  for (const PluginDriver& driver : drivers.drivers)
    types.push_back(driver.part.type);
  return types;
}

absl::StatusOr<PluginDriver*> StartedDriver(const std::string& type) {
  PluginDriver* found = nullptr;
  {
    DriverTable& drivers = Drivers();
    const std::lock_guard<std::mutex> lock(drivers.mutex);
    for (PluginDriver& driver : drivers.drivers)
      if (driver.part.type == type) found = &driver;
  }
  if (found == nullptr) {
    const std::vector<std::string> types = DriverTypes();
    return NotFound(
        "no plug-in drives devices of type '%s'%s; a plug-in is loaded by "
        "--plugin, or from the folder of CUSTOM_DEVICE_ROOT",
        type,
        types.empty()
            ? ""
            : absl::StrCat(", but of '", absl::StrJoin(types, "', '"), "'"));
  }
  const std::lock_guard<std::mutex> lock(found->mutex);
  if (found->started) return found;
  const C_DeviceInterface& table = found->table;
  const OutputAside aside;
  if (table.initialize != nullptr)
    PD_RETURN_IF_ERROR(found->Call("initialize", table.initialize));
  size_t count = 0;
  PD_RETURN_IF_ERROR(
      found->Call("get_device_count", table.get_device_count, &count));
  if (count > kMostDevices)
    return InvalidArgument("%s: it has %d devices; expected at most %d",
                           found->part.Describe(), count, kMostDevices);
  found->ids.assign(count, 0);
  if (count > 0)
    PD_RETURN_IF_ERROR(found->Call("get_device_list", table.get_device_list,
                                   found->ids.data()));
  found->started = true;
  static const int at_exit = std::atexit(FinalizeAll);
  return at_exit == 0 ? absl::StatusOr<PluginDriver*>(found)
                      : Internal("no function can be called at exit");
}

}  // namespace pd
