// SPDX-License-Identifier: Apache-2.0
// MATLAB's .mat files of version 5 (MATLAB 5 to 7), compressed or not: their
// arrays of real numbers, which is what data sets keep in them. Other arrays
// (text aside: cells, structs, sparse, complex) are left out.
#ifndef PD_FORMATS_MAT_H_
#define PD_FORMATS_MAT_H_

#include <string>

#include "absl/status/statusor.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

/// The arrays of numbers by name, as float64, row-major. DataLoss when the file
/// is truncated or damaged, Unimplemented for version 7.3, which is HDF5, and
/// for integers that a double does not hold.
absl::StatusOr<NamedArrays> ParseMat(const FileBytes& file);

/// ParseMat of the file `path`; messages name it.
absl::StatusOr<NamedArrays> ReadMat(const std::string& path);

}  // namespace pd

#endif  // PD_FORMATS_MAT_H_
