// SPDX-License-Identifier: Apache-2.0
// Matrices of derivatives, a row a run: paddle.incubate.autograd's Jacobian and
// Hessian, in their shapes.
#ifndef PD_CMD_DERIVATIVE_MATRIX_H_
#define PD_CMD_DERIVATIVE_MATRIX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/exec/session.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Where a program is differentiated, and by what.
struct MatrixInput {
  const OpRegistry& registry;
  const ProgramDesc& program;
  const NamedArrays& feeds;
  Session* session;              ///< has the parameters
  std::vector<std::string> wrt;  ///< variables, whose elements are columns
  /// The first axis of the output and of every `wrt` counts records, which do
  /// not depend on each other.
  bool batched = false;
};

/// [M, N] for M elements of the output and N of all `wrt`, in their order; with
/// `batched` [B, M, N] for an output of B records with M elements each. Zeros
/// where the output does not depend on a variable. Usage errors for
/// variables that do not fit and for matrices that memory cannot hold.
absl::StatusOr<Array> JacobianOf(const std::string& output,
                                 const MatrixInput& input);

/// [N, N] for an output of one element; with `batched` [B, N, N] for one of an
/// element for each record.
absl::StatusOr<Array> HessianOf(const std::string& output,
                                const MatrixInput& input);

}  // namespace pd

#endif  // PD_CMD_DERIVATIVE_MATRIX_H_
