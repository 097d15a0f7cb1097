// SPDX-License-Identifier: Apache-2.0
// How the slopes of prelu lie over its input.
#ifndef PD_LIBCORE_OPS_ACTIVATION_PRELU_H_
#define PD_LIBCORE_OPS_ACTIVATION_PRELU_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// X as [outer, n, inner]: Alpha has n elements.
struct Slopes {
  int64_t outer, n, inner;
};

/// InvalidArgument unless `alpha` elements are what the mode wants.
absl::StatusOr<Slopes> ReadSlopes(const OpDesc& op, const Shape& x,
                                  int64_t alpha);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_ACTIVATION_PRELU_H_
