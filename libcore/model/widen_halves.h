// SPDX-License-Identifier: Apache-2.0
// A network of 16-bit numbers as one of float32, which training goes on from.
#ifndef PD_LIBCORE_MODEL_WIDEN_HALVES_H_
#define PD_LIBCORE_MODEL_WIDEN_HALVES_H_

#include "absl/status/status.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Makes the fp16 and bf16 variables of `program` float32, the element types
/// that attributes of its ops name too, and widens those of `params`, which is
/// exact. An error of NewArray where memory is lacking.
absl::Status WidenHalves(ProgramDesc* program, NamedArrays* params);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_WIDEN_HALVES_H_
