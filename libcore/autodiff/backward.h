// SPDX-License-Identifier: Apache-2.0
// append_backward: gradients as ops of the same block, in PaddlePaddle's names
// ("x@GRAD", "x@GRAD@RENAME@block0@1", sums where a variable is read twice).
#ifndef PD_LIBCORE_AUTODIFF_BACKWARD_H_
#define PD_LIBCORE_AUTODIFF_BACKWARD_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

struct BackwardOptions {
  /// Target variable -> variable with its cotangent; "" means ones.
  std::map<std::string, std::string> targets;
  /// Variables to differentiate by, besides the parameters whose stop_gradient
  /// is false. They are differentiated whatever their stop_gradient says.
  std::vector<std::string> wrt;
  /// Variables that get no gradient, as if their stop_gradient were true.
  std::set<std::string> no_grad;
  /// False: parameters are constants, and `wrt` alone is differentiated by.
  bool parameters = true;
};

/// Appends the gradient ops of the targets to block 0, and the gradients of the
/// sub-blocks of while and conditional_block as new blocks. Gives variable ->
/// gradient for every parameter and `wrt` variable that the targets depend on.
/// NotFound for unknown variables; InvalidArgument for targets and `wrt` of
/// integers; Unimplemented naming an op without a gradient on the way, a
/// gradient op too where the program has gradients already.
absl::StatusOr<std::map<std::string, std::string>> AppendBackward(
    const OpRegistry& registry, const BackwardOptions& options,
    ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_AUTODIFF_BACKWARD_H_
