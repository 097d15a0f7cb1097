// SPDX-License-Identifier: Apache-2.0
// Rows of a table by number: embedding lookups, gather along the first axis.
#include <cstdint>

#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/strided_index.h"

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
      const int64_t i = Quotient(k, p.width), column = k - i * p.width;
      const int64_t id = IdOf(p, i);
      const bool good = id >= 0 && id < p.rows;
      if (!good && id != p.padding) *p.bad = 1;
      p.to[k] = good && id != p.padding ? p.from[id * p.width + column] : T(0);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(lookup, Lookup<float>, LookupArgsOf<float>)
PD_KERNEL(lookup_64, Lookup<double>, LookupArgsOf<double>)
