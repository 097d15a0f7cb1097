// SPDX-License-Identifier: Apache-2.0
// Resizing as a product of one rule per axis (interp.cc has the formulas): an
// output position reads a few input positions, its taps, with weights.
#ifndef PD_LIBCORE_OPS_CONV_INTERP_H_
#define PD_LIBCORE_OPS_CONV_INTERP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// The taps of one axis: `taps` for each output position.
struct InterpAxis {
  int64_t in = 1, out = 1, taps = 1;
  std::vector<int64_t> index = {0};
  std::vector<double> weight = {1};
};

/// The three axes, missing ones of extent 1, and the tensors as [planes,
/// positions, inner].
struct InterpTables {
  InterpAxis d, h, w;
  int64_t planes = 1, inner = 1;
};

/// The tables of an op that resizes float32 `x` to `out`. Unimplemented where a
/// tensor says the scale; InvalidArgument: shapes that do not fit.
absl::StatusOr<InterpTables> ReadInterp(const BindContext& context,
                                        const Shape& x, const Shape& out);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_CONV_INTERP_H_
