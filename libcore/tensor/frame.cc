// SPDX-License-Identifier: Apache-2.0
#include "libcore/tensor/frame.h"

#include <algorithm>
#include <atomic>

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
  if (slot.variable.tensor == nullptr) {
    slot.variable.tensor = &slot.own;
    changed_ = NextChange();
  }
  return slot.variable;
}

uint64_t Frame::LastChange() const {
  uint64_t last = 0;
  for (const Frame* frame = this; frame != nullptr; frame = frame->parent_)
    last = std::max(last, frame->changed_);
  return last;
}

uint64_t Frame::NextChange() {
  static std::atomic<uint64_t> changes{0};
  return changes.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace pd
