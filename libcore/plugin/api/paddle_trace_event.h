// SPDX-License-Identifier: Apache-2.0
// <paddle/phi/api/profiler/trace_event.h>: what a driver's profiler hands to
// profiler_add_runtime_trace_event and profiler_add_device_trace_event. Times
// are nanoseconds of the Unix clock.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_TRACE_EVENT_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_TRACE_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace phi {

enum class TracerEventType {
  Operator,
  Dataloader,
  ProfileStep,
  CudaRuntime,
  Kernel,
  Memcpy,
  Memset,
  UserDefined,
  OperatorInner,
  Forward,
  Backward,
  Optimization,
  Communication,
  PythonOp,
  PythonUserDefined,
  DygraphKernelLaunch,
  StaticKernelLaunch,
  NumTypes
};

struct KernelEventInfo {
  uint32_t block_x, block_y, block_z, grid_x, grid_y, grid_z;
  uint32_t dynamic_shared_memory, static_shared_memory;  // bytes of a block
  uint32_t registers_per_thread;
  uint32_t local_memory_per_thread, local_memory_total;  // bytes
  uint64_t queued, submitted, completed;                 // times
  float blocks_per_sm, warps_per_sm, occupancy;
};

static constexpr size_t kMemKindMaxLen = 50;

struct MemcpyEventInfo {
  uint64_t num_bytes;
  char copy_kind[kMemKindMaxLen], src_kind[kMemKindMaxLen],
      dst_kind[kMemKindMaxLen];
};

struct MemsetEventInfo {
  uint64_t num_bytes;
  char memory_kind[kMemKindMaxLen];
  uint32_t value;
};

/// A call that a thread made.
struct RuntimeTraceEvent {
  RuntimeTraceEvent() = default;
  RuntimeTraceEvent(std::string name, uint64_t start_ns, uint64_t end_ns,
                    uint64_t process_id, uint64_t thread_id,
                    uint32_t correlation_id, uint32_t callback_id)
      : name(std::move(name)),
        start_ns(start_ns),
        end_ns(end_ns),
        process_id(process_id),
        thread_id(thread_id),
        correlation_id(correlation_id),
        callback_id(callback_id) {}

  std::string name;
  TracerEventType type = TracerEventType::CudaRuntime;
  uint64_t start_ns = 0, end_ns = 0;
  uint64_t process_id = 0, thread_id = 0;
  uint32_t correlation_id = 0;  // the same as that of the work it started
  uint32_t callback_id = 0;
};

/// Work of a device; `type` says which of the three details it has. Drivers
/// fill its fields in.
struct DeviceTraceEvent {
  DeviceTraceEvent() : kernel_info() {}

  std::string name;
  TracerEventType type = TracerEventType::Kernel;
  uint64_t start_ns = 0, end_ns = 0;
  uint64_t device_id = 0, context_id = 0, stream_id = 0;
  uint32_t correlation_id = 0;
  union {
    KernelEventInfo kernel_info;
    MemcpyEventInfo memcpy_info;
    MemsetEventInfo memset_info;
  };
};

}  // namespace phi

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_TRACE_EVENT_H_
