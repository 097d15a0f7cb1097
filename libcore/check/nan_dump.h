// SPDX-License-Identifier: Apache-2.0
// The op that made a bad number as a model of its own, to be run again.
#ifndef PD_LIBCORE_CHECK_NAN_DUMP_H_
#define PD_LIBCORE_CHECK_NAN_DUMP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/check/nan_finding.h"

namespace pd {

/// Writes into `folder`, which is made: op.pdmodel, a program of this op alone
/// with its inputs as feeds and its outputs as fetches; inputs.npz, what it
/// read; inputs.lod.json where those are sequences; outputs.npz, what it wrote.
/// Gives their paths. Unimplemented for an op that reads selected rows or
/// tensor arrays, or whose inputs were not kept.
absl::StatusOr<std::vector<std::string>> DumpFinding(const NanFinding& finding,
                                                     const std::string& folder);

}  // namespace pd

#endif  // PD_LIBCORE_CHECK_NAN_DUMP_H_
