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

absl::Status NoRecord() {
  return InvalidArgument("no shard of the batch has a record");
}

}  // namespace

ShardRange ShardRange::Of(int64_t shards, int rank, int size) {
  return {shards * rank / size, shards * (rank + 1) / size};
}

ShardSum::ShardSum(int64_t shards, int64_t count, const Communicator* processes)
    : shards_(shards),
      count_(count),
      processes_(*processes),
      share_((count + processes->size() - 1) / processes->size()),
      own_(ShardRange::Of(shards, processes->rank(), processes->size())),
      next_(own_.begin) {}

float* ShardSum::TakeBuffer() {
  if (free_.empty()) {
    buffers_.emplace_back(static_cast<size_t>(share_ * processes_.size()));
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

absl::StatusOr<const float*> ShardSum::Finish() {
  PD_INVARIANT(leaf_ == nullptr && next_ == own_.end);
  next_ = own_.begin;
  const absl::StatusOr<const float*> sums = Exchange();
  for (const Node& node : nodes_)
    if (node.data != nullptr) free_.push_back(node.data);
  nodes_.clear();
  return sums;
}

absl::StatusOr<const float*> ShardSum::Exchange() {
  const int size = processes_.size();
  if (size == 1) {
    CompleteTree(count_, &nodes_);
    if (nodes_[0].data == nullptr) return NoRecord();
    return nodes_[0].data;
  }
  const int64_t share = share_;
  // The subtrees of every process, and which of them are present.
  std::vector<std::vector<Node>> subtrees(static_cast<size_t>(size));
  int64_t most = 1;
  for (int r = 0; r < size; ++r) {
    const ShardRange range = ShardRange::Of(shards_, r, size);
    auto& nodes = subtrees[static_cast<size_t>(r)];
    for (int64_t s = range.begin; s < range.end; ++s)
      Push({0, s, nullptr}, 0, &nodes);
    most = std::max(most, static_cast<int64_t>(nodes.size()));
  }
  std::vector<uint8_t> present(static_cast<size_t>(most), 0);
  for (size_t n = 0; n < nodes_.size(); ++n)
    present[n] = nodes_[n].data != nullptr;
  std::vector<uint8_t> all_present(present.size() * subtrees.size());
  PD_RETURN_IF_ERROR(
      processes_.AllGather(present.data(), present.size(), all_present.data()));
  // Each process's share of each of our subtrees, by process: a single one lies
  // that way already.
  const auto own = static_cast<int64_t>(nodes_.size());
  const float* out = own == 1 ? nodes_[0].data : nullptr;
  if (out == nullptr) {
    sends_.resize(static_cast<size_t>(own * share * size));
    float* to = sends_.data();
    for (int r = 0; r < size; ++r)
      for (const Node& node : nodes_) {
        if (node.data != nullptr) std::copy_n(node.data + r * share, share, to);
        to += share;
      }
    out = sends_.data();
  }
  const size_t bytes = static_cast<size_t>(share) * sizeof(float);
  std::vector<size_t> sends(subtrees.size(), static_cast<size_t>(own) * bytes);
  std::vector<size_t> receives;
  size_t total = 0;
  for (const auto& nodes : subtrees) {
    receives.push_back(nodes.size() * bytes);
    total += nodes.size();
  }
  receives_.resize(total * static_cast<size_t>(share));
  PD_RETURN_IF_ERROR(
      processes_.AllToAll(out, sends, receives_.data(), receives));
  std::vector<Node> stack;
  float* from = receives_.data();
  for (size_t r = 0; r < subtrees.size(); ++r) {
    for (size_t n = 0; n < subtrees[r].size(); ++n) {
      Node node = subtrees[r][n];
      node.data = all_present[r * present.size() + n] != 0 ? from : nullptr;
      from += share;
      Push(node, share, &stack);
    }
  }
  CompleteTree(share, &stack);
  if (stack[0].data == nullptr) return NoRecord();
  sums_.resize(static_cast<size_t>(share * size));
  PD_RETURN_IF_ERROR(processes_.AllGather(stack[0].data, bytes, sums_.data()));
  return sums_.data();
}

}  // namespace pd
