// SPDX-License-Identifier: Apache-2.0
// Dropout, with the formulas and the random numbers of
// libcore/ops/norm/dropout.cc.
#include <cstdint>
#include <type_traits>

#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/kernels/cuda/philox.h"
#include "libcore/kernels/cuda/strided_index.h"

namespace pd::cuda {
namespace {

inline constexpr int kDropoutPack = 8;

// A pack's mask, a byte an element, which a load or a store moves at once.
PD_DEVICE uint64_t* MaskOf(uint8_t* mask, int64_t pack) {
  return reinterpret_cast<uint64_t*>(mask) + pack;
}
PD_DEVICE bool Keeps(uint64_t mask, int j) {
  return ((mask >> (8 * j)) & 255) != 0;
}

template <typename T>
PD_DEVICE bool InPacks(const DropoutArgsOf<T>& p) {
  if constexpr (std::is_same_v<T, float>)
    return p.n % kDropoutPack == 0 && p.first % 4 == 0 &&
           IsAligned<kDropoutPack>(p.x) && IsAligned<kDropoutPack>(p.out) &&
           reinterpret_cast<uintptr_t>(p.mask) % kDropoutPack == 0;
  else
    return false;
}

template <typename T>
PD_DEVICE void DropPack(const DropoutArgsOf<T>& p, int64_t pack,
                        uint64_t mask) {
  if (!(p.out != nullptr)) return;
  auto x = LoadPack<kDropoutPack>(p.x, pack * kDropoutPack);
  PD_UNROLL
  for (int j = 0; j < kDropoutPack; ++j)
    x[j] = Keeps(mask, j) ? x[j] * p.factor : T(0);
  StorePack<kDropoutPack>(p.out, pack * kDropoutPack, x);
}

template <typename T>
struct Dropout {
  PD_DEVICE static void Run(const Block& block, const DropoutArgsOf<T>& p) {
    // The numbers of DropoutSource::At.
    const DrawArgs draws = {p.run, p.seed, p.stream};
    if (InPacks(p)) {
      block.Spread(p.n / kDropoutPack, [&](int64_t pack) {
        const auto first =
            static_cast<uint64_t>(p.first + pack * kDropoutPack) / 4;
        uint64_t mask = 0;
        PD_UNROLL
        for (int half = 0; half < 2; ++half) {
          const PhiloxFour four = PhiloxBlock(draws, first + half);
          PD_UNROLL
          for (int j = 0; j < 4; ++j)
            if (UniformOf(four.c[j]) >= p.threshold)
              mask |= uint64_t{1} << (8 * (4 * half + j));
        }
        *MaskOf(p.mask, pack) = mask;
        DropPack(p, pack, mask);
      });
      return;
    }
    block.Spread(p.n, [&](int64_t i) {
      const bool kept =
          PhiloxUniform(draws, static_cast<uint64_t>(p.first + i)) >=
          p.threshold;
      p.mask[i] = kept;
      if (p.out != nullptr) p.out[i] = kept ? p.x[i] * p.factor : T(0);
    });
  }
};

// By a mask that serves for several elements.
struct DropoutByMask {
  PD_DEVICE static void Run(const Block& block, const MaskArgs& p) {
    block.Spread(p.n, [&](int64_t i) {
      int64_t at = 0;
      Place(p.walk, i, &at);
      p.out[i] = p.mask[at] != 0 ? p.x[i] * p.factor : 0.0f;
    });
  }
};

template <typename T>
struct DropoutGrad {
  PD_DEVICE static void Run(const Block& block, const DropoutArgsOf<T>& p) {
    if (InPacks(p)) {
      block.Spread(p.n / kDropoutPack, [&](int64_t pack) {
        DropPack(p, pack, *MaskOf(p.mask, pack));
      });
      return;
    }
    block.Spread(p.n, [&](int64_t i) {
      p.out[i] = p.mask[i] != 0 ? p.x[i] * p.factor : T(0);
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(dropout_by_mask, DropoutByMask, MaskArgs)
#define PD_DROPOUT(suffix, T)                              \
  PD_KERNEL(dropout##suffix, Dropout<T>, DropoutArgsOf<T>) \
  PD_KERNEL(dropout_grad##suffix, DropoutGrad<T>, DropoutArgsOf<T>)
PD_DROPOUT(, float)
PD_DROPOUT(_64, double)
