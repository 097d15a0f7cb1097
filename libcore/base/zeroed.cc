// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/zeroed.h"

#include <cstdlib>
#include <new>

namespace pd {

std::shared_ptr<void> ZeroedBytes(size_t size, size_t alignment) {
  size_t room = size + alignment;
  void* const raw = room < size ? nullptr : std::calloc(room, 1);
  if (raw == nullptr) throw std::bad_alloc();
  const std::shared_ptr<void> owner(raw, &std::free);
  void* aligned = raw;
  std::align(alignment, size, aligned, room);
  return {owner, aligned};
}

}  // namespace pd
