// SPDX-License-Identifier: Apache-2.0
// The functions, records and numbers of CUPTI's activity API that we use, found
// at run time in libcupti.so. The declarations are ours, as in cuda_driver.h,
// and tested against NVIDIA's; gpu_recorder.h is what others use.
//
// CUPTI's records grow at their end with its versions, and it hands out those
// of its own version: what is declared here is the beginning that all versions
// from CUDA 12 on have in common, and nobody takes the size of one.
#ifndef PD_LIBCORE_DEVICE_CUPTI_H_
#define PD_LIBCORE_DEVICE_CUPTI_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/device/cuda_driver.h"

namespace pd {

using CuptiResult = int;

inline constexpr CuptiResult kCuptiSuccess = 0;
inline constexpr CuptiResult kCuptiMaxLimitReached = 12;

// Kinds of activities.
inline constexpr int kCuptiMemcpy = 1, kCuptiMemset = 2, kCuptiDriver = 4,
                     kCuptiRuntime = 5, kCuptiKernel = 10,
                     kCuptiExternalCorrelation = 39;
// Domains of callbacks.
inline constexpr int kCuptiDriverApi = 1, kCuptiRuntimeApi = 2;
// A kind of external correlation that CUPTI leaves to programs.
inline constexpr int kCuptiCustom0 = 3;

/// The start of every record.
struct CuptiRecord {
  int32_t kind;
};

/// CUpti_ActivityKernel8 to 10, as far as they are the same.
struct CuptiKernelRecord {
  int32_t kind;
  uint8_t cache_config, shared_memory_config;
  uint16_t registers;  // of each thread
  int32_t cache_requested, cache_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;  // bytes
  uint32_t local_of_thread, local_total;
  uint32_t correlation;
  int64_t grid_id;
  const char* name;
};

/// CUpti_ActivityMemcpy5 and 6, likewise.
struct CuptiMemcpyRecord {
  int32_t kind;
  uint8_t copy_kind, source_kind, target_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};

/// CUpti_ActivityMemset4.
struct CuptiMemsetRecord {
  int32_t kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};

/// CUpti_ActivityAPI.
struct CuptiApiRecord {
  int32_t kind;
  uint32_t callback;
  uint64_t start, end;
  uint32_t process, thread, correlation, result;
};

/// CUpti_ActivityExternalCorrelation.
struct CuptiExternalRecord {
  int32_t kind;
  int32_t external_kind;
  uint64_t external_id;
  uint32_t correlation;
};

using CuptiRequest = void (*)(uint8_t** buffer, size_t* bytes, size_t* records);
using CuptiComplete = void (*)(CudaContext context, uint32_t stream,
                               uint8_t* buffer, size_t bytes, size_t valid);
using CuptiClock = uint64_t (*)();

// PD_CUPTI(X): X(member, parameters); the exported name is "cupti" and the
// member.
#define PD_CUPTI(X)                                                 \
  X(GetVersion, (uint32_t*))                                        \
  X(GetResultString, (CuptiResult, const char**))                   \
  X(GetCallbackName, (int, uint32_t, const char**))                 \
  X(ActivityRegisterCallbacks, (CuptiRequest, CuptiComplete))       \
  X(ActivityRegisterTimestampCallback, (CuptiClock))                \
  X(ActivityEnable, (int))                                          \
  X(ActivityDisable, (int))                                         \
  X(ActivityFlushAll, (uint32_t))                                   \
  X(ActivityGetNextRecord, (uint8_t*, size_t, CuptiRecord**))       \
  X(ActivityGetNumDroppedRecords, (CudaContext, uint32_t, size_t*)) \
  X(ActivityPushExternalCorrelationId, (int, uint64_t))             \
  X(ActivityPopExternalCorrelationId, (int, uint64_t*))

struct Cupti {
#define PD_MEMBER(member, parameters) CuptiResult(*member) parameters = nullptr;
  PD_CUPTI(PD_MEMBER)
#undef PD_MEMBER
  uint32_t version = 0;  ///< of its API: 130001
  std::string path;      ///< the library's file

  /// OK for kCuptiSuccess, else Unavailable with the error in NVIDIA's words.
  absl::Status Check(CuptiResult result, const char* what) const;
};

/// The library, once for the process. Unavailable says where it was looked for
/// (FLAGS_cupti_dir first), or which function it lacks.
absl::StatusOr<const Cupti*> LoadCupti();

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUPTI_H_
