// SPDX-License-Identifier: Apache-2.0
// What kldiv_loss makes of its sum.
#ifndef PD_LIBCORE_OPS_KLDIV_LOSS_H_
#define PD_LIBCORE_OPS_KLDIV_LOSS_H_

#include "absl/status/statusor.h"
#include "formats/program_desc.h"
#include "libcore/base/shape.h"

namespace pd {

/// What the sum is divided by; 0: it is not summed. InvalidArgument on an
/// unknown reduction.
absl::StatusOr<double> KldivDivisor(const OpDesc& op, const Shape& x);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_KLDIV_LOSS_H_
