// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/flag_list.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cmd/common/table.h"
#include "libcore/base/flags.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

Json JsonOf(const FlagValue& value) {
  return std::visit([](const auto& v) { return Json(v); }, value);
}

const char* StateOf(const FlagInfo& flag) {
  return flag.use == FlagUse::kWorks ? "works" : "nothing to switch";
}

Json JsonOf(const FlagInfo& flag) {
  Json object = {
      {"name", std::string(flag.name)},  {"type", std::string(FlagType(flag))},
      {"default", JsonOf(flag.initial)}, {"value", JsonOf(flag.value)},
      {"state", StateOf(flag)},          {"text", std::string(flag.help)}};
  if (std::isfinite(flag.min)) object["min"] = flag.min;
  if (std::isfinite(flag.max)) object["max"] = flag.max;
  if (!flag.choices.empty())
    object["choices"] =
        std::vector<std::string>(absl::StrSplit(flag.choices, ' '));
  return object;
}

}  // namespace

std::string FlagsText(bool json) {
  if (json) {
    Json list = Json::array();
    for (const FlagInfo& flag : AllFlags()) list.push_back(JsonOf(flag));
    return absl::StrCat(list.dump(2), "\n");
  }
  std::string text;
  for (const FlagInfo& flag : AllFlags())
    absl::StrAppend(&text, flag.name, "=", FlagText(flag.value), "  (",
                    FlagType(flag), ", ", StateOf(flag),
                    flag.value == flag.initial
                        ? ""
                        : absl::StrCat(", default ", FlagText(flag.initial)),
                    ")\n    ", flag.help, "\n");
  return text;
}

}  // namespace pd
