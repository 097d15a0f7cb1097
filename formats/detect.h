// SPDX-License-Identifier: Apache-2.0
// The format of a file: its first bytes decide, its name only where they leave
// a choice. The answer is a promise of what a reader should be tried on it, not
// that the file is whole.
#ifndef PD_FORMATS_DETECT_H_
#define PD_FORMATS_DETECT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/format_table.h"
#include "libcore/base/file.h"

namespace pd {

/// The row of a file with these bytes and this name (its path or base name, ""
/// when it has none); one of kind kUnknown when nothing fits.
const FileFormat& DetectFormat(absl::string_view bytes, absl::string_view name);

/// The kind in that row.
FileKind DetectKind(absl::string_view bytes, absl::string_view name);

/// DetectKind on a file. Errors of ReadFile.
absl::StatusOr<FileKind> DetectFile(const std::string& path);

/// "pdmodel", "tensor stream", "npz", "image", "unknown", ...
absl::string_view Name(FileKind kind);

}  // namespace pd

#endif  // PD_FORMATS_DETECT_H_
