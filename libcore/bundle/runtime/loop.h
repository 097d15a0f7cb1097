// SPDX-License-Identifier: Apache-2.0
// Loops over tensors that are read with strides: broadcasting, transposing,
// slicing. Dimensions that lie behind each other are joined, so that rows are
// as long as can be.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_LOOP_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_LOOP_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "libcore/bundle/runtime/types.h"

namespace pd_run {

/// The strides of a tensor of this shape, in elements.
inline std::array<int64_t, kMaxRank> Strides(const Shape& shape) {
  std::array<int64_t, kMaxRank> strides{};
  int64_t stride = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    strides[static_cast<size_t>(i)] = stride;
    stride *= shape[i];
  }
  return strides;
}

/// A loop over the elements of a result in their order, which reads N operands
/// with strides.
template <size_t N>
class Loop {
 public:
  using Offsets = std::array<int64_t, N>;

  /// Adds a dimension, from the outermost on; at most 2 * kMaxRank.
  void Add(int64_t extent, const Offsets& strides) {
    empty_ = empty_ || extent == 0;
    if (extent == 1) return;
    if (rank_ > 0 && Continues(extent, strides))
      extents_[rank_ - 1] *= extent;
    else
      extents_[rank_++] = extent;
    strides_[rank_ - 1] = strides;
  }

  /// body(first element of the result, offsets of the operands, count, strides)
  /// for each row.
  template <typename Body>
  void Rows(const Body& body) const {
    if (empty_) return;
    Offsets at{};
    if (rank_ == 0) {
      body(int64_t{0}, at, int64_t{1}, Offsets{});
      return;
    }
    const size_t last = rank_ - 1;
    std::array<int64_t, 2 * kMaxRank> index{};
    for (int64_t out = 0;; out += extents_[last]) {
      body(out, at, extents_[last], strides_[last]);
      size_t d = last;
      for (; d > 0; --d) {
        for (size_t j = 0; j < N; ++j) at[j] += strides_[d - 1][j];
        if (++index[d - 1] < extents_[d - 1]) break;
        for (size_t j = 0; j < N; ++j)
          at[j] -= strides_[d - 1][j] * extents_[d - 1];
        index[d - 1] = 0;
      }
      if (d == 0) return;
    }
  }

 private:
  bool Continues(int64_t extent, const Offsets& strides) const {
    for (size_t j = 0; j < N; ++j)
      if (strides_[rank_ - 1][j] != strides[j] * extent) return false;
    return true;
  }

  size_t rank_ = 0;
  bool empty_ = false;
  std::array<int64_t, 2 * kMaxRank> extents_{};
  std::array<Offsets, 2 * kMaxRank> strides_{};
};

/// Calls body with a null pointer of an integer type of `bytes` bytes, for
/// kernels that move elements without looking at them.
template <typename Body>
void WithBytes(size_t bytes, const Body& body) {
  if (bytes == 8)
    body(static_cast<uint64_t*>(nullptr));
  else if (bytes == 4)
    body(static_cast<uint32_t*>(nullptr));
  else
    body(static_cast<uint8_t*>(nullptr));
}

/// Copies what `loop` reads from `from` to `to`.
template <typename T>
void CopyRows(const Loop<1>& loop, const T* from, T* to) {
  loop.Rows([&](int64_t out, const std::array<int64_t, 1>& at, int64_t count,
                const std::array<int64_t, 1>& stride) {
    const T* source = from + at[0];
    T* target = to + out;
    const int64_t step = stride[0];
    if (step == 1)
      for (int64_t i = 0; i < count; ++i) target[i] = source[i];
    else
      for (int64_t i = 0; i < count; ++i) target[i] = source[i * step];
  });
}

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_LOOP_H_
