// SPDX-License-Identifier: Apache-2.0
// The reduction of kldiv_loss.
#ifndef PD_LIBCORE_OPS_LOSS_KLDIV_LOSS_H_
#define PD_LIBCORE_OPS_LOSS_KLDIV_LOSS_H_

#include "absl/status/statusor.h"
#include "libcore/base/shape.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// The divisor of the sum; 0: no sum is taken. InvalidArgument on an
/// unknown reduction.
absl::StatusOr<double> KldivDivisor(const OpDesc& op, const Shape& x);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LOSS_KLDIV_LOSS_H_
