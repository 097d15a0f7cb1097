// SPDX-License-Identifier: Apache-2.0
// Random values for a program's feeds: what a benchmark computes with.
#ifndef PD_LIBCORE_TRAIN_SYNTHETIC_BATCH_H_
#define PD_LIBCORE_TRAIN_SYNTHETIC_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/exec/plan.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Floats are standard normal, but 0 or 1 where they label probabilities.
/// Integers are below the rows of the tables, or the classes, that they choose
/// from: each column of the last axis has a bound of its own where `program`
/// takes a feed apart. Other integers are 0 or 1. An error names the feed that
/// is larger than memory.
absl::StatusOr<NamedArrays> SyntheticBatch(const ProgramDesc& program,
                                           const std::vector<FeedSpec>& feeds,
                                           uint64_t seed, uint64_t number);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_SYNTHETIC_BATCH_H_
