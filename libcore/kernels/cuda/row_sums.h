// SPDX-License-Identifier: Apache-2.0
// Sums of rows by their ids: gradients of lookups and of gather.
#ifndef PD_LIBCORE_KERNELS_CUDA_ROW_SUMS_H_
#define PD_LIBCORE_KERNELS_CUDA_ROW_SUMS_H_

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/bindings.h"

namespace pd::cuda {

/// The step to[id] = the sum of the rows of `from` [count, width] with this
/// id, and 0 for rows that no id names, by `lookup`, whose pointers are not
/// read. Sums have one order; those of up to 32 rows have the CPU's.
/// Unimplemented for 2^31 ids or rows.
template <typename T>
absl::StatusOr<Step> BindRowSums(BindContext* context, DeviceBinding* binding,
                                 const LookupArgsOf<T>& lookup, Tensor* ids,
                                 Tensor* from, Tensor* to);

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ROW_SUMS_H_
