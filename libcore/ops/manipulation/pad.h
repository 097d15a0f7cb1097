// SPDX-License-Identifier: Apache-2.0
// Where pad, pad2d and pad3d take elements from. Shared by their
// implementations.
#ifndef PD_LIBCORE_OPS_MANIPULATION_PAD_H_
#define PD_LIBCORE_OPS_MANIPULATION_PAD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// For each place along an axis of Out, where it comes from; -1: the value.
using PadSources = std::vector<std::vector<int64_t>>;

/// By the attribute 'paddings'. InvalidArgument where the shapes do not fit.
absl::StatusOr<PadSources> ReadPadSources(const OpDesc& op, const Shape& x,
                                          const Shape& out);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_MANIPULATION_PAD_H_
