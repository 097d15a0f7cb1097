// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/registry.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::Status OpRegistry::Add(OpDef def) {
  const std::string type = def.type();
  auto owned = std::make_unique<OpDef>(std::move(def));
  if (!ops_.emplace(type, std::move(owned)).second)
    return AlreadyExists("op '%s' is registered twice", type);
  return absl::OkStatus();
}

absl::Status OpRegistry::AddImplementation(absl::string_view type,
                                           Implementation implementation) {
  const auto it = ops_.find(std::string(type));
  if (it == ops_.end())
    return NotFound("implementation '%s' is for op '%s', which does not exist",
                    implementation.label, type);
  it->second->AddImplementation(std::move(implementation));
  return absl::OkStatus();
}

const OpDef* OpRegistry::Find(absl::string_view type) const {
  const auto it = ops_.find(std::string(type));
  return it == ops_.end() ? nullptr : it->second.get();
}

absl::StatusOr<const OpDef*> OpRegistry::Get(absl::string_view type) const {
  if (const OpDef* def = Find(type)) return def;
  std::vector<std::string> names;
  for (const auto& [name, def] : ops_) names.push_back(name);
  const std::string near = Nearest(type, names);
  return Unimplemented("operator '%s' does not exist here%s", type,
                       near.empty() ? "" : "; the nearest is '" + near + "'");
}

std::vector<const OpDef*> OpRegistry::All() const {
  std::vector<const OpDef*> all;
  for (const auto& [name, def] : ops_) all.push_back(def.get());
  return all;
}

}  // namespace pd
