// SPDX-License-Identifier: Apache-2.0
// Inference models as folders of C++ sources: the runtime's, of the kernels
// that the model needs, and the bundle itself.
#ifndef PD_LIBCORE_BUNDLE_C_WRITER_H_
#define PD_LIBCORE_BUNDLE_C_WRITER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/bundle/bundle_writer.h"

namespace pd {

/// Writes FOLDER/CMakeLists.txt, README.md, main.cc, model.cc and the runtime's
/// sources; a bundle of more than a MiB becomes FOLDER/model.pdb, a smaller one
/// is part of model.cc. The files replace old ones together. Errors of
/// LowerModel; InvalidArgument for a folder that is a device or standard
/// output.
absl::Status WriteSourceFolder(const OpRegistry& registry,
                               const InferenceModel& model,
                               const std::string& folder);

/// The names of the runtime's sources that a model with these kernels needs.
std::vector<std::string> SourcesFor(const std::vector<std::string>& kernels);

}  // namespace pd

#endif  // PD_LIBCORE_BUNDLE_C_WRITER_H_
