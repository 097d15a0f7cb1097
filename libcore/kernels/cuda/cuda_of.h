// SPDX-License-Identifier: Apache-2.0
// The GPU of a plan that binds kernels of this room: they are asked on GPUs
// alone (AttachCudaKernels), so the device is one.
#ifndef PD_LIBCORE_KERNELS_CUDA_CUDA_OF_H_
#define PD_LIBCORE_KERNELS_CUDA_CUDA_OF_H_

#include "libcore/device/cuda_device.h"
#include "libcore/ops/device_binding.h"

namespace pd::cuda {

inline CudaDevice* CudaOf(DeviceBinding* binding) {
  return static_cast<CudaDevice*>(binding->device());
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_CUDA_OF_H_
