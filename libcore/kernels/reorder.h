// SPDX-License-Identifier: Apache-2.0
// Changes of layout: our transpose where it is one, else oneDNN's reorder.
#ifndef PD_LIBCORE_KERNELS_REORDER_H_
#define PD_LIBCORE_KERNELS_REORDER_H_

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// Unimplemented when nothing here can do it.
absl::StatusOr<Step> BindReorder(Tensor* from, Tensor* to);

/// Unimplemented unless the change is a transpose of 4-byte matrices.
absl::StatusOr<Step> BindTranspose(Tensor* from, Tensor* to);

}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_REORDER_H_
