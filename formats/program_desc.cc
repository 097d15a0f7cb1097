// SPDX-License-Identifier: Apache-2.0
#include "formats/program_desc.h"

#include "absl/strings/str_cat.h"

namespace pd {
namespace {

const std::vector<std::string>& NamesOf(const SlotList& slots,
                                        std::string_view slot) {
  static const auto* none = new std::vector<std::string>;
  for (const auto& [name, vars] : slots)
    if (name == slot) return vars;
  return *none;
}

const std::string& OnlyName(const SlotList& slots, std::string_view slot) {
  static const auto* none = new std::string;
  const auto& names = NamesOf(slots, slot);
  return names.empty() ? *none : names.front();
}

void SetNames(std::string_view slot, std::vector<std::string> names,
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

std::string_view Name(AttrType type) {
  static constexpr std::string_view kNames[] = {
      "int",    "float", "string",   "ints",    "floats",   "strings",
      "boolean", "booleans", "block", "long",   "blocks",   "longs",
      "float64s", "var",  "vars",    "float64", "scalar",   "scalars"};
  return kNames[static_cast<int>(type)];
}

const std::vector<std::string>& OpDesc::Input(std::string_view slot) const {
  return NamesOf(inputs, slot);
}
const std::vector<std::string>& OpDesc::Output(std::string_view slot) const {
  return NamesOf(outputs, slot);
}
const std::string& OpDesc::In(std::string_view slot) const {
  return OnlyName(inputs, slot);
}
const std::string& OpDesc::Out(std::string_view slot) const {
  return OnlyName(outputs, slot);
}
void OpDesc::SetInput(std::string_view slot, std::vector<std::string> names) {
  SetNames(slot, std::move(names), &inputs);
}
void OpDesc::SetOutput(std::string_view slot, std::vector<std::string> names) {
  SetNames(slot, std::move(names), &outputs);
}

const Attribute* OpDesc::FindAttr(std::string_view name) const {
  const auto it = attrs.find(std::string(name));
  return it == attrs.end() ? nullptr : &it->second;
}

VarDesc* BlockDesc::FindVar(std::string_view name) {
  for (VarDesc& v : vars)
    if (v.name == name) return &v;
  return nullptr;
}
const VarDesc* BlockDesc::FindVar(std::string_view name) const {
  return const_cast<BlockDesc*>(this)->FindVar(name);
}

const VarDesc* ProgramDesc::FindVar(int32_t block,
                                    std::string_view name) const {
  while (block >= 0 && block < static_cast<int32_t>(blocks.size())) {
    const BlockDesc& b = blocks[static_cast<size_t>(block)];
    if (const VarDesc* v = b.FindVar(name)) return v;
    if (b.parent_idx >= block) break;
    block = b.parent_idx;
  }
  return nullptr;
}

std::string GradName(std::string_view name) {
  return absl::StrCat(name, kGradSuffix);
}

}  // namespace pd
