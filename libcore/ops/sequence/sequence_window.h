// SPDX-License-Identifier: Apache-2.0
// The rows around each row of a sequence side by side: Col[r] = X[r + start],
// X[r + start + 1], ..., `length` of them. A row before the sequence is row
// up + (its place, negative) of PaddingData, one after it row up + (its
// distance from the end), where up = max(0, -start); without PaddingData it is
// zeros.
#ifndef PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_WINDOW_H_
#define PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_WINDOW_H_

#include <algorithm>
#include <cstdint>

#include "libcore/base/parallel.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {

struct SequenceWindow {
  Offsets offsets;
  int64_t start = 0, length = 0, width = 0;

  int64_t rows() const { return offsets.back(); }
  /// Elements of a row of Col.
  int64_t columns() const { return length * width; }
  /// Rows of PaddingData before and after a sequence.
  int64_t up() const { return std::max<int64_t>(0, -start); }
  int64_t down() const { return std::max<int64_t>(0, start + length - 1); }
};

/// body(column block, row of X or -1, row of PaddingData or -1); the blocks are
/// `width` elements of Col, counted from 0 over all rows.
template <typename Body>
void ForEachBlock(const SequenceWindow& w, const Body& body) {
  for (size_t i = 0; i + 1 < w.offsets.size(); ++i) {
    const int64_t begin = w.offsets[i], end = w.offsets[i + 1];
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < w.length; ++c) {
        const int64_t at = r + w.start + c, block = r * w.length + c;
        if (at < begin)
          body(block, int64_t{-1}, w.up() + at - begin);
        else if (at >= end)
          body(block, int64_t{-1}, w.up() + at - end);
        else
          body(block, at, int64_t{-1});
      }
    }
  }
}

/// Col from X and PaddingData (null: zeros).
template <typename T>
void FillColumns(const SequenceWindow& w, const T* x, const T* padding,
                 T* col) {
  ForEachBlock(w, [&](int64_t block, int64_t row, int64_t pad) {
    T* to = col + block * w.width;
    if (row >= 0)
      std::copy_n(x + row * w.width, w.width, to);
    else if (padding != nullptr)
      std::copy_n(padding + pad * w.width, w.width, to);
    else
      std::fill_n(to, w.width, T(0));
  });
}

/// The reverse: adds Col's gradient to those of X and PaddingData (either may
/// be null).
template <typename T>
void AddColumns(const SequenceWindow& w, const T* col, T* dx, T* dpadding) {
  ForEachBlock(w, [&](int64_t block, int64_t row, int64_t pad) {
    T* to = row >= 0 ? dx : dpadding;
    if (to == nullptr) return;
    to += (row >= 0 ? row : pad) * w.width;
    const T* from = col + block * w.width;
    for (int64_t k = 0; k < w.width; ++k) to[k] += from[k];
  });
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_SEQUENCE_SEQUENCE_WINDOW_H_
