// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/rings.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// A c_comm_init op, checked.
struct CommInit {
  int32_t ring = 0, rank = 0;
  std::vector<std::string> endpoints;
};

absl::StatusOr<CommInit> ReadCommInit(const OpDesc& op, int world_size) {
  CommInit init;
  init.ring = op.AttrOr<int32_t>("ring_id", 0);
  init.rank = op.AttrOr<int32_t>("rank", -1);
  const auto nranks = op.AttrOr<int32_t>("nranks", -1);
  const auto list = op.AttrOr<std::string>("endpoints", "");
  init.endpoints = absl::StrSplit(list, ',', absl::SkipEmpty());
  if (nranks > world_size)
    return InvalidArgument(
        "c_comm_init: ring %d has %d processes; %d were started", init.ring,
        nranks, world_size);
  if (nranks < 1 || init.rank < 0 || init.rank >= nranks ||
      (!init.endpoints.empty() &&
       init.endpoints.size() != static_cast<size_t>(nranks)))
    return InvalidArgument(
        "c_comm_init of ring %d: rank is %d, nranks %d, and there are %d "
        "endpoints",
        init.ring, init.rank, nranks, init.endpoints.size());
  if (init.endpoints.empty() && nranks != world_size)
    return InvalidArgument(
        "c_comm_init of ring %d has no endpoints, so it means all processes: "
        "nranks is %d, and %d were started",
        init.ring, nranks, world_size);
  return init;
}

}  // namespace

absl::Status DeclareRings(const std::vector<const ProgramDesc*>& programs,
                          std::vector<RingClaim> claims, World* world) {
  std::vector<CommInit> inits;
  std::set<std::string> own;
  for (const ProgramDesc* program : programs) {
    for (const OpDesc& op : program->global().ops) {
      if (op.type != "c_comm_init") continue;
      PD_ASSIGN_OR_RETURN(CommInit init, ReadCommInit(op, world->size()));
      if (!init.endpoints.empty())
        own.insert(init.endpoints[static_cast<size_t>(init.rank)]);
      inits.push_back(std::move(init));
    }
  }
  PD_ASSIGN_OR_RETURN(const auto texts,
                      world->all().GatherTexts(absl::StrJoin(own, ",")));
  std::map<std::string, int> rank_of;
  for (int r = 0; r < world->size(); ++r) {
    for (const auto text : absl::StrSplit(texts[static_cast<size_t>(r)], ',',
                                          absl::SkipEmpty())) {
      const auto [at, is_new] = rank_of.insert({std::string(text), r});
      if (!is_new && at->second != r)
        return InvalidArgument(
            "the programs of %s and %s are for the same process, '%s'",
            world->NameOf(at->second), world->NameOf(r), at->first);
    }
  }
  for (const CommInit& init : inits) {
    RingClaim claim;
    claim.id = init.ring;
    for (const std::string& endpoint : init.endpoints) {
      const auto found = rank_of.find(endpoint);
      if (found == rank_of.end())
        return InvalidArgument(
            "ring %d has the process '%s', and the program of no process is "
            "for it",
            init.ring, endpoint);
      claim.ranks.push_back(found->second);
    }
    for (int r = 0; init.endpoints.empty() && r < world->size(); ++r)
      claim.ranks.push_back(r);
    claims.push_back(std::move(claim));
  }
  return world->DeclareRings(claims);
}

}  // namespace pd
