// SPDX-License-Identifier: Apache-2.0
// An update that processes share: each parameter, with the states of the
// optimizer that belong to it, has one process that updates it. Parameters are
// not cut, so that the ops of a share are those of the whole update, and so are
// its bits.
#ifndef PD_LIBCORE_TRAIN_SHARDED_UPDATE_H_
#define PD_LIBCORE_TRAIN_SHARDED_UPDATE_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"
#include "libcore/train/train_program.h"

namespace pd {

/// A parameter and the variables that only its update uses.
struct UpdateGroup {
  std::string parameter;
  std::vector<std::string> states;
  int64_t bytes = 0;        ///< of all of them
  int64_t state_bytes = 0;  ///< of the states
};

/// The parts of `update` that do not depend on each other, of the parameters in
/// their order. Unimplemented where an op changes two parameters at once.
absl::StatusOr<std::vector<UpdateGroup>> GroupsOf(
    const ProgramDesc& update, const std::vector<std::string>& parameters);

/// For each group its process: the largest first, each to the one that has the
/// fewest bytes so far.
std::vector<int> DivideGroups(const std::vector<UpdateGroup>& groups, int size);

/// The variables that ops of the program read or write, those of blocks too.
std::set<std::string> VariablesUsedBy(const ProgramDesc& program);

/// The update in parts, one for each of `count` buckets of gradients, of which
/// `buckets` says that of each parameter's: a part reads the gradients of its
/// bucket alone, and the last one has what belongs to no parameter. Where an
/// update cannot be taken apart so, as with a clip by the norm of all
/// gradients, all of it is the last part.
absl::StatusOr<std::vector<ProgramDesc>> SplitUpdate(
    const ProgramDesc& update,
    const std::vector<std::pair<std::string, std::string>>& gradients,
    const std::vector<size_t>& buckets, size_t count);

/// Fills in program->shards->sharding and leaves in the update and in the
/// startup program what process `rank` of `size` computes and holds. Ops of the
/// update from `averages` on need all parameters. Unimplemented where the
/// update has no parts, and in stage 2 where one needs more of another's
/// gradient than its norm.
absl::Status TakeShare(int stage, size_t averages, int rank, int size,
                       TrainProgram* program);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_SHARDED_UPDATE_H_
