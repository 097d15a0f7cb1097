// SPDX-License-Identifier: Apache-2.0
// The windows of pooling with indices. Shared by its implementations.
#ifndef PD_LIBCORE_OPS_CONV_MAX_POOL_WITH_INDEX_H_
#define PD_LIBCORE_OPS_CONV_MAX_POOL_WITH_INDEX_H_

#include "libcore/ops/conv/window.h"

namespace pd {

/// As ReadPool, for images or volumes as the op's type says.
absl::StatusOr<PoolGeometry> ReadMaxPool(const OpDesc& op, const Shape& input);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONV_MAX_POOL_WITH_INDEX_H_
