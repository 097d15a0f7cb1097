// SPDX-License-Identifier: Apache-2.0
// The ends of a model that pd-export writes: which inputs and outputs it has,
// how they are called, and what stands before and behind the network.
#ifndef PD_CMD_EXPORT_ENDS_H_
#define PD_CMD_EXPORT_ENDS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cmd/export_options.h"
#include "cmd/run_network.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/ops/registry.h"
#include "libcore/program/prune.h"

namespace pd {

/// The inputs that --input names, with the shapes and element types that it
/// gives some of them.
struct InputsAsked {
  std::vector<std::string> names;
  std::map<std::string, Shape> shapes;
  std::map<std::string, DType> dtypes;
};

/// From "x", "x=-1,3,224,224", "x=:uint8" or "x=-1,64:int32".
absl::StatusOr<InputsAsked> ParseInputs(const std::vector<std::string>& texts);

/// Inputs or outputs, as they were asked for and as variables.
struct Ends {
  std::vector<std::string> asked, variables;
};

/// Finds the variables that the names of variables and layers stand for.
/// NotFound as in VariablesNamed, InvalidArgument where two are one variable.
absl::StatusOr<Ends> EndsNamed(std::vector<std::string> names,
                               const ProgramDesc& program,
                               const NetworkOfJob& network);

/// The shapes and types that --input gives `inputs`, by variable.
InputsAsked OfVariables(const InputsAsked& asked, const Ends& inputs);

/// Declares inputs as --input asks for them.
absl::Status SetInputs(const OpRegistry& registry, const InputsAsked& asked,
                       InferenceModel* model);

/// Calls inputs and outputs as they were asked for, other outputs as the layers
/// that give them, unless something else of the model has that name.
void NameEnds(const NetworkOfJob& network, const Ends& inputs,
              const Ends& outputs, InferenceModel* model);

/// Puts around the network what --with-softmax and --with-transforms ask for.
absl::Status AddAround(const ExportOptions& options, const OpRegistry& registry,
                       const LoadedModel& loaded, const NetworkOfJob& network,
                       InferenceModel* model);

}  // namespace pd

#endif  // PD_CMD_EXPORT_ENDS_H_
