// SPDX-License-Identifier: Apache-2.0
// Which ops compute otherwise in training than in evaluation.
#ifndef PD_LIBCORE_PROGRAM_TEST_MODE_H_
#define PD_LIBCORE_PROGRAM_TEST_MODE_H_

#include "libcore/ir/program_desc.h"

namespace pd {

/// Whether an attribute `is_test`, which programs may leave at its default,
/// changes what the op computes.
bool HasTestMode(const OpDesc& op);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_TEST_MODE_H_
