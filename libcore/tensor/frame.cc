// SPDX-License-Identifier: Apache-2.0
#include "libcore/tensor/frame.h"

namespace pd {

const Frame::Variable* Frame::FindLocal(const std::string& name) const {
  const auto it = variables_.find(name);
  return it == variables_.end() ? nullptr : &it->second.variable;
}

const Frame::Variable* Frame::Find(const std::string& name) const {
  for (const Frame* frame = this; frame != nullptr; frame = frame->parent_)
    if (const Variable* variable = frame->FindLocal(name)) return variable;
  return nullptr;
}

const Frame::Variable& Frame::Make(const std::string& name) {
  Slot& slot = variables_[name];
  if (slot.variable.tensor == nullptr) slot.variable.tensor = &slot.own;
  return slot.variable;
}

}  // namespace pd
