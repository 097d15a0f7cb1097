// SPDX-License-Identifier: Apache-2.0
// Loops over several tensors of one logical shape, each with its own strides:
// broadcasting (stride 0), transposing, slicing. Dimensions that lie one after
// the other in every tensor are merged when the loop is made, so a step mostly
// runs over long contiguous rows.
#ifndef PD_LIBCORE_OPS_COMMON_STRIDED_LOOP_H_
#define PD_LIBCORE_OPS_COMMON_STRIDED_LOOP_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace pd {

/// Elements that are worth a thread of their own, for cheap element-wise work.
inline constexpr int64_t kElementGrain = 16384;

/// A loop over K tensors.
template <size_t K>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, K>;

  /// Adds the next inner dimension.
  void Add(int64_t extent, const Offsets& strides) {
    size_ *= extent;
    if (extent == 1) return;
    if (!dims_.empty() && Continues(dims_.back(), extent, strides)) {
      dims_.back().extent *= extent;
      dims_.back().strides = strides;
    } else {
      dims_.push_back({extent, strides});
    }
  }

  /// Number of elements.
  int64_t size() const { return size_; }
  /// Elements of a whole row: the extent of the innermost dimension.
  int64_t row() const { return dims_.empty() ? 1 : dims_.back().extent; }
  /// Strides within a row.
  Offsets row_strides() const {
    return dims_.empty() ? Offsets{} : dims_.back().strides;
  }

  /// Calls `body(offsets, count)` for the parts of rows that make up elements
  /// [begin, end), in order. Element j of a part is at offsets[k] +
  /// j * row_strides()[k] of tensor k.
  template <typename Body>
  void ForParts(int64_t begin, int64_t end, const Body& body) const {
    if (begin >= end) return;
    const size_t outer = dims_.empty() ? 0 : dims_.size() - 1;
    int64_t few[kFewDims];
    std::vector<int64_t> many;
    int64_t* index = few;
    if (outer > kFewDims) {
      many.resize(outer);
      index = many.data();
    }
    const int64_t length = row();
    const Offsets inner = row_strides();
    int64_t rest = begin / length;
    int64_t at = begin % length;
    Offsets start{};
    for (size_t d = outer; d-- > 0;) {
      index[d] = rest % dims_[d].extent;
      rest /= dims_[d].extent;
      for (size_t k = 0; k < K; ++k) start[k] += index[d] * dims_[d].strides[k];
    }
    while (true) {
      const int64_t count = std::min(length - at, end - begin);
      Offsets here = start;
      for (size_t k = 0; k < K; ++k) here[k] += at * inner[k];
      body(here, count);
      begin += count;
      if (begin >= end) return;
      at = 0;
      for (size_t d = outer; d-- > 0;) {
        for (size_t k = 0; k < K; ++k) start[k] += dims_[d].strides[k];
        if (++index[d] < dims_[d].extent) break;
        for (size_t k = 0; k < K; ++k)
          start[k] -= dims_[d].strides[k] * dims_[d].extent;
        index[d] = 0;
      }
    }
  }

 private:
  static constexpr size_t kFewDims = 12;
  struct Dim {
    int64_t extent;
    Offsets strides;
  };

  static bool Continues(const Dim& outer, int64_t extent,
                        const Offsets& strides) {
    for (size_t k = 0; k < K; ++k)
      if (outer.strides[k] != strides[k] * extent) return false;
    return true;
  }

  std::vector<Dim> dims_;
  int64_t size_ = 1;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_STRIDED_LOOP_H_
