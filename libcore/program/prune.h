// SPDX-License-Identifier: Apache-2.0
// From a program to a part of it: the test form of a training program, what
// some fetches need, with and without PaddlePaddle's feed and fetch ops.
#ifndef PD_LIBCORE_PROGRAM_PRUNE_H_
#define PD_LIBCORE_PROGRAM_PRUNE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Names of the variables that go in and come out, in column order.
struct FeedFetch {
  std::vector<std::string> feeds, fetches;
  /// By fetch: the names of the classes that it answers with, by number, where
  /// they are known.
  std::map<std::string, std::vector<std::string>> classes = {};
};

/// The program as evaluation runs it, PaddlePaddle's clone(for_test=True):
/// without backward, optimizer and schedule ops, `is_test` set where an op has
/// it, without what nothing uses any more.
ProgramDesc CloneForTest(const ProgramDesc& program);

/// The ops of block 0 that `fetches` need when `feeds` are given, with their
/// sub-blocks and the variables that they use. An op that makes a feed is left
/// out, so a program can be cut in the middle; one that overwrites a variable
/// that is there to be fed is not. NotFound for names that the
/// program does not have; InvalidArgument when a fetch needs a variable that is
/// neither fed, nor made, nor persistable. Feed and fetch ops are left out.
absl::StatusOr<ProgramDesc> Prune(const ProgramDesc& program,
                                  const std::vector<std::string>& feeds,
                                  const std::vector<std::string>& fetches);

/// The names of `feeds`, in their order, that `fetches` depend on. Errors are
/// those of Prune.
absl::StatusOr<std::vector<std::string>> FeedsNeeded(
    const ProgramDesc& program, const std::vector<std::string>& feeds,
    const std::vector<std::string>& fetches);

/// Adds feed and fetch ops as save_inference_model does: variables `feed` and
/// `fetch`, an op a name with its column. Classes become an attribute of fetch
/// ops, `class_names`, which PaddlePaddle keeps and does not look at.
/// InvalidArgument when the program has some already, NotFound for a name that
/// it does not have.
absl::Status AddFeedFetch(const FeedFetch& names, ProgramDesc* program);

/// Takes the feed and fetch ops of block 0 and their variables out and gives
/// the names by column, with the classes that AddFeedFetch wrote; empty lists
/// when there are none. InvalidArgument when
/// columns are missing or double.
absl::StatusOr<FeedFetch> StripFeedFetch(ProgramDesc* program);

/// Drops the variables of all blocks that no op names, except `keep`, and the
/// blocks that no op refers to; later blocks are renumbered.
void DropUnused(const std::vector<std::string>& keep, ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_PRUNE_H_
