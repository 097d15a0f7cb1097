// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for tests. FAKE_CUDA is a list of words, read by cuInit:
// "gpus=2", "version=12020", "capability=61", "init=999", "list=3" (what
// cuDeviceGetCount gives).
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

int Setting(const char* name, int otherwise) {
  const char* words = std::getenv("FAKE_CUDA");
  if (words == nullptr) return otherwise;
  const char* found = std::strstr(words, name);
  return found == nullptr ? otherwise : std::atoi(found + std::strlen(name));
}

}  // namespace

extern "C" {

int cuInit(unsigned) { return Setting("init=", 0); }
int cuDriverGetVersion(int* version) {
  *version = Setting("version=", 13000);
  return 0;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_FAKE";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "it is a fake";
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = Setting("gpus=", 1);
  return Setting("list=", 0);
}
int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}
int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU %d", device);
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{3} << 30;
  return 0;
}
int cuDeviceGetAttribute(int* value, int which, int) {
  const int capability = Setting("capability=", 90);
  *value = which == 75 ? capability / 10 : which == 76 ? capability % 10 : 7;
  return 0;
}

#define PD_NOT_YET(name) \
  int name() { return 801; }
PD_NOT_YET(cuDevicePrimaryCtxRetain)
PD_NOT_YET(cuDevicePrimaryCtxRelease_v2)
PD_NOT_YET(cuCtxSetCurrent)
PD_NOT_YET(cuMemGetInfo_v2)
PD_NOT_YET(cuMemAlloc_v2)
PD_NOT_YET(cuMemFree_v2)
PD_NOT_YET(cuMemAllocHost_v2)
PD_NOT_YET(cuMemFreeHost)
PD_NOT_YET(cuMemcpyHtoDAsync_v2)
PD_NOT_YET(cuMemcpyDtoHAsync_v2)
PD_NOT_YET(cuMemcpyDtoDAsync_v2)
PD_NOT_YET(cuMemsetD8Async)
PD_NOT_YET(cuStreamCreate)
PD_NOT_YET(cuStreamDestroy_v2)
PD_NOT_YET(cuStreamSynchronize)
PD_NOT_YET(cuEventCreate)
PD_NOT_YET(cuEventDestroy_v2)
PD_NOT_YET(cuEventRecord)
PD_NOT_YET(cuEventSynchronize)
PD_NOT_YET(cuModuleLoadData)
PD_NOT_YET(cuModuleUnload)
PD_NOT_YET(cuModuleGetFunction)
PD_NOT_YET(cuLaunchKernel)
PD_NOT_YET(cuStreamBeginCapture_v2)
PD_NOT_YET(cuStreamEndCapture)
PD_NOT_YET(cuGraphInstantiateWithFlags)
PD_NOT_YET(cuGraphLaunch)
PD_NOT_YET(cuGraphExecDestroy)
PD_NOT_YET(cuGraphDestroy)

}  // extern "C"
