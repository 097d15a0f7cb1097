// SPDX-License-Identifier: Apache-2.0
// The functions of NVIDIA's driver API that we call, found at run time in
// libcuda.so.1. The declarations are ours, so that everything builds without
// CUDA; a test holds them against cuda.h where that is installed.
#ifndef PD_LIBCORE_DEVICE_CUDA_DRIVER_H_
#define PD_LIBCORE_DEVICE_CUDA_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pd {

// Names of the driver API in our words: CUresult, CUdevice, CUdeviceptr and
// handles that nobody looks into.
using CudaResult = int;
using CudaOrdinal = int;
using CudaAddress = unsigned long long;  // NOLINT: as cuda.h has it
using CudaContext = void*;
using CudaModule = void*;
using CudaFunction = void*;
using CudaStream = void*;
using CudaEvent = void*;
using CudaGraph = void*;
using CudaGraphExec = void*;

// Numbers of cuda.h.
inline constexpr CudaResult kCudaSuccess = 0;
inline constexpr CudaResult kCudaOutOfMemory = 2;
inline constexpr CudaResult kCudaNoDevice = 100;
inline constexpr int kCudaMultiprocessors = 16;
inline constexpr int kCudaCapabilityMajor = 75;
inline constexpr int kCudaCapabilityMinor = 76;
inline constexpr unsigned kCudaStreamNonBlocking = 1;
inline constexpr int kCudaCaptureThreadLocal = 1;

// PD_CUDA_DRIVER(X): X(member, exported name, parameters) of each function.
#define PD_CUDA_DRIVER(X)                                                      \
  X(GetErrorName, "cuGetErrorName", (CudaResult, const char**))                \
  X(GetErrorString, "cuGetErrorString", (CudaResult, const char**))            \
  X(Init, "cuInit", (unsigned))                                                \
  X(DriverGetVersion, "cuDriverGetVersion", (int*))                            \
  X(DeviceGetCount, "cuDeviceGetCount", (int*))                                \
  X(DeviceGet, "cuDeviceGet", (CudaOrdinal*, int))                             \
  X(DeviceGetName, "cuDeviceGetName", (char*, int, CudaOrdinal))               \
  X(DeviceTotalMem, "cuDeviceTotalMem_v2", (size_t*, CudaOrdinal))             \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int*, int, CudaOrdinal))      \
  X(DevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain",                        \
    (CudaContext*, CudaOrdinal))                                               \
  X(DevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CudaOrdinal))    \
  X(CtxSetCurrent, "cuCtxSetCurrent", (CudaContext))                           \
  X(MemGetInfo, "cuMemGetInfo_v2", (size_t*, size_t*))                         \
  X(MemAlloc, "cuMemAlloc_v2", (CudaAddress*, size_t))                         \
  X(MemFree, "cuMemFree_v2", (CudaAddress))                                    \
  X(MemAllocHost, "cuMemAllocHost_v2", (void**, size_t))                       \
  X(MemFreeHost, "cuMemFreeHost", (void*))                                     \
  X(MemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2",                                   \
    (CudaAddress, const void*, size_t, CudaStream))                            \
  X(MemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2",                                   \
    (void*, CudaAddress, size_t, CudaStream))                                  \
  X(MemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                   \
    (CudaAddress, CudaAddress, size_t, CudaStream))                            \
  X(MemsetD8Async, "cuMemsetD8Async",                                          \
    (CudaAddress, unsigned char, size_t, CudaStream))                          \
  X(StreamCreate, "cuStreamCreate", (CudaStream*, unsigned))                   \
  X(StreamDestroy, "cuStreamDestroy_v2", (CudaStream))                         \
  X(StreamSynchronize, "cuStreamSynchronize", (CudaStream))                    \
  X(StreamWaitEvent, "cuStreamWaitEvent", (CudaStream, CudaEvent, unsigned))   \
  X(EventCreate, "cuEventCreate", (CudaEvent*, unsigned))                      \
  X(EventDestroy, "cuEventDestroy_v2", (CudaEvent))                            \
  X(EventRecord, "cuEventRecord", (CudaEvent, CudaStream))                     \
  X(EventSynchronize, "cuEventSynchronize", (CudaEvent))                       \
  X(EventElapsedTime, "cuEventElapsedTime_v2", (float*, CudaEvent, CudaEvent)) \
  X(ModuleLoadData, "cuModuleLoadData", (CudaModule*, const void*))            \
  X(ModuleUnload, "cuModuleUnload", (CudaModule))                              \
  X(ModuleGetFunction, "cuModuleGetFunction",                                  \
    (CudaFunction*, CudaModule, const char*))                                  \
  X(LaunchKernel, "cuLaunchKernel",                                            \
    (CudaFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
     unsigned, CudaStream, void**, void**))                                    \
  X(StreamBeginCapture, "cuStreamBeginCapture_v2", (CudaStream, int))          \
  X(StreamEndCapture, "cuStreamEndCapture", (CudaStream, CudaGraph*))          \
  X(GraphInstantiate, "cuGraphInstantiateWithFlags",                           \
    (CudaGraphExec*, CudaGraph, unsigned long long)) /* NOLINT */              \
  X(GraphLaunch, "cuGraphLaunch", (CudaGraphExec, CudaStream))                 \
  X(GraphExecDestroy, "cuGraphExecDestroy", (CudaGraphExec))                   \
  X(GraphDestroy, "cuGraphDestroy", (CudaGraph))

struct CudaDriver {
#define PD_MEMBER(member, name, parameters) \
  CudaResult(*member) parameters = nullptr;
  PD_CUDA_DRIVER(PD_MEMBER)
#undef PD_MEMBER

  int version = 0;      ///< the CUDA that it speaks: 13000 is 13.0
  std::string path;     ///< the library's file
  std::string release;  ///< "580.159.04", where the kernel module tells it

  /// OK for kCudaSuccess, else the error of the call in NVIDIA's words:
  /// ResourceExhausted for memory, Unknown for others.
  absl::Status Check(CudaResult result, const char* what) const;
};

/// The driver, loaded and started once for the process. Unavailable says what
/// is missing: the library and where it was looked for, one of its functions,
/// or what cuInit complained about.
absl::StatusOr<const CudaDriver*> LoadCudaDriver();

/// 13000 as "13.0".
std::string CudaVersionText(int version);

}  // namespace pd

#endif  // PD_LIBCORE_DEVICE_CUDA_DRIVER_H_
