// SPDX-License-Identifier: Apache-2.0
// Products by AMX: a tile of 16 rows times 64 bytes, times 64 bytes of 16
// columns, in one instruction. All but products is as with AVX512-VNNI.
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hwy/base.h"
#include "libcore/kernels/int8/tiles.h"

HWY_PUSH_ATTRIBUTES("avx2,avx512f,avx512bw,avx512vl,amx-tile,amx-int8")
static_assert(true, "");
namespace pd {
namespace int8 {
namespace amx {

constexpr int kRows = 16;
constexpr int kColumns = 32;
constexpr int64_t kBytes = 64;  // of a tile's row

// GCC does not know that tile instructions read what a pointer points to.
inline void Written(const void* p) { __asm__ volatile("" ::"r"(p) : "memory"); }

struct alignas(64) Config {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};

// Tiles: 0, 1 sums; 2 rows, 3, 4 weights, of whole steps; 5, 6, 7 of the last.
void Configure(int count, int64_t last_quads) {
  Config c;
  const auto set = [&c](int tile, int rows, int64_t bytes) {
    c.rows[tile] = static_cast<uint8_t>(rows);
    c.bytes[tile] = static_cast<uint16_t>(bytes);
  };
  for (const int sums : {0, 1}) set(sums, count, kBytes);
  set(2, count, kBytes);
  for (const int weights : {3, 4}) set(weights, kBytes / 4, kBytes);
  if (last_quads > 0) {
    set(5, count, 4 * last_quads);
    for (const int weights : {6, 7})
      set(weights, static_cast<int>(last_quads), kBytes);
  }
  Written(&c);
  _tile_loadconfig(&c);
}

// The distance from row to row, where it is the same for all; else 0.
int64_t Stride(const uint8_t* const* rows, int count) {
  if (count == 1) return kBytes;
  const int64_t stride = rows[1] - rows[0];
  for (int r = 2; r < count; ++r)
    if (rows[r] - rows[r - 1] != stride) return 0;
  return stride;
}

// The sums of one block of rows, whose tiles are configured.
void Block(const GemmChunk& g, const uint8_t* const* rows, int count,
           int32_t* sums) {
  const int64_t whole = g.quads / 16, last = g.quads % 16;
  const bool both = g.out.columns > 16;
  _tile_loadd(0, g.offsets, 0);  // the same in every row
  _tile_loadd(1, g.offsets + (both ? 16 : 0), 0);
  const int8_t* weights = g.weights;
  alignas(64) uint8_t copy[kRows * kBytes];
  constexpr int kWeightStride = 4 * kColumns;
  for (int64_t t = 0; t < g.taps; ++t, rows += kMaxRows) {
    const int64_t stride = Stride(rows, count);
    for (int64_t k = 0; k < whole; ++k) {
      if (stride != 0) {
        _tile_loadd(2, rows[0] + k * kBytes, stride);
      } else {
        for (int r = 0; r < count; ++r)
          _mm512_store_si512(copy + r * kBytes,
                             _mm512_loadu_si512(rows[r] + k * kBytes));
        Written(copy);
        _tile_loadd(2, copy, kBytes);
      }
      _tile_loadd(3, weights, kWeightStride);
      _tile_dpbusd(0, 2, 3);
      if (both) {
        _tile_loadd(4, weights + kBytes, kWeightStride);
        _tile_dpbusd(1, 2, 4);
      }
      weights += 16 * kWeightStride;
    }
    if (last == 0) continue;
    if (stride != 0) {
      _tile_loadd(5, rows[0] + whole * kBytes, stride);
    } else {
      const auto mask = static_cast<__mmask16>((1u << last) - 1);
      for (int r = 0; r < count; ++r)
        _mm512_store_si512(
            copy + r * kBytes,
            _mm512_maskz_loadu_epi32(mask, rows[r] + whole * kBytes));
      Written(copy);
      _tile_loadd(5, copy, kBytes);
    }
    _tile_loadd(6, weights, kWeightStride);
    _tile_dpbusd(0, 5, 6);
    if (both) {
      _tile_loadd(7, weights + kBytes, kWeightStride);
      _tile_dpbusd(1, 5, 7);
    }
    weights += last * kWeightStride;
  }
  _tile_stored(0, sums, 4 * kColumns);
  if (both) _tile_stored(1, sums + 16, 4 * kColumns);
  Written(sums);
}

void Gemm(const GemmChunk& g) {
  const Tiles& others = *Avx512VnniTiles();
  alignas(64) int32_t sums[kRows * kColumns];
  const uint8_t* const* rows = g.rows;
  int64_t row = 0;
  int configured = 0;
  for (int64_t b = 0; b < g.blocks; ++b, rows += g.taps * kMaxRows) {
    const int count = g.RowsOf(b);
    if (count != configured) Configure(count, g.quads % 16);
    configured = count;
    Block(g, rows, count, sums);
    others.finish(g.out, sums, kColumns, row, count);
    row += count;
  }
  _tile_release();
}

}  // namespace amx
}  // namespace int8
}  // namespace pd
HWY_POP_ATTRIBUTES

namespace pd {
namespace int8 {

const Tiles* AmxTiles() {
  // The kernel wants to be asked before a process uses the tiles' registers.
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  if (syscall(SYS_arch_prctl, kRequestPermission, kTileData) != 0)
    return nullptr;
  static const Tiles kTiles = [] {
    Tiles tiles = *Avx512VnniTiles();
    tiles.name = "amx";
    tiles.max_rows = amx::kRows;
    tiles.columns = amx::kColumns;
    tiles.gemm = amx::Gemm;
    return tiles;
  }();
  return &kTiles;
}

}  // namespace int8
}  // namespace pd
