// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for machines without a GPU. It lists what FAKE_CUDA says (a
// list of words, read when a function is called: "gpus=2", "version=12020",
// "capability=61", "init=999", "list=3" (what cuDeviceGetCount gives),
// "memory=64" (MiB)), and it computes: its kernels are those of
// libcore/kernels/cuda, compiled for the CPU (block.h). Work is done as late as
// the real driver may do it, on memory that host code cannot touch and that
// holds NaN until it is written, so that what would go wrong on a GPU, a
// pointer of the other side or a wait that is missing, goes wrong here too.
// A caller of fake_cuda_observe hears of every call and every piece of work
// (fake_activity.h).
#include <dlfcn.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/device/fake_activity.h"

namespace {

using pd::FakeObserver;
using pd::FakeWork;

constexpr int kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2;
constexpr int kNotFound = 500, kInvalidImage = 200, kNotPermitted = 800;
constexpr int kNotReady = 600;
constexpr size_t kPage = 4096;

int Setting(const char* name, int otherwise) {
  const char* words = std::getenv("FAKE_CUDA");
  if (words == nullptr) return otherwise;
  const char* found = std::strstr(words, name);
  return found == nullptr ? otherwise : std::atoi(found + std::strlen(name));
}

struct Piece {
  std::function<void()> run;
  FakeWork what;
};
using Work = std::vector<Piece>;

struct Graph {
  Work work;
};

// One device, whose work is that of one stream but for copies beside it.
struct Device {
  std::map<uintptr_t, size_t> memory;  // device addresses -> mapped bytes
  std::map<uintptr_t, size_t> pinned;
  size_t used = 0;
  Work pending, captured;
  bool capturing = false;
  bool new_context = true;  // its first stream is that of `pending`
  long done = 0;            // pieces of work
  int graphs = 0;
  const FakeObserver* observer = nullptr;
  unsigned correlation = 0;  // of the call at hand
};

// A stream beside the first: what it copies is there when the first waits for
// it, and not before.
struct SideStream {
  Work pending;
};

struct Event {
  long done = -1;  // never recorded
  SideStream* side = nullptr;
};

Device& TheDevice() {
  static auto* const kDevice = new Device;
  return *kDevice;
}

bool Inside(const std::map<uintptr_t, size_t>& ranges, const void* pointer,
            size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second;
}

bool OnDevice(uint64_t address, size_t bytes) {
  return Inside(TheDevice().memory, reinterpret_cast<void*>(address), bytes);
}

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

// Lets the memory of the device be touched, or not.
void Open(bool open) {
  for (const auto& [address, bytes] : TheDevice().memory)
    mprotect(Pointer(address), bytes,
             open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void RunAll() {
  Device& device = TheDevice();
  if (device.pending.empty()) return;
  Open(true);
  for (const Piece& one : device.pending) {
    if (device.observer != nullptr) device.observer->work_begins();
    one.run();
    ++device.done;
    if (device.observer != nullptr) device.observer->work_ends(one.what);
  }
  device.pending.clear();
  Open(false);
}

// A call of the API, for whoever listens.
class Call {
 public:
  explicit Call(const char* name, bool runtime = false) {
    Device& device = TheDevice();
    if (device.observer == nullptr) return;
    outer_ = device.correlation;
    device.correlation = device.observer->call_begins(name, runtime);
    heard_ = device.observer;
  }
  ~Call() {
    if (heard_ == nullptr) return;
    heard_->call_ends();
    TheDevice().correlation = outer_;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  unsigned outer_ = 0;
  const FakeObserver* heard_ = nullptr;
};

// `what` is nothing for marks, which are no work that anybody shows.
void Add(std::function<void()> run, FakeWork what = {}) {
  Device& device = TheDevice();
  what.correlation = device.correlation;
  (device.capturing ? device.captured : device.pending)
      .push_back({std::move(run), what});
}

FakeWork Copy(FakeWork::Kind kind, size_t bytes) {
  FakeWork what;
  what.kind = kind;
  what.bytes = bytes;
  return what;
}

// Null for the first stream.
SideStream* SideOf(void* stream) {
  return stream == &TheDevice() || stream == nullptr
             ? nullptr
             : static_cast<SideStream*>(stream);
}

// A wait while a stream is captured is an error, as with the real driver.
int Wait() {
  if (TheDevice().capturing) return kNotPermitted;
  RunAll();
  return kSuccess;
}

void* Self() {
  static void* const kSelf = [] {
    Dl_info info;
    dladdr(reinterpret_cast<void*>(&Wait), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return kSelf;
}

struct Function {
  void (*run)(const void*, int64_t, int) = nullptr;
  size_t bytes = 0;
  std::string name;
};

}  // namespace

extern "C" {

// For the other fakes: work among that of the stream.
void fake_cuda_add(void (*work)(void*), void* argument) {
  const Call call("cudaLaunchKernelExC_v11060", /*runtime=*/true);
  FakeWork what;
  what.kind = FakeWork::Kind::kKernel;
  what.name = "_Z7libraryPKf";
  what.blocks = 5;
  what.threads = 256;
  Add([=] { work(argument); }, what);
}

void fake_cuda_observe(const FakeObserver* observer) {
  TheDevice().observer = observer;
}

// For tests: how often captured work was started.
int fake_cuda_graphs() { return TheDevice().graphs; }

int cuInit(unsigned) { return Setting("init=", 0); }
int cuDriverGetVersion(int* version) {
  *version = Setting("version=", 13000);
  return kSuccess;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_FAKE";
  return kSuccess;
}
int cuGetErrorString(int, const char** text) {
  *text = "it is a fake";
  return kSuccess;
}
int cuDeviceGetCount(int* count) {
  *count = Setting("gpus=", 1);
  return Setting("list=", 0);
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return kSuccess;
}
int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU %d", device);
  return kSuccess;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = static_cast<size_t>(Setting("memory=", 3 << 10)) << 20;
  return kSuccess;
}
int cuDeviceGetAttribute(int* value, int which, int) {
  const int capability = Setting("capability=", 90);
  *value = which == 75 ? capability / 10 : which == 76 ? capability % 10 : 7;
  return kSuccess;
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &TheDevice();
  TheDevice().new_context = true;
  return kSuccess;
}
int cuDevicePrimaryCtxRelease_v2(int) { return kSuccess; }
int cuCtxSetCurrent(void*) { return kSuccess; }

int cuMemGetInfo_v2(size_t* free, size_t* total) {
  cuDeviceTotalMem_v2(total, 0);
  *free = *total - TheDevice().used;
  return kSuccess;
}

// The end of the bytes is the end of a page (but for the alignment of 256), so
// that a kernel that goes on dies.
int cuMemAlloc_v2(unsigned long long* address, size_t bytes) {  // NOLINT
  size_t free = 0, total = 0;
  cuMemGetInfo_v2(&free, &total);
  const size_t size = (bytes + kPage - 1) / kPage * kPage;
  if (bytes == 0) return kInvalidValue;
  if (size > free) return kOutOfMemory;
  char* map =
      static_cast<char*>(mmap(nullptr, size + kPage, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (map == MAP_FAILED) return kOutOfMemory;
  std::memset(map, 0xff, size);
  mprotect(map, size + kPage, PROT_NONE);
  TheDevice().memory[reinterpret_cast<uintptr_t>(map)] = size;
  TheDevice().used += size;
  *address = reinterpret_cast<uintptr_t>(map) + (size - bytes) / 256 * 256;
  return kSuccess;
}
int cuMemFree_v2(unsigned long long address) {  // NOLINT
  const int waited = Wait();
  if (waited != kSuccess) return waited;
  Device& device = TheDevice();
  auto after = device.memory.upper_bound(address);
  if (after == device.memory.begin()) return kInvalidValue;
  --after;
  munmap(Pointer(after->first), after->second + kPage);
  device.used -= after->second;
  device.memory.erase(after);
  return kSuccess;
}
int cuMemAllocHost_v2(void** pointer, size_t bytes) {
  *pointer = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  if (*pointer == nullptr) return kOutOfMemory;
  std::memset(*pointer, 0xff, bytes);
  TheDevice().pinned[reinterpret_cast<uintptr_t>(*pointer)] = bytes;
  return kSuccess;
}
int cuMemFreeHost(void* pointer) {
  if (TheDevice().pinned.erase(reinterpret_cast<uintptr_t>(pointer)) == 0)
    return kInvalidValue;
  std::free(pointer);
  return kSuccess;
}

// Pageable bytes are taken at once, pinned ones when the copy is done.
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from,  // NOLINT
                         size_t bytes, void* stream) {
  const Call call("cuMemcpyHtoDAsync_v2");
  if (!OnDevice(to, bytes)) return kInvalidValue;
  FakeWork what = Copy(FakeWork::Kind::kHostToDevice, bytes);
  if (SideStream* side = SideOf(stream)) {
    if (!Inside(TheDevice().pinned, from, bytes)) return kNotPermitted;
    what.correlation = TheDevice().correlation;
    side->pending.push_back(
        {[=] { std::memcpy(Pointer(to), from, bytes); }, what});
    return kSuccess;
  }
  if (Inside(TheDevice().pinned, from, bytes)) {
    Add([=] { std::memcpy(Pointer(to), from, bytes); }, what);
    return kSuccess;
  }
  if (TheDevice().capturing) return kNotPermitted;
  auto copy =
      std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  Add([=] { std::memcpy(Pointer(to), copy->data(), bytes); }, what);
  return kSuccess;
}
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from,  // NOLINT
                         size_t bytes, void*) {
  const Call call("cuMemcpyDtoHAsync_v2");
  if (!OnDevice(from, bytes)) return kInvalidValue;
  const bool pinned = Inside(TheDevice().pinned, to, bytes);
  if (!pinned && TheDevice().capturing) return kNotPermitted;
  Add([=] { std::memcpy(to, Pointer(from), bytes); },
      Copy(FakeWork::Kind::kDeviceToHost, bytes));
  return pinned ? kSuccess : Wait();
}
int cuMemcpyDtoDAsync_v2(unsigned long long to,    // NOLINT
                         unsigned long long from,  // NOLINT
                         size_t bytes, void*) {
  const Call call("cuMemcpyDtoDAsync_v2");
  if (!OnDevice(to, bytes) || !OnDevice(from, bytes)) return kInvalidValue;
  Add([=] { std::memmove(Pointer(to), Pointer(from), bytes); },
      Copy(FakeWork::Kind::kDeviceToDevice, bytes));
  return kSuccess;
}
int cuMemsetD8Async(unsigned long long to, unsigned char value,  // NOLINT
                    size_t bytes, void*) {
  const Call call("cuMemsetD8Async");
  if (!OnDevice(to, bytes)) return kInvalidValue;
  Add([=] { std::memset(Pointer(to), value, bytes); },
      Copy(FakeWork::Kind::kSet, bytes));
  return kSuccess;
}

int cuStreamCreate(void** stream, unsigned) {
  if (std::exchange(TheDevice().new_context, false))
    *stream = &TheDevice();
  else
    *stream = new SideStream;
  return kSuccess;
}
int cuStreamDestroy_v2(void* stream) {
  delete SideOf(stream);
  return kSuccess;
}
int cuStreamSynchronize(void*) {
  const Call call("cuStreamSynchronize");
  return Wait();
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const auto* one = static_cast<Event*>(event);
  if (SideOf(stream) != nullptr || one->side == nullptr ||
      TheDevice().capturing)
    return kNotPermitted;
  for (Piece& piece : one->side->pending)
    TheDevice().pending.push_back(std::move(piece));
  one->side->pending.clear();
  return kSuccess;
}
// An event knows how much work was done before it; each takes a microsecond.
int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return kSuccess;
}
int cuEventDestroy_v2(void* event) {
  const int waited = Wait();
  delete static_cast<Event*>(event);
  return waited;
}
int cuEventRecord(void* event, void* stream) {
  auto* one = static_cast<Event*>(event);
  one->side = SideOf(stream);
  if (one->side != nullptr) return kSuccess;
  Add([one] { one->done = TheDevice().done; });
  return kSuccess;
}
int cuEventSynchronize(void*) { return Wait(); }
int cuEventElapsedTime_v2(float* milliseconds, void* from, void* to) {
  const long first = static_cast<Event*>(from)->done;
  const long last = static_cast<Event*>(to)->done;
  if (first < 0 || last < 0) return kNotReady;
  *milliseconds = static_cast<float>(last - first) * 1e-3f;
  return kSuccess;
}

// An image that nvcc writes begins with this number.
int cuModuleLoadData(void** module, const void* image) {
  uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  if (magic != 0xba55ed50u) return kInvalidImage;
  *module = Self();
  return kSuccess;
}
int cuModuleUnload(void*) { return kSuccess; }
int cuModuleGetFunction(void** function, void*, const char* name) {
  // They stay where they are for as long as the process.
  static auto* const kFunctions = new std::map<std::string, Function>;
  Function& one = (*kFunctions)[name];
  one.run = reinterpret_cast<decltype(one.run)>(dlsym(Self(), name));
  const void* bytes = dlsym(Self(), (std::string(name) + "_bytes").c_str());
  if (one.run == nullptr || bytes == nullptr) return kNotFound;
  one.bytes = *static_cast<const size_t*>(bytes);
  one.name = name;
  *function = &one;
  return kSuccess;
}
// NVIDIA's parameters are more than a function of ours may have.
#define PD_GRID unsigned blocks, unsigned y, unsigned z
#define PD_BLOCK unsigned threads, unsigned ty, unsigned tz
int cuLaunchKernel(void* function, PD_GRID, PD_BLOCK, unsigned shared, void*,
                   void** arguments, void**) {
  const Call call("cuLaunchKernel");
  if (function == nullptr || blocks == 0 || y != 1 || z != 1 || threads == 0 ||
      threads > 1024 || threads % 32 != 0 || ty != 1 || tz != 1 || shared != 0)
    return kInvalidValue;
  const Function& kernel = *static_cast<const Function*>(function);
  auto copy = std::make_shared<std::string>(
      static_cast<const char*>(arguments[0]), kernel.bytes);
  FakeWork what;
  what.kind = FakeWork::Kind::kKernel;
  what.name = kernel.name.c_str();
  what.blocks = blocks;
  what.threads = threads;
  Add(
      [=, run = kernel.run] {
        run(copy->data(), static_cast<int64_t>(blocks),
            static_cast<int>(threads));
      },
      what);
  return kSuccess;
}

int cuStreamBeginCapture_v2(void*, int) {
  Device& device = TheDevice();
  if (device.capturing) return kNotPermitted;
  device.capturing = true;
  device.captured.clear();
  return kSuccess;
}
int cuStreamEndCapture(void*, void** graph) {
  Device& device = TheDevice();
  if (!device.capturing) return kNotPermitted;
  device.capturing = false;
  *graph = new Graph{std::move(device.captured)};
  return kSuccess;
}
int cuGraphInstantiateWithFlags(void** exec, void* graph,
                                unsigned long long) {  // NOLINT
  *exec = new Graph(*static_cast<const Graph*>(graph));
  return kSuccess;
}
int cuGraphLaunch(void* exec, void*) {
  const Call call("cuGraphLaunch");
  ++TheDevice().graphs;
  for (const Piece& piece : static_cast<const Graph*>(exec)->work)
    Add(piece.run, piece.what);
  return kSuccess;
}
int cuGraphExecDestroy(void* exec) {
  delete static_cast<Graph*>(exec);
  return kSuccess;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Graph*>(graph);
  return kSuccess;
}

}  // extern "C"
