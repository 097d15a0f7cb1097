// SPDX-License-Identifier: Apache-2.0
// The control flow of TensorFlow 1: loops are frames (Enter, Merge, LoopCond,
// Switch, NextIteration, Exit), branches are values that a Switch hands to one
// side and a Merge takes from whichever side ran. Both become the nodes While
// and Case, whose functions have the nodes of a round or a branch.
#ifndef PD_LIBCORE_DEPLOY_TENSORFLOW_IMPORT_FRAMES_H_
#define PD_LIBCORE_DEPLOY_TENSORFLOW_IMPORT_FRAMES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/tensorflow_file.h"

namespace pd {

/// Whether nodes of the graph itself, functions apart, are such.
bool HasTfFrames(const TfGraph& graph);

/// The same graph with the loops and branches that `wanted` values ("NODE:1")
/// need as nodes While and Case; their Exits and Merges are Identity.
/// Unimplemented or DataLoss for those that have another form than TensorFlow
/// gives them.
absl::StatusOr<TfGraph> FramesAsFunctions(
    const TfGraph& graph, const std::vector<std::string>& wanted);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_TENSORFLOW_IMPORT_FRAMES_H_
