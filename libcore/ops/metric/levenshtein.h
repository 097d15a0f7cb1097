// SPDX-License-Identifier: Apache-2.0
// Levenshtein's distance of two sequences of tokens: the least number of
// insertions, deletions and substitutions that turn one into the other.
#ifndef PD_LIBCORE_OPS_METRIC_LEVENSHTEIN_H_
#define PD_LIBCORE_OPS_METRIC_LEVENSHTEIN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace pd {

/// One row of the table at a time: row[j] is the distance between the first i
/// tokens of `a` and the first j of `b`. `row` is scratch.
inline int64_t Levenshtein(const std::vector<int64_t>& a,
                           const std::vector<int64_t>& b,
                           std::vector<int64_t>* row) {
  row->resize(b.size() + 1);
  std::iota(row->begin(), row->end(), int64_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    int64_t diagonal = (*row)[0];
    (*row)[0] = static_cast<int64_t>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t above = (*row)[j];
      const bool same = a[i - 1] == b[j - 1];
      (*row)[j] =
          std::min({above + 1, (*row)[j - 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = above;
    }
  }
  return row->back();
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_METRIC_LEVENSHTEIN_H_
