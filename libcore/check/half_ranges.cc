// SPDX-License-Identifier: Apache-2.0
#include "libcore/check/half_ranges.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/half.h"

namespace pd {
namespace {

// From here on a number rounds to infinity, to something other than zero, and
// to a number with all its digits. To nearest, ties to even: halfway between
// zero and the least denormal is zero.
struct Limits {
  double over, under, normal;
};
constexpr Limits kFp16 = {65520, 0x1p-25, 0x1p-14};
constexpr Limits kBf16 = {0x1.ffp127, 0x1p-134, 0x1p-126};

void Count(double magnitude, const Limits& limits, int64_t* over,
           int64_t* under, int64_t* denormal) {
  if (magnitude >= limits.over)
    ++*over;
  else if (magnitude > 0 && magnitude <= limits.under)
    ++*under;
  else if (magnitude > 0 && magnitude < limits.normal)
    ++*denormal;
}

template <typename T>
void AddAll(const Array& array, HalfRange* range) {
  const std::byte* bytes = array.bytes.get();
  for (int64_t i = 0; i < array.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    const double magnitude = std::fabs(static_cast<double>(value));
    if (!std::isfinite(magnitude)) continue;
    ++range->finite;
    if (magnitude > 0 && (range->smallest == 0 || magnitude < range->smallest))
      range->smallest = magnitude;
    range->largest = std::max(range->largest, magnitude);
    Count(magnitude, kFp16, &range->fp16_over, &range->fp16_under,
          &range->fp16_denormal);
    Count(magnitude, kBf16, &range->bf16_over, &range->bf16_under,
          &range->bf16_denormal);
  }
}

}  // namespace

void HalfRange::Add(const Array& array) {
  if (array.dtype == DType::kFloat32) AddAll<float>(array, this);
  if (array.dtype == DType::kFloat64) AddAll<double>(array, this);
}

void HalfRanges::Add(const std::string& name, const std::string& what,
                     const Array& array) {
  if (array.dtype != DType::kFloat32 && array.dtype != DType::kFloat64) return;
  const auto [place, fresh] = places_.emplace(name, entries_.size());
  if (fresh) entries_.push_back({name, what, {}});
  entries_[place->second].range.Add(array);
}

}  // namespace pd
