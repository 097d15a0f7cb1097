// SPDX-License-Identifier: Apache-2.0
#include "cmd/about_list.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace pd {

void PrintAbout(const std::vector<std::pair<std::string, std::string>>& entries,
                bool json, std::ostream& out) {
  if (json) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (const auto& [name, about] : entries) object[name] = about;
    out << object.dump() << "\n";
    return;
  }
  size_t width = 0;
  for (const auto& [name, about] : entries)
    width = std::max(width, name.size());
  for (const auto& [name, about] : entries) {
    std::string column = name;
    column.resize(width + 2, ' ');
    out << column << about << "\n";
  }
}

}  // namespace pd
