// SPDX-License-Identifier: Apache-2.0
// Shapes and element types as messages of HDF5 say them.
#ifndef PD_FORMATS_HDF5_TYPES_H_
#define PD_FORMATS_HDF5_TYPES_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/byte_reader.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"

namespace pd {

/// The elements of a dataset or an attribute.
struct Hdf5Type {
  enum class Kind { kNumber, kText, kTextElsewhere, kOther };
  Kind kind = Kind::kOther;
  DType dtype = DType::kFloat32;  ///< of kNumber
  uint64_t size = 0;
};

/// A cursor over bytes that outlive it.
ByteReader CursorOver(absl::string_view bytes);

/// DataLoss for a message that ends early, Unimplemented for versions that
/// nobody writes.
absl::StatusOr<Shape> ParseDataspace(absl::string_view message);

/// kOther for types that nobody asks for.
absl::StatusOr<Hdf5Type> ParseDatatype(absl::string_view message);

}  // namespace pd

#endif  // PD_FORMATS_HDF5_TYPES_H_
