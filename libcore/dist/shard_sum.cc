// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/shard_sum.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr int64_t kAddGrain = 32768;  // numbers per thread at least

void AddTo(int64_t count, const float* from, float* to) {
  ParallelFor(count, kAddGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] += from[i];
  });
}

std::vector<int64_t> EqualParts(int64_t count, int size) {
  std::vector<int64_t> bounds;
  for (int r = 0; r <= size; ++r)
    bounds.push_back((count + size - 1) / size * r);
  return bounds;
}

absl::Status NoRecord() {
  return InvalidArgument("no shard of the batch has a record");
}

}  // namespace

ShardRange ShardRange::Of(int64_t shards, int rank, int size) {
  return {shards * rank / size, shards * (rank + 1) / size};
}

ShardSum::ShardSum(int64_t shards, int64_t count, const Communicator* processes)
    : ShardSum(shards, EqualParts(count, processes->size()), count, false,
               processes) {}

ShardSum::ShardSum(int64_t shards, std::vector<int64_t> bounds,
                   const Communicator* processes)
    : ShardSum(shards, bounds, bounds.back(), true, processes) {}

ShardSum::ShardSum(int64_t shards, std::vector<int64_t> bounds, int64_t count,
                   bool parts, const Communicator* processes)
    : shards_(shards),
      count_(count),
      processes_(*processes),
      parts_(parts),
      bounds_(std::move(bounds)),
      own_(ShardRange::Of(shards, processes->rank(), processes->size())),
      next_(own_.begin) {
  for (int r = 0; r < processes_.size(); ++r)
    subtrees_.push_back(
        SubtreesOf(ShardRange::Of(shards_, r, processes_.size())));
}

// Each is as large as it begins and ends within the range.
std::vector<ShardSum::Node> ShardSum::SubtreesOf(const ShardRange& range) {
  std::vector<Node> subtrees;
  for (int64_t s = range.begin; s < range.end;) {
    Node node;
    while (s % (int64_t{2} << node.level) == 0 &&
           s + (int64_t{2} << node.level) <= range.end)
      ++node.level;
    node.index = s >> node.level;
    s += int64_t{1} << node.level;
    subtrees.push_back(node);
  }
  return subtrees;
}

int64_t ShardSum::BytesSent(int64_t shards, int64_t count, int size) {
  const int64_t share = (count + size - 1) / size;
  size_t most = 0;
  for (int r = 0; r < size; ++r)
    most = std::max(most, SubtreesOf(ShardRange::Of(shards, r, size)).size());
  // Shares of its subtrees to each of the others, then its share of the sums.
  return static_cast<int64_t>((most + 1) * sizeof(float)) * share * (size - 1);
}

