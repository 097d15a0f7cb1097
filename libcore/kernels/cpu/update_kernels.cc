// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/update_kernels.h"

#include <algorithm>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/update_kernels.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;
using V = hn::Vec<hn::ScalableTag<float>>;

// Whole vectors and the rest of a part take the same path, so an element's
// bits do not depend on where a thread's share begins.
template <bool kWhole, class M>
HWY_INLINE V Read(M mask, const float* from) {
  return kWhole ? hn::LoadU(kTag, from) : hn::MaskedLoad(mask, kTag, from);
}

template <bool kWhole, class M>
HWY_INLINE void Write(V value, M mask, float* to) {
  if (kWhole)
    hn::StoreU(value, kTag, to);
  else
    hn::BlendedStore(value, mask, kTag, to);
}

template <bool kWhole, class M>
HWY_INLINE void Update(const AdamPart& p, int64_t i, M mask) {
  const V beta1 = hn::Set(kTag, p.beta1), beta2 = hn::Set(kTag, p.beta2);
  const V rest1 = hn::Set(kTag, 1.0f - p.beta1);
  const V rest2 = hn::Set(kTag, 1.0f - p.beta2);
  const V g = Read<kWhole>(mask, p.grad + i);
  const V m =
      hn::MulAdd(beta1, Read<kWhole>(mask, p.moment1 + i), hn::Mul(rest1, g));
  const V v = hn::MulAdd(beta2, Read<kWhole>(mask, p.moment2 + i),
                         hn::Mul(hn::Mul(rest2, g), g));
  const V step = hn::Div(m, hn::Add(hn::Sqrt(v), hn::Set(kTag, p.epsilon)));
  const V param = Read<kWhole>(mask, p.param + i);
  // 1 - decay would lose the digits of a small decay.
  const V kept = hn::NegMulAdd(hn::Set(kTag, p.decay), param, param);
  Write<kWhole>(m, mask, p.moment1_out + i);
  Write<kWhole>(v, mask, p.moment2_out + i);
  Write<kWhole>(hn::NegMulAdd(hn::Set(kTag, p.rate), step, kept), mask,
                p.param_out + i);
}

template <bool kWhole, class M>
HWY_INLINE void Update(const MomentumPart& p, int64_t i, M mask) {
  const V param = Read<kWhole>(mask, p.param + i);
  const V g = hn::MulAdd(
      hn::Set(kTag, p.decay), param,
      hn::Mul(hn::Set(kTag, p.rescale), Read<kWhole>(mask, p.grad + i)));
  const V mu = hn::Set(kTag, p.mu);
  V step = g;
  if (p.velocity != nullptr) {
    const V v = hn::MulAdd(mu, Read<kWhole>(mask, p.velocity + i), g);
    Write<kWhole>(v, mask, p.velocity_out + i);
    step = p.nesterov ? hn::MulAdd(mu, v, g) : v;
  }
  Write<kWhole>(hn::NegMulAdd(hn::Set(kTag, p.rate), step, param), mask,
                p.param_out + i);
}

template <bool kWhole, class M>
HWY_INLINE void Update(const AdagradPart& p, int64_t i, M mask) {
  const V g = Read<kWhole>(mask, p.grad + i);
  const V m = hn::MulAdd(g, g, Read<kWhole>(mask, p.moment + i));
  const V down = hn::Add(hn::Sqrt(m), hn::Set(kTag, p.epsilon));
  Write<kWhole>(m, mask, p.moment_out + i);
  Write<kWhole>(hn::Sub(Read<kWhole>(mask, p.param + i),
                        hn::Div(hn::Mul(hn::Set(kTag, p.rate), g), down)),
                mask, p.param_out + i);
}

// The elements [begin, end) of all parts put one after the other.
template <class Part>
void UpdateRange(const std::vector<Part>& parts, int64_t begin, int64_t end) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const auto all = hn::FirstN(kTag, static_cast<size_t>(lanes));
  int64_t start = 0;
  for (const Part& part : parts) {
    int64_t i = std::max<int64_t>(0, begin - start);
    const int64_t stop = std::min(part.size, end - start);
    start += part.size;
    for (; i + lanes <= stop; i += lanes) Update<true>(part, i, all);
    if (i < stop)
      Update<false>(part, i, hn::FirstN(kTag, static_cast<size_t>(stop - i)));
  }
}

void AdamRange(const std::vector<AdamPart>& parts, int64_t begin, int64_t end) {
  UpdateRange(parts, begin, end);
}

void MomentumRange(const std::vector<MomentumPart>& parts, int64_t begin,
                   int64_t end) {
  UpdateRange(parts, begin, end);
}

void AdagradRange(const std::vector<AdagradPart>& parts, int64_t begin,
                  int64_t end) {
  UpdateRange(parts, begin, end);
}

// The rows [begin, end) of the list. They lie anywhere: those that come soon
// are fetched meanwhile.
void AdagradRows(const AdagradPart& table, const int64_t* rows, int64_t width,
                 int64_t begin, int64_t end) {
  constexpr int64_t kAhead = 8;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const auto all = hn::FirstN(kTag, static_cast<size_t>(lanes));
  for (int64_t k = begin; k < end; ++k) {
    if (k + kAhead < end) {
      hwy::Prefetch(table.param + rows[k + kAhead] * width);
      hwy::Prefetch(table.moment + rows[k + kAhead] * width);
    }
    AdagradPart row = table;
    row.size = width;
    row.param += rows[k] * width;
    row.moment += rows[k] * width;
    row.param_out += rows[k] * width;
    row.moment_out += rows[k] * width;
    row.grad += k * width;
    int64_t i = 0;
    for (; i + lanes <= width; i += lanes) Update<true>(row, i, all);
    if (i < width)
      Update<false>(row, i, hn::FirstN(kTag, static_cast<size_t>(width - i)));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(AdamRange);
HWY_EXPORT(MomentumRange);
HWY_EXPORT(AdagradRange);
HWY_EXPORT(AdagradRows);

namespace {

constexpr int64_t kGrain = 4096;  // elements per thread at least

template <class Part, class Run>
void Split(const std::vector<Part>& parts, const Run& run) {
  int64_t total = 0;
  for (const Part& part : parts) total += part.size;
  ParallelFor(total, kGrain,
              [&](int64_t begin, int64_t end) { run(parts, begin, end); });
}

}  // namespace

void UpdateAdam(const std::vector<AdamPart>& parts) {
  Split(parts, HWY_DYNAMIC_DISPATCH(AdamRange));
}

void UpdateMomentum(const std::vector<MomentumPart>& parts) {
  Split(parts, HWY_DYNAMIC_DISPATCH(MomentumRange));
}

void UpdateAdagrad(const std::vector<AdagradPart>& parts) {
  Split(parts, HWY_DYNAMIC_DISPATCH(AdagradRange));
}

void UpdateAdagradRows(const AdagradPart& table, const int64_t* rows,
                       int64_t count, int64_t width) {
  const auto run = HWY_DYNAMIC_DISPATCH(AdagradRows);
  ParallelFor(
      count, 1 + kGrain / (width + 16),
      [&](int64_t begin, int64_t end) { run(table, rows, width, begin, end); });
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
