// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/gpu_recorder.h"

#include <cxxabi.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kRecordAlignment = 8;

std::string Demangled(const char* name) {
  if (name == nullptr) return "(no name)";
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (status != 0 || text == nullptr) return name;
  std::string demangled = text;
  std::free(text);
  return demangled;
}

// PaddlePaddle's names of copies.
std::string CopyName(uint8_t kind) {
  constexpr const char* kNames[] = {"Unknown", "HtoD", "DtoH", "HtoA",
                                    "AtoH",    "AtoA", "AtoD", "DtoA",
                                    "DtoD",    "HtoH", "PtoP"};
  return absl::StrCat("MEMCPY_", kNames[kind < std::size(kNames) ? kind : 0]);
}

// "cudaLaunchKernel_v7000" -> "cudaLaunchKernel".
std::string WithoutVersion(std::string name) {
  const size_t at = name.rfind("_v");
  if (at == std::string::npos || at + 2 == name.size()) return name;
  for (size_t i = at + 2; i < name.size(); ++i)
    if (!absl::ascii_isdigit(static_cast<unsigned char>(name[i]))) return name;
  name.resize(at);
  return name;
}

template <typename Record>
GpuWork WorkOf(const Record& record, GpuWork::Kind kind, std::string name) {
  GpuWork work;
  work.kind = kind;
  work.name = std::move(name);
  work.start = record.start;
  work.end = record.end;
  work.device = record.device;
  work.stream = record.stream;
  work.correlation = record.correlation;
  return work;
}

// CUPTI's callbacks take no argument of ours.
GpuRecorder* the_recorder = nullptr;
size_t the_buffer_bytes = 0;

}  // namespace

absl::StatusOr<GpuRecorder*> GpuRecorder::Get() {
  if (the_recorder != nullptr) return the_recorder;
  PD_ASSIGN_OR_RETURN(const Cupti* cupti, LoadCupti());
  constexpr const char* kFlag = "FLAGS_multiple_of_cupti_buffer_size";
  constexpr int64_t kMost = 1024;
  const auto multiple = GetFlag<int64_t>(kFlag);
  if (multiple < 1 || multiple > kMost)
    return InvalidArgument("%s is %d; expected 1 to %d", kFlag, multiple,
                           kMost);
  the_buffer_bytes = kBufferBytes * static_cast<size_t>(multiple);
  // Never destroyed: CUPTI's threads run until the process ends.
  the_recorder = new GpuRecorder(cupti, the_buffer_bytes);
  return the_recorder;
}

absl::Status GpuRecorder::Start(CuptiClock clock) {
  PD_INVARIANT(enabled_.empty());
  if (!registered_) {
    PD_RETURN_IF_ERROR(
        cupti_->Check(cupti_->ActivityRegisterTimestampCallback(clock),
                      "cuptiActivityRegisterTimestampCallback"));
    const CuptiRequest request = [](uint8_t** buffer, size_t* bytes,
                                    size_t* records) {
      *buffer = static_cast<uint8_t*>(
          std::aligned_alloc(kRecordAlignment, the_buffer_bytes));
      *bytes = *buffer == nullptr ? 0 : the_buffer_bytes;
      *records = 0;  // as many as there is room for
    };
    const CuptiComplete complete = [](CudaContext context, uint32_t stream,
                                      uint8_t* buffer, size_t, size_t valid) {
      the_recorder->TakeBuffer(buffer, valid);
      std::free(buffer);
      size_t dropped = 0;
      const Cupti& cupti = the_recorder->library();
      if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) !=
          kCuptiSuccess)
        return;
      std::lock_guard<std::mutex> lock(the_recorder->mutex_);
      the_recorder->activity_.lost += dropped;
    };
    PD_RETURN_IF_ERROR(
        cupti_->Check(cupti_->ActivityRegisterCallbacks(request, complete),
                      "cuptiActivityRegisterCallbacks"));
    registered_ = true;
  }
  absl::Status status = EnableAll();
  if (!status.ok()) status.Update(DisableAll());
  return status;
}

absl::Status GpuRecorder::EnableAll() {
  for (const int kind : {kCuptiExternalCorrelation, kCuptiDriver, kCuptiRuntime,
                         kCuptiMemcpy, kCuptiMemset, kCuptiKernel}) {
    PD_RETURN_IF_ERROR(
        cupti_->Check(cupti_->ActivityEnable(kind), "cuptiActivityEnable"));
    enabled_.push_back(kind);
  }
  return absl::OkStatus();
}

