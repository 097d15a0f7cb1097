// SPDX-License-Identifier: Apache-2.0
// One GPU to compute on: its memory, its kernels, and one stream on which all
// work runs in the order of the calls. Calls return before the work is done;
// what went wrong with it is told by a later one, at the latest Synchronize.
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
#include "libcore/device/gpu_list.h"

namespace pd {

/// Compiled kernels as nvcc wrote them (a fat binary), part of this program.
struct KernelImage {
  const char* name = nullptr;  ///< of the source file, for messages
  const void* data = nullptr;
};

/// Work that was recorded once and is started again as a whole.
class CapturedWork {
 public:
  CapturedWork(const CudaDriver* driver, CudaGraph graph, CudaGraphExec exec)
      : driver_(driver), graph_(graph), exec_(exec) {}
  ~CapturedWork();
  CapturedWork(const CapturedWork&) = delete;
  CapturedWork& operator=(const CapturedWork&) = delete;

 private:
  friend class CudaDevice;
  const CudaDriver* driver_;
  CudaGraph graph_;
  CudaGraphExec exec_;
};

/// A place in the stream that can be waited for, and whose time is known.
class CudaMark {
 public:
  CudaMark(const CudaDriver* driver, CudaEvent event)
      : driver_(driver), event_(event) {}
  ~CudaMark();
  CudaMark(const CudaMark&) = delete;
  CudaMark& operator=(const CudaMark&) = delete;

 private:
  friend class CudaDevice;
  const CudaDriver* driver_;
  CudaEvent event_;
};

class CudaDevice : public std::enable_shared_from_this<CudaDevice> {
 public:
  /// Starts GPU `index`. Unavailable as FindGpu says. `images` are the modules
  /// that Kernel looks into; they are loaded when they are needed.
  static absl::StatusOr<std::shared_ptr<CudaDevice>> Open(
      int index, std::vector<KernelImage> images);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const GpuInfo& info() const { return info_; }
  CudaStream stream() const { return stream_; }

  /// Device memory, 256-byte aligned, freed with the last reference after the
  /// work that may use it. ResourceExhausted says how much was asked for and
  /// how much is free. Host code must not follow the pointer.
  absl::StatusOr<std::shared_ptr<void>> Allocate(size_t bytes);
  /// The address is in memory that Allocate has given.
  bool Holds(const void* address) const;
  /// The most bytes that Allocate had given at once.
  size_t peak_bytes() const;
  /// Host memory that the GPU copies from and to on its own.
  absl::StatusOr<std::shared_ptr<void>> AllocatePinned(size_t bytes);

  /// `from` may be changed when the call returns, unless it is pinned memory:
  /// that must stay as it is until the work is done.
  absl::Status ToDevice(void* to, const void* from, size_t bytes);
  /// ToDevice on a stream beside that of the work, so that bytes of the next
  /// run travel while the GPU computes. `from` is pinned memory. The work that
  /// is started after AwaitSent finds them.
  absl::Status SendBeside(void* to, const void* from, size_t bytes);
  absl::Status AwaitSent();
  /// The bytes are there after Synchronize.
  absl::Status ToHost(void* to, const void* from, size_t bytes);
  absl::Status Copy(void* to, const void* from, size_t bytes);
  absl::Status Clear(void* to, size_t bytes);

  /// A kernel by name; NotFound when no module has it.
  absl::StatusOr<CudaFunction> Kernel(const std::string& name);
  /// Starts it with one argument, a struct of at most 4 KB that is copied.
  absl::Status Launch(CudaFunction kernel, int64_t blocks, int threads,
                      const void* argument);

  /// Waits for all work.
  absl::Status Synchronize();

  /// A mark for places in the stream; it does not outlive the device.
  absl::StatusOr<std::unique_ptr<CudaMark>> MakeMark();
  /// Puts the mark behind the work so far.
  absl::Status Put(const CudaMark& mark);
  /// Waits for the work before it.
  absl::Status WaitFor(const CudaMark& mark);
  /// Between two marks whose work is done.
  absl::StatusOr<double> SecondsBetween(const CudaMark& from,
                                        const CudaMark& to);

  /// Between the two, work is recorded instead of run.
  absl::Status BeginCapture();
  absl::StatusOr<std::unique_ptr<CapturedWork>> EndCapture();
  absl::Status Run(const CapturedWork& work);

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
