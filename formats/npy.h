// SPDX-License-Identifier: Apache-2.0
// `.npy`, numpy's file of one array, format versions 1 to 3: a header (a
// Python dict literal of which exactly three keys are read) and the elements.
#ifndef PD_FORMATS_NPY_H_
#define PD_FORMATS_NPY_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/raw_array.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

/// The header before the elements.
struct NpyHeader {
  RawLayout layout;
  Shape shape;
  size_t header_bytes = 0;  ///< where the elements start
  size_t data_bytes = 0;    ///< of the elements
};

/// The first bytes of every .npy file.
inline constexpr absl::string_view kNpyMagic = "\x93NUMPY";

/// Whether bytes begin as a .npy file does.
bool IsNpy(absl::string_view bytes);

/// How many bytes of a file NpyHeader takes, from its first 12. DataLoss when
/// they are not those of a .npy file.
absl::StatusOr<size_t> NpyHeaderBytes(absl::string_view start);

/// The header at the start of `bytes`. DataLoss when it is damaged,
/// InvalidArgument for object arrays, Unimplemented for types without a DType.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes);

/// The header that numpy writes for `array`: version 1.0, data 64-byte aligned.
std::string FormatNpyHeader(const Array& array);

/// The array in the bytes of a file: a view of them where possible. Errors of
/// ParseNpyHeader; DataLoss when the file is shorter or longer than it says.
absl::StatusOr<Array> ParseNpy(const FileBytes& file,
                               Alignment alignment = Alignment::kNatural);

/// ParseNpy on a file; messages name the path.
absl::StatusOr<Array> ReadNpy(const std::string& path);

/// Writes what numpy.save writes.
absl::Status WriteNpy(const std::string& path, const Array& array);

}  // namespace pd

#endif  // PD_FORMATS_NPY_H_
