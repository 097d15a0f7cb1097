// SPDX-License-Identifier: Apache-2.0
// GPU activity, piece by piece, as CUPTI records it: kernels, copies and
// clears, the calls that started them, and on whose behalf. Recording slows
// every call a little, so it is on only between Start and Stop.
#ifndef PD_LIBCORE_DEVICE_GPU_RECORDER_H_
#define PD_LIBCORE_DEVICE_GPU_RECORDER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/device/cupti.h"

namespace pd {

/// A piece of work of a GPU.
struct GpuWork {
  enum class Kind { kKernel, kMemcpy, kMemset };
  Kind kind = Kind::kKernel;
  std::string name;  ///< the kernel's, demangled; "MEMCPY_HtoD", "MEMSET"
  uint64_t start = 0, end = 0;  ///< by Start's clock
  uint32_t device = 0, stream = 0;
  uint32_t correlation = 0;  ///< the call's that started it
  int64_t bytes = 0;         ///< of copies and clears
  int64_t grid[3] = {}, block[3] = {};
  int64_t registers = 0;     ///< of each thread
  int64_t shared_bytes = 0;  ///< of each block
};

/// A call of the driver's or the runtime's API.
struct GpuCall {
  std::string name;  ///< "cuLaunchKernel"
  uint64_t start = 0, end = 0;
  uint32_t correlation = 0;
  bool runtime = false;
};

struct GpuActivity {
  std::vector<GpuWork> work;
  std::vector<GpuCall> calls;
  /// Correlation of a call -> the number of the range that it was made in.
  std::unordered_map<uint32_t, uint64_t> ranges;
  uint64_t lost = 0;  ///< records that CUPTI had no room for
};

class GpuRecorder {
 public:
  /// The one of the process. Unavailable as LoadCupti says; InvalidArgument
  /// when FLAGS_multiple_of_cupti_buffer_size is below 1.
  static absl::StatusOr<GpuRecorder*> Get();

  /// From now on all work is recorded, with the times of `clock`, in ns; one
  /// clock a process. Unavailable when CUPTI does not record here (privileges,
  /// another profiler).
  absl::Status Start(CuptiClock clock);
  /// The activity recorded since; all work must be done.
  absl::StatusOr<GpuActivity> Stop();

  /// Calls of this thread between the two belong to range `number`.
  absl::Status BeginRange(uint64_t number);
  absl::Status EndRange();

  const Cupti& library() const { return *cupti_; }

 private:
  GpuRecorder(const Cupti* cupti, size_t buffer_bytes)
      : cupti_(cupti), buffer_bytes_(buffer_bytes) {}
  absl::Status EnableAll();
  absl::Status DisableAll();
  void TakeBuffer(uint8_t* buffer, size_t valid);
  void Take(const CuptiRecord* record);
  void TakeKernel(const CuptiKernelRecord& record);
  void TakeCall(const CuptiApiRecord& record);

  const Cupti* cupti_;
  const size_t buffer_bytes_;
  bool registered_ = false;
  std::vector<int> enabled_;  // kinds
  std::mutex mutex_;          // CUPTI hands buffers over on threads of its own
  GpuActivity activity_;
  absl::Status status_;
};

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_GPU_RECORDER_H_
