// SPDX-License-Identifier: Apache-2.0
// The kind of a file: its first bytes decide, its name only where they
// leave a choice. A kind is a promise of what a reader should be tried on it,
// not that the file is whole.
#ifndef PD_FORMATS_DETECT_H_
#define PD_FORMATS_DETECT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"

namespace pd {

enum class FileKind {
  kUnknown,
  kPdModel,       ///< a ProgramDesc
  kTensorStream,  ///< one or many PaddlePaddle tensors
  kSelectedRows,  ///< PaddlePaddle's SelectedRows
  kPickle,        ///< a state dict or another pickle
  kNpy,
  kNpz,
  kZip,  ///< a zip that is not an npz
  kOnnx,
  kSafetensors,
  kHdf5,
  kIdx,  ///< MNIST's idx
  kPng,
  kJpeg,
  kTiff,
  kWebp,
  kBmp,
  kPnm,
  kGzip,
  kTar,
  kTensorBoard,  ///< event records
  kJson,
  kText,
};

/// "pdmodel", "tensor stream", "npz", ...: as pd-convert prints it.
absl::string_view Name(FileKind kind);

/// The kind of a file with these bytes and this name (its path or base name,
/// "" when it has none).
FileKind DetectKind(absl::string_view bytes, absl::string_view name);

/// DetectKind on a file. Errors of ReadFile.
absl::StatusOr<FileKind> DetectFile(const std::string& path);

}  // namespace pd

#endif  // PD_FORMATS_DETECT_H_
