// SPDX-License-Identifier: Apache-2.0
// Regular expressions are RE2's: linear time whatever the job says.
#include "libcore/nn/parameter_groups.h"

#include <re2/re2.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_text.h"

namespace pd {
namespace {

// Sets the fields of `to` that `from` has.
template <typename From>
void Overlay(const From& from, job::ParamAttr* to) {
  if (from.has_initializer()) *to->mutable_initializer() = from.initializer();
  if (from.has_learning_rate()) to->set_learning_rate(from.learning_rate());
  if (from.has_regularizer()) *to->mutable_regularizer() = from.regularizer();
  if (from.has_trainable()) to->set_trainable(from.trainable());
  if (from.has_need_clip()) to->set_need_clip(from.need_clip());
}

constexpr size_t kShownNames = 5;

}  // namespace

struct ParameterGroups::Group {
  Group(const job::ParameterGroup& said, const RE2::Options& options)
      : said(said), expression(said.match(), options) {}
  const job::ParameterGroup& said;
  const RE2 expression;
  bool used = false;
};

ParameterGroups::ParameterGroups() = default;
ParameterGroups::~ParameterGroups() = default;

absl::Status ParameterGroups::Read(const LoadedJob& job) {
  for_all_ = job.proto().model().initializer();
  RE2::Options options;
  options.set_log_errors(false);
  for (const job::ParameterGroup& group :
       job.proto().model().parameter_group()) {
    groups_.push_back(std::make_unique<Group>(group, options));
    const RE2& expression = groups_.back()->expression;
    if (!expression.ok())
      return job.At(InvalidArgument("'%s' is no regular expression: %s",
                                    group.match(), expression.error()),
                    group, "match");
  }
  return absl::OkStatus();
}

job::ParamAttr ParameterGroups::Apply(const std::string& name,
                                      const job::ParamAttr& written) {
  if (!groups_.empty()) seen_.push_back(name);
  job::ParamAttr attr;
  for (const auto& group : groups_) {
    if (!RE2::FullMatch(name, group->expression)) continue;
    group->used = true;
    Overlay(group->said, &attr);
  }
  Overlay(written, &attr);
  if (written.has_name()) attr.set_name(written.name());
  return attr;
}

const job::Initializer* ParameterGroups::ForAll(bool bias) const {
  if (bias) return for_all_.has_bias_init() ? &for_all_.bias_init() : nullptr;
  return for_all_.has_weight_init() ? &for_all_.weight_init() : nullptr;
}

absl::Status ParameterGroups::CheckUsed(const LoadedJob& job) const {
  for (const auto& group : groups_) {
    if (group->used) continue;
    const std::string& match = group->said.match();
    // Most often a part of the name was written.
    std::vector<std::string> near;
    for (const std::string& name : seen_)
      if (RE2::PartialMatch(name, group->expression)) near.push_back(name);
    std::string hint;
    if (!near.empty()) {
      hint = "; it is a part of ";
    } else {
      const std::string nearest = Nearest(match, seen_);
      if (nearest.empty()) {
        near = seen_;
        hint = "; there are ";
      } else {
        near = {nearest};
        hint = "; the nearest is ";
      }
    }
    const size_t all = near.size();
    if (all > kShownNames) near.resize(kShownNames);
    for (std::string& name : near) name = absl::StrCat("'", name, "'");
    return job.At(
        InvalidArgument("no parameter's whole name matches '%s'%s%s%s", match,
                        hint, absl::StrJoin(near, ", "),
                        all > kShownNames ? ", ..." : ""),
        group->said, "match");
  }
  return absl::OkStatus();
}

std::string GeneratedNames::Prefix(const std::string& layer,
                                   const std::string& kind,
                                   BlockBuilder* main) {
  // Uses of blocks without a name may give two layers one name.
  const std::string key =
      absl::StrCat(kind, " ", layer, " ", asked_[kind + " " + layer]++);
  std::string& prefix = prefixes_[key];
  while (prefix.empty()) {
    const std::string next = absl::StrCat(kind, "_", main->NextNumber(kind));
    if (taken_.insert(next).second) prefix = next;
  }
  return prefix;
}

std::string GeneratedNames::PaddlePrefix(const std::string& layer,
                                         const std::string& kind) {
  const std::string asked = absl::StrCat("@", kind, " ", layer);
  std::string& prefix =
      paddle_prefixes_[absl::StrCat(asked, " ", asked_[asked]++)];
  if (!prefix.empty()) return prefix;
  // Classes are called as the job calls them, but for capitals within a word.
  const std::string name = kind == "prelu"           ? "p_re_lu"
                           : kind == "hsigmoid_loss" ? "h_sigmoid_loss"
                                                     : kind;
  prefix = absl::StrCat(name, "_", paddle_numbers_[name]++);
  return prefix;
}

}  // namespace pd
