// SPDX-License-Identifier: Apache-2.0
// Products of a Jacobian with a vector, from gradients alone: what backward
// ops make of a cotangent is linear in it, and the gradient of that by the
// cotangent is the product. PaddlePaddle's paddle.incubate.autograd.jvp does
// the same.
#ifndef PD_LIBCORE_AUTODIFF_JVP_H_
#define PD_LIBCORE_AUTODIFF_JVP_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

struct JvpOptions {
  std::vector<std::string> outputs;
  /// Variable to differentiate by -> variable with its tangent, which has its
  /// shape; "" means ones.
  std::map<std::string, std::string> tangents;
};

/// Appends ops to block 0 that compute how the outputs change along the
/// tangents. Gives output -> variable, of the output's shape; zeros where an
/// output does not depend on what is differentiated by. Errors are those of
/// AppendBackward.
absl::StatusOr<std::map<std::string, std::string>> AppendJvp(
    const OpRegistry& registry, const JvpOptions& options,
    ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_AUTODIFF_JVP_H_
