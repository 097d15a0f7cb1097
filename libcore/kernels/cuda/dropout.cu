// SPDX-License-Identifier: Apache-2.0
// Dropout, with the formulas and the random numbers of
// libcore/ops/norm/dropout.cc.
#include <cstdint>

#include "libcore/kernels/cuda/float64.h"
#include "libcore/kernels/cuda/layer_arguments.h"
#include "libcore/kernels/cuda/philox.h"
#include "libcore/kernels/cuda/strided_index.h"

namespace pd::cuda {
namespace {

template <typename T>
struct Dropout {
  PD_DEVICE static void Run(const Block& block, const DropoutArgsOf<T>& p) {
    // The numbers of DropoutSource::At.
    const DrawArgs draws = {p.run, p.seed, p.stream};
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
