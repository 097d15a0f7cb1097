// SPDX-License-Identifier: Apache-2.0
// Memory for tensors and plans.
#ifndef PD_LIBCORE_BASE_ZEROED_H_
#define PD_LIBCORE_BASE_ZEROED_H_

#include <cstddef>
#include <memory>

namespace pd {

/// `size` zero bytes at a multiple of `alignment`, a power of two. Many of them
/// come from the system as pages that cost nothing until they are written.
/// Throws std::bad_alloc where there are none.
std::shared_ptr<void> ZeroedBytes(size_t size, size_t alignment);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_ZEROED_H_
