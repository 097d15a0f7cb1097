// SPDX-License-Identifier: Apache-2.0
// How a job uses a block: which one a name means, and what arguments set in
// it. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_BLOCK_USE_H_
#define PD_LIBCORE_NN_BLOCK_USE_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job_model.pb.h"

namespace pd {

/// The block that `use` names: the job's, else one of the zoo. A block of the
/// zoo sees only the zoo's. InvalidArgument with the nearest name.
absl::StatusOr<const job::Block*> FindBlock(const LoadedJob& job,
                                            const std::string& use,
                                            bool from_zoo);

/// Sets the fields of `block`, a copy of `written`, that the arguments of `use`
/// name ("channels=64"); `left_out` gets the layers that a value of 0 takes
/// away. InvalidArgument names the argument and the field.
absl::Status SetArguments(const job::UseBlock& use, const job::Block& written,
                          job::Block* block, std::set<std::string>* left_out);

}  // namespace pd

#endif  // PD_LIBCORE_NN_BLOCK_USE_H_
