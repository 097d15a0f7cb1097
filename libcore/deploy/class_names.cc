// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/class_names.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "libcore/base/dump_json.h"

namespace pd {
namespace {

using Json = nlohmann::json;

constexpr char kClasses[] = "classes";
constexpr char kOutput[] = "classes_output";

}  // namespace

std::map<std::string, std::string> ClassMetadata(const FeedFetch& names) {
  for (const std::string& fetch : names.fetches) {
    const auto classes = names.classes.find(fetch);
    if (classes == names.classes.end() || classes->second.empty()) continue;
    return {{kClasses, DumpJson(Json(classes->second))}, {kOutput, fetch}};
  }
  return {};
}

void TakeClassMetadata(const std::map<std::string, std::string>& metadata,
                       FeedFetch* names) {
  const auto text = metadata.find(kClasses);
  const auto output = metadata.find(kOutput);
  if (text == metadata.end() || output == metadata.end()) return;
  const auto& fetches = names->fetches;
  if (std::count(fetches.begin(), fetches.end(), output->second) == 0) return;
  const Json list =
      Json::parse(text->second, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return;
  std::vector<std::string> classes;
  for (const Json& name : list) {
    if (!name.is_string()) return;
    classes.push_back(name.get<std::string>());
  }
  if (!classes.empty()) names->classes[output->second] = std::move(classes);
}

}  // namespace pd
