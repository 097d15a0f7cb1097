// SPDX-License-Identifier: Apache-2.0
// Every function of libcore/device/cuda_driver.h has the exported name and the
// parameters that cuda.h gives it, as far as a call can tell.
#include <cuda.h>
#include <gtest/gtest.h>

#include <type_traits>

#include "libcore/device/cuda_driver.h"

namespace pd {
namespace {

// What a call passes: enumerators as int, every pointer as one, flags too.
template <typename T>
using Passed = std::conditional_t<
    std::is_pointer_v<T>, void*,
    typename std::conditional_t<std::is_enum_v<T>, std::underlying_type<T>,
                                std::common_type<T>>::type>;
template <typename T>
using Abi =
    std::conditional_t<std::is_integral_v<Passed<T>>,
                       std::integral_constant<size_t, sizeof(T)>, Passed<T>>;

template <typename A, typename B>
struct SameCall : std::false_type {};
template <typename R, typename... P, typename S, typename... Q>
struct SameCall<R (*)(P...), S (*)(Q...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(P) != sizeof...(Q))
      return false;
    else
      return (std::is_same_v<Abi<P>, Abi<Q>> && ...) &&
             std::is_same_v<Abi<R>, Abi<S>>;
  }();
};

// cuda.h names the function of today, "cuMemAlloc", by a macro for the one that
// is exported, "cuMemAlloc_v2".
#define PD_TEXT_OF(x) #x
#define PD_TEXT(x) PD_TEXT_OF(x)
#define PD_SAME(member, function)                                          \
  static_assert(                                                           \
      SameCall<decltype(CudaDriver::member), decltype(&function)>::value); \
  EXPECT_STREQ(NameOf(#member), PD_TEXT(function))

const char* NameOf(const std::string& member) {
#define PD_NAME(m, name, parameters) \
  if (member == #m) return name;
  PD_CUDA_DRIVER(PD_NAME)
#undef PD_NAME
  return "";
}

TEST(CudaDeclarations, Devices) {
  PD_SAME(GetErrorName, cuGetErrorName);
  PD_SAME(GetErrorString, cuGetErrorString);
  PD_SAME(Init, cuInit);
  PD_SAME(DriverGetVersion, cuDriverGetVersion);
  PD_SAME(DeviceGetCount, cuDeviceGetCount);
  PD_SAME(DeviceGet, cuDeviceGet);
  PD_SAME(DeviceGetName, cuDeviceGetName);
  PD_SAME(DeviceTotalMem, cuDeviceTotalMem);
  PD_SAME(DeviceGetAttribute, cuDeviceGetAttribute);
  PD_SAME(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain);
  PD_SAME(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease);
  PD_SAME(CtxSetCurrent, cuCtxSetCurrent);
}

TEST(CudaDeclarations, Memory) {
  PD_SAME(MemGetInfo, cuMemGetInfo);
  PD_SAME(MemAlloc, cuMemAlloc);
  PD_SAME(MemFree, cuMemFree);
  PD_SAME(MemAllocHost, cuMemAllocHost);
  PD_SAME(MemFreeHost, cuMemFreeHost);
  PD_SAME(MemcpyHtoDAsync, cuMemcpyHtoDAsync);
  PD_SAME(MemcpyDtoHAsync, cuMemcpyDtoHAsync);
  PD_SAME(MemcpyDtoDAsync, cuMemcpyDtoDAsync);
  PD_SAME(MemsetD8Async, cuMemsetD8Async);
}

TEST(CudaDeclarations, Work) {
  PD_SAME(StreamCreate, cuStreamCreate);
  PD_SAME(StreamDestroy, cuStreamDestroy);
  PD_SAME(StreamSynchronize, cuStreamSynchronize);
  PD_SAME(EventCreate, cuEventCreate);
  PD_SAME(EventDestroy, cuEventDestroy);
  PD_SAME(EventRecord, cuEventRecord);
  PD_SAME(EventSynchronize, cuEventSynchronize);
  PD_SAME(ModuleLoadData, cuModuleLoadData);
  PD_SAME(ModuleUnload, cuModuleUnload);
  PD_SAME(ModuleGetFunction, cuModuleGetFunction);
  PD_SAME(LaunchKernel, cuLaunchKernel);
  PD_SAME(StreamBeginCapture, cuStreamBeginCapture);
  PD_SAME(StreamEndCapture, cuStreamEndCapture);
  PD_SAME(GraphInstantiate, cuGraphInstantiate);
  PD_SAME(GraphLaunch, cuGraphLaunch);
  PD_SAME(GraphExecDestroy, cuGraphExecDestroy);
  PD_SAME(GraphDestroy, cuGraphDestroy);
}

TEST(CudaDeclarations, Numbers) {
  EXPECT_EQ(kCudaSuccess, CUDA_SUCCESS);
  EXPECT_EQ(kCudaOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(kCudaNoDevice, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(kCudaMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(kCudaCapabilityMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(kCudaCapabilityMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(kCudaStreamNonBlocking,
            static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
  EXPECT_EQ(kCudaCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

}  // namespace
}  // namespace pd
