// SPDX-License-Identifier: Apache-2.0
// Inputs of row_conv and its gradient (row_conv.cc), read for every kernel.
#ifndef PD_LIBCORE_OPS_SEQUENCE_ROW_CONV_H_
#define PD_LIBCORE_OPS_SEQUENCE_ROW_CONV_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/tensor/tensor.h"

namespace pd {

/// Sequence i is rows [offsets[i], offsets[i + 1]) of `columns` elements, each
/// of which looks at itself and the `context` - 1 that follow.
struct RowConv {
  std::vector<int64_t> offsets;
  int64_t columns = 0, context = 0;
};

/// InvalidArgument for shapes and a LoD that do not fit.
absl::StatusOr<RowConv> ReadRowConv(const Tensor& x, const Tensor& filter);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SEQUENCE_ROW_CONV_H_
