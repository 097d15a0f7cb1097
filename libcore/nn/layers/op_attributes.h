// SPDX-License-Identifier: Apache-2.0
// Attributes of operators from the words of a job file. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_OP_ATTRIBUTES_H_
#define PD_LIBCORE_NN_LAYERS_OP_ATTRIBUTES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ops/op_def.h"

namespace pd {

/// The value of the attribute `def` from the words of a job: "-1", "true",
/// "ortho"; several for a list. An int whose name ends in "dtype" takes an
/// element type's name too. InvalidArgument "attribute 'axis' is an int; got
/// 'x'".
absl::StatusOr<Attribute> ReadAttribute(const AttrDef& def,
                                        const std::vector<std::string>& words);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_OP_ATTRIBUTES_H_
