// SPDX-License-Identifier: Apache-2.0
// pd-eval's options --grad, --jvp, --jacobian and --hessian: which ops they add
// to a program, and what their results are called.
#ifndef PD_CMD_EVAL_DERIVATIVES_H_
#define PD_CMD_EVAL_DERIVATIVES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cmd/eval_options.h"
#include "cmd/run_network.h"
#include "libcore/exec/session.h"
#include "libcore/ir/array.h"
#include "libcore/model/load_model.h"
#include "libcore/ops/registry.h"

namespace pd {

/// Results of one run: their names, and the variables that hold them. A
/// variable may have several names.
struct NamedFetches {
  std::vector<std::string> names, variables;

  void Add(std::string name, std::string variable) {
    names.push_back(std::move(name));
    variables.push_back(std::move(variable));
  }
};

/// A model, and what it is differentiated at.
struct DerivativeInput {
  const OpRegistry& registry;
  const NetworkOfJob& network;
  LoadedModel* model;
  NamedArrays* feeds;
};

/// True for --jacobian and --hessian, which take a run for each row.
bool AsksMatrix(const EvalOptions& options);

/// --grad and --jvp: appends what they ask for to the model's program, and
/// declares cotangents and tangents, whose arrays get the dtype that they need.
/// A gradient is called as its variable and, unless a result has that name,
/// NAME@GRAD; a jvp OUT@JVP. Usage errors for names, dtypes, shapes and outputs
/// that do not depend on what is differentiated by.
absl::StatusOr<NamedFetches> AppendDerivatives(const EvalOptions& options,
                                               DerivativeInput input);

/// --jacobian and --hessian: OUT@JACOBIAN for each output, OUT@HESSIAN. Columns
/// are the elements of all variables differentiated by, rows those of the
/// output or, of a Hessian, of these variables again.
absl::StatusOr<NamedArrays> ComputeMatrices(const EvalOptions& options,
                                            DerivativeInput input,
                                            Session* session);

}  // namespace pd

#endif  // PD_CMD_EVAL_DERIVATIVES_H_
