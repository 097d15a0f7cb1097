// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/growing_histogram.h"

#include <algorithm>
#include <cmath>
#include <utility>

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
// Values that are looked at and counted together.
constexpr int64_t kStretch = 4096;
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

ValueRange GrowingHistogram::Add(const float* x, int64_t n) {
  if (!bins_.empty() && n >= kGrain) {
    ValueRange range;
    for (int64_t begin = 0; begin < n; begin += kTurn)
      range.Join(AddMany(x + begin, std::min(kTurn, n - begin)));
    return range;
  }
  const ValueRange range = RangeOf(x, n);
  if (!range.finite()) return range;
  if (range.abs_max == 0 && bins_.empty()) {
    zeros_ += n;
    return range;
  }
  GrowTo(range.abs_max);
  if (n >= kGrain) return Add(x, n);
  AddFew(x, n);
  return range;
}

void GrowingHistogram::AddFew(const float* x, int64_t n) {
  // A power of two: products are exact.
  const float scale = std::ldexp(1.0f, kPlaceBits - exponent_);
  for (int64_t i = 0; i < n; ++i) {
    const auto place = static_cast<int64_t>(std::fabs(x[i]) * scale);
    Bin& bin = bins_[static_cast<size_t>(place >> kPlaceBits)];
    ++bin.count;
    bin.places += place & (kPlaces - 1);
  }
}

// Each stretch is looked at while it lies in the cache, and counted at once
// where the bins reach as far as it does.
ValueRange GrowingHistogram::AddMany(const float* x, int64_t n) {
  struct Part {
    ValueRange range;
    std::vector<std::pair<int64_t, int64_t>> greater;  // begin, count
  };
  // Between calls it holds zeros.
  static thread_local std::vector<uint64_t> scratch;
  const auto threads = static_cast<size_t>(Threads());
  if (scratch.size() < threads * kTable) scratch.resize(threads * kTable, 0);
  uint64_t* const tables = scratch.data();
  std::vector<Part> parts(threads);
  const float scale = std::ldexp(1.0f, kPlaceBits - exponent_);
  const float reach = std::ldexp(1.0f, kBits + exponent_);
  ParallelParts([&](int part, int of) {
    Part& mine = parts[static_cast<size_t>(part)];
    const int64_t end = n * (part + 1) / of;
    for (int64_t at = n * part / of; at < end; at += kStretch) {
      const int64_t some = std::min(kStretch, end - at);
      const ValueRange range = RangeOf(x + at, some);
      mine.range.Join(range);
      if (!range.finite()) continue;
      if (range.abs_max < reach)
        Count(x + at, some, scale, tables + static_cast<size_t>(part) * kTable);
      else
        mine.greater.emplace_back(at, some);
    }
  });
  Take(tables, threads);
  ValueRange all;
  for (const Part& part : parts) all.Join(part.range);
  if (!all.finite()) return all;
  GrowTo(all.abs_max);
  for (const Part& part : parts)
    for (const auto& [at, some] : part.greater) AddFew(x + at, some);
  return all;
}

// Adds what threads have counted, and clears it.
void GrowingHistogram::Take(uint64_t* tables, size_t threads) {
  const auto add = [&](int32_t bin, uint64_t* counted) {
    if (*counted == 0) return;
    Bin& to = bins_[static_cast<size_t>(bin)];
    to.count += static_cast<int64_t>(*counted >> kCountBit);
    to.places += static_cast<int64_t>(*counted & 0xffffffffu);
    *counted = 0;
  };
  ParallelFor(kBins, 1 << 13, [&](int64_t begin, int64_t end) {
    for (size_t t = 0; t < threads; ++t) {
      uint64_t* const table = tables + t * kTable;
      auto bin = static_cast<int32_t>(begin);
      for (; bin < kCopied; ++bin)
        for (int32_t copy = 0; copy < kCopies; ++copy)
          add(bin, &table[bin + copy * kCopied]);
      for (; bin < static_cast<int32_t>(end); ++bin)
        add(bin, &table[bin + (kCopies - 1) * kCopied]);
    }
  });
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
