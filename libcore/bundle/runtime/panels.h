// SPDX-License-Identifier: Apache-2.0
// How the operands of a product C = A B lie, so that the innermost loop reads
// both straight through:
//
//   A   panels of kPanelRows rows:       [rows / 6][depth][6]
//   B   panels of kPanelColumns columns: [columns / 32][depth][32]
//
// The last panel is filled up with zeros. These widths serve SSE, AVX2, AVX-512
// and NEON alike, so weights lie in a bundle as they are read: a vector of 16
// takes half of a row of B, one of 4 an eighth.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_PANELS_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_PANELS_H_

#include <algorithm>
#include <cstdint>

namespace pd_run {

inline constexpr int64_t kPanelRows = 6;
inline constexpr int64_t kPanelColumns = 32;

inline int64_t RowPanels(int64_t rows) {
  return (rows + kPanelRows - 1) / kPanelRows;
}
inline int64_t ColumnPanels(int64_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns;
}

/// Writes a matrix into panels of `width` lines each. Line i begins
/// `line_stride` elements behind the one before it, and its elements lie
/// `stride` apart.
inline void PackLines(const float* from, int64_t lines, int64_t depth,
                      int64_t line_stride, int64_t stride, int64_t width,
                      float* panels) {
  for (int64_t first = 0; first < lines; first += width) {
    const int64_t count = std::min(width, lines - first);
    float* panel = panels + first * depth;
    if (count < width) std::fill_n(panel, depth * width, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      const float* line = from + (first + i) * line_stride;
      for (int64_t k = 0; k < depth; ++k)
        panel[k * width + i] = line[k * stride];
    }
  }
}

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_PANELS_H_
