// SPDX-License-Identifier: Apache-2.0
// Buffers that were placed stand in chunks, sorted by offset. In a network of
// many layers most chunks are passed as a whole: their buffers all live during
// the one that is placed, and leave no hole for it, or none of them does. So
// the time grows with the number of buffers, not with its square.
#include "libcore/exec/memory_planner.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace pd {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kChunk = 512;  // buffers; a fuller one is halved

size_t RoundUp(size_t n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

// The bytes [begin, end) in steps [first, last].
struct Placed {
  size_t begin, end;
  int first, last;
};

// Placed buffers by offset, never none, and what they have in common.
class Chunk {
 public:
  explicit Chunk(std::vector<Placed> placed) : placed_(std::move(placed)) {
    Summarize();
  }

  size_t begin() const { return placed_.front().begin; }

  void Add(const Placed& item) {
    const auto at = std::upper_bound(
        placed_.begin(), placed_.end(), item.begin,
        [](size_t begin, const Placed& other) { return begin < other.begin; });
    placed_.insert(at, item);
    Summarize();
  }

  bool full() const { return placed_.size() > kChunk; }

  // The upper half, which leaves this chunk.
  Chunk Split() {
    const auto middle =
        placed_.begin() + static_cast<std::ptrdiff_t>(placed_.size() / 2);
    Chunk upper(std::vector<Placed>(middle, placed_.end()));
    placed_.erase(middle, placed_.end());
    Summarize();
    return upper;
  }

  // Raises the offset of `item`, which needs `bytes`, over the buffers that
  // live while it does; true when it fits below one of them.
  bool Fit(const BufferRequest& item, size_t bytes, size_t* offset) const {
    if (last_most_ < item.first || item.last < first_least_) return false;
    const bool all = first_most_ <= item.last && item.first <= last_least_;
    if (all && hole_ < bytes) {
      if (begin() >= *offset + bytes) return true;
      *offset = std::max(*offset, end_);
      return false;
    }
    for (const Placed& other : placed_) {
      if (other.last < item.first || item.last < other.first) continue;
      if (other.begin >= *offset + bytes) return true;
      *offset = std::max(*offset, other.end);
    }
    return false;
  }

 private:
  void Summarize() {
    first_least_ = last_least_ = std::numeric_limits<int>::max();
    first_most_ = last_most_ = std::numeric_limits<int>::min();
    hole_ = 0;
    end_ = begin();
    for (const Placed& item : placed_) {
      if (item.begin > end_) hole_ = std::max(hole_, item.begin - end_);
      end_ = std::max(end_, item.end);
      first_least_ = std::min(first_least_, item.first);
      first_most_ = std::max(first_most_, item.first);
      last_least_ = std::min(last_least_, item.last);
      last_most_ = std::max(last_most_, item.last);
    }
  }

  std::vector<Placed> placed_;
  size_t end_ = 0;   // the highest
  size_t hole_ = 0;  // the largest that all of them leave between them
  int first_least_ = 0, first_most_ = 0, last_least_ = 0, last_most_ = 0;
};

void Add(const Placed& item, std::vector<Chunk>* chunks) {
  if (chunks->empty()) {
    chunks->emplace_back(std::vector<Placed>{item});
    return;
  }
  // The last one that begins no later than the item.
  auto at = std::upper_bound(
      chunks->begin(), chunks->end(), item.begin,
      [](size_t begin, const Chunk& chunk) { return begin < chunk.begin(); });
  if (at != chunks->begin()) --at;
  at->Add(item);
  if (!at->full()) return;
  Chunk upper = at->Split();
  chunks->insert(at + 1, std::move(upper));
}

}  // namespace

size_t PlanMemory(std::vector<BufferRequest>* buffers) {
  std::vector<size_t> order(buffers->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return (*buffers)[a].bytes > (*buffers)[b].bytes;
  });
  std::vector<Chunk> chunks;  // by offset
  size_t total = 0;
  for (size_t i : order) {
    BufferRequest& request = (*buffers)[i];
    const size_t bytes = RoundUp(request.bytes);
    size_t offset = 0;
    for (const Chunk& chunk : chunks)
      if (chunk.Fit(request, bytes, &offset)) break;
    request.offset = offset;
    total = std::max(total, offset + bytes);
    Add({offset, offset + bytes, request.first, request.last}, &chunks);
  }
  return total;
}

}  // namespace pd
