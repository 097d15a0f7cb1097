// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/plan_tensors.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"

namespace pd {

// That of a variable of the scope may be there.
PlanTensors::Info& PlanTensors::MakeInfo(const Tensor* tensor) {
  Info*& info = infos_[tensor];
  if (info == nullptr) info = &made_infos_.emplace_back();
  return *info;
}

Tensor* PlanTensors::New(DType dtype, Shape shape, Kind kind) {
  tensors_->emplace_back(dtype, std::move(shape));
  Tensor* tensor = &tensors_->back();
  Info& info = MakeInfo(tensor);
  info.kind = kind;
  info.root = tensor;
  return tensor;
}

Tensor* PlanTensors::CopyOf(const Tensor* tensor, Kind kind) {
  Tensor* copy = New(tensor->dtype(), tensor->shape(), kind);
  copy->set_lod(tensor->lod());
  copy->set_kind(tensor->kind());
  copy->set_height(tensor->height());
  copy->rows().resize(tensor->rows().size());
  return copy;
}

void PlanTensors::AddPersistable(const std::string& name, Scope::Entry* entry) {
  Tensor* tensor = &entry->tensor;
  Info& info = MakeInfo(tensor);
  info.kind = Kind::kPersistable;
  info.entry = entry;
  info.root = tensor;
  persistable_names_[tensor] = name;
}

const std::string* PlanTensors::PersistableName(const Tensor* tensor) const {
  const auto it = persistable_names_.find(tensor);
  return it == persistable_names_.end() ? nullptr : &it->second;
}

PlanTensors::Info& PlanTensors::InfoOf(const Tensor* tensor) {
  const auto it = infos_.find(tensor);
  PD_INVARIANT(it != infos_.end());
  return *it->second;
}

Tensor* PlanTensors::Root(Tensor* tensor) {
  while (InfoOf(tensor).root != tensor) tensor = InfoOf(tensor).root;
  return tensor;
}

void PlanTensors::Touch(Tensor* tensor, int step) {
  Info& info = InfoOf(Root(tensor));
  if (info.first < 0) {
    info.first = step;
    if (info.entry != nullptr) {
      ++info.entry->pins;
      pinned_->push_back(info.entry);
    }
  }
  info.last = std::max(info.last, step);
}

}  // namespace pd
