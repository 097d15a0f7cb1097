// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/world.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"

namespace pd {

// An engine's library, open.
struct World::Library {
  void* handle = nullptr;
  // It stays open: engines leave threads and handlers behind.
};

namespace {

// The file of libpd, beside which the engines' libraries lie.
std::string OwnLibrary() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&OwnLibrary), &info) == 0 ||
      info.dli_fname == nullptr)
    return "";
  return info.dli_fname;
}

absl::StatusOr<MakeEngineFn> OpenEngine(const std::string& name,
                                        void** handle) {
  const std::string file = absl::StrCat("libpd_", name, ".so");
  const std::string path = absl::StrCat(FolderOf(OwnLibrary()), "/", file);
  if (!Exists(path))
    return Unavailable(
        "several processes need '%s', which is not there: this build of pdkit "
        "was made without %s",
        path, name == "mpi" ? "Open MPI" : "Gloo");
  // Open MPI loads parts of itself, which look for its symbols everywhere.
  *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (*handle == nullptr)
    return Unavailable("cannot load '%s': %s", path, dlerror());
  void* make = dlsym(*handle, kMakeEngine);
  if (make == nullptr)
    return Unavailable("'%s' is no engine of this pdkit: it lacks %s", path,
                       kMakeEngine);
  return reinterpret_cast<MakeEngineFn>(make);
}

std::string HostName() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

// A claim as text, the same for all members of a ring.
std::string TextOf(const RingClaim& claim) {
  return absl::StrCat(claim.id, ":", absl::StrJoin(claim.ranks, ","));
}

absl::StatusOr<RingClaim> ClaimOf(const std::string& text) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  RingClaim claim;
  bool ok = absl::SimpleAtoi(parts.first, &claim.id);
  for (const auto word : absl::StrSplit(parts.second, ',')) {
    claim.ranks.push_back(0);
    ok = ok && absl::SimpleAtoi(word, &claim.ranks.back());
  }
  if (!ok) return Internal("a ring arrived as '%s'", text);
  return claim;
}

// The first lines in which two texts differ.
std::pair<std::string, std::string> DifferentLines(const std::string& a,
                                                   const std::string& b) {
  const std::vector<std::string> first = absl::StrSplit(a, '\n');
  const std::vector<std::string> second = absl::StrSplit(b, '\n');
  size_t i = 0;
  while (i < first.size() && i < second.size() && first[i] == second[i]) ++i;
  return {i < first.size() ? first[i] : "", i < second.size() ? second[i] : ""};
}

}  // namespace

World::World() : hosts_({HostName()}) {}

World::World(Transport* transport, int most)
    : all_(transport), hosts_(static_cast<size_t>(most), HostName()) {}

World::~World() {
  rings_.clear();
  transports_.clear();
}

absl::StatusOr<std::unique_ptr<World>> World::Connect(
    const LaunchedBy& launch) {
  auto world = std::make_unique<World>();
  world->library_ = std::make_unique<Library>();
  PD_ASSIGN_OR_RETURN(const MakeEngineFn make,
                      OpenEngine(launch.engine, &world->library_->handle));
  absl::Status error = absl::OkStatus();
  world->engine_.reset(make(launch.meeting, &error));
  PD_RETURN_IF_ERROR(error);
  PD_INVARIANT(world->engine_ != nullptr);
  world->all_ = Communicator(&world->engine_->all());
  PD_ASSIGN_OR_RETURN(world->hosts_, world->all_.GatherTexts(HostName()));
  return world;
}

int World::local_size() const {
  return static_cast<int>(std::count(hosts_.begin(), hosts_.end(),
                                     hosts_[static_cast<size_t>(rank())]));
}

int World::local_rank() const {
  return static_cast<int>(std::count(hosts_.begin(), hosts_.begin() + rank(),
                                     hosts_[static_cast<size_t>(rank())]));
}

