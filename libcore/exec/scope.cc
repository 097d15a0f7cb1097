// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/scope.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/mapped_copy.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/one_number.h"

namespace pd {
namespace {

// The bytes of a part within those of a flat variable's value.
absl::StatusOr<size_t> Offset(const FlatVariable& flat,
                              const FlatVariable::Part& part,
                              const Array& part_value, const Array& value) {
  const size_t begin = static_cast<size_t>(part.begin) * SizeOf(value.dtype);
  const size_t end = begin + part_value.size_bytes();
  if (part_value.dtype == value.dtype && end <= value.size_bytes())
    return begin;
  return InvalidArgument(
      "'%s', %s%s, lies from element %d on in '%s', which is %s%s", part.name,
      Name(part_value.dtype), ToString(part_value.shape), part.begin, flat.name,
      Name(value.dtype), ToString(value.shape));
}

}  // namespace

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
    if (t.dtype() == dtype && IsOneNumber(t, shape)) {
      PD_ASSIGN_OR_RETURN(Array value, Get(name));
      PD_RETURN_IF_ERROR(t.Resize(shape));
      std::memcpy(t.raw(), value.bytes.get(), t.bytes());
    }
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
    // The array may be a view of a file, at any alignment.
    std::memcpy(entry->tensor.raw(), value.bytes.get(), value.size_bytes());
  }
  entry->tensor.set_lod(value.lod);
  if (entry->device != nullptr) entry->device->WrittenByHost();
  if (const FlatVariable* flat = FindFlat(name))
    PD_RETURN_IF_ERROR(SetParts(*flat, value));
  // So that the value is not in memory twice.
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
  Array value = ToArray(entry->tensor);
  if (const FlatVariable* flat = FindFlat(name))
    PD_RETURN_IF_ERROR(PutTogether(*flat, &value));
  return value;
}

const FlatVariable* Scope::FindFlat(const std::string& name) const {
  for (const FlatVariable& flat : flat_)
    if (flat.name == name) return &flat;
  return nullptr;
}

absl::Status Scope::SetParts(const FlatVariable& flat, const Array& value) {
  for (const FlatVariable::Part& part : flat.parts) {
    Array piece;
    piece.dtype = value.dtype;
    piece.shape = part.shape;
    PD_RETURN_IF_ERROR(CheckedBytes(piece.shape, SizeOf(piece.dtype)).status());
    PD_ASSIGN_OR_RETURN(const size_t at, Offset(flat, part, piece, value));
    piece.bytes = {value.bytes, value.bytes.get() + at};
    PD_RETURN_IF_ERROR(Set(part.name, piece));
  }
  return absl::OkStatus();
}

absl::Status Scope::PutTogether(const FlatVariable& flat, Array* value) const {
  std::byte* to = nullptr;
  PD_ASSIGN_OR_RETURN(Array whole, NewArray(value->dtype, value->shape, &to));
  if (value->size_bytes() > 0)
    std::memcpy(to, value->bytes.get(), value->size_bytes());
  for (const FlatVariable::Part& part : flat.parts) {
    const auto piece = Get(part.name);
    if (absl::IsNotFound(piece.status())) continue;  // not made yet
    PD_RETURN_IF_ERROR(piece.status());
    PD_ASSIGN_OR_RETURN(const size_t at, Offset(flat, part, *piece, *value));
    if (piece->size_bytes() > 0)
      std::memcpy(to + at, piece->bytes.get(), piece->size_bytes());
  }
  *value = std::move(whole);
  return absl::OkStatus();
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
