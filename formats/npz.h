// SPDX-License-Identifier: Apache-2.0
// `.npz`: a zip of .npy files, stored or deflated. An entry is inflated only
// when its own header, the zip's sizes and the file's length agree, so a small
// file cannot ask for more memory than deflate could have packed into it.
#ifndef PD_FORMATS_NPZ_H_
#define PD_FORMATS_NPZ_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/array.h"
#include "libcore/base/file.h"

namespace pd {

/// The arrays in the bytes of a file, by name without ".npy". DataLoss when
/// the zip or an entry is damaged; InvalidArgument for object arrays, two
/// entries of one name, entries that are not .npy; errors name the entry.
absl::StatusOr<NamedArrays> ParseNpz(const FileBytes& file);

/// ParseNpz on a file; messages name the path.
absl::StatusOr<NamedArrays> ReadNpz(const std::string& path);

/// Writes a stored npz, the same bytes for the same arrays.
absl::Status WriteNpz(const std::string& path, const NamedArrays& arrays);

}  // namespace pd

#endif  // PD_FORMATS_NPZ_H_
