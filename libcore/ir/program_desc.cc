// SPDX-License-Identifier: Apache-2.0
#include "libcore/ir/program_desc.h"

#include "absl/strings/str_cat.h"

namespace pd {
namespace {

const std::vector<std::string>& NamesOf(const SlotList& slots,
                                        absl::string_view slot) {
  static const auto* none = new std::vector<std::string>;
  for (const auto& [name, vars] : slots)
    if (name == slot) return vars;
  return *none;
}

const std::string& OnlyName(const SlotList& slots, absl::string_view slot) {
  static const auto* none = new std::string;
  const auto& names = NamesOf(slots, slot);
  return names.empty() ? *none : names.front();
}

void SetNames(absl::string_view slot, std::vector<std::string> names,
              SlotList* slots) {
  for (auto& [name, vars] : *slots) {
    if (name == slot) {
      vars = std::move(names);
      return;
    }
  }
  slots->emplace_back(std::string(slot), std::move(names));
}

}  // namespace

Attribute::Attribute() = default;
Attribute::Attribute(const Attribute&) = default;
Attribute::Attribute(Attribute&&) noexcept = default;
Attribute& Attribute::operator=(const Attribute&) = default;
Attribute& Attribute::operator=(Attribute&&) noexcept = default;
Attribute::~Attribute() = default;

OpDesc::OpDesc() = default;
OpDesc::OpDesc(const OpDesc&) = default;
OpDesc::OpDesc(OpDesc&&) noexcept = default;
OpDesc& OpDesc::operator=(const OpDesc&) = default;
OpDesc& OpDesc::operator=(OpDesc&&) noexcept = default;
OpDesc::~OpDesc() = default;

VarDesc::VarDesc() = default;
VarDesc::VarDesc(const VarDesc&) = default;
VarDesc::VarDesc(VarDesc&&) noexcept = default;
VarDesc& VarDesc::operator=(const VarDesc&) = default;
VarDesc& VarDesc::operator=(VarDesc&&) noexcept = default;
VarDesc::~VarDesc() = default;

BlockDesc::BlockDesc() = default;
BlockDesc::BlockDesc(const BlockDesc&) = default;
BlockDesc::BlockDesc(BlockDesc&&) noexcept = default;
BlockDesc& BlockDesc::operator=(const BlockDesc&) = default;
BlockDesc& BlockDesc::operator=(BlockDesc&&) noexcept = default;
BlockDesc::~BlockDesc() = default;

ProgramDesc::ProgramDesc() = default;
ProgramDesc::ProgramDesc(const ProgramDesc&) = default;
ProgramDesc::ProgramDesc(ProgramDesc&&) noexcept = default;
ProgramDesc& ProgramDesc::operator=(const ProgramDesc&) = default;
ProgramDesc& ProgramDesc::operator=(ProgramDesc&&) noexcept = default;
ProgramDesc::~ProgramDesc() = default;

absl::string_view Name(AttrType type) {
  static constexpr absl::string_view kNames[] = {
      "int",      "float",    "string", "ints",    "floats", "strings",
      "boolean",  "booleans", "block",  "long",    "blocks", "longs",
      "float64s", "var",      "vars",   "float64", "scalar", "scalars"};
  return kNames[static_cast<int>(type)];
}

const std::vector<std::string>& OpDesc::Input(absl::string_view slot) const {
  return NamesOf(inputs, slot);
}
const std::vector<std::string>& OpDesc::Output(absl::string_view slot) const {
  return NamesOf(outputs, slot);
}
const std::string& OpDesc::In(absl::string_view slot) const {
  return OnlyName(inputs, slot);
}
const std::string& OpDesc::Out(absl::string_view slot) const {
  return OnlyName(outputs, slot);
}
void OpDesc::SetInput(absl::string_view slot, std::vector<std::string> names) {
  SetNames(slot, std::move(names), &inputs);
}
void OpDesc::SetOutput(absl::string_view slot, std::vector<std::string> names) {
  SetNames(slot, std::move(names), &outputs);
}

const Attribute* OpDesc::FindAttr(absl::string_view name) const {
  const auto it = attrs.find(std::string(name));
  return it == attrs.end() ? nullptr : &it->second;
}

size_t VarIndex::Find(const std::vector<VarDesc>& vars,
                      absl::string_view name) {
  constexpr size_t kLarge = 64;
  if (vars.size() > kLarge) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (int attempt = 0; attempt < 2; ++attempt) {
      const auto it = places_.find(name);
      if (it != places_.end() && it->second < vars.size() &&
          vars[it->second].name == name)
        return it->second;
      // Variables were added, or the list has become another one.
      const bool stale = it != places_.end() || known_ > vars.size();
      if (!stale && known_ == vars.size()) break;
      if (stale) {
        places_.clear();
        known_ = 0;
      }
      for (; known_ < vars.size(); ++known_)
        places_.emplace(vars[known_].name, known_);
    }
  }
  size_t i = 0;
  while (i < vars.size() && vars[i].name != name) ++i;
  return i;
}

VarDesc* BlockDesc::FindVar(absl::string_view name) {
  const size_t i = index_.Find(vars, name);
  return i < vars.size() ? &vars[i] : nullptr;
}
const VarDesc* BlockDesc::FindVar(absl::string_view name) const {
  return const_cast<BlockDesc*>(this)->FindVar(name);
}

const VarDesc* ProgramDesc::FindVar(int32_t block,
                                    absl::string_view name) const {
  while (block >= 0 && block < static_cast<int32_t>(blocks.size())) {
    const BlockDesc& b = blocks[static_cast<size_t>(block)];
    if (const VarDesc* v = b.FindVar(name)) return v;
    if (b.parent_idx >= block) break;
    block = b.parent_idx;
  }
  return nullptr;
}

std::string GradName(absl::string_view name) {
  return absl::StrCat(name, kGradSuffix);
}

}  // namespace pd

template class std::map<std::string, pd::Attribute>;
template class std::vector<pd::OpDesc>;
