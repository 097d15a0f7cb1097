// SPDX-License-Identifier: Apache-2.0
// Shapes: a list of extents, outermost first. An empty list is a scalar.
#ifndef PD_LIBCORE_BASE_SHAPE_H_
#define PD_LIBCORE_BASE_SHAPE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace pd {

/// Extents, outermost first. In Programs -1 is "known only when it runs"; in
/// tensors every extent is 0 or more.
using Shape = std::vector<int64_t>;

/// Levels of offsets into the first dimension, outermost level first; each
/// level starts at 0, never falls, and ends at the rows of the next one.
using LoD = std::vector<std::vector<uint64_t>>;

/// "[64, 1, 28, 28]"; "[]" for a scalar.
std::string ToString(const Shape& shape);

/// Number of elements; every extent must be 0 or more.
int64_t NumElements(const Shape& shape);

/// Number of elements of the extents [begin, end).
int64_t NumElements(const Shape& shape, size_t begin, size_t end);

/// NumElements(shape) * element_size for a shape out of a file:
/// InvalidArgument on a negative extent, OutOfRange when it overflows.
absl::StatusOr<int64_t> CheckedBytes(const Shape& shape, size_t element_size);

/// True when an extent is -1.
bool IsDynamic(const Shape& shape);

/// Row-major strides in elements.
std::vector<int64_t> RowMajorStrides(const Shape& shape);

/// `axis` in [-rank, rank) made non-negative; InvalidArgument names `op` and
/// the attribute when it is outside.
absl::StatusOr<int> NormalizeAxis(int64_t axis, size_t rank,
                                  const char* attribute = "axis");

}  // namespace pd

#endif  // PD_LIBCORE_BASE_SHAPE_H_
