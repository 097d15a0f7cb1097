// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/lod_json.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxLength = uint64_t{1} << 40;

absl::StatusOr<LoD> LevelsOf(const std::string& feed, const Json& levels) {
  if (!levels.is_array())
    return InvalidArgument("'%s': expected a list of levels", feed);
  LoD lod;
  for (const Json& lengths : levels) {
    if (!lengths.is_array())
      return InvalidArgument("'%s': expected a list of lengths in each level",
                             feed);
    lod.push_back({0});
    for (const Json& length : lengths) {
      if (!length.is_number_unsigned() || length.get<uint64_t>() > kMaxLength)
        return InvalidArgument("'%s': length %s; expected a number from 0",
                               feed, length.dump());
      lod.back().push_back(lod.back().back() + length.get<uint64_t>());
    }
  }
  return lod;
}

absl::StatusOr<LoDs> FeedsOf(const Json& json) {
  if (!json.is_object())
    return InvalidArgument("expected an object: {\"feed\": [[2, 3, 1]]}");
  LoDs lods;
  for (const auto& [feed, levels] : json.items()) {
    PD_ASSIGN_OR_RETURN(lods[feed], LevelsOf(feed, levels));
  }
  return lods;
}

absl::StatusOr<Json> Parse(absl::string_view text) {
  Json json = Json::parse(text.data(), text.data() + text.size(), nullptr,
                          /*allow_exceptions=*/false);
  if (json.is_discarded()) return InvalidArgument("it is not JSON");
  return json;
}

// Calls `parse` on a file's text.
template <typename Result>
absl::StatusOr<Result> ReadWith(
    const std::string& path,
    absl::StatusOr<Result> (*parse)(absl::string_view)) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  absl::StatusOr<Result> result = parse(file.view());
  if (!result.ok())
    return Annotate(result.status(), absl::StrCat("'", path, "'"));
  return result;
}

}  // namespace

absl::StatusOr<LoDs> ParseLoDs(absl::string_view text) {
  PD_ASSIGN_OR_RETURN(const Json json, Parse(text));
  return FeedsOf(json);
}

std::string LoDText(const LoDs& lods) {
  Json json = Json::object();
  for (const auto& [feed, lod] : lods) {
    Json& levels = json[feed] = Json::array();
    for (const std::vector<uint64_t>& offsets : lod) {
      Json lengths = Json::array();
      for (size_t i = 1; i < offsets.size(); ++i)
        lengths.push_back(offsets[i] - offsets[i - 1]);
      levels.push_back(std::move(lengths));
    }
  }
  return DumpJson(json) + "\n";
}

absl::StatusOr<std::vector<LoDs>> ParseLoDsBySteps(absl::string_view text) {
  PD_ASSIGN_OR_RETURN(const Json json, Parse(text));
  std::vector<LoDs> steps;
  if (json.is_array()) {
    for (const Json& one : json) {
      PD_ASSIGN_OR_RETURN(LoDs lods, FeedsOf(one));
      steps.push_back(std::move(lods));
    }
    return steps;
  }
  if (!json.is_object())
    return InvalidArgument("expected a list with an object for each step");
  for (const auto& [feed, by_step] : json.items()) {
    if (!by_step.is_array())
      return InvalidArgument("'%s': expected a list with an entry a step",
                             feed);
    if (steps.size() < by_step.size()) steps.resize(by_step.size());
    for (size_t i = 0; i < by_step.size(); ++i) {
      PD_ASSIGN_OR_RETURN(steps[i][feed], LevelsOf(feed, by_step[i]));
    }
  }
  return steps;
}

absl::StatusOr<LoDs> ReadLoDs(const std::string& path) {
  return ReadWith<LoDs>(path, ParseLoDs);
}

absl::StatusOr<std::vector<LoDs>> ReadLoDsBySteps(const std::string& path) {
  return ReadWith<std::vector<LoDs>>(path, ParseLoDsBySteps);
}

}  // namespace pd
