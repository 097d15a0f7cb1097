// SPDX-License-Identifier: Apache-2.0
#include "libcore/device/cudnn.h"

#include <memory>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/device/cuda_libraries.h"

namespace pd {
namespace {

absl::StatusOr<std::unique_ptr<Cudnn>> Load() {
  PD_ASSIGN_OR_RETURN(const DynamicLibrary library, OpenCudnn());
  auto cudnn = std::make_unique<Cudnn>();
#define PD_BIND(member, parameters) \
  PD_RETURN_IF_ERROR(library.Bind("cudnn" #member, &cudnn->member));
  PD_CUDNN(PD_BIND)
#undef PD_BIND
  PD_ASSIGN_OR_RETURN(const LibraryVersion found, FindCudnn());
  cudnn->version = found.version;
  const CudnnStatus status = cudnn->Create(&cudnn->handle);
  if (status != 0) return Unknown("cudnnCreate: cuDNN status %d", status);
  return cudnn;
}

}  // namespace

absl::StatusOr<int> CudnnTypeOf(DType dtype) {
  if (dtype == DType::kFloat32) return kCudnnFloat32;
  if (dtype == DType::kFloat16) return kCudnnFloat16;
  if (dtype == DType::kBFloat16) return kCudnnBFloat16;
  return Unimplemented("a convolution of %s", Name(dtype));
}

std::vector<int64_t> CudnnStrides(const std::vector<int64_t>& extents,
                                  bool last) {
  std::vector<int64_t> strides(extents.size());
  int64_t step = last ? extents[1] : 1;
  for (size_t d = extents.size(); d-- > 0;) {
    if (d == 1 && last) continue;
    strides[d] = step;
    step *= extents[d];
  }
  if (last) strides[1] = 1;
  return strides;
}

absl::StatusOr<const Cudnn*> LoadCudnn() {
  static const auto* const kLibrary =
      new absl::StatusOr<std::unique_ptr<Cudnn>>(Load());
  if (!kLibrary->ok()) return kLibrary->status();
  return kLibrary->value().get();
}

}  // namespace pd
