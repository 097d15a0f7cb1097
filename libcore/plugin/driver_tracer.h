// SPDX-License-Identifier: Apache-2.0
// The profiler of a device's driver: what it tells about calls and work becomes
// rows of a trace.
#ifndef PD_LIBCORE_PLUGIN_DRIVER_TRACER_H_
#define PD_LIBCORE_PLUGIN_DRIVER_TRACER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/profile_trace.h"
#include "libcore/plugin/plugin_device.h"

namespace pd {

class DriverTracer {
 public:
  /// Starts the profiler of a device's driver. Null where it has none; a
  /// warning where it records and gives nothing back.
  static absl::StatusOr<std::unique_ptr<DriverTracer>> Open(
      std::shared_ptr<PluginDevice> device);
  ~DriverTracer();
  DriverTracer(const DriverTracer&) = delete;
  DriverTracer& operator=(const DriverTracer&) = delete;

  /// A window begins.
  absl::Status Start();
  /// It ends; the driver hands its events over.
  absl::Status Stop();
  /// Adds the events of the last window. Work of the device that the driver
  /// tells stands instead of the device's own row, which was measured around
  /// each step. A warning counts events that are not of the window.
  void AddTo(ProfileTrace* trace);

  /// One event of a call or of work: what the driver's functions become.
  struct Told {
    std::string row;
    TraceSite site;
    uint64_t begin = 0, end = 0;  // by the Unix clock
    uint32_t correlation = 0;
    bool work = false;
  };
  /// Takes an event of profiler_add_..., at any time and on any thread.
  void Add(Told told);
  const std::string& type() const { return device_->type(); }

 private:
  explicit DriverTracer(std::shared_ptr<PluginDevice> device)
      : device_(std::move(device)) {}
  C_Profiler handle() { return reinterpret_cast<C_Profiler>(this); }
  template <typename F, typename... Args>
  absl::Status CallIfThere(const char* name, F function, Args... args);

  std::shared_ptr<PluginDevice> device_;
  void* user_data_ = nullptr;  // the driver's
  bool initialized_ = false, recording_ = false;
  uint64_t start_ns_ = 0, stop_ns_ = 0;
  std::mutex mutex_;  // of what follows
  std::vector<Told> told_;
  size_t lost_ = 0;  // had no room
};

}  // namespace pd

#endif  // PD_LIBCORE_PLUGIN_DRIVER_TRACER_H_
