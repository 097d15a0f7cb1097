// SPDX-License-Identifier: Apache-2.0
// Functions of arrays element by element, in packs where they lie so.
#ifndef PD_LIBCORE_KERNELS_CUDA_ELEMENT_PACKS_H_
#define PD_LIBCORE_KERNELS_CUDA_ELEMENT_PACKS_H_

#include <cstdint>
#include <type_traits>

#include "libcore/kernels/cuda/arguments.h"
#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/packs.h"

namespace pd::cuda {

/// Packs of n elements where all arrays begin at multiples of 16 bytes; what is
/// left is gone through one by one.
template <typename... Arrays>
PD_DEVICE int64_t PacksOf(int64_t n, const Arrays&... arrays) {
  return (IsAligned<kPack>(arrays) && ...) ? n / kPack : 0;
}
template <typename... Arrays>
PD_DEVICE int64_t PacksOf(int64_t, const double*, const Arrays&...) {
  return 0;
}

/// out[i] = f(the elements i of `in`...).
template <typename T, typename F, typename... In>
PD_DEVICE void ForEach(const Block& block, int64_t n, NumbersOut<T> out,
                       const F& f, const In&... in) {
  const int64_t packs = PacksOf(n, in..., out);
  if constexpr (!std::is_same_v<T, double>)
    block.Spread(packs, [&](int64_t i) {
      const auto compute = [&](const auto&... raw) {
        Pack<T, kPack> to;
        const auto all = [&](const auto&... from) {
          PD_UNROLL
          for (int j = 0; j < kPack; ++j) to[j] = f(from[j]...);
        };
        all(Unpack(in, raw)...);
        StorePack(out, i * kPack, to);
      };
      compute(LoadRaw<kPack>(in, i * kPack)...);
    });
  const int64_t first = packs * kPack;
  block.Spread(n - first,
               [&](int64_t i) { out[first + i] = f(T(in[first + i])...); });
}

}  // namespace pd::cuda

#endif  // PD_LIBCORE_KERNELS_CUDA_ELEMENT_PACKS_H_
