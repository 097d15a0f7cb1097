// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/scope.h"

#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/mapped_copy.h"
#include "libcore/base/status_macros.h"

namespace pd {

Scope::Entry* Scope::Find(const std::string& name) {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : it->second.get();
}

const Scope::Entry* Scope::Find(const std::string& name) const {
  return const_cast<Scope*>(this)->Find(name);
}

absl::StatusOr<Scope::Entry*> Scope::GetOrCreate(const std::string& name,
                                                 DType dtype,
                                                 const Shape& shape) {
  if (Entry* entry = Find(name)) {
    Tensor& t = entry->tensor;
    if (!t.has_value() && entry->pins == 0) t.Resize(dtype, shape);
    if (t.shape() != shape || t.dtype() != dtype)
      return InvalidArgument(
          "variable '%s' holds %s%s; the program expects %s%s", name,
          Name(t.dtype()), ToString(t.shape()), Name(dtype), ToString(shape));
    return entry;
  }
  auto entry = std::make_unique<Entry>();
  entry->tensor.Reset(dtype, shape);
  entry->tensor.Allocate();
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
  // The value is in memory once, not twice.
  ReleaseMapped(
      {reinterpret_cast<const char*>(value.bytes.get()), value.size_bytes()});
  return absl::OkStatus();
}

absl::StatusOr<Array> Scope::Get(const std::string& name) const {
  const Entry* entry = Find(name);
  if (entry == nullptr || !entry->tensor.has_value())
    return NotFound("variable '%s' has no value", name);
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
