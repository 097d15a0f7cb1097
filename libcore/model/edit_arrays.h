// SPDX-License-Identifier: Apache-2.0
// Parameters made of other parameters: transposed, in another element type,
// averaged.
#ifndef PD_LIBCORE_MODEL_EDIT_ARRAYS_H_
#define PD_LIBCORE_MODEL_EDIT_ARRAYS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ir/array.h"

namespace pd {

/// The matrix [n, m] of a matrix [m, n], of any element type. An error of
/// NewArray where memory is lacking.
absl::StatusOr<Array> Transposed(const Array& matrix);

/// The values of `array` in the floating type `to`, rounded to nearest; `array`
/// itself where it has that type. Halves go through float32. Both types are
/// floating, else Unimplemented.
absl::StatusOr<Array> InFloatingType(const Array& array, DType to);

/// The mean, element by element, of arrays of one shape and one floating type;
/// sums are taken in float64 in the order of `arrays`, of which there is at
/// least one.
absl::StatusOr<Array> MeanOf(const std::vector<const Array*>& arrays);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_EDIT_ARRAYS_H_
