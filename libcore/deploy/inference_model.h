// SPDX-License-Identifier: Apache-2.0
// The part of a program that answers: what every exporter writes.
#ifndef PD_LIBCORE_DEPLOY_INFERENCE_MODEL_H_
#define PD_LIBCORE_DEPLOY_INFERENCE_MODEL_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"
#include "libcore/program/prune.h"

namespace pd {

/// A program for inference with what it needs.
struct InferenceModel {
  ProgramDesc program;  ///< without feed and fetch ops
  FeedFetch names;      ///< its inputs and outputs
  NamedArrays params;   ///< the value of every persistable variable
};

/// The inference part of `program` (training or test form): for test, pruned
/// to what `names` say, with the parameters that are left. NotFound for names
/// that the program does not have and parameters without a value;
/// InvalidArgument for a parameter of another dtype or number of elements than
/// declared, and for a fetch that needs more than `feeds`.
absl::StatusOr<InferenceModel> Freeze(const ProgramDesc& program,
                                      const FeedFetch& names,
                                      const NamedArrays& params);

/// Declares inputs with other shapes (-1: known when it runs) and infers all
/// shapes anew. NotFound for a name that is no input; errors of inference name
/// the op that the shape does not fit.
absl::Status SetInputShapes(const OpRegistry& registry,
                            const std::map<std::string, Shape>& shapes,
                            InferenceModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_INFERENCE_MODEL_H_
