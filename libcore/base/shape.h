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

/// The most bytes that a tensor may have: what a process can address. Products
/// of extents up to this leave room for small factors in 64 bits.
constexpr int64_t kMostBytes = int64_t{1} << 47;

/// Number of elements; every extent must be 0 or more. A shape that
/// CheckedBytes has accepted cannot overflow here; one that nobody has checked
/// gives kMostBytes where it would, so it never looks small.
int64_t NumElements(const Shape& shape);

/// Number of elements of the extents [begin, end).
int64_t NumElements(const Shape& shape, size_t begin, size_t end);

/// NumElements(shape) * element_size, the only place where sizes are computed
/// of what a file, a program, a job or data say: InvalidArgument on a negative
/// extent, OutOfRange above kMostBytes. An extent of 0 does not hide others: it
/// counts as 1 for the limit, so the product of any extents is safe as well.
absl::StatusOr<int64_t> CheckedBytes(const Shape& shape, size_t element_size);

/// The bytes that the extents above 0 stand for, those of 0 and those that are
/// not known yet (below 0) taken for 1; OutOfRange above kMostBytes. What loops
/// may run over, also where a tensor is empty.
absl::StatusOr<int64_t> BytesOfExtents(const Shape& shape, size_t element_size);

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
