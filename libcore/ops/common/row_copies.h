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

/// Copies bytes that do not overlap, in pieces of 64. memcpy takes `rep movsb`
/// for rows of a few KB, which needs several times as long on AMD's processors
/// where the two places lie a few bytes apart modulo 4096. Loads wait there for
/// the stores before them, too, unless the copy goes backwards.
inline void CopyLongRow(void* to_bytes, const void* from_bytes, size_t bytes) {
  char* const to = static_cast<char*>(to_bytes);
  const char* const from = static_cast<const char*>(from_bytes);
  constexpr size_t kPiece = 64, kPage = 4096, kNear = 512;
  constexpr size_t kStreamed = size_t{1} << 20;  // memcpy goes past the caches
  if (bytes >= kStreamed) {
    std::memcpy(to, from, bytes);
    return;
  }
  const size_t whole = bytes / kPiece * kPiece;
  const size_t ahead =
      (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) %
      kPage;
  if (whole < bytes) std::memcpy(to + whole, from + whole, bytes - whole);
  if (ahead > 0 && ahead < kNear)
    for (size_t i = whole; i > 0; i -= kPiece)
      std::memcpy(to + i - kPiece, from + i - kPiece, kPiece);
  else
    for (size_t i = 0; i < whole; i += kPiece)
      std::memcpy(to + i, from + i, kPiece);
}

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
      for (int64_t i = begin; i < end; ++i) CopyLongRow(to(i), from(i), width);
  }
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_ROW_COPIES_H_
