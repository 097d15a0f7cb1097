// SPDX-License-Identifier: Apache-2.0
// Selected rows: those of a lookup's gradient, their order, and their sums.
#include <cstdint>

#include "libcore/kernels/cuda/selected_rows_arguments.h"

namespace pd::cuda {
namespace {

struct LookupRows {
  PD_DEVICE static void Run(const Block& block, const LookupRowsArgs& p) {
    block.Spread(p.n * p.width, [&](int64_t e) {
      const int64_t i = e / p.width;
      const int64_t id = p.ids64 != 0 ? static_cast<const int64_t*>(p.ids)[i]
                                      : static_cast<const int32_t*>(p.ids)[i];
      const bool good = id >= 0 && id < p.height;
      if (!good && id != p.padding) *p.bad = 1;
      p.values[e] = good && id != p.padding ? p.from[e] : 0.0f;
      if (e % p.width != 0) return;
      p.rows[i] = good ? id : id < 0 ? 0 : p.height - 1;
    });
  }
};

// A row's place is the number of those that come before it: n * n comparisons,
// which for the rows of a batch take less than the many launches of a sort.
struct OrderRows {
  PD_DEVICE static void Run(const Block& block, const SelectedArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      const int64_t row = p.rows[i];
      int64_t place = 0;
      for (int64_t k = 0; k < p.n; ++k) {
        const int64_t other = p.rows[k];
        place += other < row || (other == row && k < i) ? 1 : 0;
      }
      p.places[place] = static_cast<int32_t>(i);
    });
  }
};

// dense += the rows, one after the other.
struct AddSelected {
  PD_DEVICE static void Run(const Block& block, const SelectedArgs& p) {
    ForEachSelected(block, p, [&](int64_t i, int64_t first) {
      p.dense[i] = SumFrom(p, i, first, p.dense[i]);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(lookup_rows, LookupRows, LookupRowsArgs)
PD_KERNEL(order_rows, OrderRows, SelectedArgs)
PD_KERNEL(add_rows, AddSelected, SelectedArgs)
