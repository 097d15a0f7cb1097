// SPDX-License-Identifier: Apache-2.0
// Rows that move as a table says, and sums of rows.
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/row_maps_arguments.h"

namespace pd::cuda {
namespace {

struct GatherRows {
  template <typename T>
  PD_DEVICE static void Move(const Block& block, const RowGatherArgs& p) {
    const T* const from = static_cast<const T*>(p.from);
    const T* const padding = static_cast<const T*>(p.padding);
    T* const to = static_cast<T*>(p.to);
    block.Spread(p.rows * p.width, [&](int64_t e) {
      const int64_t row = p.map[e / p.width], k = e % p.width;
      if (row >= 0)
        to[e] = from[row * p.width + k];
      else if (padding != nullptr)
        to[e] = padding[k % p.padding_width];
    });
  }
  PD_DEVICE static void Run(const Block& block, const RowGatherArgs& p) {
    if (p.bytes == 1) Move<uint8_t>(block, p);
    if (p.bytes == 2) Move<uint16_t>(block, p);
    if (p.bytes == 4) Move<uint32_t>(block, p);
    if (p.bytes == 8) Move<uint64_t>(block, p);
  }
};

// A thread owns an element of the result.
struct SumRows {
  PD_DEVICE static void Run(const Block& block, const RowSumArgs& p) {
    block.Spread(p.rows * p.width, [&](int64_t e) {
      const int64_t row = e / p.width, k = e % p.width;
      float sum = 0;
      for (int64_t i = p.begins[row]; i < p.begins[row + 1]; ++i)
        sum += p.from[p.members[i] * p.width + k];
      p.to[e] = sum;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(gather_rows, GatherRows, RowGatherArgs)
PD_KERNEL(sum_rows, SumRows, RowSumArgs)
