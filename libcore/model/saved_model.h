// SPDX-License-Identifier: Apache-2.0
// TensorFlow's SavedModels and checkpoints, which are several files.
#ifndef PD_LIBCORE_MODEL_SAVED_MODEL_H_
#define PD_LIBCORE_MODEL_SAVED_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "formats/onnx_file.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

/// The file of a SavedModel's graph in `folder`; "" when it has none.
std::string SavedModelIn(const std::string& folder);

/// The network of the saved_model.pb `path` with the variables beside it.
/// Errors of other files name them.
absl::StatusOr<OnnxFile> ReadSavedModel(const std::string& path,
                                        const FileBytes& bytes);

/// The tensors of the index `path` of variables, by key. Texts are left out.
absl::StatusOr<NamedArrays> ReadTensorBundle(const std::string& path,
                                             const FileBytes& index);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_SAVED_MODEL_H_
