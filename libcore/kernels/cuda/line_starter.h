// SPDX-License-Identifier: Apache-2.0
// How kernels over lines are started.
#ifndef PD_LIBCORE_KERNELS_CUDA_LINE_STARTER_H_
#define PD_LIBCORE_KERNELS_CUDA_LINE_STARTER_H_

#include <algorithm>
#include <string>

#include "libcore/kernels/cuda/bindings.h"

namespace pd::cuda {

/// Starts a kernel of softmax.cu with a block for each line, which has no more
/// threads than find work in it: one warp for the lines of attention.
template <typename T>
class LineStarter {
 public:
  static absl::StatusOr<LineStarter> Find(DeviceBinding* binding,
                                          const std::string& name) {
    LineStarter starter;
    starter.device_ = CudaOf(binding);
    PD_ASSIGN_OR_RETURN(starter.kernel_,
                        starter.device_->Kernel(KernelFor<T>(name)));
    return starter;
  }

  absl::Status operator()(const LinesArgsOf<T>& run) const {
    constexpr int kEach = 8;  // elements of a thread
    constexpr int64_t kMostBlocks = 1 << 20;
    int threads = 32;
    while (threads < kThreads && threads * kEach < run.n) threads *= 2;
    return device_->Launch(kernel_, std::min(run.lines, kMostBlocks), threads,
                           &run);
  }

 private:
  CudaDevice* device_ = nullptr;
  CudaFunction kernel_ = nullptr;
};

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_LINE_STARTER_H_
