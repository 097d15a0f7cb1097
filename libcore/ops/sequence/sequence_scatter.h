// SPDX-License-Identifier: Apache-2.0
// Inputs of sequence_scatter and its gradient (sequence_scatter.cc), read for
// every kernel.
#ifndef PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_SCATTER_H_
#define PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_SCATTER_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {

/// The ids of sequence i are columns of row i of X, which is `width` wide.
struct ScatterPlaces {
  Offsets offsets;  ///< of Ids
  Tensor* ids = nullptr;
  int64_t width = 0;
};

/// `x`: the shape of X. InvalidArgument for ids that do not fit.
absl::StatusOr<ScatterPlaces> ReadScatterPlaces(BindContext* context,
                                                const Shape& x);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_SCATTER_H_
