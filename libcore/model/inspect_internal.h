// SPDX-License-Identifier: Apache-2.0
// The parts of Inspect, for its own files only.
#ifndef PD_LIBCORE_MODEL_INSPECT_INTERNAL_H_
#define PD_LIBCORE_MODEL_INSPECT_INTERNAL_H_

#include <string>

#include "absl/status/status.h"
#include "libcore/ir/array.h"
#include "libcore/model/content.h"
#include "libcore/model/inspect.h"
#include "libcore/program/prune.h"

namespace pd {

/// An array with its statistics, where the inspection has them.
TensorInfo InfoOf(std::string name, const Array& array,
                  const Inspection& inspection);

/// "PaddlePaddle 2.6.2" for 2006002; "pdkit" for a program that we built.
std::string ProducerOf(const ProgramDesc& program);

/// The facts "class_count" and "classes", the first few names, of the first
/// output that has any.
void AddClasses(const FeedFetch& names, Inspection* out);

/// The chosen checkpoint of a run and its state.
void AddCheckpoint(const Content& content, Inspection* out);

/// A program and the values that were found for it.
absl::Status InspectProgram(const OpRegistry& registry, Content content,
                            Inspection* out);

/// An ONNX file: its graph and initializers.
absl::Status InspectOnnx(const OpRegistry& registry, const Content& content,
                         Inspection* out);

/// A pickle: a state dict, a nested object, a tensor.
absl::Status InspectPickle(const Content& content, Inspection* out);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_INSPECT_INTERNAL_H_