std::string World::NameOf(int rank) const {
  return absl::StrCat("rank ", rank, " on ", hosts_[static_cast<size_t>(rank)]);
}

absl::Status World::ExpectSame(const std::string& what,
                               const std::string& value) {
  PD_ASSIGN_OR_RETURN(const auto values, all_.GatherTexts(value));
  for (int r = 1; r < size(); ++r) {
    const std::string& other = values[static_cast<size_t>(r)];
    if (other == values[0]) continue;
    const auto [first, second] = DifferentLines(values[0], other);
    return InvalidArgument(
        "the processes differ in %s: %s has '%s', %s has '%s'", what, NameOf(0),
        first, NameOf(r), second);
  }
  return absl::OkStatus();
}

absl::Status World::DeclareRings(const std::vector<RingClaim>& claims) {
  std::vector<std::string> own;
  own.reserve(claims.size());
  for (const RingClaim& claim : claims) own.push_back(TextOf(claim));
  PD_ASSIGN_OR_RETURN(const auto texts,
                      all_.GatherTexts(absl::StrJoin(own, ";")));
  // In one order, so that no two processes wait for each other.
  std::map<std::string, std::set<int>> rings;  // to those who claim it
  for (int r = 0; r < size(); ++r)
    for (const auto text :
         absl::StrSplit(texts[static_cast<size_t>(r)], ';', absl::SkipEmpty()))
      rings[std::string(text)].insert(r);
  for (const auto& [text, claimants] : rings) {
    PD_ASSIGN_OR_RETURN(const RingClaim ring, ClaimOf(text));
    std::set<int> members;
    for (const int r : ring.ranks) {
      if (r < 0 || r >= size())
        return InvalidArgument("ring %d has rank %d; there are %d processes",
                               ring.id, r, size());
      if (!members.insert(r).second)
        return InvalidArgument("ring %d has rank %d twice", ring.id, r);
      if (claimants.count(r) == 0)
        return InvalidArgument(
            "ring %d of ranks %s: %s does not know it, %s does", ring.id,
            absl::StrJoin(ring.ranks, ","), NameOf(r),
            NameOf(*claimants.begin()));
    }
    if (members.count(rank()) > 0)
      PD_RETURN_IF_ERROR(MakeGroup(ring.id, ring.ranks));
    ++groups_;
  }
  declared_ = declared_ || !rings.empty();
  return absl::OkStatus();
}

absl::Status World::MakeGroup(int id, const std::vector<int>& ranks) {
  if (size() == 1) {
    rings_[id] = Communicator();
    return absl::OkStatus();
  }
  const std::string name =
      absl::StrCat("ring_", id, "_", groups_, "_", absl::StrJoin(ranks, "_"));
  auto group = engine_->all().Group(ranks, name);
  if (!group.ok())
    return Annotate(group.status(), absl::StrCat("ring ", id, " of ranks ",
                                                 absl::StrJoin(ranks, ",")));
  rings_[id] = Communicator(group->get());
  transports_.push_back(*std::move(group));
  return absl::OkStatus();
}

absl::StatusOr<const Communicator*> World::Ring(int id) const {
  const auto found = rings_.find(id);
  if (found != rings_.end()) return &found->second;
  if (!declared_ || id == 0) return &all_;
  return NotFound(
      "ring %d has not been declared for rank %d; a startup program with "
      "c_comm_init or --ring declares it",
      id, rank());
}

void World::Watch(std::function<void(const std::string&)> lost) {
  if (engine_ != nullptr) engine_->Watch(std::move(lost));
}

absl::Status World::Explain(const absl::Status& status) {
  if (engine_ == nullptr || status.code() != absl::StatusCode::kUnavailable)
    return status;
  const std::string gone = engine_->WhoIsGone();
  return gone.empty() ? status : Annotate(status, gone);
}

absl::Status World::Leave() {
  return engine_ == nullptr ? absl::OkStatus() : engine_->Leave();
}

}  // namespace pd
