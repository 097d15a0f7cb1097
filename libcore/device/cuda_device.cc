// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cuda_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

CudaAddress AddressOf(const void* pointer) {
  return reinterpret_cast<CudaAddress>(pointer);
}

// A failure in a destructor can only be logged.
void Report(const absl::Status& status) {
  if (!status.ok()) LogWarning("%s", std::string(status.message()));
}

}  // namespace

CudaCapturedWork::~CudaCapturedWork() {
  Report(
      driver_->Check(driver_->GraphExecDestroy(exec_), "cuGraphExecDestroy"));
  Report(driver_->Check(driver_->GraphDestroy(graph_), "cuGraphDestroy"));
}

CudaMark::~CudaMark() {
  Report(driver_->Check(driver_->EventDestroy(event_), "cuEventDestroy"));
}

absl::StatusOr<std::shared_ptr<CudaDevice>> CudaDevice::Open(
    int index, std::vector<KernelImage> images) {
  PD_ASSIGN_OR_RETURN(GpuInfo info, FindGpu(index));
  PD_ASSIGN_OR_RETURN(const CudaDriver* driver, LoadCudaDriver());
  std::shared_ptr<CudaDevice> device(
      new CudaDevice(driver, std::move(info), std::move(images)));
  PD_RETURN_IF_ERROR(device->Start());
  return device;
}

absl::Status CudaDevice::Start() {
  modules_.resize(images_.size());
  PD_RETURN_IF_ERROR(driver_->Check(driver_->DeviceGet(&ordinal_, info_.index),
                                    "cuDeviceGet"));
  PD_RETURN_IF_ERROR(
      driver_->Check(driver_->DevicePrimaryCtxRetain(&context_, ordinal_),
                     "cuDevicePrimaryCtxRetain"));
  PD_RETURN_IF_ERROR(Enter());
  for (CudaStream* stream : {&stream_, &send_stream_})
    PD_RETURN_IF_ERROR(
        driver_->Check(driver_->StreamCreate(stream, kCudaStreamNonBlocking),
                       "cuStreamCreate"));
  return driver_->Check(driver_->EventCreate(&sent_, 0), "cuEventCreate");
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  Report(Enter());
  for (CudaStream stream : {send_stream_, stream_}) {
    if (stream == nullptr) continue;
    Report(driver_->Check(driver_->StreamSynchronize(stream),
                          "cuStreamSynchronize"));
    Report(driver_->Check(driver_->StreamDestroy(stream), "cuStreamDestroy"));
  }
  if (sent_ != nullptr)
    Report(driver_->Check(driver_->EventDestroy(sent_), "cuEventDestroy"));
  for (CudaModule module : modules_)
    if (module != nullptr)
      Report(driver_->Check(driver_->ModuleUnload(module), "cuModuleUnload"));
  Report(driver_->Check(driver_->DevicePrimaryCtxRelease(ordinal_),
                        "cuDevicePrimaryCtxRelease"));
}

absl::Status CudaDevice::Enter() const {
  thread_local const CudaDevice* current = nullptr;
  if (current == this) return absl::OkStatus();
  PD_RETURN_IF_ERROR(
      driver_->Check(driver_->CtxSetCurrent(context_), "cuCtxSetCurrent"));
  current = this;
  return absl::OkStatus();
}

std::string CudaDevice::name() const {
  return absl::StrCat("gpu:", info_.index);
}

std::string CudaDevice::title() const {
  return absl::StrCat(name(), " ", info_.name);
}

absl::StatusOr<std::shared_ptr<void>> CudaDevice::Allocate(size_t bytes) {
  PD_RETURN_IF_ERROR(Enter());
  CudaAddress address = 0;
  const CudaResult result = driver_->MemAlloc(&address, bytes == 0 ? 1 : bytes);
  if (result == kCudaOutOfMemory) {
    size_t free = 0, total = 0;
    if (driver_->MemGetInfo(&free, &total) != kCudaSuccess) free = total = 0;
    return ResourceExhausted(
        "gpu:%d has %d of %d MiB free; %d MiB are needed at once", info_.index,
        free >> 20, total >> 20, (bytes >> 20) + 1);
  }
  PD_RETURN_IF_ERROR(driver_->Check(result, "cuMemAlloc"));
  auto self = shared_from_this();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    allocated_[address] = bytes;
    bytes_ += bytes;
    peak_bytes_ = std::max(peak_bytes_, bytes_);
  }
  return std::shared_ptr<void>(
      reinterpret_cast<void*>(address), [self](void* pointer) {
        {
          const std::lock_guard<std::mutex> lock(self->mutex_);
          const auto it = self->allocated_.find(AddressOf(pointer));
          self->bytes_ -= it->second;
          self->allocated_.erase(it);
        }
        // cuMemFree waits for the work that may use it.
        Report(self->Enter());
        Report(self->driver_->Check(self->driver_->MemFree(AddressOf(pointer)),
                                    "cuMemFree"));
      });
}

bool CudaDevice::Holds(const void* address) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto after = allocated_.upper_bound(AddressOf(address));
  if (after == allocated_.begin()) return false;
  --after;
  return AddressOf(address) < after->first + after->second;
}

size_t CudaDevice::peak_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return peak_bytes_;
}

absl::StatusOr<std::shared_ptr<void>> CudaDevice::AllocatePinned(size_t bytes) {
  PD_RETURN_IF_ERROR(Enter());
  void* pointer = nullptr;
  PD_RETURN_IF_ERROR(
      driver_->Check(driver_->MemAllocHost(&pointer, bytes == 0 ? 1 : bytes),
                     "cuMemAllocHost"));
  auto self = shared_from_this();
  return std::shared_ptr<void>(pointer, [self](void* p) {
    Report(self->Synchronize());
    Report(
        self->driver_->Check(self->driver_->MemFreeHost(p), "cuMemFreeHost"));
  });
}

