// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/synthetic_batch.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/rng.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// The constraints of a program on one feed, found by following it.
class Wanted {
 public:
  Wanted(const BlockDesc& block, const FeedSpec& feed)
      : block_(block),
        bounds_(feed.shape.empty() ? 1
                                   : static_cast<size_t>(std::max<int64_t>(
                                         1, feed.shape.back()))) {
    Follow(feed.name, 0, bounds_.size());
  }

  /// Element i is below this; 2 where nobody said.
  uint64_t Bound(uint64_t i) const {
    const int64_t bound = bounds_[i % bounds_.size()];
    return bound > 0 ? static_cast<uint64_t>(bound) : 2;
  }
  bool zero_or_one() const { return zero_or_one_; }

 private:
  // `name` holds columns [first, first + count) of the feed.
  void Follow(const std::string& name, size_t first, size_t count) {
    for (const OpDesc& op : block_.ops) {
      if (op.type == "lookup_table_v2" && op.In("Ids") == name)
        Limit(op.In("W"), 0, first, count);
      else if (op.type == "softmax_with_cross_entropy" &&
               op.In("Label") == name)
        Limit(op.In("Logits"), op.AttrOr<int32_t>("axis", -1), first, count);
      else if ((op.type == "sigmoid_cross_entropy_with_logits" ||
                op.type == "bce_loss") &&
               op.In("Label") == name)
        zero_or_one_ = true;
      else if (op.In("X") == name)
        FollowOp(op, first, count);
    }
  }

  void FollowOp(const OpDesc& op, size_t first, size_t count) {
    static const std::set<std::string> same = {
        "assign",   "cast",     "flatten_contiguous_range",
        "reshape2", "squeeze2", "unsqueeze2"};
    if (same.count(op.type) > 0) return Follow(op.Out("Out"), first, count);
    if (op.type != "split" && op.type != "unstack" && op.type != "unbind")
      return;
    const std::vector<std::string>& parts =
        op.Output(op.type == "unstack" ? "Y" : "Out");
    const VarDesc* x = block_.FindVar(op.In("X"));
    const int64_t axis = op.AttrOr<int32_t>("axis", 0);
    if (x == nullptr || parts.empty()) return;
    const bool last =
        axis == -1 || axis + 1 == static_cast<int64_t>(x->shape.size());
    const bool equal = last && count % parts.size() == 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (equal)
        Follow(parts[i], first + i * (count / parts.size()),
               count / parts.size());
      else
        Follow(parts[i], first, count);
    }
  }

  void Limit(const std::string& name, int64_t axis, size_t first,
             size_t count) {
    const VarDesc* var = block_.FindVar(name);
    if (var == nullptr) return;
    if (axis < 0) axis += static_cast<int64_t>(var->shape.size());
    if (axis < 0 || axis >= static_cast<int64_t>(var->shape.size())) return;
    const int64_t bound = var->shape[static_cast<size_t>(axis)];
    for (size_t c = first; c < first + count; ++c)
      bounds_[c] = bounds_[c] > 0 ? std::min(bounds_[c], bound) : bound;
  }

  const BlockDesc& block_;
  std::vector<int64_t> bounds_;  // of the last axis' columns; 0: not known
  bool zero_or_one_ = false;
};

template <typename T>
T ValueAt(const Philox& random, const Wanted& wanted, uint64_t i) {
  if (std::is_floating_point_v<T> && !wanted.zero_or_one())
    return static_cast<T>(random.Normal(i));
  return static_cast<T>(random.U32(i) % wanted.Bound(i));
}

template <typename T>
void Fill(const Philox& random, const Wanted& wanted, int64_t n, T* out) {
  for (int64_t i = 0; i < n; ++i)
    out[i] = ValueAt<T>(random, wanted, static_cast<uint64_t>(i));
}

absl::StatusOr<Array> RandomArray(const Wanted& wanted, const FeedSpec& feed,
                                  uint64_t seed, uint64_t stream) {
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(Array array, NewArray(feed.dtype, feed.shape, &bytes));
  const Philox random(seed, stream);
  const int64_t n = array.size();
  if (feed.dtype == DType::kFloat32)
    Fill(random, wanted, n, reinterpret_cast<float*>(bytes));
  else if (feed.dtype == DType::kFloat64)
    Fill(random, wanted, n, reinterpret_cast<double*>(bytes));
  else if (feed.dtype == DType::kInt64)
    Fill(random, wanted, n, reinterpret_cast<int64_t*>(bytes));
  else if (feed.dtype == DType::kInt32)
    Fill(random, wanted, n, reinterpret_cast<int32_t*>(bytes));
  else
    std::fill_n(bytes, static_cast<size_t>(n) * SizeOf(feed.dtype),
                std::byte{0});
  return array;
}

}  // namespace

absl::StatusOr<NamedArrays> SyntheticBatch(const ProgramDesc& program,
                                           const std::vector<FeedSpec>& feeds,
                                           uint64_t seed, uint64_t number) {
  NamedArrays batch;
  for (const FeedSpec& feed : feeds) {
    PD_RETURN_IF_ERROR(Annotate(CheckTensorSize(feed.dtype, feed.shape),
                                absl::StrCat("feed '", feed.name, "'")));
    auto array = RandomArray(Wanted(program.global(), feed), feed, seed,
                             StreamOf(absl::StrCat(feed.name, "#", number)));
    if (!array.ok())
      return Annotate(array.status(), absl::StrCat("feed '", feed.name, "'"));
    batch[feed.name] = *std::move(array);
  }
  return batch;
}

}  // namespace pd
