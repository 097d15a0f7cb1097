// SPDX-License-Identifier: Apache-2.0
// A libcupti.so.13 for machines without a GPU: records of what the fake driver
// beside it does, in buffers of whoever asks. Its records are as long as those
// of CUPTI 13, and bytes that nobody is to read are not zero. FAKE_CUDA's
// "cupti=35" has it refuse to record, as where a user may not; "late=1000" adds
// so many ns to the end of each kernel.
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "libcore/device/cupti.h"
#include "tests/device/fake_activity.h"

namespace {

using namespace pd;  // NOLINT: a library of its own

// The number behind a word of FAKE_CUDA; 0 where it is not there.
int Setting(const char* name) {
  const char* words = std::getenv("FAKE_CUDA");
  const char* found = words == nullptr ? nullptr : std::strstr(words, name);
  return found == nullptr ? 0 : std::atoi(found + std::strlen(name));
}

constexpr int kSuccess = 0, kInvalidParameter = 1, kMaxLimitReached = 12;
constexpr int kQueueEmpty = 18;
// Of CUpti_ActivityKernel10, Memcpy6, Memset4, API and ExternalCorrelation.
constexpr size_t kKernelBytes = 216, kMemcpyBytes = 96, kMemsetBytes = 88,
                 kApiBytes = 40, kExternalBytes = 24;

struct OpenCall {
  unsigned correlation;
  uint32_t name;
  bool runtime;
  uint64_t start;
};

struct State {
  CuptiRequest request = nullptr;
  CuptiComplete complete = nullptr;
  CuptiClock clock = nullptr;
  std::set<int> enabled;
  std::vector<std::string> names;  // by callback's number
  std::vector<OpenCall> calls;     // around each other
  std::vector<uint64_t> ranges;
  unsigned correlations = 0;
  uint64_t work_start = 0;
  uint8_t* buffer = nullptr;
  size_t bytes = 0, valid = 0;
  size_t dropped = 0;
};

State& The() {
  static auto* const kState = new State;
  return *kState;
}

// The real one has a clock of its own for who brings none.
uint64_t Now() { return The().clock == nullptr ? 1 : The().clock(); }

void HandOver() {
  State& state = The();
  if (state.buffer == nullptr) return;
  uint8_t* buffer = state.buffer;
  state.buffer = nullptr;
  state.complete(nullptr, 0, buffer, state.bytes, state.valid);
}

// Room for a record whose end nobody knows.
void* Room(int kind, size_t bytes) {
  State& state = The();
  if (state.enabled.count(kind) == 0) return nullptr;
  if (state.buffer != nullptr && state.valid + bytes > state.bytes) HandOver();
  if (state.buffer == nullptr) {
    size_t records = 0;
    state.valid = 0;
    state.request(&state.buffer, &state.bytes, &records);
    if (state.buffer == nullptr || state.bytes < bytes) {
      ++state.dropped;
      return nullptr;
    }
  }
  void* room = state.buffer + state.valid;
  std::memset(room, 0xa5, bytes);
  state.valid += bytes;
  static_cast<CuptiRecord*>(room)->kind = kind;
  return room;
}

size_t SizeOf(int kind) {
  switch (kind) {
    case kCuptiKernel:
      return kKernelBytes;
    case kCuptiMemcpy:
      return kMemcpyBytes;
    case kCuptiMemset:
      return kMemsetBytes;
    case kCuptiDriver:
    case kCuptiRuntime:
      return kApiBytes;
    default:
      return kExternalBytes;
  }
}

template <typename Record>
Record* NewRecord(int kind) {
  static_assert(sizeof(Record) <= kKernelBytes);
  return static_cast<Record*>(Room(kind, SizeOf(kind)));
}

template <typename Record>
void FillWork(const FakeWork& work, uint64_t end, Record* record) {
  record->start = The().work_start;
  record->end = end;
  record->device = 0;
  record->context = 1;
  record->stream = 13;
  record->correlation = work.correlation;
}

uint32_t NumberOf(const char* name) {
  std::vector<std::string>& names = The().names;
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<uint32_t>(i);
  names.emplace_back(name);
  return static_cast<uint32_t>(names.size() - 1);
}

unsigned CallBegins(const char* name, bool runtime) {
  State& state = The();
  state.calls.push_back({++state.correlations, NumberOf(name), runtime, Now()});
  return state.correlations;
}

void CallEnds() {
  State& state = The();
  const OpenCall call = state.calls.back();
  state.calls.pop_back();
  if (!state.ranges.empty())
    if (auto* tie = NewRecord<CuptiExternalRecord>(kCuptiExternalCorrelation)) {
      tie->external_kind = kCuptiCustom0;
      tie->external_id = state.ranges.back();
      tie->correlation = call.correlation;
    }
  if (auto* record = NewRecord<CuptiApiRecord>(call.runtime ? kCuptiRuntime
                                                            : kCuptiDriver)) {
    record->callback = call.name;
    record->start = call.start;
    record->end = Now();
    record->correlation = call.correlation;
  }
}

void WorkBegins() { The().work_start = Now(); }

void WorkEnds(const FakeWork& work) {
  const uint64_t end = Now();
  if (work.kind == FakeWork::Kind::kNothing) return;
  if (work.kind == FakeWork::Kind::kKernel) {
    auto* kernel = NewRecord<CuptiKernelRecord>(kCuptiKernel);
    if (kernel == nullptr) return;
    FillWork(work, end + static_cast<uint64_t>(Setting("late=")), kernel);
    kernel->name = work.name;
    kernel->registers = 40;
    kernel->static_shared = 1024;
    kernel->dynamic_shared = 16;
    for (int i = 0; i < 3; ++i) kernel->grid[i] = kernel->block[i] = 1;
    kernel->grid[0] = static_cast<int32_t>(work.blocks);
    kernel->block[0] = static_cast<int32_t>(work.threads);
    return;
  }
  if (work.kind == FakeWork::Kind::kSet) {
    auto* set = NewRecord<CuptiMemsetRecord>(kCuptiMemset);
    if (set == nullptr) return;
    FillWork(work, end, set);
    set->bytes = work.bytes;
    return;
  }
  auto* copy = NewRecord<CuptiMemcpyRecord>(kCuptiMemcpy);
  if (copy == nullptr) return;
  FillWork(work, end, copy);
  copy->bytes = work.bytes;
  copy->copy_kind = work.kind == FakeWork::Kind::kHostToDevice   ? 1
                    : work.kind == FakeWork::Kind::kDeviceToHost ? 2
                                                                 : 8;
}

// The driver in the same folder, once it is there.
void Observe(bool observe) {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&Observe), &info);
  const std::string path = info.dli_fname;
  const std::string driver = path.substr(0, path.rfind('/')) + "/libcuda.so.1";
  void* handle = dlopen(driver.c_str(), RTLD_NOW);
  if (handle == nullptr) return;
  static const FakeObserver kObserver = {CallBegins, CallEnds, WorkBegins,
                                         WorkEnds};
  reinterpret_cast<ObserveFn>(dlsym(handle, "fake_cuda_observe"))(
      observe ? &kObserver : nullptr);
}

}  // namespace

