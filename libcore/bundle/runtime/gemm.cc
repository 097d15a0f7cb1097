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

bool IsClamp(const Activation& activation, Clamp* clamp) {
  switch (activation.function) {
    case Function::kNone:
      return true;
    case Function::kRelu:
      clamp->low = 0.0f;
      return true;
    case Function::kClamp:
      // With bounds in the wrong order it matters which one is asked first.
      if (!(activation.a <= activation.b)) return false;
      *clamp = {activation.a, activation.b};
      return true;
    default:
      return false;
  }
}

PanelRows PackedColumns::Panel(int64_t panel, int64_t begin, int64_t,
                               float*) const {
  return {panels_ + (panel * depth_ + begin) * kPanelColumns, kPanelColumns};
}

PanelRows StridedColumns::Panel(int64_t panel, int64_t begin, int64_t end,
                                float* memory) const {
  const int64_t first = panel * kPanelColumns;
  const int64_t count = std::min(kPanelColumns, columns_ - first);
  if (count < kPanelColumns)
    std::fill_n(memory, (end - begin) * kPanelColumns, 0.0f);
  const float* from = b_ + first * column_stride_ + begin * row_stride_;
  if (column_stride_ == 1) {
    for (int64_t k = begin; k < end; ++k, from += row_stride_)
      std::copy_n(from, count, memory + (k - begin) * kPanelColumns);
    return {memory, kPanelColumns};
  }
  for (int64_t j = 0; j < count; ++j)
    for (int64_t k = 0; k < end - begin; ++k)
      memory[k * kPanelColumns + j] =
          from[j * column_stride_ + k * row_stride_];
  return {memory, kPanelColumns};
}

// Biases of columns and functions, which tiles do not do by themselves.
void Gemm::Finish(int64_t column, int64_t width, float* line) const {
  if (column_bias != nullptr)
    for (int64_t j = 0; j < width; ++j) line[j] += column_bias[column + j];
  if (activation.function != Function::kNone)
    activation.Apply(width, line, line);
}

void Gemm::Multiply(int64_t row, int64_t column, bool finish, float* beside,
                    Tile* tile) const {
  float* const to = c + row * c_stride + column;
  // A tile that reaches beyond the last column is computed beside C.
  const bool partial = tile->columns < kPanelColumns;
  tile->rows = std::min(kPanelRows, rows - row);
  tile->row_bias = row_bias == nullptr ? nullptr : row_bias + row;
  tile->c = partial ? beside : to;
  tile->c_stride = partial ? kPanelColumns : c_stride;
  if (partial && tile->add)
    for (int64_t r = 0; r < tile->rows; ++r)
      std::copy_n(to + r * c_stride, tile->columns, beside + r * kPanelColumns);
  ChooseTile()(*tile);
  if (!finish && !partial) return;
  for (int64_t r = 0; r < tile->rows; ++r) {
    float* const line = tile->c + r * tile->c_stride;
    if (finish) Finish(column, tile->columns, line);
    if (partial) std::copy_n(line, tile->columns, to + r * c_stride);
  }
}

void Gemm::Run(int64_t begin, int64_t end, int64_t row_begin, int64_t row_end,
               float* memory) const {
  alignas(64) float beside[kPanelRows * kPanelColumns];
  Clamp clamp;
  const bool clamps = column_bias == nullptr && IsClamp(activation, &clamp);
  Tile tile = {};
  for (int64_t panel = begin; panel < end; ++panel) {
    const int64_t column = panel * kPanelColumns;
    tile.columns = std::min(kPanelColumns, columns - column);
    // An empty depth gives the biases.
    for (int64_t k = 0; k == 0 || k < depth; k += kDepthAtOnce) {
      const int64_t k_end = std::min(k + kDepthAtOnce, depth);
      const bool last = k_end == depth;
      tile.depth = k_end - k;
      const PanelRows panel_rows = b->Panel(panel, k, k_end, memory);
      tile.b = panel_rows.first;
      tile.b_stride = panel_rows.stride;
      tile.add = k > 0;
      tile.clamp = last && clamps ? clamp : Clamp();
      for (int64_t p = row_begin; p < row_end; ++p) {
        tile.a = a + (p * depth + k) * kPanelRows;
        Multiply(p * kPanelRows, column, last && !clamps, beside, &tile);
      }
    }
  }
}

}  // namespace pd_run
