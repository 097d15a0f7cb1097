// SPDX-License-Identifier: Apache-2.0
// What sequence_pool takes of a sequence.
#ifndef PD_LIBCORE_OPS_SEQUENCE_POOL_H_
#define PD_LIBCORE_OPS_SEQUENCE_POOL_H_

#include "absl/status/statusor.h"
#include "formats/program_desc.h"

namespace pd {

/// The values of the attribute `pooltype`.
enum class SequencePool { kSum, kAverage, kSqrt, kMax, kFirst, kLast };

/// InvalidArgument when it is none of them.
absl::StatusOr<SequencePool> SequencePoolOf(const OpDesc& op);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SEQUENCE_POOL_H_
