// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/nan_rules.h"

#include <cmath>
#include <cstdlib>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/op_names.h"
#include "libcore/ops/non_finite.h"

namespace pd {
namespace {

// PaddlePaddle's OpRole, where forward is 0; it gets a bit of its own here.
constexpr int32_t kForwardBit = 0x10000;
const std::map<std::string, int32_t>& RoleBits() {
  static const auto* bits =
      new std::map<std::string, int32_t>{{"forward", kForwardBit},
                                         {"backward", kRoleBackward},
                                         {"optimize", kRoleOptimize},
                                         {"rpc", 0x0004},
                                         {"dist", 0x0008},
                                         {"lrsched", kRoleLRSched},
                                         {"loss", kRoleLoss},
                                         {"default", 0x1000}};
  return *bits;
}

std::vector<std::string> Items(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

bool Matches(const std::vector<std::pair<std::string, std::string>>& pairs,
             const std::string& op, const std::string& variable) {
  for (const auto& [type, part] : pairs)
    if ((type == op || type == "*") && absl::StrContains(variable, part))
      return true;
  return false;
}

// One of the op's attributes is -inf, or holds it.
bool HasMinusInfinity(const OpDesc& op) {
  const auto is = [](double value) { return std::isinf(value) && value < 0; };
  for (const auto& [name, value] : op.attrs) {
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr)
      if (*text == "-inf") return true;
    if (const auto* number = std::get_if<float>(&value); number != nullptr)
      if (is(double{*number})) return true;
    if (const auto* numbers = std::get_if<std::vector<float>>(&value);
        numbers != nullptr && std::any_of(numbers->begin(), numbers->end(), is))
      return true;
    if (const auto* numbers = std::get_if<std::vector<double>>(&value);
        numbers != nullptr && std::any_of(numbers->begin(), numbers->end(), is))
      return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<NanRules> NanRules::FromEnvironment() {
  NanRules rules;
  const auto of = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  rules.SkipOps(of("PADDLE_INF_NAN_SKIP_OP"));
  PD_RETURN_IF_ERROR(Annotate(rules.SkipRoles(of("PADDLE_INF_NAN_SKIP_ROLE")),
                              "PADDLE_INF_NAN_SKIP_ROLE"));
  PD_RETURN_IF_ERROR(
      Annotate(rules.SkipVariables(of("PADDLE_INF_NAN_SKIP_VAR")),
               "PADDLE_INF_NAN_SKIP_VAR"));
  return rules;
}

void NanRules::SkipOps(const std::string& list) {
  ops_.clear();
  for (const std::string& item : Items(list)) ops_.insert(item);
}

absl::Status NanRules::SkipRoles(const std::string& list) {
  roles_ = 0;
  for (const std::string& item : Items(list)) {
    const auto found = RoleBits().find(item);
    if (found == RoleBits().end())
      return InvalidArgument(
          "there is no role '%s'; expected forward, backward, optimize, rpc, "
          "dist, lrsched, loss or default",
          item);
    roles_ |= found->second;
  }
  return absl::OkStatus();
}

absl::Status NanRules::SkipVariables(const std::string& list) {
  variables_.clear();
  for (const std::string& item : Items(list)) {
    const size_t colon = item.find(':');
    if (colon == std::string::npos)
      return InvalidArgument("'%s' is not of the form OP:VAR", item);
    variables_.emplace_back(item.substr(0, colon), item.substr(colon + 1));
  }
  return absl::OkStatus();
}

void NanRules::AllowInfinities(const std::string& list) {
  infinities_.clear();
  for (const std::string& item : Items(list)) {
    const size_t colon = item.find(':');
    infinities_.emplace_back(
        item.substr(0, colon),
        colon == std::string::npos ? "" : item.substr(colon + 1));
  }
}

bool NanRules::Skips(const OpDesc& op) const {
  if (ops_.count(op.type) > 0) return true;
  const int32_t role = RoleOf(op);
  return (roles_ & (role == kRoleForward ? kForwardBit : role)) != 0;
}

bool NanRules::Skips(const OpDesc& op, const std::string& variable) const {
  return Matches(variables_, op.type, variable);
}

bool NanRules::AllowsInfinities(const OpDesc& op,
                                const std::string& variable) const {
  return Matches(infinities_, op.type, variable);
}

std::set<std::string> MaskVariables(const std::vector<OpDesc>& ops) {
  std::set<std::string> masks;
  for (const OpDesc& op : ops) {
    const NonFiniteFacts& facts = NonFiniteFactsOf(op.type);
    bool mask = facts.writes_constants && HasMinusInfinity(op);
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        mask = mask || (facts.keeps_minus_infinity && masks.count(name) > 0);
    for (const auto& [slot, names] : op.outputs)
      for (const std::string& name : names) {
        if (mask)
          masks.insert(name);
        else
          masks.erase(name);
      }
  }
  return masks;
}

}  // namespace pd
