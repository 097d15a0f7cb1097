// SPDX-License-Identifier: Apache-2.0
#include "formats/torch_window.h"

#include <cstring>

#include "absl/numeric/int128.h"

namespace pd {

bool LiesWithin(const TorchWindow& window, int64_t count) {
  absl::int128 last = window.offset;
  for (size_t i = 0; i < window.shape.size(); ++i) {
    if (window.shape[i] == 0) return true;  // there are none
    last += absl::int128(window.shape[i] - 1) * window.strides[i];
    if (last >= count) return false;  // before it could overflow
  }
  return last < count;
}

bool IsContiguous(const TorchWindow& window) {
  int64_t expected = 1;
  for (size_t i = window.shape.size(); i-- > 0;) {
    if (window.shape[i] != 1 && window.strides[i] != expected) return false;
    expected *= window.shape[i];
  }
  return true;
}

void Gather(const TorchWindow& window, const std::byte* from, size_t size,
            std::byte* to) {
  const size_t rank = window.shape.size();
  Shape index(rank, 0);
  int64_t at = window.offset;
  for (;;) {
    std::memcpy(to, from + static_cast<size_t>(at) * size, size);
    to += size;
    size_t axis = rank;
    while (axis-- > 0) {
      at += window.strides[axis];
      if (++index[axis] < window.shape[axis]) break;
      at -= window.strides[axis] * window.shape[axis];
      index[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1)) return;
  }
}

}  // namespace pd
