// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/file_set.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

std::string NewName(const std::string& place) {
  return absl::StrCat(place, ".pdkit-new");
}

// The second name of the old file, until all new ones are in their places.
std::string OldName(const std::string& place) {
  return absl::StrCat(place, ".pdkit-old");
}

absl::StatusOr<FileTarget> ResolveMember(const std::string& target) {
  PD_ASSIGN_OR_RETURN(FileTarget resolved, ResolveTarget(target));
  if (resolved.direct())
    return InvalidArgument(
        "cannot write %s: it is no regular file, and several files replace "
        "theirs together",
        resolved.shown);
  return resolved;
}

}  // namespace

FileSet::~FileSet() {
  for (const Member& member : members_)
    if (!member.removed) std::remove(NewName(member.place).c_str());
}

absl::StatusOr<std::string> FileSet::Add(const std::string& target) {
  PD_ASSIGN_OR_RETURN(FileTarget resolved, ResolveMember(target));
  members_.push_back({std::move(resolved.shown), std::move(resolved.place)});
  return NewName(members_.back().place);
}

absl::Status FileSet::AddRemoval(const std::string& target) {
  if (::access(target.c_str(), F_OK) != 0) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(FileTarget resolved, ResolveMember(target));
  members_.push_back({std::move(resolved.shown), target, /*removed=*/true});
  return absl::OkStatus();
}

absl::Status FileSet::Replace(Member* member) {
  const std::string old = OldName(member->place);
  // A link keeps the target in its place all the time; not every file system
  // has links.
  std::remove(old.c_str());
  member->saved =
      (!member->removed && ::link(member->place.c_str(), old.c_str()) == 0) ||
      std::rename(member->place.c_str(), old.c_str()) == 0;
  const bool absent = !member->saved && errno == ENOENT;
  const bool done =
      (member->saved || absent) &&
      (member->removed ||
       std::rename(NewName(member->place).c_str(), member->place.c_str()) == 0);
  if (done) return absl::OkStatus();
  const int error = errno;
  if (member->saved) TakeBack(*member);
  member->saved = false;
  return ErrnoToStatus(error, absl::StrCat("cannot replace ", member->shown));
}

void FileSet::TakeBack(const Member& member) {
  const std::string old = OldName(member.place);
  if (member.saved) {
    std::rename(old.c_str(), member.place.c_str());
    // Two names of one file: a rename does nothing then.
    std::remove(old.c_str());
  } else if (!member.removed) {
    std::remove(member.place.c_str());
  }
}

absl::Status FileSet::Commit() {
  for (auto it = members_.rbegin(); it != members_.rend(); ++it) {
    const absl::Status replaced = Replace(&*it);
    if (replaced.ok()) continue;
    while (it != members_.rbegin()) TakeBack(*--it);
    return replaced;
  }
  for (const Member& member : members_)
    if (member.saved) std::remove(OldName(member.place).c_str());
  members_.clear();
  return absl::OkStatus();
}

}  // namespace pd
