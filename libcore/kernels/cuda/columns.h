// SPDX-License-Identifier: Apache-2.0
// Columns of a matrix that lies row by row, summed by many blocks: a block
// takes a chunk of rows of a tile of columns, a thread W neighbouring columns
// of every so manieth row, and the threads of a tile's columns are joined in
// one order.
#ifndef PD_LIBCORE_KERNELS_CUDA_COLUMNS_H_
#define PD_LIBCORE_KERNELS_CUDA_COLUMNS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"

namespace pd::cuda {

/// N numbers that a thread keeps.
template <typename T, int N>
struct Numbers {
  static constexpr int kCount = N;
  using Number = T;
  PD_DEVICE T& operator[](int j) { return at[j]; }
  PD_DEVICE const T& operator[](int j) const { return at[j]; }
  T at[N];
};

/// The rows [first, last) of the columns from `column` on.
struct ColumnTile {
  int64_t column, first, last, chunk;
};

/// The tile of a block, of which as many as there are tiles were started;
/// backwards, so that the second of two kernels begins with what the first has
/// left in the cache.
template <int W>
PD_DEVICE ColumnTile TileOf(const Block& block, const ColumnGrid& g,
                            bool backwards) {
  const int64_t wide = int64_t{W} * g.across;
  const uint32_t tiles = static_cast<uint32_t>((g.columns + wide - 1) / wide);
  const uint32_t index = static_cast<uint32_t>(
      backwards ? block.blocks() - 1 - block.index() : block.index());
  const int64_t chunk = index / tiles, first = chunk * g.chunk;
  const int64_t last = first + g.chunk;
  return {index % tiles * wide, first, last < g.rows ? last : g.rows, chunk};
}

/// The rows of a thread: from `first` on every `step`th before `last`, in
/// columns from `column` on.
struct ColumnRows {
  int64_t column, first, last, step;
};

/// f(thread, its rows) for each thread with columns.
template <int W, typename F>
PD_DEVICE void EachColumn(const Block& block, const ColumnGrid& g,
                          const ColumnTile& tile, const F& f) {
  block.EachAlone([&](int thread) {
    const ColumnRows rows = {tile.column + int64_t{W} * (thread % g.across),
                             tile.first + thread / g.across, tile.last,
                             block.threads() / g.across};
    if (rows.column < g.columns) f(thread, rows);
  });
}

/// Joins the values of the threads of the same columns by V::Join(other), and
/// gives them to the first `across` threads.
template <typename V>
PD_DEVICE void JoinDown(const Block& block, int across, PerThread<V>* values) {
  PD_SHARED(typename V::Number, room, V::kCount * kSmallBlock);
  const auto store = [&](int thread) {
    PD_UNROLL
    for (int j = 0; j < V::kCount; ++j)
      room[j * kSmallBlock + thread] = (*values)[thread][j];
  };
  block.Each(store);
  for (int down = block.threads() / across / 2; down > 0; down /= 2)
    block.Each([&](int thread) {
      if (thread >= down * across) return;
      V other{};
      PD_UNROLL
      for (int j = 0; j < V::kCount; ++j)
        other[j] = room[j * kSmallBlock + thread + down * across];
      (*values)[thread].Join(other);
      store(thread);
    });
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_COLUMNS_H_
