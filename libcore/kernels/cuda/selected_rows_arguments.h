// SPDX-License-Identifier: Apache-2.0
// Arguments of the kernels of selected rows, and their walk over rows.
#ifndef PD_LIBCORE_KERNELS_CUDA_SELECTED_ROWS_ARGUMENTS_H_
#define PD_LIBCORE_KERNELS_CUDA_SELECTED_ROWS_ARGUMENTS_H_

#include <cstdint>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/update_arguments.h"

namespace pd::cuda {

/// Rows `rows[i]` of a tensor of `height` rows. A row may be there several
/// times; `places` has them in the order of their numbers, equal ones in that
/// of i. Numbers outside [0, height) are of ids that were complained about.
struct SelectedArgs {
  const float* values;  ///< [n, width]
  const int64_t* rows;
  int32_t* places;
  int64_t n, width, height;
  float* dense;  ///< [height, width], where a kernel has one
};

/// The update of one parameter by selected rows.
struct UpdateRowsArgs {
  UpdateArgs update;
  SelectedArgs rows;
};

/// Rows of a table's gradient by the ids that were looked up.
struct LookupRowsArgs {
  const float* from;  ///< Out's gradient
  float* values;
  int64_t* rows;
  const void* ids;
  int64_t n, width, height, padding;
  int32_t ids64;  ///< else int32
  int32_t* bad;   ///< set to 1 by an id that is out of range
};

/// f(i, first) for each element i of the tensor that has a row; `first` is the
/// first of its places, to be given to SumFrom.
template <typename F>
PD_DEVICE void ForEachSelected(const Block& block, const SelectedArgs& p, F f) {
  block.Spread(p.n * p.width, [&](int64_t e) {
    const int64_t place = e / p.width;
    const int64_t row = p.rows[p.places[place]];
    if (row < 0 || row >= p.height) return;
    if (place > 0 && p.rows[p.places[place - 1]] == row) return;
    f(row * p.width + e % p.width, place);
  });
}

/// `sum` plus what the rows from this place on have for element i.
PD_DEVICE float SumFrom(const SelectedArgs& p, int64_t i, int64_t first,
                        float sum) {
  const int64_t row = i / p.width, column = i % p.width;
  for (int64_t place = first; place < p.n; ++place) {
    const int64_t at = p.places[place];
    if (p.rows[at] != row) break;
    sum += p.values[at * p.width + column];
  }
  return sum;
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_SELECTED_ROWS_ARGUMENTS_H_
