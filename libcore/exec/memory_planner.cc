// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/memory_planner.h"

#include <algorithm>
#include <numeric>

namespace pd {
namespace {

constexpr size_t kAlignment = 64;

size_t RoundUp(size_t n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

size_t PlanMemory(std::vector<BufferRequest>* buffers) {
  std::vector<size_t> order(buffers->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return (*buffers)[a].bytes > (*buffers)[b].bytes;
  });
  std::vector<size_t> placed;  // by offset
  size_t total = 0;
  for (size_t i : order) {
    BufferRequest& request = (*buffers)[i];
    const size_t bytes = RoundUp(request.bytes);
    size_t offset = 0;
    for (size_t j : placed) {
      const BufferRequest& other = (*buffers)[j];
      if (other.last < request.first || request.last < other.first) continue;
      if (other.offset >= offset + bytes) break;
      offset = std::max(offset, other.offset + RoundUp(other.bytes));
    }
    request.offset = offset;
    total = std::max(total, offset + bytes);
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [&](size_t o, size_t j) { return o < (*buffers)[j].offset; });
    placed.insert(at, i);
  }
  return total;
}

}  // namespace pd
