// SPDX-License-Identifier: Apache-2.0
// The fast answer to "is every element finite?", at the speed of memory: the
// largest magnitude as an integer compare of the bits without their sign, which
// puts infinities above every number and NaN above those. No floating point
// instruction is run, so denormals cost nothing and no compiler flag matters.
#ifndef PD_LIBCORE_TENSOR_MAGNITUDE_H_
#define PD_LIBCORE_TENSOR_MAGNITUDE_H_

#include <cstdint>

#include "libcore/base/dtype.h"

namespace pd {

/// The largest |x| among `n` elements at any address: infinite where one is
/// infinite, NaN where one is NaN, 0 for none. Complex elements count as two
/// numbers. Integers and bools give 0: they are always finite. The result does
/// not depend on the number of threads.
double LargestMagnitude(DType dtype, const void* data, int64_t n);

}  // namespace pd

#endif  // PD_LIBCORE_TENSOR_MAGNITUDE_H_