absl::Status CudaDevice::ToDevice(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(
      driver_->MemcpyHtoDAsync(AddressOf(to), from, bytes, stream_),
      "cuMemcpyHtoDAsync");
}

absl::Status CudaDevice::SendBeside(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(
      driver_->MemcpyHtoDAsync(AddressOf(to), from, bytes, send_stream_),
      "cuMemcpyHtoDAsync");
}

absl::Status CudaDevice::AwaitSent() {
  PD_RETURN_IF_ERROR(Enter());
  PD_RETURN_IF_ERROR(driver_->Check(driver_->EventRecord(sent_, send_stream_),
                                    "cuEventRecord"));
  return driver_->Check(driver_->StreamWaitEvent(stream_, sent_, 0),
                        "cuStreamWaitEvent");
}

absl::Status CudaDevice::ToHost(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(
      driver_->MemcpyDtoHAsync(to, AddressOf(from), bytes, stream_),
      "cuMemcpyDtoHAsync");
}

absl::Status CudaDevice::Copy(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(
      driver_->MemcpyDtoDAsync(AddressOf(to), AddressOf(from), bytes, stream_),
      "cuMemcpyDtoDAsync");
}

absl::Status CudaDevice::Clear(void* to, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(
      driver_->MemsetD8Async(AddressOf(to), 0, bytes, stream_),
      "cuMemsetD8Async");
}

absl::StatusOr<CudaFunction> CudaDevice::Kernel(const std::string& name) {
  const auto known = kernels_.find(name);
  if (known != kernels_.end()) return known->second;
  PD_RETURN_IF_ERROR(Enter());
  for (size_t i = 0; i < images_.size(); ++i) {
    if (modules_[i] == nullptr)
      PD_RETURN_IF_ERROR(Annotate(
          driver_->Check(driver_->ModuleLoadData(&modules_[i], images_[i].data),
                         "cuModuleLoadData"),
          images_[i].name));
    CudaFunction function = nullptr;
    if (driver_->ModuleGetFunction(&function, modules_[i], name.c_str()) ==
        kCudaSuccess)
      return kernels_[name] = function;
  }
  return NotFound("no module has the kernel '%s'", name);
}

absl::Status CudaDevice::Launch(CudaFunction kernel, int64_t blocks,
                                int threads, const void* argument) {
  if (blocks == 0) return absl::OkStatus();
  PD_INVARIANT(blocks > 0 && blocks <= INT32_MAX && threads > 0 &&
               threads <= 1024);
  PD_RETURN_IF_ERROR(Enter());
  void* arguments[] = {const_cast<void*>(argument)};
  return driver_->Check(
      driver_->LaunchKernel(kernel, static_cast<unsigned>(blocks), 1, 1,
                            static_cast<unsigned>(threads), 1, 1, 0, stream_,
                            arguments, nullptr),
      "cuLaunchKernel");
}

absl::Status CudaDevice::Synchronize() {
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(driver_->StreamSynchronize(stream_),
                        "cuStreamSynchronize");
}

absl::StatusOr<std::unique_ptr<DeviceMark>> CudaDevice::MakeMark() {
  PD_RETURN_IF_ERROR(Enter());
  CudaEvent event = nullptr;
  PD_RETURN_IF_ERROR(
      driver_->Check(driver_->EventCreate(&event, 0), "cuEventCreate"));
  return std::make_unique<CudaMark>(driver_, event);
}

absl::Status CudaDevice::Put(const DeviceMark& mark) {
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(
      driver_->EventRecord(static_cast<const CudaMark&>(mark).event_, stream_),
      "cuEventRecord");
}

absl::Status CudaDevice::WaitFor(const DeviceMark& mark) {
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(
      driver_->EventSynchronize(static_cast<const CudaMark&>(mark).event_),
      "cuEventSynchronize");
}

absl::StatusOr<double> CudaDevice::SecondsBetween(const DeviceMark& from,
                                                  const DeviceMark& to) {
  PD_RETURN_IF_ERROR(Enter());
  float milliseconds = 0;
  PD_RETURN_IF_ERROR(driver_->Check(
      driver_->EventElapsedTime(&milliseconds,
                                static_cast<const CudaMark&>(from).event_,
                                static_cast<const CudaMark&>(to).event_),
      "cuEventElapsedTime"));
  return static_cast<double>(milliseconds) * 1e-3;
}

absl::Status CudaDevice::BeginCapture() {
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(
      driver_->StreamBeginCapture(stream_, kCudaCaptureThreadLocal),
      "cuStreamBeginCapture");
}

absl::StatusOr<std::unique_ptr<CapturedWork>> CudaDevice::EndCapture() {
  PD_RETURN_IF_ERROR(Enter());
  CudaGraph graph = nullptr;
  PD_RETURN_IF_ERROR(driver_->Check(driver_->StreamEndCapture(stream_, &graph),
                                    "cuStreamEndCapture"));
  CudaGraphExec exec = nullptr;
  const absl::Status made = driver_->Check(
      driver_->GraphInstantiate(&exec, graph, 0), "cuGraphInstantiate");
  if (!made.ok()) {
    Report(driver_->Check(driver_->GraphDestroy(graph), "cuGraphDestroy"));
    return made;
  }
  return std::make_unique<CudaCapturedWork>(driver_, graph, exec);
}

absl::Status CudaDevice::Run(const CapturedWork& work) {
  PD_RETURN_IF_ERROR(Enter());
  return driver_->Check(
      driver_->GraphLaunch(static_cast<const CudaCapturedWork&>(work).exec_,
                           stream_),
      "cuGraphLaunch");
}

}  // namespace pd
