// SPDX-License-Identifier: Apache-2.0
// Many short rows copied from one place to another: what joining, splitting
// and looking up do. A row of 64 bytes costs a call to memcpy more than its
// copy, so usual widths are known to the compiler.
#ifndef PD_LIBCORE_OPS_COMMON_ROW_COPIES_H_
#define PD_LIBCORE_OPS_COMMON_ROW_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace pd {

/// Copies `width` bytes from `from(i)` to `to(i)` for every i in [begin, end).
template <typename To, typename From>
void CopyRows(int64_t begin, int64_t end, size_t width, const To& to,
              const From& from) {
  const auto run = [&](auto bytes) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(to(i), from(i), bytes);
  };
  switch (width) {
    case 0:
      return;
    case 4:
      return run(std::integral_constant<size_t, 4>());
    case 8:
      return run(std::integral_constant<size_t, 8>());
    case 16:
      return run(std::integral_constant<size_t, 16>());
    case 32:
      return run(std::integral_constant<size_t, 32>());
    case 64:
      return run(std::integral_constant<size_t, 64>());
    case 128:
      return run(std::integral_constant<size_t, 128>());
    case 256:
      return run(std::integral_constant<size_t, 256>());
    default:
      return run(width);
  }
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_ROW_COPIES_H_
