// SPDX-License-Identifier: Apache-2.0
// The inner loops of 8-bit products, compiled once for each instruction set
// (tiles.inc) and chosen when a plan is made. All give the same integers:
//   amx        tiles of 16 x 64 bytes             (AMX-INT8)
//   avx512vnni sums of 4 products in one step     (AVX512-VNNI)
//   avxvnni    the same, half as wide             (AVX-VNNI)
//   avx512, avx2: without such a step. vpmaddubsw adds pairs of products in
//     16 bits and saturates: it is taken where the weights and the range of the
//     input show that no pair can (NoPairSaturates), else products of 16-bit
//     numbers (vpmaddwd), which are exact. Up to four such sums are added in 16
//     bits before they are widened, where the weights show that these sums
//     stay within (GroupQuads).
// Images lie NHWC; weights in panels of Tiles::columns() output channels, in
// each the four weights of a channel for four neighbouring inputs side by side:
// [depth / 4][columns][4].
#ifndef PD_LIBCORE_KERNELS_INT8_TILES_H_
#define PD_LIBCORE_KERNELS_INT8_TILES_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "libcore/ops/quantize/int8.h"

namespace pd {
namespace int8 {

constexpr int kMaxRows = 16;     ///< of a tile, in any instruction set
constexpr int kMaxColumns = 32;  ///< of a panel
constexpr int kMaxGroup = 4;     ///< quads whose products meet in 16 bits

/// How products become sums.
enum class DotKind {
  kQuads,  ///< four at once (VNNI, AMX)
  kPairs,  ///< by pairs in 16 bits, none of which saturates
  kExact,  ///< by pairs in 32 bits
  kWords,  ///< the same of rows and weights of 16 bits: two, not four, at a
           ///< time
};

/// An epilogue as the loops read it.
struct Finish : Int8Epilogue {
  /// Nothing but a factor, rounding and clamping follows sum, bias and 8-bit
  /// residual, and the products with the factor fit into int32: they become
  /// integers first, and saturating instructions clamp those to [low, high].
  bool clamps = false;
  int16_t low = 0, high = 255;
};

/// The finish of a tile's sums. `scales` and `bias` are of the first column and
/// have whole vectors; other pointers are of the first row and column.
struct FinishTile {
  const float *scales = nullptr, *bias = nullptr;
  int columns = 0;
  const void* residual = nullptr;  ///< null: none; lies as `out`
  bool residual_floats = false;
  void* out = nullptr;
  float* floats = nullptr;         ///< gets them too, before they are quantized
  bool streams = false;            ///< `floats`, or `out`, goes past the caches
  int64_t out_stride = 0;          ///< elements from row to row
  const Finish* finish = nullptr;  ///< null: `out` gets the sums as int32
};

/// Blocks of rows times one panel, finished:
///   sum[r][c] = offsets[c] + sum over taps t and k < 4 * quads of
///   rows[t][r][k] * weight(t, k, c), as plain integers.
struct GemmChunk {
  const uint8_t* const* rows = nullptr;  ///< [blocks][taps][kMaxRows]
  int64_t count = 0, blocks = 0;         ///< rows in all
  int height = 0;  ///< of all blocks but the last; 0: they share evenly
  int64_t taps = 1, quads = 0;
  bool first = true;                 ///< of the panels that read these rows
  const int8_t* weights = nullptr;   ///< of the panel
  const int32_t* order = nullptr;    ///< for kPairs: GroupQuads
  const int32_t* offsets = nullptr;  ///< whole vectors
  DotKind kind = DotKind::kQuads;
  FinishTile out;

  int RowsOf(int64_t block) const {
    if (height > 0)
      return static_cast<int>(block + 1 < blocks ? height
                                                 : count - block * height);
    return static_cast<int>(count / blocks + (block < count % blocks ? 1 : 0));
  }
};

/// One or two rows of output pixels of a depthwise convolution, for the
/// channels [channel, channel + Tiles::depthwise_channels) of `channels`.
struct DepthwiseRow {
  const uint8_t* in = nullptr;   ///< the image
  const uint8_t* end = nullptr;  ///< of the whole input
  int64_t channels = 0, channel = 0, row = 0;
  int count = 1;  ///< rows of the output; 2 only where TakesTwo
  const WindowAxis *h = nullptr, *w = nullptr;
  const uint8_t* padding = nullptr;  ///< `zero`s, a block of channels
  uint8_t zero = 0;
  /// Of the block; for the second row, `weight_bytes` further, those of one
  /// row further down.
  const int8_t* weights = nullptr;
  int64_t weight_bytes = 0;
  const int32_t* offsets = nullptr;
  const float *scales = nullptr, *bias = nullptr;
  DotKind kind = DotKind::kQuads;
  uint8_t* scratch = nullptr;
  const void* residual = nullptr;
  bool residual_floats = false;
  void* out = nullptr;  ///< the row's first pixel, channel 0
  float* floats = nullptr;
  const Finish* finish = nullptr;
};

/// Whether four rows of the input are all that two of the output read.
inline bool TakesTwo(const WindowAxis& h) {
  return h.stride == 1 && h.dilation == 1 && h.kernel == 3;
}

/// out[i] = written(activation(read(x[i], y[i]))) of contiguous numbers.
struct MapSpan {
  const void* x = nullptr;
  bool x_floats = false;
  Int8In in;
  const uint8_t* y = nullptr;  ///< null: one operand
  bool adds = true;            ///< or multiplies
  void* out = nullptr;
  int64_t count = 0;
  const Int8Epilogue* epilogue = nullptr;
};

struct Tiles {
  const char* name;
  int max_rows;            ///< of a tile
  int columns;             ///< of a panel
  int depthwise_channels;  ///< of a block
  bool vnni;               ///< knows kQuads alone; others all but that
  int step;                ///< GemmChunk::quads are a multiple; above 1 blocks
                           ///< have the full height, and rows whole steps that
                           ///< may be read
  void (*gemm)(const GemmChunk&);
  /// Finishes `count` rows from `row` on, whose sums are `stride` apart.
  void (*finish)(const FinishTile&, const int32_t* sums, int64_t stride,
                 int64_t row, int count);
  void (*depthwise)(const DepthwiseRow&);
  void (*map)(const MapSpan&);
  /// out[3 i + r] = rows[r][i]
  void (*turn_three)(const uint8_t* const* rows, int64_t count, uint8_t* out);
  /// Before and after a thread's gemms, where there is something to do.
  void (*begin)() = nullptr;
  void (*end)() = nullptr;
};

const Tiles* Avx2Tiles();
const Tiles* AvxVnniTiles();
const Tiles* Avx512Tiles();
const Tiles* Avx512VnniTiles();
const Tiles* AmxTiles();  ///< null where the kernel does not allow it

/// The best that this CPU has and ONEDNN_MAX_CPU_ISA (AVX2, AVX2_VNNI,
/// AVX512_CORE, AVX512_CORE_VNNI, ...) allows.
const Tiles& BestTiles();
/// The best for rows of `depth` numbers: a tile of AMX takes its time to begin.
const Tiles& BestTiles(int64_t depth);

/// The groups of four kernel rows of a depthwise convolution.
inline int64_t RowGroups(const WindowAxis& h) { return (h.kernel + 3) / 4; }

}  // namespace int8
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_INT8_TILES_H_