float* ShardSum::TakeBuffer() {
  if (free_.empty()) {
    buffers_.emplace_back(static_cast<size_t>(bounds_.back()));
    free_.push_back(buffers_.back().data());
  }
  float* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

float* ShardSum::NextShard() {
  PD_INVARIANT(leaf_ == nullptr && next_ < own_.end);
  return leaf_ = TakeBuffer();
}

void ShardSum::Add(bool present) {
  Node leaf{0, next_++, leaf_};
  if (!present) {
    free_.push_back(leaf_);
    leaf.data = nullptr;
  }
  leaf_ = nullptr;
  present_.push_back(present);
  Push(leaf, count_, &nodes_);
}

// Joins the last two where they are the halves of one subtree.
void ShardSum::MergeTop(int64_t count, std::vector<Node>* stack) {
  while (stack->size() > 1) {
    Node& left = (*stack)[stack->size() - 2];
    const Node right = stack->back();
    if (left.level != right.level || left.index % 2 != 0 ||
        left.index + 1 != right.index)
      return;
    if (left.data == nullptr) {
      left.data = right.data;
    } else if (right.data != nullptr) {
      AddTo(count, right.data, left.data);
      if (stack == &nodes_) free_.push_back(right.data);
    }
    ++left.level;
    left.index /= 2;
    stack->pop_back();
  }
}

void ShardSum::Push(Node node, int64_t count, std::vector<Node>* stack) {
  stack->push_back(node);
  MergeTop(count, stack);
}

// At the right edge of the tree a subtree without a neighbour is its parent.
void ShardSum::CompleteTree(int64_t count, std::vector<Node>* stack) {
  while (stack->size() > 1) {
    ++stack->back().level;
    stack->back().index /= 2;
    MergeTop(count, stack);
  }
}

absl::StatusOr<std::vector<uint8_t>> ShardSum::GatherPresent() const {
  PD_INVARIANT(complete());
  const int size = processes_.size();
  // As many from each process, so that they lie one behind the other.
  const auto most = static_cast<size_t>((shards_ + size - 1) / size);
  std::vector<uint8_t> own = present_, all(most * static_cast<size_t>(size));
  own.resize(most);
  PD_RETURN_IF_ERROR(processes_.AllGather(own.data(), most, all.data()));
  std::vector<uint8_t> present;
  for (int r = 0; r < size; ++r) {
    const ShardRange range = ShardRange::Of(shards_, r, size);
    const auto from = all.begin() + r * static_cast<int64_t>(most);
    present.insert(present.end(), from, from + (range.end - range.begin));
  }
  return present;
}

absl::StatusOr<const float*> ShardSum::Finish(
    const std::vector<uint8_t>& present) {
  PD_INVARIANT(complete());
  next_ = own_.begin;
  const absl::StatusOr<const float*> sums = Exchange(present);
  for (const Node& node : nodes_)
    if (node.data != nullptr) free_.push_back(node.data);
  nodes_.clear();
  present_.clear();
  if (parts_ && processes_.size() > 1) {
    free_.clear();
    buffers_.clear();
  }
  return sums;
}

// Each process's part of each of our subtrees, by process: a single one lies
// that way already.
const float* ShardSum::Sends() {
  if (nodes_.size() == 1 && nodes_[0].data != nullptr) return nodes_[0].data;
  sends_.resize(nodes_.size() * static_cast<size_t>(bounds_.back()));
  float* to = sends_.data();
  for (size_t r = 0; r < subtrees_.size(); ++r)
    for (const Node& node : nodes_) {
      if (node.data != nullptr)
        std::copy_n(node.data + bounds_[r], PartOf(r), to);
      to += PartOf(r);
    }
  return sends_.data();
}

absl::StatusOr<const float*> ShardSum::Exchange(
    const std::vector<uint8_t>& present) {
  PD_INVARIANT(present.size() == static_cast<size_t>(shards_));
  if (processes_.size() == 1) {
    CompleteTree(count_, &nodes_);
    if (nodes_[0].data == nullptr) return NoRecord();
    return nodes_[0].data;
  }
  const int64_t own = PartOf(static_cast<size_t>(processes_.rank()));
  const size_t bytes = static_cast<size_t>(own) * sizeof(float);
  std::vector<size_t> sends, receives;
  size_t total = 0;
  for (size_t r = 0; r < subtrees_.size(); ++r) {
    sends.push_back(nodes_.size() * static_cast<size_t>(PartOf(r)) *
                    sizeof(float));
    receives.push_back(subtrees_[r].size() * bytes);
    total += subtrees_[r].size();
  }
  // A part may be empty; null means no shard.
  receives_.resize(std::max<size_t>(total * static_cast<size_t>(own), 1));
  PD_RETURN_IF_ERROR(
      processes_.AllToAll(Sends(), sends, receives_.data(), receives));
  std::vector<Node> stack;
  float* from = receives_.data();
  for (const auto& nodes : subtrees_)
    for (Node node : nodes) {
      const int64_t begin = node.index << node.level;
      const int64_t end = std::min(shards_, (node.index + 1) << node.level);
      const bool any = std::count(present.begin() + begin,
                                  present.begin() + end, 0) < end - begin;
      node.data = any ? from : nullptr;
      from += own;
      Push(node, own, &stack);
    }
  CompleteTree(own, &stack);
  if (stack[0].data == nullptr) return NoRecord();
  if (parts_) return KeepPart(stack[0].data, own);
  sums_.resize(static_cast<size_t>(bounds_.back()));
  PD_RETURN_IF_ERROR(processes_.AllGather(stack[0].data, bytes, sums_.data()));
  return sums_.data();
}

// Gives back the memory of all that is another's.
const float* ShardSum::KeepPart(const float* sums, int64_t count) {
  sums_.assign(sums, sums + count);
  for (std::vector<float>* room : {&sends_, &receives_})
    std::vector<float>().swap(*room);
  return sums_.data();
}

int64_t ShardSum::held_bytes() const {
  const size_t numbers =
      processes_.size() > 1 ? sums_.size() : static_cast<size_t>(count_);
  return static_cast<int64_t>(numbers * sizeof(float));
}

}  // namespace pd
