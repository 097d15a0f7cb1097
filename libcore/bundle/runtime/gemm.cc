// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/runtime/gemm.h"

#include <algorithm>
#include <cstring>

#include "libcore/bundle/runtime/tile.h"

namespace pd_run {
namespace {

using TileFunction = void (*)(const Tile&);

void TilePortable(const Tile& tile) { MultiplyTile<4>(tile); }

#ifdef PD_RUN_X86
PD_RUN_AVX2 void TileAvx2(const Tile& tile) { MultiplyTile<8>(tile); }
PD_RUN_AVX512 void TileAvx512(const Tile& tile) { MultiplyTile<16>(tile); }
#endif

TileFunction ChooseTile() {
#ifdef PD_RUN_X86
  if (Available() == Instructions::kAvx512) return TileAvx512;
  if (Available() == Instructions::kAvx2) return TileAvx2;
#endif
  return TilePortable;
}

}  // namespace

const float* PackedColumns::Panel(int64_t panel, int64_t begin, int64_t,
                                  float*) const {
  return panels_ + (panel * depth_ + begin) * kPanelColumns;
}

const float* StridedColumns::Panel(int64_t panel, int64_t begin, int64_t end,
                                   float* memory) const {
  const int64_t first = panel * kPanelColumns;
  const int64_t count = std::min(kPanelColumns, columns_ - first);
  if (count < kPanelColumns)
    std::fill_n(memory, (end - begin) * kPanelColumns, 0.0f);
  const float* from = b_ + first * column_stride_ + begin * row_stride_;
  if (column_stride_ == 1) {
    for (int64_t k = begin; k < end; ++k, from += row_stride_)
      std::copy_n(from, count, memory + (k - begin) * kPanelColumns);
    return memory;
  }
  for (int64_t j = 0; j < count; ++j)
    for (int64_t k = 0; k < end - begin; ++k)
      memory[k * kPanelColumns + j] =
          from[j * column_stride_ + k * row_stride_];
  return memory;
}

void Gemm::Run(int64_t begin, int64_t end, int64_t row_begin, int64_t row_end,
               float* memory) const {
  const TileFunction multiply = ChooseTile();
  // Tiles that reach beyond the last column are computed beside C.
  alignas(64) float beside[kPanelRows * kPanelColumns];
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t column = panel * kPanelColumns;
    const int64_t width = std::min(kPanelColumns, columns - column);
    for (int64_t k = 0; k == 0 || k < depth; k += kDepthAtOnce) {
      const int64_t k_end = std::min(k + kDepthAtOnce, depth);
      const float* right = b->Panel(panel, k, k_end, memory);
      for (int64_t p = row_begin; p < row_end; ++p) {
        const int64_t row = p * kPanelRows;
        float* to = c + row * c_stride + column;
        Tile tile = {k_end - k, a + (p * depth + k) * kPanelRows, right, to,
                     c_stride,  std::min(kPanelRows, rows - row), width, k > 0};
        if (width < kPanelColumns) {
          tile.c = beside;
          tile.c_stride = kPanelColumns;
          for (int64_t r = 0; tile.add && r < tile.rows; ++r)
            std::copy_n(to + r * c_stride, width, beside + r * kPanelColumns);
        }
        multiply(tile);
        const bool last = k_end == depth;
        for (int64_t r = 0; r < tile.rows; ++r) {
          float* line = tile.c + r * tile.c_stride;
          if (last) {
            if (row_bias != nullptr)
              for (int64_t j = 0; j < width; ++j) line[j] += row_bias[row + r];
            if (column_bias != nullptr)
              for (int64_t j = 0; j < width; ++j)
                line[j] += column_bias[column + j];
            if (activation.function != Function::kNone)
              activation.Apply(width, line, line);
          }
          if (line != to + r * c_stride)
            std::copy_n(line, width, to + r * c_stride);
        }
      }
    }
  }
}

}  // namespace pd_run
