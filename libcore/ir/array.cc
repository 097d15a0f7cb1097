// SPDX-License-Identifier: Apache-2.0
#include "libcore/ir/array.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<Array> NewArray(DType dtype, Shape shape, std::byte** bytes) {
  constexpr std::align_val_t kAlignment{64};
  PD_ASSIGN_OR_RETURN(const int64_t size, CheckedBytes(shape, SizeOf(dtype)));
  PD_RETURN_IF_ERROR(Annotate(
      ReserveMemory(size),
      absl::StrCat("an array of ", Name(dtype), " ", ToString(shape))));
  auto* raw = static_cast<std::byte*>(
      ::operator new(static_cast<size_t>(size) + 1, kAlignment, std::nothrow));
  if (raw == nullptr) {
    ReleaseMemory(size);
    return ResourceExhausted(
        "an array of %s %s: the system has no %s of memory left", Name(dtype),
        ToString(shape), MemoryText(size));
  }
  Array array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  array.bytes = std::shared_ptr<const std::byte>(
      raw, [size, kAlignment](const std::byte* p) {
        ::operator delete(const_cast<std::byte*>(p), kAlignment);
        ReleaseMemory(size);
      });
  *bytes = raw;
  return array;
}

Array NewCopy(DType dtype, Shape shape, std::byte** bytes) {
  absl::StatusOr<Array> array = NewArray(dtype, std::move(shape), bytes);
  if (!array.ok()) throw std::bad_alloc();
  return *std::move(array);
}

}  // namespace pd
