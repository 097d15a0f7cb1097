// SPDX-License-Identifier: Apache-2.0
// The rows of a batch of sequences ordered by time step, for the recurrent ops
// over LoD: batch rows [starts[t], starts[t + 1]) are row t of every sequence
// that is still running. The longest sequences come first, so those running at
// a step are the first ones of the step before.
#ifndef PD_LIBCORE_OPS_RECURRENT_SEQUENCE_BATCH_H_
#define PD_LIBCORE_OPS_RECURRENT_SEQUENCE_BATCH_H_

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "libcore/ops/sequence/sequence.h"

namespace pd {

struct SequenceBatches {
  std::vector<int64_t> order;  ///< the sequences, longest first
  Offsets starts;
  RowMap rows;  ///< batch row -> row of the tensor

  int64_t sequences() const { return static_cast<int64_t>(order.size()); }
  int64_t steps() const { return static_cast<int64_t>(starts.size()) - 1; }
  int64_t start(int64_t t) const { return starts[static_cast<size_t>(t)]; }
  /// Sequences running at step t.
  int64_t count(int64_t t) const { return start(t + 1) - start(t); }
  int64_t total() const { return static_cast<int64_t>(rows.size()); }
};

/// `reverse`: step 0 is the last row of each sequence.
inline SequenceBatches BatchesOf(const Offsets& offsets, bool reverse) {
  SequenceBatches b;
  b.order.resize(offsets.size() - 1);
  std::iota(b.order.begin(), b.order.end(), 0);
  const auto length = [&](int64_t i) {
    return offsets[static_cast<size_t>(i) + 1] -
           offsets[static_cast<size_t>(i)];
  };
  std::stable_sort(b.order.begin(), b.order.end(),
                   [&](int64_t i, int64_t j) { return length(i) > length(j); });
  b.starts = {0};
  const int64_t steps = b.order.empty() ? 0 : length(b.order.front());
  for (int64_t t = 0; t < steps; ++t) {
    for (int64_t i : b.order) {
      if (length(i) <= t) break;
      b.rows.push_back(reverse ? offsets[static_cast<size_t>(i) + 1] - 1 - t
                               : offsets[static_cast<size_t>(i)] + t);
    }
    b.starts.push_back(b.total());
  }
  return b;
}

/// to[r] = from[rows[r]], rows of `width` elements.
template <typename T>
void ToBatch(const std::vector<int64_t>& rows, int64_t width, const T* from,
             T* to) {
  for (size_t r = 0; r < rows.size(); ++r)
    std::copy_n(from + rows[r] * width, width,
                to + static_cast<int64_t>(r) * width);
}

/// to[rows[r]] = from[r].
template <typename T>
void FromBatch(const std::vector<int64_t>& rows, int64_t width, const T* from,
               T* to) {
  for (size_t r = 0; r < rows.size(); ++r)
    std::copy_n(from + static_cast<int64_t>(r) * width, width,
                to + rows[r] * width);
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_SEQUENCE_BATCH_H_
