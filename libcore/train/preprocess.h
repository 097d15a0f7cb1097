// SPDX-License-Identifier: Apache-2.0
// How the inputs of an exported model are made from data, beside the model:
//
//   OUT.preprocess.pbtxt   the job without what training alone needs: fields,
//                          transforms, padding, and the loss and metrics by
//                          which an answer is known for a class or a number
//   OUT.preprocess/        the words, classes and columns that the run kept, in
//                          its folders (run_vocabularies.h)
//
// The file is a job: -c takes it like any other.
#ifndef PD_LIBCORE_TRAIN_PREPROCESS_H_
#define PD_LIBCORE_TRAIN_PREPROCESS_H_

#include <string>

#include "absl/status/status.h"
#include "libcore/nn/job.h"

namespace pd {

/// The file beside the model whose file is `model`: "a/m.preprocess.pbtxt" of
/// "a/m.pdmodel" and "a/m.onnx", "a/preprocess.pbtxt" of "a/__model__".
std::string PreprocessPath(const std::string& model);

/// The folder that holds the names beside the file `preprocess`; "" where that
/// is no such file or there is no folder.
std::string NamesOfPreprocess(const std::string& preprocess);

/// Writes `path`, a PreprocessPath, and copies the names that `run` ("": none)
/// keeps; what an earlier export left there goes.
absl::Status WritePreprocess(const LoadedJob& job, const std::string& run,
                             const std::string& path);

/// Removes what WritePreprocess wrote, so that no other model's stays behind.
absl::Status RemovePreprocess(const std::string& path);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_PREPROCESS_H_
