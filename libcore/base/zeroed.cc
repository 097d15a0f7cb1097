// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/zeroed.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "libcore/base/error.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/shape.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<std::shared_ptr<void>> ZeroedBytes(size_t size,
                                                  size_t alignment) {
  size_t room = size + alignment;
  if (size > static_cast<size_t>(kMostBytes))
    return ResourceExhausted("%d bytes are more than any memory has", size);
  const auto counted = static_cast<int64_t>(size);
  PD_RETURN_IF_ERROR(ReserveMemory(counted));
  void* const raw = std::calloc(room, 1);
  if (raw == nullptr) {
    ReleaseMemory(counted);
    return ResourceExhausted("the system has no %s of memory left",
                             MemoryText(counted));
  }
  const std::shared_ptr<void> owner(raw, [counted](void* bytes) {
    std::free(bytes);
    ReleaseMemory(counted);
  });
  void* aligned = raw;
  std::align(alignment, size, aligned, room);
  return std::shared_ptr<void>(owner, aligned);
}

void PreferLargePages(void* bytes, size_t size) {
  constexpr uintptr_t kLargePage = uintptr_t{1} << 21;
  const auto from = reinterpret_cast<uintptr_t>(bytes);
  const uintptr_t begin = (from + kLargePage - 1) & ~(kLargePage - 1);
  const uintptr_t end = (from + size) & ~(kLargePage - 1);
  if (begin < end)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace pd
