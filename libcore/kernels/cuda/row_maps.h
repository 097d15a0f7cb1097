// SPDX-License-Identifier: Apache-2.0
// Rows that move by a map which is known when a plan is made: the device's
// GatherRows and ScatterAddRows of libcore/ops/sequence/sequence.h.
#ifndef PD_LIBCORE_KERNELS_CUDA_ROW_MAPS_H_
#define PD_LIBCORE_KERNELS_CUDA_ROW_MAPS_H_

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/row_maps_arguments.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd::cuda {

/// to[r] = from[map[r]]; rows of none (-1) are left alone.
class RowGather {
 public:
  /// Rows of `width` elements. Refuses elements of more than 8 bytes.
  static absl::StatusOr<RowGather> Make(DeviceBinding* binding,
                                        const RowMap& map, int64_t width,
                                        DType dtype);
  absl::Status Run(const void* from, void* to) const;
  /// Rows of none get `padding`, whose elements go on from its start.
  absl::Status Run(const void* from, void* to, const Tensor& padding) const;

 private:
  Starter<RowGatherArgs> start_;
  RowGatherArgs args_{};
};

/// to[map[r]] += from[r] for every r in turn, over zeros.
class RowSums {
 public:
  /// `to` has `rows` rows of `width` float32.
  static absl::StatusOr<RowSums> Make(DeviceBinding* binding, const RowMap& map,
                                      int64_t rows, int64_t width);
  absl::Status Run(const float* from, float* to) const;

 private:
  Starter<RowSumArgs> start_;
  RowSumArgs args_{};
};

/// map[r] of the result is where r stands in `places`, which names each number
/// below its size once.
RowMap InverseOf(const RowMap& places);

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ROW_MAPS_H_