extern "C" {

int cuptiGetVersion(uint32_t* version) {
  *version = 130001;
  return kSuccess;
}
int cuptiGetResultString(int, const char** text) {
  *text = "it is a fake";
  return kSuccess;
}
int cuptiGetCallbackName(int domain, uint32_t number, const char** name) {
  if (domain < 1 || domain > 2 || number >= The().names.size())
    return kInvalidParameter;
  *name = The().names[number].c_str();
  return kSuccess;
}
int cuptiActivityRegisterCallbacks(CuptiRequest request,
                                   CuptiComplete complete) {
  The().request = request;
  The().complete = complete;
  return kSuccess;
}
int cuptiActivityRegisterTimestampCallback(CuptiClock clock) {
  The().clock = clock;
  return clock == nullptr ? kInvalidParameter : kSuccess;
}
int cuptiActivityEnable(int kind) {
  // As where the calls are free to be seen and the GPU's work is not.
  const int refusal = Setting("cupti=");
  if (refusal != 0 && kind == kCuptiKernel) return refusal;
  if (The().request == nullptr) return kInvalidParameter;
  The().enabled.insert(kind);
  Observe(true);
  return kSuccess;
}
int cuptiActivityDisable(int kind) {
  The().enabled.erase(kind);
  if (The().enabled.empty()) Observe(false);
  return kSuccess;
}
int cuptiActivityFlushAll(uint32_t) {
  HandOver();
  return kSuccess;
}
int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                               CuptiRecord** record) {
  uint8_t* at = buffer;
  if (*record != nullptr)
    at = reinterpret_cast<uint8_t*>(*record) + SizeOf((*record)->kind);
  if (at >= buffer + valid) return kMaxLimitReached;
  *record = reinterpret_cast<CuptiRecord*>(at);
  return kSuccess;
}
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  *dropped = The().dropped;
  The().dropped = 0;
  return kSuccess;
}
int cuptiActivityPushExternalCorrelationId(int, uint64_t number) {
  The().ranges.push_back(number);
  return kSuccess;
}
int cuptiActivityPopExternalCorrelationId(int, uint64_t* number) {
  if (The().ranges.empty()) return kQueueEmpty;
  *number = The().ranges.back();
  The().ranges.pop_back();
  return kSuccess;
}

}  // extern "C"
