// SPDX-License-Identifier: Apache-2.0
// Code shared by the bindings of int8_... ops: constants on the host, their
// upload to the device, and the product of bytes.
#ifndef PD_LIBCORE_KERNELS_CUDA_INT8_BINDINGS_H_
#define PD_LIBCORE_KERNELS_CUDA_INT8_BINDINGS_H_

#include <memory>
#include <vector>

#include "libcore/device/cublaslt.h"
#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/int8_arguments.h"
#include "libcore/ops/quantize/int8.h"

namespace pd::cuda {

inline int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

Int8Finish FinishOf(const Int8Epilogue& e);

/// The op's constants, on the host.
struct Int8Constants {
  Int8Weights weights;
  Int8Channels channels;
};
/// Unimplemented where one is no constant; other errors are those of int8.h.
absl::StatusOr<Int8Constants> ReadConstants(BindContext* context,
                                            DeviceBinding* binding);

/// Each group's weights as [width, depth], 0 where there are none.
std::vector<int8_t> PackWeights(const Int8Weights& w, int64_t groups,
                                int64_t width, int64_t depth);
/// The sum of each output channel's weights, times `factor`.
std::vector<int32_t> SumsOfWeights(const Int8Weights& w, int64_t factor);

/// rows [rows, depth] times weights [width, depth], `batch` of them.
absl::StatusOr<std::shared_ptr<const BoundProduct>> BindBytes(
    CudaDevice* device, int64_t rows, int64_t width, int64_t depth,
    int64_t batch);

/// Device memory of the plan with these values.
template <typename T>
absl::StatusOr<const T*> Upload(DeviceBinding* binding,
                                const std::vector<T>& values) {
  const size_t bytes = values.size() * sizeof(T);
  PD_ASSIGN_OR_RETURN(void* const to, binding->Keep(bytes));
  PD_RETURN_IF_ERROR(CudaOf(binding)->ToDevice(to, values.data(), bytes));
  return static_cast<const T*>(to);
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_INT8_BINDINGS_H_
