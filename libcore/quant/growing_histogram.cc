// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/growing_histogram.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/parallel.h"

namespace pd {
namespace {

constexpr int kBits = 16;
constexpr size_t kBins = size_t{1} << kBits;
// Places within a bin, so that |x| in places is as fine as a float.
constexpr int kPlaceBits = 8;
constexpr int64_t kPlaces = 1 << kPlaceBits;
// Values from which on threads count for themselves.
constexpr int64_t kGrain = 1 << 17;
constexpr int64_t kFew = 4;
constexpr int64_t kBlock = 512;
// A thread's bin: the count above the sum of places, in one number. That many
// values fill neither.
constexpr int kCountBit = 32;
constexpr int64_t kTurn = int64_t{1} << 24;

// The first bins have copies that take turns: equal values in a row, zeros
// above all, would wait for each other's count.
constexpr int32_t kCopied = 64, kCopies = 4;
constexpr size_t kTable = kBins + (kCopies - 1) * kCopied;

// `scale` is in places.
void Count(const float* x, int64_t n, float scale, uint64_t* table) {
  int32_t places[kBlock], bins[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const auto some = static_cast<int32_t>(std::min(kBlock, n - at));
#pragma omp simd
    for (int32_t i = 0; i < some; ++i) {
      const auto place = static_cast<int32_t>(std::fabs(x[at + i]) * scale);
      const int32_t bin = place >> kPlaceBits;
      bins[i] = bin + (bin < kCopied ? i % kCopies : kCopies - 1) * kCopied;
      places[i] = place & (kPlaces - 1);
    }
    for (int32_t i = 0; i < some; ++i)
      table[bins[i]] +=
          (uint64_t{1} << kCountBit) + static_cast<uint64_t>(places[i]);
  }
}

}  // namespace

void GrowingHistogram::GrowTo(float abs_max) {
  // 2^exponent * kBins > abs_max.
  int exponent = 0;
  std::frexp(abs_max, &exponent);
  exponent = std::max(exponent - kBits, -110);  // scales are finite
  if (bins_.empty()) {
    bins_.resize(kBins);
    bins_[0].count = zeros_;
    exponent_ = exponent;
  }
  for (; exponent_ < exponent; ++exponent_) {
    for (size_t i = 0; i < kBins / 2; ++i) {
      const Bin even = bins_[2 * i], odd = bins_[2 * i + 1];
      bins_[i] = {even.count + odd.count,
                  (even.places + odd.places + odd.count * kPlaces) / 2};
    }
    std::fill(bins_.begin() + kBins / 2, bins_.end(), Bin());
  }
}

void GrowingHistogram::Add(const float* x, int64_t n, float abs_max) {
  if (abs_max == 0 && bins_.empty()) {
    zeros_ += n;
    return;
  }
  GrowTo(abs_max);
  // A power of two: products are exact.
  const float scale = std::ldexp(1.0f, kPlaceBits - exponent_);
  if (n < kGrain) {
    for (int64_t i = 0; i < n; ++i) {
      const auto place = static_cast<int64_t>(std::fabs(x[i]) * scale);
      Bin& bin = bins_[static_cast<size_t>(place >> kPlaceBits)];
      ++bin.count;
      bin.places += place & (kPlaces - 1);
    }
    return;
  }
  static thread_local std::vector<uint64_t> scratch;
  for (int64_t begin = 0; begin < n; begin += kTurn) {
    const int64_t all = std::min(kTurn, n - begin);
    const auto threads = static_cast<size_t>(Threads());
    scratch.assign(threads * kTable, 0);
    uint64_t* const tables = scratch.data();
    ParallelParts([&](int part, int of) {
      const int64_t first = all * part / of, last = all * (part + 1) / of;
      Count(x + begin + first, last - first, scale,
            tables + static_cast<size_t>(part) * kTable);
    });
    for (size_t t = 0; t < threads * kTable; ++t) {
      const auto at = static_cast<int32_t>(t % kTable);
      const int32_t copy = std::min(at / kCopied, kCopies - 1);
      Bin& bin = bins_[static_cast<size_t>(at - copy * kCopied)];
      bin.count += static_cast<int64_t>(tables[t] >> kCountBit);
      bin.places += static_cast<int64_t>(tables[t] & 0xffffffffu);
    }
  }
}

int64_t GrowingHistogram::Below(size_t i, double edge) const {
  const Bin& bin = bins_[i];
  const auto count = static_cast<double>(bin.count);
  // As many as its neighbours hold lie anywhere, what it holds beyond them
  // lies where its mean says: equal values. So do a few values.
  const int64_t beside =
      (bins_[i - (i > 0)].count + bins_[i + (i + 1 < kBins)].count) / 2;
  const auto even =
      static_cast<double>(bin.count <= kFew ? 0 : std::min(bin.count, beside));
  // A value is half a place further than it was counted.
  const double sum = (static_cast<double>(bin.places) + count / 2) / kPlaces;
  int64_t below = static_cast<int64_t>(std::nearbyint(even * edge));
  if (sum - even / 2 < edge * (count - even))
    below += bin.count - static_cast<int64_t>(even);
  return below;
}

Histogram GrowingHistogram::Rebinned(double low, double high, int bins) const {
  Histogram histogram(low, high, bins);
  std::vector<int64_t>& to = histogram.mutable_counts();
  if (bins_.empty()) {
    to[0] += zeros_;
    return histogram;
  }
  const double each = std::ldexp(1.0, exponent_);
  const double first = histogram.low(), width = histogram.width();
  const auto last = static_cast<int64_t>(bins) - 1;
  const auto bin_of = [&](double v) {
    const auto bin = static_cast<int64_t>(std::floor((v - first) / width));
    return std::min(std::max<int64_t>(bin, 0), last);
  };
  for (size_t i = 0; i < kBins; ++i) {
    if (bins_[i].count == 0) continue;
    const double begin = static_cast<double>(i) * each;
    int64_t bin = bin_of(begin), done = 0;
    for (; bin < bin_of(begin + each); ++bin) {
      const double edge = first + static_cast<double>(bin + 1) * width;
      const int64_t below = Below(i, (edge - begin) / each);
      to[static_cast<size_t>(bin)] += below - done;
      done = below;
    }
    to[static_cast<size_t>(bin)] += bins_[i].count - done;
  }
  return histogram;
}

}  // namespace pd
