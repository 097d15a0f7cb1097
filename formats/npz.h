// SPDX-License-Identifier: Apache-2.0
// `.npz`: a zip of .npy files, stored or deflated. An entry is inflated only
// when its own header, the zip's sizes and the file's length agree, so a small
// file cannot ask for more memory than deflate could have packed into it.
#ifndef PD_FORMATS_NPZ_H_
#define PD_FORMATS_NPZ_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

/// Whether bytes begin as a zip does whose first entry is an array.
bool IsNpz(absl::string_view bytes);

/// The arrays in the bytes of a file, by name without ".npy". DataLoss when
/// the zip or an entry is damaged; InvalidArgument for object arrays, two
/// entries of one name, entries that are not .npy; errors name the entry.
absl::StatusOr<NamedArrays> ParseNpz(const FileBytes& file);

/// The array of an npz, uint8, that is no data: how pd-convert says what the
/// others belong to.
inline constexpr absl::string_view kNpzSideName = "__pdkit_tree__";

/// ParseNpz on a file, without the array kNpzSideName; messages name the path.
absl::StatusOr<NamedArrays> ReadNpz(const std::string& path);

/// A piece of an array of an npz.
struct ArrayBlock {
  const std::string& name;  ///< of the array, without ".npy"
  const Shape& shape;       ///< of the whole array
  /// One axis: the elements as they follow in the file, until `see` returns.
  const Array& values;
  bool last = false;  ///< no more of this array comes
};

/// ParseNpz, array by array in the file's order and `elements` of one at a
/// time: a small file of many zeros takes no memory. Arrays without elements
/// have one block without any. Errors of ParseNpz, and of `see`.
absl::Status ScanNpz(const FileBytes& file, int64_t elements,
                     const std::function<absl::Status(const ArrayBlock&)>& see);

/// Writes a stored npz, the same bytes for the same arrays.
absl::Status WriteNpz(const std::string& path, const NamedArrays& arrays);

}  // namespace pd

#endif  // PD_FORMATS_NPZ_H_
