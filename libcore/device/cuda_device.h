// SPDX-License-Identifier: Apache-2.0
// One GPU to compute on: its memory, its kernels, and its stream (device.h).
#ifndef PD_LIBCORE_DEVICE_CUDA_DEVICE_H_
#define PD_LIBCORE_DEVICE_CUDA_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/device/cuda_driver.h"
#include "libcore/device/device.h"
#include "libcore/device/gpu_list.h"

namespace pd {

/// Compiled kernels as nvcc wrote them (a fat binary), part of this program.
struct KernelImage {
  const char* name = nullptr;  ///< of the source file, for messages
  const void* data = nullptr;
};

/// A CUDA graph.
class CudaCapturedWork : public CapturedWork {
 public:
  CudaCapturedWork(const CudaDriver* driver, CudaGraph graph,
                   CudaGraphExec exec)
      : driver_(driver), graph_(graph), exec_(exec) {}
  ~CudaCapturedWork() override;
  CudaCapturedWork(const CudaCapturedWork&) = delete;
  CudaCapturedWork& operator=(const CudaCapturedWork&) = delete;

 private:
  friend class CudaDevice;
  const CudaDriver* driver_;
  CudaGraph graph_;
  CudaGraphExec exec_;
};

/// A CUDA event.
class CudaMark : public DeviceMark {
 public:
  CudaMark(const CudaDriver* driver, CudaEvent event)
      : driver_(driver), event_(event) {}
  ~CudaMark() override;
  CudaMark(const CudaMark&) = delete;
  CudaMark& operator=(const CudaMark&) = delete;

 private:
  friend class CudaDevice;
  const CudaDriver* driver_;
  CudaEvent event_;
};

class CudaDevice : public Device,
                   public std::enable_shared_from_this<CudaDevice> {
 public:
  /// Starts GPU `index`. Unavailable as FindGpu says. `images` are the modules
  /// that Kernel looks into; they are loaded when they are needed.
  static absl::StatusOr<std::shared_ptr<CudaDevice>> Open(
      int index, std::vector<KernelImage> images);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const GpuInfo& info() const { return info_; }
  CudaStream stream() const { return stream_; }

  std::string name() const override;
  std::string title() const override;
  /// 256-byte aligned.
  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes) override;
  bool Holds(const void* address) const override;
  size_t peak_bytes() const override;
  absl::StatusOr<std::shared_ptr<void>> AllocatePinned(size_t bytes) override;

  absl::Status ToDevice(void* to, const void* from, size_t bytes) override;
  /// On a stream beside that of the work.
  absl::Status SendBeside(void* to, const void* from, size_t bytes) override;
  absl::Status AwaitSent() override;
  absl::Status ToHost(void* to, const void* from, size_t bytes) override;
  absl::Status Copy(void* to, const void* from, size_t bytes) override;
  absl::Status Clear(void* to, size_t bytes) override;

  /// A kernel by name; NotFound when no module has it.
  absl::StatusOr<CudaFunction> Kernel(const std::string& name);
  /// Starts it with one argument, a struct of at most 4 KB that is copied.
  absl::Status Launch(CudaFunction kernel, int64_t blocks, int threads,
                      const void* argument);

  absl::Status Synchronize() override;

  absl::StatusOr<std::unique_ptr<DeviceMark>> MakeMark() override;
  absl::Status Put(const DeviceMark& mark) override;
  absl::Status WaitFor(const DeviceMark& mark) override;
  absl::StatusOr<double> SecondsBetween(const DeviceMark& from,
                                        const DeviceMark& to) override;

  bool captures() const override { return true; }
  absl::Status BeginCapture() override;
  absl::StatusOr<std::unique_ptr<CapturedWork>> EndCapture() override;
  absl::Status Run(const CapturedWork& work) override;

 private:
  CudaDevice(const CudaDriver* driver, GpuInfo info,
             std::vector<KernelImage> images)
      : driver_(driver), info_(std::move(info)), images_(std::move(images)) {}
  absl::Status Start();
  // Makes the GPU's context that of this thread.
  absl::Status Enter() const;

  const CudaDriver* driver_;
  GpuInfo info_;
  std::vector<KernelImage> images_;
  std::vector<CudaModule> modules_;  // of images_; null: not loaded yet
  CudaOrdinal ordinal_ = 0;
  CudaContext context_ = nullptr;
  CudaStream stream_ = nullptr, send_stream_ = nullptr;
  CudaEvent sent_ = nullptr;  // behind what was sent beside the work
  std::unordered_map<std::string, CudaFunction> kernels_;
  mutable std::mutex mutex_;  // of what follows: any thread may free
  std::map<CudaAddress, size_t> allocated_;
  size_t bytes_ = 0, peak_bytes_ = 0;  // of them
};

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUDA_DEVICE_H_
