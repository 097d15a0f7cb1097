// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layer_names.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

const LayerInput* LayerNames::Own(const std::string& name) const {
  const auto it = own_.find(name);
  return it == own_.end() ? nullptr : &it->second;
}

const LayerInput* LayerNames::OwnOrInside(const std::string& name) const {
  if (const LayerInput* own = Own(name); own != nullptr) return own;
  // A layer of a block without a name must not hide a field.
  if (name.find_first_of(".:") == std::string::npos) return nullptr;
  const auto it = inner_.find(name);
  return it == inner_.end() || it->second.variable.empty() ? nullptr
                                                           : &it->second;
}

void LayerNames::AddInner(const std::map<std::string, LayerInput>& inner) {
  for (const auto& [name, input] : inner) {
    const auto [it, is_new] = inner_.emplace(name, input);
    if (!is_new && it->second.variable != input.variable)
      it->second = LayerInput();  // of two blocks that have no names
  }
}

absl::StatusOr<LayerInput> LayerNames::Find(const std::string& name,
                                            const std::string& who) const {
  if (const LayerInput* own = Own(name); own != nullptr) return *own;
  const auto it = inner_.find(name);
  if (it != inner_.end() && !it->second.left_out()) return it->second;
  if (it != inner_.end())
    return InvalidArgument(
        "%s reads '%s'; several blocks without names have a layer of that "
        "name: give their uses names",
        who, name);
  std::vector<std::string> known;
  for (const auto* names : {&own_, &inner_})
    for (const auto& entry : *names) known.push_back(entry.first);
  const std::string nearest = Nearest(name, known);
  return InvalidArgument(
      "%s reads '%s'; no layer before it and no input has that name%s", who,
      name,
      nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"));
}

absl::StatusOr<LayerInput> LayerNames::FindTensor(
    const std::string& name, const std::string& who) const {
  PD_ASSIGN_OR_RETURN(LayerInput input, Find(name, who));
  if (input.left_out())
    return InvalidArgument(
        "%s reads '%s', an optional input that this use of the block leaves "
        "out; only fields of layers and inputs of blocks read one",
        who, name);
  if (!input.group.empty())
    return InvalidArgument(
        "%s reads '%s', a group of %d tensors, where it takes one; fields that "
        "are lists, like 'cache', take groups",
        who, name, input.group.size());
  return input;
}

std::map<std::string, LayerInput> LayerNames::Shown(
    const std::string& prefix, const std::map<std::string, int>& kinds,
    const LayerNames& hidden) const {
  std::map<std::string, LayerInput> shown;
  for (const auto* names : {&own_, &inner_})
    for (const auto& [name, input] : *names)
      if (hidden.Own(name) == nullptr)
        shown.emplace(absl::StrCat(prefix, name), input);
  for (const auto& [kind, count] : kinds) {
    const LayerInput* only = Own(absl::StrCat(kind, "_0"));
    if (count == 1 && only != nullptr)
      shown.emplace(absl::StrCat(prefix, kind), *only);
  }
  return shown;
}

}  // namespace pd