absl::Status GpuRecorder::DisableAll() {
  absl::Status status;
  for (const int kind : std::exchange(enabled_, {}))
    status.Update(
        cupti_->Check(cupti_->ActivityDisable(kind), "cuptiActivityDisable"));
  return status;
}

absl::StatusOr<GpuActivity> GpuRecorder::Stop() {
  absl::Status status = DisableAll();
  status.Update(
      cupti_->Check(cupti_->ActivityFlushAll(0), "cuptiActivityFlushAll"));
  std::lock_guard<std::mutex> lock(mutex_);
  GpuActivity activity = std::exchange(activity_, {});
  status.Update(std::exchange(status_, absl::OkStatus()));
  PD_RETURN_IF_ERROR(status);
  return activity;
}

absl::Status GpuRecorder::BeginRange(uint64_t number) {
  return cupti_->Check(
      cupti_->ActivityPushExternalCorrelationId(kCuptiCustom0, number),
      "cuptiActivityPushExternalCorrelationId");
}

absl::Status GpuRecorder::EndRange() {
  uint64_t last = 0;
  return cupti_->Check(
      cupti_->ActivityPopExternalCorrelationId(kCuptiCustom0, &last),
      "cuptiActivityPopExternalCorrelationId");
}

void GpuRecorder::TakeBuffer(uint8_t* buffer, size_t valid) {
  std::lock_guard<std::mutex> lock(mutex_);
  CuptiRecord* record = nullptr;
  CuptiResult result = kCuptiSuccess;
  while (valid > 0 && (result = cupti_->ActivityGetNextRecord(
                           buffer, valid, &record)) == kCuptiSuccess)
    Take(record);
  if (result != kCuptiMaxLimitReached)
    status_.Update(cupti_->Check(result, "cuptiActivityGetNextRecord"));
}

void GpuRecorder::Take(const CuptiRecord* record) {
  switch (record->kind) {
    case kCuptiKernel:
      return TakeKernel(*reinterpret_cast<const CuptiKernelRecord*>(record));
    case kCuptiMemcpy: {
      const auto& copy = *reinterpret_cast<const CuptiMemcpyRecord*>(record);
      activity_.work.push_back(
          WorkOf(copy, GpuWork::Kind::kMemcpy, CopyName(copy.copy_kind)));
      activity_.work.back().bytes = static_cast<int64_t>(copy.bytes);
      return;
    }
    case kCuptiMemset: {
      const auto& set = *reinterpret_cast<const CuptiMemsetRecord*>(record);
      activity_.work.push_back(WorkOf(set, GpuWork::Kind::kMemset, "MEMSET"));
      activity_.work.back().bytes = static_cast<int64_t>(set.bytes);
      return;
    }
    case kCuptiDriver:
    case kCuptiRuntime:
      return TakeCall(*reinterpret_cast<const CuptiApiRecord*>(record));
    case kCuptiExternalCorrelation: {
      const auto& tie = *reinterpret_cast<const CuptiExternalRecord*>(record);
      if (tie.external_kind == kCuptiCustom0)
        activity_.ranges[tie.correlation] = tie.external_id;
      return;
    }
    default:
      return;  // of a kind that nobody asked for
  }
}

void GpuRecorder::TakeKernel(const CuptiKernelRecord& record) {
  GpuWork work = WorkOf(record, GpuWork::Kind::kKernel, Demangled(record.name));
  for (int i = 0; i < 3; ++i) {
    work.grid[i] = record.grid[i];
    work.block[i] = record.block[i];
  }
  work.registers = record.registers;
  work.shared_bytes =
      int64_t{record.static_shared} + int64_t{record.dynamic_shared};
  activity_.work.push_back(std::move(work));
}

void GpuRecorder::TakeCall(const CuptiApiRecord& record) {
  GpuCall call;
  call.runtime = record.kind == kCuptiRuntime;
  const char* name = nullptr;
  const CuptiResult result =
      cupti_->GetCallbackName(call.runtime ? kCuptiRuntimeApi : kCuptiDriverApi,
                              record.callback, &name);
  call.name = result == kCuptiSuccess && name != nullptr
                  ? WithoutVersion(name)
                  : absl::StrCat("call ", record.callback);
  call.start = record.start;
  call.end = record.end;
  call.correlation = record.correlation;
  activity_.calls.push_back(std::move(call));
}

}  // namespace pd
