// SPDX-License-Identifier: Apache-2.0
// The memory of paddle::Tensor. While the kernel of an operator runs, the
// library offers the memory in which its outputs belong: a tensor of that size
// takes it, so that a result is computed where it is wanted.
#ifndef PD_LIBCORE_PLUGIN_API_PADDLE_MEMORY_H_
#define PD_LIBCORE_PLUGIN_API_PADDLE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace paddle {

/// Called with the memory when the last tensor that uses it goes.
using Deleter = std::function<void(void*)>;

namespace detail {

/// Bytes, and what keeps them.
struct Memory {
  void* data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<void> owner;
};
using MemoryPtr = std::shared_ptr<Memory>;

/// The memory that this thread's kernel may take; null: none runs.
inline std::vector<MemoryPtr>*& OfferedMemory() {
  static thread_local std::vector<MemoryPtr>* offered = nullptr;
  return offered;
}

/// `bytes` of its own, aligned for any vector; bad_alloc where there are none.
inline void Own(size_t bytes, Memory* memory) {
  void* data = nullptr;
  if (::posix_memalign(&data, 64, bytes == 0 ? 64 : bytes) != 0)
    throw std::bad_alloc();
  memory->data = data;
  memory->bytes = bytes;
  memory->owner = std::shared_ptr<void>(data, [](void* p) { std::free(p); });
}

/// Memory whose contents are undefined.
inline MemoryPtr NewMemory(size_t bytes) {
  std::vector<MemoryPtr>* offered = OfferedMemory();
  for (size_t i = 0; offered != nullptr && i < offered->size(); ++i) {
    if ((*offered)[i]->bytes != bytes) continue;
    MemoryPtr taken = std::move((*offered)[i]);
    offered->erase(offered->begin() + static_cast<std::ptrdiff_t>(i));
    return taken;
  }
  MemoryPtr memory = std::make_shared<Memory>();
  Own(bytes, memory.get());
  return memory;
}

/// Somebody else's bytes.
inline MemoryPtr Borrow(void* data, size_t bytes,
                        std::shared_ptr<void> owner = nullptr) {
  MemoryPtr memory = std::make_shared<Memory>();
  memory->data = data;
  memory->bytes = bytes;
  memory->owner = std::move(owner);
  return memory;
}

}  // namespace detail
}  // namespace paddle

#endif  // PD_LIBCORE_PLUGIN_API_PADDLE_MEMORY_H_
