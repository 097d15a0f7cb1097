// SPDX-License-Identifier: Apache-2.0
#include "formats/array.h"

#include <new>

namespace pd {

Array NewArray(DType dtype, Shape shape, std::byte** bytes) {
  constexpr std::align_val_t kAlignment{64};
  Array array;
  array.dtype = dtype;
  array.shape = std::move(shape);
  auto* raw = static_cast<std::byte*>(
      ::operator new(array.size_bytes() + 1, kAlignment));
  array.bytes = std::shared_ptr<const std::byte>(raw, [](const std::byte* p) {
    ::operator delete(const_cast<std::byte*>(p), kAlignment);
  });
  *bytes = raw;
  return array;
}

}  // namespace pd
