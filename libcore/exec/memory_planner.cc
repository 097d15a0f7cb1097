// SPDX-License-Identifier: Apache-2.0
// A buffer goes around those that were placed and live while it does. Where
// they are few, a tree over the lives finds them one by one: chains of any
// length take n log n. Where they are many, all that were placed are passed in
// order of their offsets, in chunks. In a network of many layers most chunks
// are passed as a whole: their buffers all live during the one that is placed,
// and leave no hole for it, or none of them does. Both ways find the same
// place.
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

Placed PlacedOf(const BufferRequest& buffer) {
  return {buffer.offset, buffer.offset + RoundUp(buffer.bytes), buffer.first,
          buffer.last};
}

// Raises the offset of `item`, which needs `bytes`, over the buffers that live
// while it does; true when it fits below one of them. `placed`: by offset.
bool FitBetween(const std::vector<Placed>& placed, const BufferRequest& item,
                size_t bytes, size_t* offset) {
  for (const Placed& other : placed) {
    if (other.last < item.first || item.last < other.first) continue;
    if (other.begin >= *offset + bytes) return true;
    *offset = std::max(*offset, other.end);
  }
  return false;
}

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

  // As FitBetween.
  bool Fit(const BufferRequest& item, size_t bytes, size_t* offset) const {
    if (last_most_ < item.first || item.last < first_least_) return false;
    const bool all = first_most_ <= item.last && item.first <= last_least_;
    if (all && hole_ < bytes) {
      if (begin() >= *offset + bytes) return true;
      *offset = std::max(*offset, end_);
      return false;
    }
    return FitBetween(placed_, item, bytes, offset);
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

// The placed buffers by the steps that they live in.
class Lives {
 public:
  explicit Lives(const std::vector<BufferRequest>& buffers)
      : buffers_(buffers),
        order_(buffers.size()),
        rank_(buffers.size()),
        begun_(buffers.size() + 1),
        ended_(buffers.size() + 1) {
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      return buffers[a].first < buffers[b].first;
    });
    for (size_t i = 0; i < order_.size(); ++i) {
      rank_[order_[i]] = i;
      firsts_.push_back(buffers[order_[i]].first);
      lasts_.push_back(buffers[i].last);
    }
    std::sort(lasts_.begin(), lasts_.end());
    while (leaves_ < order_.size()) leaves_ *= 2;
    latest_.assign(2 * leaves_, std::numeric_limits<int>::min());
  }

  void Add(size_t buffer) {
    const int last = buffers_[buffer].last;
    for (size_t i = leaves_ + rank_[buffer]; i > 0; i /= 2)
      latest_[i] = std::max(latest_[i], last);
    Count(rank_[buffer], &begun_);
    Count(EndedBefore(last), &ended_);
  }

  // How many live in a step of the item's life: those that begin before its
  // end, but for those that end before its begin.
  size_t Count(const BufferRequest& item) const {
    return Sum(begun_, BegunBy(item.last)) -
           Sum(ended_, EndedBefore(item.first));
  }

  template <typename Body>
  void ForEach(const BufferRequest& item, const Body& body) const {
    Visit(1, 0, leaves_, BegunBy(item.last), item.first, body);
  }

 private:
  size_t BegunBy(int step) const {
    return static_cast<size_t>(
        std::upper_bound(firsts_.begin(), firsts_.end(), step) -
        firsts_.begin());
  }
  size_t EndedBefore(int step) const {
    return static_cast<size_t>(
        std::lower_bound(lasts_.begin(), lasts_.end(), step) - lasts_.begin());
  }

  // Fenwick trees.
  static void Count(size_t at, std::vector<size_t>* counts) {
    for (size_t i = at + 1; i < counts->size(); i += i & (~i + 1))
      ++(*counts)[i];
  }
  static size_t Sum(const std::vector<size_t>& counts, size_t end) {
    size_t sum = 0;
    for (size_t i = end; i > 0; i -= i & (~i + 1)) sum += counts[i];
    return sum;
  }

  // Of the node's ranks [begin, begin + width) those that are below `end` and
  // whose last step is `first` or later.
  template <typename Body>
  void Visit(size_t node, size_t begin, size_t width, size_t end, int first,
             const Body& body) const {
    if (begin >= end || latest_[node] < first) return;
    if (width == 1) {
      body(order_[begin]);
      return;
    }
    Visit(2 * node, begin, width / 2, end, first, body);
    Visit(2 * node + 1, begin + width / 2, width / 2, end, first, body);
  }

  const std::vector<BufferRequest>& buffers_;
  std::vector<size_t> order_, rank_;   // by first step; a buffer's place there
  std::vector<int> firsts_, lasts_;    // sorted
  std::vector<size_t> begun_, ended_;  // of the placed, by those
  size_t leaves_ = 1;
  std::vector<int> latest_;  // the last step of a subtree of ranks
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
  constexpr size_t kFew = 32;  // a visit by lives costs as much as so many
  std::vector<size_t> order(buffers->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return (*buffers)[a].bytes > (*buffers)[b].bytes;
  });
  Lives lives(*buffers);
  std::vector<Chunk> chunks;  // by offset
  std::vector<Placed> alive;
  size_t total = 0, placed = 0;
  for (size_t i : order) {
    BufferRequest& request = (*buffers)[i];
    const size_t bytes = RoundUp(request.bytes);
    size_t offset = 0;
    if (lives.Count(request) * kFew < placed) {
      alive.clear();
      lives.ForEach(request, [&](size_t other) {
        alive.push_back(PlacedOf((*buffers)[other]));
      });
      std::sort(alive.begin(), alive.end(),
                [](const auto& a, const auto& b) { return a.begin < b.begin; });
      FitBetween(alive, request, bytes, &offset);
    } else {
      for (const Chunk& chunk : chunks)
        if (chunk.Fit(request, bytes, &offset)) break;
    }
    request.offset = offset;
    total = std::max(total, offset + bytes);
    Add(PlacedOf(request), &chunks);
    lives.Add(i);
    ++placed;
  }
  return total;
}

void KeepToTheEnd(double reused, int end, std::vector<BufferRequest>* buffers) {
  if (reused >= 1) return;
  std::vector<BufferRequest*> largest_first;
  double left = 0;
  for (BufferRequest& buffer : *buffers) {
    largest_first.push_back(&buffer);
    left += reused * static_cast<double>(buffer.bytes);
  }
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const BufferRequest* a, const BufferRequest* b) {
                     return a->bytes > b->bytes;
                   });
  for (BufferRequest* buffer : largest_first) {
    left -= static_cast<double>(buffer->bytes);
    if (left < 0) buffer->last = end;
  }
}

}  // namespace pd
