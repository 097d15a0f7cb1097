// SPDX-License-Identifier: Apache-2.0
// The parts of Inspect, for its own files only.
#ifndef PD_LIBCORE_MODEL_INSPECT_INTERNAL_H_
#define PD_LIBCORE_MODEL_INSPECT_INTERNAL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"
#include "libcore/model/inspect.h"
#include "libcore/model/run_checkpoint.h"
#include "libcore/program/prune.h"

namespace pd {

/// An array with its statistics, where the inspection has them.
TensorInfo InfoOf(std::string name, const Array& array,
                  const Inspection& inspection);

/// An ONNX file: its graph and initializers.
absl::Status InspectOnnx(const OpRegistry& registry, const FileBytes& file,
                         Inspection* out);

/// "'path'", for messages.
std::string Quoted(const std::string& path);

bool PathExists(const std::string& path);

/// "PaddlePaddle 2.6.2" for 2006002; "pdkit" for a program that we built.
std::string ProducerOf(const ProgramDesc& program);

/// The facts "class_count" and "classes", the first few names, of the first
/// output that has any.
void AddClasses(const FeedFetch& names, Inspection* out);

/// Takes a program and the values that were found for it into `out`.
absl::Status AddModel(const OpRegistry& registry, ProgramDesc program,
                      const NamedArrays& values, Inspection* out);

/// The file of a program with the parameters beside it.
absl::Status InspectProgram(const OpRegistry& registry, const FileBytes& file,
                            Inspection* out);

/// A run's newest checkpoint, or one that is named.
absl::Status InspectCheckpoint(const OpRegistry& registry,
                               const RunCheckpoint& chosen, Inspection* out);

/// A pickle: a state dict, a nested object, a tensor.
absl::Status InspectPickle(const FileBytes& file, Inspection* out);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_INSPECT_INTERNAL_H_
