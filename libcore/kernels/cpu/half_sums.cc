// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/half_sums.h"

#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/half_sums.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/highway.h"
#include "libcore/kernels/cpu/half_vectors.inc"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void SumOfBrains(const BFloat16* const* inputs, size_t count, int64_t begin,
                 int64_t end, BFloat16* to) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(FloatTag()));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) {
    FloatVector sum = LoadWide(inputs[0] + i);
    for (size_t k = 1; k < count; ++k)
      sum = hn::Add(sum, LoadWide(inputs[k] + i));
    StoreNarrow(sum, to + i);
  }
  for (; i < end; ++i) {
    float sum = inputs[0][i];
    for (size_t k = 1; k < count; ++k) sum += inputs[k][i];
    to[i] = BFloat16(sum);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(SumOfBrains);

void SumBrains(const BFloat16* const* inputs, size_t count, int64_t begin,
               int64_t end, BFloat16* to) {
  HWY_DYNAMIC_DISPATCH(SumOfBrains)(inputs, count, begin, end, to);
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
