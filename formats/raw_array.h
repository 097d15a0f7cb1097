// SPDX-License-Identifier: Apache-2.0
// From the bytes of an array as a file holds them (either byte order, C or
// Fortran order) to an Array. Bytes that are right as they lie are not copied.
#ifndef PD_FORMATS_RAW_ARRAY_H_
#define PD_FORMATS_RAW_ARRAY_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/array.h"

namespace pd {

/// Where a view's elements may lie. Whoever only moves bytes, or loads elements
/// with memcpy, takes them at any address and so never copies a large file.
enum class Alignment { kNatural, kAny };

/// How a file holds an array's elements.
struct RawLayout {
  DType dtype = DType::kFloat32;
  bool big_endian = false;
  bool fortran_order = false;
  Alignment alignment = Alignment::kNatural;
};

/// numpy's spelling of an element type, such as "<f4", "|b1", ">i8". uint16
/// and two raw bytes ("<V2") are bfloat16: PaddlePaddle and ml_dtypes store it
/// so. InvalidArgument for object arrays, Unimplemented for types without a
/// DType.
absl::StatusOr<RawLayout> ParseNumpyDtype(absl::string_view descr);

/// The reverse: "<f4", "|b1", "<u2" for bfloat16.
std::string NumpyDtype(DType dtype);

/// The array whose elements start at `bytes`, of which `available` are there:
/// a view where order and alignment permit, else a copy. bool bytes other than
/// 0 and 1 become 1. InvalidArgument on a negative extent, OutOfRange when the
/// shape overflows, DataLoss when fewer bytes are there than it takes.
absl::StatusOr<Array> ArrayFromRaw(std::shared_ptr<const std::byte> bytes,
                                   size_t available, const RawLayout& layout,
                                   Shape shape);

}  // namespace pd

#endif  // PD_FORMATS_RAW_ARRAY_H_
