// SPDX-License-Identifier: Apache-2.0
// Memory for tensors and plans.
#ifndef PD_LIBCORE_BASE_ZEROED_H_
#define PD_LIBCORE_BASE_ZEROED_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

namespace pd {

/// `size` zero bytes at a multiple of `alignment`, a power of two. Many of them
/// come from the system as pages that cost nothing until they are written.
/// ResourceExhausted above the memory limit, or where the system has none.
absl::StatusOr<std::shared_ptr<void>> ZeroedBytes(size_t size,
                                                  size_t alignment);

/// Asks for pages of 2 MiB for bytes that will all be used: large tensors then
/// miss the page tables' cache less often. A wish, which the system may refuse.
void PreferLargePages(void* bytes, size_t size);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_ZEROED_H_
