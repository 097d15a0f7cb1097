// SPDX-License-Identifier: Apache-2.0
// Comparing arrays the way PaddlePaddle's tests do, with a message that says
// which element is worst.
#ifndef PD_TESTS_OPS_COMPARE_H_
#define PD_TESTS_OPS_COMPARE_H_

#include <string>

#include "libcore/ir/array.h"

namespace pd {

/// "" when every |got - want| <= atol + rtol * |want|, NaN meets NaN and an
/// infinity its like; else one line: shapes or dtypes that differ, or how many
/// elements do, and the worst with its index and both values.
std::string Difference(const Array& got, const Array& want, double rtol,
                       double atol);

}  // namespace pd

#endif  // PD_TESTS_OPS_COMPARE_H_
