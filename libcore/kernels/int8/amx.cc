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

// All tiles are full: 0 to 3 hold the sums of two blocks of rows times two
// halves of a panel, 4 and 5 rows, 6 and 7 weights.
void Configure() {
  Config c;
  for (int tile = 0; tile < 8; ++tile) {
    c.rows[tile] = kRows;
    c.bytes[tile] = static_cast<uint16_t>(kBytes);
  }
  Written(&c);
  _tile_loadconfig(&c);
}

// Rows of one block and one tap.
struct Rows {
  const uint8_t* const* rows;
  int64_t stride;  // from row to row, where it is the same for all; else 0
  int count;

  Rows(const uint8_t* const* p, int n) : rows(p), stride(0), count(n) {
    if (n < kRows) return;  // later pointers may be invalid
    stride = p[1] - p[0];
    for (int r = 2; r < kRows; ++r)
      if (p[r] - p[r - 1] != stride) stride = 0;
  }
  // Where 64 bytes from `k` on of each row lie; `step` is their distance.
  const uint8_t* At(int64_t k, uint8_t* copy, int64_t* step) const {
    *step = stride != 0 ? stride : kBytes;
    if (stride != 0) return rows[0] + k;
    for (int r = 0; r < count; ++r)
      _mm512_store_si512(copy + r * kBytes, _mm512_loadu_si512(rows[r] + k));
    Written(copy);
    return copy;
  }
};

// The sums of one or two blocks of rows times one or two halves of a panel;
// `next`: two more blocks to fetch meanwhile, or null.
template <bool kTwoBlocks, bool kTwoHalves>
void Multiply(const GemmChunk& g, const uint8_t* const* rows, int last_count,
              const uint8_t* const* next, int32_t* sums) {
  _tile_loadd(0, g.offsets, 0);  // the same in every row
  if (kTwoHalves) _tile_loadd(1, g.offsets + 16, 0);
  if (kTwoBlocks) _tile_loadd(2, g.offsets, 0);
  if (kTwoBlocks && kTwoHalves) _tile_loadd(3, g.offsets + 16, 0);
  const int8_t* weights = g.weights;
  alignas(64) uint8_t copy[kRows * kBytes];
  constexpr int kWeightStride = 4 * kColumns;
  constexpr int64_t kAhead = 2 * 16 * kWeightStride;
  const bool prefetch = rows == g.rows;  // the first to read the panel
  for (int64_t t = 0; t < g.taps; ++t, rows += kMaxRows) {
    const Rows a(rows, kTwoBlocks ? kRows : last_count);
    const Rows b(kTwoBlocks ? rows + g.taps * kMaxRows : rows, last_count);
    for (int64_t k = 0; k < 4 * g.quads; k += kBytes) {
      int64_t step;
      if (prefetch)
        for (int64_t line = 0; line < 16 * kWeightStride; line += 64)
          _mm_prefetch(reinterpret_cast<const char*>(weights + kAhead + line),
                       _MM_HINT_T0);
      if (next != nullptr)
        for (int r = 0; r < kRows; ++r) {
          _mm_prefetch(next[r] + k, _MM_HINT_T0);
          _mm_prefetch(next[g.taps * kMaxRows + r] + k, _MM_HINT_T0);
        }
      const uint8_t* at = a.At(k, copy, &step);
      _tile_loadd(4, at, step);
      _tile_loadd(6, weights, kWeightStride);
      _tile_dpbusd(0, 4, 6);
      if (kTwoHalves) {
        _tile_loadd(7, weights + kBytes, kWeightStride);
        _tile_dpbusd(1, 4, 7);
      }
      if (kTwoBlocks) {
        at = b.At(k, copy, &step);
        _tile_loadd(5, at, step);
        _tile_dpbusd(2, 5, 6);
        if (kTwoHalves) _tile_dpbusd(3, 5, 7);
      }
      weights += 16 * kWeightStride;
    }
    if (next != nullptr) next += kMaxRows;
  }
  constexpr int kStride = 4 * kColumns;
  _tile_stored(0, sums, kStride);
  if (kTwoHalves) _tile_stored(1, sums + 16, kStride);
  int32_t* const second = sums + kRows * kColumns;
  if (kTwoBlocks) _tile_stored(2, second, kStride);
  if (kTwoBlocks && kTwoHalves) _tile_stored(3, second + 16, kStride);
  Written(sums);
}

void Gemm(const GemmChunk& g) {
  const Tiles& others = *Avx512VnniTiles();
  alignas(64) int32_t sums[2 * kRows * kColumns];
  const bool halves = g.out.columns > 16;
  const auto pair = halves ? Multiply<true, true> : Multiply<true, false>;
  const auto one = halves ? Multiply<false, true> : Multiply<false, false>;
  const uint8_t* const* rows = g.rows;
  for (int64_t b = 0; b < g.blocks; b += 2) {
    const bool two = b + 1 < g.blocks;
    const int last = g.RowsOf(two ? b + 1 : b);
    const uint8_t* const* following = rows + 2 * g.taps * kMaxRows;
    const bool fetch = g.first && (b + 4) * kRows <= g.count;
    (two ? pair : one)(g, rows, last, fetch ? following : nullptr, sums);
    others.finish(g.out, sums, kColumns, b * kRows, last + (two ? kRows : 0));
    rows = following;
  }
}

void Release() { _tile_release(); }

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
    tiles.step = static_cast<int>(amx::kBytes / 4);
    tiles.gemm = amx::Gemm;
    tiles.begin = amx::Configure;
    tiles.end = amx::Release;
    return tiles;
  }();
  return &kTiles;
}

}  // namespace int8
}  // namespace pd
