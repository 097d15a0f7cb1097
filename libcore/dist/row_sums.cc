// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/row_sums.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// The bytes before a node's rows: its level, its index, how many rows.
constexpr size_t kHead = 3 * sizeof(int64_t);

}  // namespace

RowSums::RowSums(int64_t shards, int64_t height, int64_t width,
                 const Communicator* processes)
    : height_(height),
      width_(width),
      processes_(*processes),
      own_(ShardRange::Of(shards, processes->rank(), processes->size())),
      next_(own_.begin) {}

void RowSums::Add(const int64_t* rows, int64_t count, const float* values,
                  float weight) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return rows[a] < rows[b]; });
  Node leaf{0, next_++, {}};
  TableRows& sums = leaf.sums;
  for (const int64_t i : order) {
    const float* from = values + i * width_;
    if (sums.rows.empty() || sums.rows.back() != rows[i]) {
      sums.rows.push_back(rows[i]);
      sums.values.insert(sums.values.end(), from, from + width_);
      continue;
    }
    float* to = sums.values.data() + sums.values.size() - width_;
    for (int64_t c = 0; c < width_; ++c) to[c] += from[c];
  }
  for (float& value : sums.values) value *= weight;
  Push(std::move(leaf));
}

TableRows RowSums::Sum(const TableRows& a, const TableRows& b) const {
  TableRows sum;
  sum.rows.reserve(a.rows.size() + b.rows.size());
  sum.values.reserve(a.values.size() + b.values.size());
  size_t i = 0, k = 0;
  const auto take = [&](const TableRows& from, size_t row) {
    const float* values = from.values.data() + row * width_;
    sum.rows.push_back(from.rows[row]);
    sum.values.insert(sum.values.end(), values, values + width_);
  };
  while (i < a.rows.size() || k < b.rows.size()) {
    if (k == b.rows.size() || (i < a.rows.size() && a.rows[i] < b.rows[k])) {
      take(a, i++);
    } else if (i == a.rows.size() || b.rows[k] < a.rows[i]) {
      take(b, k++);
    } else {
      take(a, i++);
      const float* other = b.values.data() + k++ * width_;
      float* to = sum.values.data() + sum.values.size() - width_;
      for (int64_t c = 0; c < width_; ++c) to[c] += other[c];
    }
  }
  return sum;
}

void RowSums::Push(Node node) {
  nodes_.push_back(std::move(node));
  MergeTop();
}

// Joins the last two where they are the halves of one subtree.
void RowSums::MergeTop() {
  while (nodes_.size() > 1) {
    Node& left = nodes_[nodes_.size() - 2];
    const Node& right = nodes_.back();
    if (left.level != right.level || left.index % 2 != 0 ||
        left.index + 1 != right.index)
      return;
    left.sums = Sum(left.sums, right.sums);
    ++left.level;
    left.index /= 2;
    nodes_.pop_back();
  }
}

std::string RowSums::TextOf(const Node& node) const {
  const std::vector<int64_t>& rows = node.sums.rows;
  const int64_t head[] = {node.level, node.index,
                          static_cast<int64_t>(rows.size())};
  std::string text(reinterpret_cast<const char*>(head), kHead);
  text.append(reinterpret_cast<const char*>(rows.data()),
              rows.size() * sizeof(int64_t));
  text.append(reinterpret_cast<const char*>(node.sums.values.data()),
              node.sums.values.size() * sizeof(float));
  return text;
}

// The nodes of one process, one behind the other.
absl::Status RowSums::PushText(const std::string& text) {
  const size_t each =
      sizeof(int64_t) + static_cast<size_t>(width_) * sizeof(float);
  for (size_t at = 0; at < text.size();) {
    int64_t head[3] = {0, 0, -1};
    if (text.size() - at >= kHead) std::memcpy(head, text.data() + at, kHead);
    at += kHead;
    if (head[2] < 0 || at > text.size() ||
        static_cast<uint64_t>(head[2]) > (text.size() - at) / each)
      return Internal("rows of a sparse gradient arrived cut off");
    const auto count = static_cast<size_t>(head[2]);
    Node node{head[0], head[1], {}};
    node.sums.rows.resize(count);
    node.sums.values.resize(count * static_cast<size_t>(width_));
    const auto take = [&](void* to, size_t bytes) {
      if (bytes > 0) std::memcpy(to, text.data() + at, bytes);
      at += bytes;
    };
    take(node.sums.rows.data(), count * sizeof(int64_t));
    take(node.sums.values.data(), node.sums.values.size() * sizeof(float));
    for (const int64_t row : node.sums.rows)
      if (row < 0 || row >= height_)
        return Internal("row %d of a sparse gradient arrived; it has %d rows",
                        row, height_);
    Push(std::move(node));
  }
  return absl::OkStatus();
}

absl::StatusOr<TableRows> RowSums::Finish() {
  PD_INVARIANT(next_ == own_.end);
  next_ = own_.begin;
  if (processes_.size() > 1) {
    std::string own;
    for (const Node& node : nodes_) own += TextOf(node);
    nodes_.clear();
    PD_ASSIGN_OR_RETURN(const auto texts, processes_.GatherTexts(own));
    for (const std::string& text : texts) PD_RETURN_IF_ERROR(PushText(text));
  }
  // At the right edge of the tree a subtree without a neighbour is its parent.
  while (nodes_.size() > 1) {
    ++nodes_.back().level;
    nodes_.back().index /= 2;
    MergeTop();
  }
  TableRows sums = std::move(nodes_.front().sums);
  nodes_.clear();
  return sums;
}

}  // namespace pd
