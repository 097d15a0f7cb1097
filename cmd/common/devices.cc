// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/devices.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/table.h"
#include "cmd/common/version.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/log.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/gpu_support.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/cuda/place.h"
#include "libcore/plugin/plugin_device.h"
#include "libcore/plugin/plugins.h"

namespace pd {
namespace {

constexpr int kMostDevices = 1024;

using Json = nlohmann::ordered_json;

std::string Said(const absl::Status& status) {
  return std::string(status.message());
}

std::string GibText(int64_t bytes) {
  return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string Capability(const GpuInfo& gpu) {
  return absl::StrCat(gpu.major, ".", gpu.minor);
}

// "Ampere": where the manual's table knows the chip, its packages too.
std::string Architecture(const GpuInfo& gpu) {
  const absl::string_view name = ArchitectureName(gpu.major, gpu.minor);
  return name.empty() ? "unknown, see NVIDIA's list" : std::string(name);
}

absl::Status Usable(const GpuList& list, const GpuInfo& gpu) {
  return CheckGpu(gpu, (*list.driver)->version, BuiltCudaVersion());
}

std::string DriverText(const CudaDriver& driver) {
  return absl::StrCat(driver.release, driver.release.empty() ? "" : ", ",
                      "CUDA ", CudaVersionText(driver.version), ", ",
                      driver.path);
}

std::string LibraryText(const absl::StatusOr<LibraryVersion>& library) {
  return library.ok() ? absl::StrCat(library->version, ", ", library->path)
                      : Said(library.status());
}

std::string BuiltText() {
  return BuiltCudaVersion() == 0 ? "not built"
                                 : CudaVersionText(BuiltCudaVersion());
}

// Value, or null and the reason under "missing".
template <typename T, typename Describe>
void Put(const char* name, const absl::StatusOr<T>& value,
         const Describe& describe, Json* object) {
  (*object)[name] = nullptr;
  if (value.ok())
    (*object)[name] = describe(*value);
  else
    (*object)["missing"][name] = Said(value.status());
}

Json GpuOf(const GpuList& list, const GpuInfo& gpu) {
  const GpuGeneration* row = FindGeneration(gpu.major, gpu.minor);
  const absl::Status usable = Usable(list, gpu);
  Json object = {{"device", absl::StrCat("gpu:", gpu.index)},
                 {"name", gpu.name},
                 {"memory_bytes", gpu.memory_bytes},
                 {"compute_capability", Capability(gpu)},
                 {"architecture", Architecture(gpu)},
                 {"multiprocessors", gpu.multiprocessors},
                 {"paddle_packages", nullptr},
                 {"usable", usable.ok()}};
  if (row != nullptr) object["paddle_packages"] = std::string(row->packages);
  if (!usable.ok()) object["reason"] = Said(usable);
  return object;
}

Json ObjectOf(const GpuList& list) {
  Json object = {{"built", nullptr}};
  if (BuiltCudaVersion() != 0)
    object["built"] = CudaVersionText(BuiltCudaVersion());
  Put(
      "driver", list.driver,
      [](const CudaDriver* driver) {
        Json one = {{"release", nullptr},
                    {"cuda", CudaVersionText(driver->version)},
                    {"path", driver->path}};
        if (!driver->release.empty()) one["release"] = driver->release;
        return one;
      },
      &object);
  object["gpus"] = Json::array();
  for (const GpuInfo& gpu : list.gpus)
    object["gpus"].push_back(GpuOf(list, gpu));
  if (!list.error.ok()) object["missing"]["gpus"] = Said(list.error);
  const auto library = [](const LibraryVersion& one) {
    return Json{{"version", one.version}, {"path", one.path}};
  };
  Put("cublaslt", list.cublaslt, library, &object);
  Put("cudnn", list.cudnn, library, &object);
  return object;
}

// The devices of plug-ins, and why there are no more of them.
struct PluginList {
  std::vector<PluginDeviceInfo> devices;
  absl::Status error;
};

PluginList ListOfPlugins(const std::vector<std::string>& files) {
  PluginList list;
  for (const std::string& file : files) list.error.Update(LoadPlugin(file));
  list.error.Update(LoadDevicePlugins());
  for (const std::string& type : DriverTypes()) {
    const auto devices = ListPluginDevices(type);
    list.error.Update(devices.status());
    if (devices.ok())
      list.devices.insert(list.devices.end(), devices->begin(), devices->end());
  }
  return list;
}

Json ObjectOf(const PluginDeviceInfo& device) {
  Json object = {{"device", device.name},
                 {"title", device.title},
                 {"plugin", device.file},
                 {"memory_bytes", nullptr},
                 {"free_bytes", nullptr}};
  if (device.memory_bytes.has_value()) {
    object["memory_bytes"] = *device.memory_bytes;
    object["free_bytes"] = *device.free_bytes;
  }
  const auto put = [&object](const char* key,
                             const std::optional<size_t>& number) {
    object[key] = nullptr;
    if (number.has_value()) object[key] = *number;
  };
  put("driver_version", device.driver_version);
  put("runtime_version", device.runtime_version);
  put("compute_capability", device.capability);
  return object;
}

std::string TextOf(const PluginDeviceInfo& device) {
  const auto gib = [](const std::optional<size_t>& bytes) {
    return GibText(static_cast<int64_t>(*bytes));
  };
  std::string text = device.title;
  if (device.memory_bytes.has_value())
    text += absl::StrCat(", ", gib(device.memory_bytes), ", ",
                         gib(device.free_bytes), " free");
  const auto add = [&text](const char* word,
                           const std::optional<size_t>& number) {
    if (number.has_value()) absl::StrAppend(&text, ", ", word, " ", *number);
  };
  add("driver", device.driver_version);
  add("runtime", device.runtime_version);
  add("capability", device.capability);
  return absl::StrCat(text, ", of plug-in '", device.file, "'");
}

// A plug-in's device, "TYPE:N" or "TYPE".
absl::StatusOr<std::shared_ptr<const DevicePlace>> OpenOther(
    absl::string_view device, absl::string_view tool, bool takes_gpu) {
  const std::vector<std::string> parts = absl::StrSplit(device, ':');
  int index = 0;
  if (parts[0].empty() || parts[0] == "gpu" || parts.size() > 2 ||
      (parts.size() == 2 && (!absl::SimpleAtoi(parts[1], &index) || index < 0 ||
                             index >= kMostDevices)))
    return CommandLineError(
        absl::StrCat("option '--device': '", device,
                     "' is none of auto, cpu, gpu, gpu:N, TYPE:N"));
  PD_RETURN_IF_ERROR(LoadDevicePlugins());
  const std::string option = absl::StrCat("'--device ", device, "'");
  const std::vector<std::string> types = DriverTypes();
  if (std::find(types.begin(), types.end(), parts[0]) == types.end())
    return CommandLineError(absl::StrCat(
        "option '--device': '", device, "' is none of auto, cpu, gpu, gpu:N",
        types.empty() ? std::string(", and no plug-in with devices is loaded")
                      : absl::StrCat(", and plug-ins have devices of type '",
                                     absl::StrJoin(types, "', '"), "'")));
  auto place = OpenPluginDevice(parts[0], index);
  if (!place.ok()) return Annotate(place.status(), option);
  if (!takes_gpu)
    return Unavailable("%s: %s computes on the CPU only; expected auto or cpu",
                       option, tool);
  LogInfo("device: %s", (*place)->device->title());
  return place;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const DevicePlace>> OpenDevice(
    absl::string_view device, absl::string_view tool, bool takes_gpu) {
  if (device == "auto" || device == "cpu") {
    LogInfo("device: cpu, %d thread%s (%s)", Threads(),
            Threads() == 1 ? "" : "s", CpuName());
    return nullptr;
  }
  absl::string_view rest = device;
  int index = 0;
  const bool gpu = absl::ConsumePrefix(&rest, "gpu") &&
                   (rest.empty() || (absl::ConsumePrefix(&rest, ":") &&
                                     absl::SimpleAtoi(rest, &index) &&
                                     index >= 0 && index < kMostDevices));
  if (!gpu) return OpenOther(device, tool, takes_gpu);
  // The first of the GPUs that a flag selects.
  const std::string& selected = GetFlag<std::string>("FLAGS_selected_gpus");
  if (device == "gpu" && !selected.empty() &&
      (!absl::SimpleAtoi(*absl::StrSplit(selected, ',').begin(), &index) ||
       index >= kMostDevices))
    return CommandLineError(absl::StrCat("FLAGS_selected_gpus is '", selected,
                                         "'; there are at most ", kMostDevices,
                                         " GPUs"));
  const std::string option = absl::StrCat("'--device ", device, "'");
  auto place = OpenGpu(index);
  if (!place.ok()) return Annotate(place.status(), option);
  if (!takes_gpu)
    return Unavailable("%s: %s computes on the CPU only; expected auto or cpu",
                       option, tool);
  const GpuInfo& info = GpuOf(**place);
  LogInfo("device: gpu:%d, %s, %s, compute capability %s", index, info.name,
          GibText(info.memory_bytes), Capability(info));
  return place;
}

std::vector<std::pair<std::string, std::string>> GpuRows(const GpuList& list) {
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("CUDA", BuiltText());
  if (!list.driver.ok()) {
    rows.emplace_back("GPU",
                      absl::StrCat("none: ", Said(list.driver.status())));
    return rows;
  }
  rows.emplace_back("driver", DriverText(**list.driver));
  for (const GpuInfo& gpu : list.gpus) {
    const absl::Status usable = Usable(list, gpu);
    rows.emplace_back(
        absl::StrCat("gpu:", gpu.index),
        absl::StrCat(gpu.name, ", ", GibText(gpu.memory_bytes),
                     ", compute capability ", Capability(gpu), " (",
                     Architecture(gpu), ")",
                     usable.ok() ? "" : absl::StrCat("; ", Said(usable))));
  }
  if (list.gpus.empty())
    rows.emplace_back("GPU", list.error.ok() ? "none" : Said(list.error));
  rows.emplace_back("cuBLASLt", LibraryText(list.cublaslt));
  rows.emplace_back("cuDNN", LibraryText(list.cudnn));
  return rows;
}

std::string GpuJson(const GpuList& list) { return ObjectOf(list).dump(); }

std::string DevicesText(const GpuList& list,
                        const std::vector<std::string>& files, bool json) {
  const PluginList plugins = ListOfPlugins(files);
  if (json) {
    Json object = {{"cpu", {{"name", CpuName()}, {"threads", Threads()}}}};
    object.update(ObjectOf(list));
    object["plugin_devices"] = Json::array();
    for (const PluginDeviceInfo& device : plugins.devices)
      object["plugin_devices"].push_back(ObjectOf(device));
    if (!plugins.error.ok())
      object["missing"]["plugin_devices"] = Said(plugins.error);
    return object.dump(2) + "\n";
  }
  Table table(2);
  table.Add({"cpu", absl::StrCat(CpuName(), ", ", Threads(), " thread",
                                 Threads() == 1 ? "" : "s")});
  for (const auto& [name, value] : GpuRows(list)) table.Add({name, value});
  for (const PluginDeviceInfo& device : plugins.devices)
    table.Add({device.name, TextOf(device)});
  if (!plugins.error.ok()) table.Add({"plug-ins", Said(plugins.error)});
  return table.ToString();
}

}  // namespace pd
