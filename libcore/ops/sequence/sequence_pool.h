// SPDX-License-Identifier: Apache-2.0
// The pooling types of sequence_pool.
#ifndef PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_POOL_H_
#define PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_POOL_H_

#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// The values of the attribute `pooltype`.
enum class SequencePool { kSum, kAverage, kSqrt, kMax, kFirst, kLast };

/// InvalidArgument when it is none of them.
absl::StatusOr<SequencePool> SequencePoolOf(const OpDesc& op);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_POOL_H_
