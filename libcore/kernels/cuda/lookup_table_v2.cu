// SPDX-License-Identifier: Apache-2.0
// Rows of a table by number: embedding lookups, gather along the first axis.
#include <cstdint>

#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/layer_arguments.h"

namespace pd::cuda {
namespace {

PD_REAL int64_t IdOf(const LookupArgsOf<T>& p, int64_t i) {
  return p.ids64 ? static_cast<const int64_t*>(p.ids)[i]
                 : static_cast<const int32_t*>(p.ids)[i];
}

template <typename T>
struct Lookup {
  PD_DEVICE static void Run(const Block& block, const LookupArgsOf<T>& p) {
    block.Spread(p.count * p.width, [&](int64_t k) {
      const int64_t id = IdOf(p, k / p.width);
      const bool good = id >= 0 && id < p.rows;
      if (!good && id != p.padding) *p.bad = 1;
      p.to[k] =
          good && id != p.padding ? p.from[id * p.width + k % p.width] : T(0);
    });
  }
};

// A thread owns a column, so equal ids are summed in their order. `to` is 0.
template <typename T>
struct LookupGrad {
  PD_DEVICE static void Run(const Block& block, const LookupArgsOf<T>& p) {
    block.Spread(p.width, [&](int64_t column) {
      for (int64_t i = 0; i < p.count; ++i) {
        const int64_t id = IdOf(p, i);
        if (id == p.padding) continue;
        if (id >= 0 && id < p.rows)
          p.to[id * p.width + column] += p.from[i * p.width + column];
        else
          *p.bad = 1;
      }
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

#define PD_LOOKUP(suffix, T)                            \
  PD_KERNEL(lookup##suffix, Lookup<T>, LookupArgsOf<T>) \
  PD_KERNEL(lookup_grad##suffix, LookupGrad<T>, LookupArgsOf<T>)
PD_LOOKUP(, float)
PD_LOOKUP(_64, double)
