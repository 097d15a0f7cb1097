// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/tensor_stats.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <vector>

#include "libcore/base/half.h"
#include "libcore/base/parallel.h"

namespace pd {
namespace {

// Elements are summed in chunks of this many and the chunks in their order, so
// that threads do not show.
constexpr int64_t kChunk = 1 << 16;
constexpr int64_t kChunksPerThread = 4;

// What an element is computed as.
template <typename T>
using Wide = std::conditional_t<
    std::is_integral_v<T>, int64_t,
    std::conditional_t<std::is_same_v<T, double>, double, float>>;

template <typename W>
struct Part {
  W min = std::numeric_limits<W>::max();
  W max = std::numeric_limits<W>::lowest();
  double sum = 0;
  int64_t nan = 0, finite = 0;
};

// `scale` keeps sums of huge doubles finite; 1 otherwise.
template <typename T>
Part<Wide<T>> PartOf(const T* values, int64_t n, double scale) {
  using W = Wide<T>;
  constexpr int kLanes = 4;  // additions that do not wait for each other
  Part<W> lanes[kLanes];
  const auto add = [scale](W x, Part<W>* part) {
    bool finite = true;
    if constexpr (std::is_floating_point_v<W>)
      finite = std::abs(x) <= std::numeric_limits<W>::max();
    part->nan += x != x;
    part->finite += finite;
    part->min = finite && x < part->min ? x : part->min;
    part->max = finite && x > part->max ? x : part->max;
    part->sum += finite ? static_cast<double>(x) * scale : 0.0;
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane)
      add(static_cast<W>(values[i + lane]), &lanes[lane]);
  for (; i < n; ++i) add(static_cast<W>(values[i]), &lanes[0]);
  Part<W> all;
  for (const Part<W>& lane : lanes) {
    all.min = std::min(all.min, lane.min);
    all.max = std::max(all.max, lane.max);
    all.sum += lane.sum;
    all.nan += lane.nan;
    all.finite += lane.finite;
  }
  return all;
}

template <typename T>
Part<Wide<T>> WholeOf(const T* values, int64_t n, double scale) {
  using W = Wide<T>;
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  std::vector<Part<W>> parts(static_cast<size_t>(chunks));
  ParallelFor(chunks, kChunksPerThread, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c)
      parts[static_cast<size_t>(c)] =
          PartOf(values + c * kChunk, std::min(kChunk, n - c * kChunk), scale);
  });
  Part<W> all;
  for (const Part<W>& part : parts) {
    all.min = std::min(all.min, part.min);
    all.max = std::max(all.max, part.max);
    all.sum += part.sum;
    all.nan += part.nan;
    all.finite += part.finite;
  }
  return all;
}

template <typename W>
Number ToNumber(W value) {
  if constexpr (std::is_integral_v<W>)
    return Number(static_cast<int64_t>(value));
  else
    return Number(static_cast<double>(value));
}

template <typename T>
TensorStats RealStats(const Array& array) {
  const int64_t n = array.size();
  auto all = WholeOf(array.data<T>(), n, 1.0);
  TensorStats stats;
  stats.nan = all.nan;
  stats.finite = all.finite;
  stats.inf = n - all.nan - all.finite;
  if (all.finite == 0) return stats;
  stats.min = ToNumber(all.min);
  stats.max = ToNumber(all.max);
  const auto count = static_cast<double>(all.finite);
  stats.mean = all.sum / count;
  if (!std::isfinite(all.sum))
    stats.mean = WholeOf(array.data<T>(), n, 1.0 / count).sum;
  return stats;
}

template <typename T>
TensorStats ComplexStats(const Array& array) {
  TensorStats stats;
  const auto* values = array.data<std::complex<T>>();
  for (int64_t i = 0; i < array.size(); ++i) {
    const bool nan =
        std::isnan(values[i].real()) || std::isnan(values[i].imag());
    const bool inf =
        std::isinf(values[i].real()) || std::isinf(values[i].imag());
    stats.nan += nan;
    stats.inf += inf && !nan;
    stats.finite += !inf && !nan;
  }
  return stats;
}

}  // namespace

TensorStats StatsOf(const Array& array) {
  switch (array.dtype) {
    case DType::kBool:
    case DType::kUInt8:
      return RealStats<uint8_t>(array);
    case DType::kInt8:
      return RealStats<int8_t>(array);
    case DType::kInt16:
      return RealStats<int16_t>(array);
    case DType::kInt32:
      return RealStats<int32_t>(array);
    case DType::kInt64:
      return RealStats<int64_t>(array);
    case DType::kFloat16:
      return RealStats<Float16>(array);
    case DType::kBFloat16:
      return RealStats<BFloat16>(array);
    case DType::kFloat32:
      return RealStats<float>(array);
    case DType::kFloat64:
      return RealStats<double>(array);
    case DType::kComplex64:
      return ComplexStats<float>(array);
    case DType::kComplex128:
      return ComplexStats<double>(array);
  }
  return TensorStats();
}

}  // namespace pd
