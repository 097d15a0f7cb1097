// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/scope.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/mapped_copy.h"
#include "libcore/base/status_macros.h"

namespace pd {

Scope::Entry* Scope::Peek(const std::string& name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) return nullptr;
  Entry* entry = it->second.get();
  if (entry->device == nullptr) return entry;
  const absl::Status brought = entry->device->ToHost();
  if (brought.ok()) return entry;
  LogError("variable '%s': %s", name, std::string(brought.message()));
  return nullptr;
}

const Scope::Entry* Scope::Find(const std::string& name) const {
  return Peek(name);
}

Scope::Entry* Scope::Find(const std::string& name) {
  Entry* entry = Peek(name);
  if (entry != nullptr) entry->lent = true;
  return entry;
}

absl::StatusOr<Scope::Entry*> Scope::GetOrCreate(const std::string& name,
                                                 DType dtype,
                                                 const Shape& shape) {
  const auto it = entries_.find(name);
  if (it != entries_.end()) {
    Entry* entry = it->second.get();
    Tensor& t = entry->tensor;
    if (!t.has_value() && entry->pins == 0)
      PD_RETURN_IF_ERROR(Annotate(t.Resize(dtype, shape),
                                  absl::StrCat("variable '", name, "'")));
    if (t.shape() != shape || t.dtype() != dtype)
      return InvalidArgument(
          "variable '%s' holds %s%s; the program expects %s%s", name,
          Name(t.dtype()), ToString(t.shape()), Name(dtype), ToString(shape));
    return entry;
  }
  auto entry = std::make_unique<Entry>();
  PD_RETURN_IF_ERROR(Annotate(entry->tensor.Resize(dtype, shape),
                              absl::StrCat("variable '", name, "'")));
  return (entries_[name] = std::move(entry)).get();
}

Scope::Entry* Scope::Declare(const std::string& name) {
  auto& entry = entries_[name];
  if (entry == nullptr) entry = std::make_unique<Entry>();
  return entry.get();
}

absl::Status Scope::Set(const std::string& name, const Array& value) {
  PD_ASSIGN_OR_RETURN(Entry * entry,
                      GetOrCreate(name, value.dtype, value.shape));
  if (entry->tensor.layout() != nullptr) {
    CopyElements(ToTensor(value), &entry->tensor);
  } else if (value.size_bytes() > 0) {
    // From any address: the array may be a view of a file.
    std::memcpy(entry->tensor.raw(), value.bytes.get(), value.size_bytes());
  }
  entry->tensor.set_lod(value.lod);
  if (entry->device != nullptr) entry->device->WrittenByHost();
  // The value is in memory once, not twice.
  ReleaseMapped(
      {reinterpret_cast<const char*>(value.bytes.get()), value.size_bytes()});
  return absl::OkStatus();
}

absl::StatusOr<std::string> Scope::Remake(
    const std::string& of, const std::string& name,
    const std::function<void(float* out)>& make) {
  const auto made = entries_.find(name);
  if (made != entries_.end() && made->second->tensor.has_value()) return name;
  const Entry* from = std::as_const(*this).Find(of);
  PD_INVARIANT(from != nullptr);
  PD_ASSIGN_OR_RETURN(Entry * entry,
                      GetOrCreate(name, DType::kFloat32, from->tensor.shape()));
  make(entry->tensor.data<float>());
  Entry* old = entries_[of].get();
  if (old->pins == 0 && !old->lent && old->device == nullptr)
    old->tensor = Tensor(DType::kFloat32, old->tensor.shape());
  return name;
}

absl::StatusOr<Array> Scope::Get(const std::string& name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end() || !it->second->tensor.has_value())
    return NotFound("variable '%s' has no value", name);
  const Entry* entry = it->second.get();
  if (entry->device != nullptr) PD_RETURN_IF_ERROR(entry->device->ToHost());
  return ToArray(entry->tensor);
}

std::vector<std::string> Scope::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

size_t Scope::bytes() const {
  size_t bytes = 0;
  for (const auto& [name, entry] : entries_) bytes += entry->tensor.bytes();
  return bytes;
}

}  // namespace pd
