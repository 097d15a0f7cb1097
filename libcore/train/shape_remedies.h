// SPDX-License-Identifier: Apache-2.0
// Parameters whose shapes differ from those of a source, and what to do about
// each of them.
#ifndef PD_LIBCORE_TRAIN_SHAPE_REMEDIES_H_
#define PD_LIBCORE_TRAIN_SHAPE_REMEDIES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/program_desc.h"
#include "libcore/program/match_params.h"
#include "libcore/train/initial_values.h"

namespace pd {

/// The field of `from`, as its writer says it: "skip:" in a job, "--init-skip"
/// on the command line.
std::string InitOption(const InitialParameters& from, absl::string_view field);

/// Whether `test` multiplies by the matrix `name` as linear layers do.
bool IsLinearWeight(const ProgramDesc& test, const std::string& name);

/// InvalidArgument with both shapes of each parameter, the layer's field that
/// makes it as in the file, where one does, and the patterns that leave it out
/// or transpose it. `path` is the source's file.
absl::Status ShapeError(const ProgramDesc& test, const InitialParameters& from,
                        const std::string& path,
                        const std::vector<ParamMatch::Misshapen>& wrong);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_SHAPE_REMEDIES_H_
