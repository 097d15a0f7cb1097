// SPDX-License-Identifier: Apache-2.0
// How kernels that sum columns (columns.h) are started.
#ifndef PD_LIBCORE_KERNELS_CUDA_COLUMN_GRID_H_
#define PD_LIBCORE_KERNELS_CUDA_COLUMN_GRID_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"

namespace pd::cuda {

/// The tiles beside each other; a block has one of a chunk.
inline int64_t TilesOf(const ColumnGrid& g) {
  const int64_t wide = int64_t{g.width} * g.across;
  return (g.columns + wide - 1) / wide;
}

/// A grid whose chunks keep a GPU busy: a thread goes through a few rows at
/// least, and where these are many, there are a few thousand blocks.
inline ColumnGrid GridOf(int64_t rows, int64_t columns, int width) {
  ColumnGrid g{rows, columns, 0, 0, 1, width};
  while (g.across < kWarp && int64_t{g.across} * width < columns) g.across *= 2;
  constexpr int64_t kBlocks = 2048, kRows = 4;
  const int64_t batch = kSmallBlock / g.across * kRows;
  const int64_t batches = rows * TilesOf(g) / kBlocks / batch + 1;
  g.chunk = batches * batch;
  g.chunks = (rows + g.chunk - 1) / g.chunk;
  return g;
}
/// The same chunks, with threads that take one column each.
inline ColumnGrid WithoutPacks(const ColumnGrid& g) {
  ColumnGrid single = GridOf(g.rows, g.columns, 1);
  single.chunk = g.chunk;
  single.chunks = g.chunks;
  return single;
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_COLUMN_GRID_H_
