// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/growing_histogram.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/parallel.h"

namespace pd {
namespace {

constexpr int kBits = 14;
constexpr int32_t kBins = 1 << kBits;
constexpr int64_t kBlock = 512;
// Of so few values all are sampled; of more about as many, but this many of
// each stretch.
constexpr int64_t kAllSampled = 1 << 14;
constexpr int64_t kSampled = 4;
// Values of a bin that are all where their mean is.
constexpr int64_t kFew = 4;
// A table's counts are of 32 bits.
constexpr int64_t kMostTabled = int64_t{1} << 31;
// Less than any exponent.
constexpr int kNoExponent = -200;

using CountTable = std::vector<uint32_t>;

// Tables of zeros that wait for a batch.
class Tables {
 public:
  static Tables& Get() {
    static auto* const tables = new Tables;
    return *tables;
  }
  CountTable Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (tables_.empty()) return CountTable(2 * kBins, 0);
    CountTable table = std::move(tables_.back());
    tables_.pop_back();
    return table;
  }
  void Give(CountTable table) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tables_.push_back(std::move(table));
  }

 private:
  std::mutex mutex_;
  std::vector<CountTable> tables_;
};

// The least one with 2^exponent * kBins > abs_max.
int ExponentOf(float abs_max) {
  int exponent = 0;
  std::frexp(abs_max, &exponent);
  return std::max(exponent - kBits, -110);  // scales are finite
}

// Makes two neighbours one bin.
template <typename T, typename Join>
void Halve(std::vector<T>* bins, const Join& join) {
  T* const above = bins->data() + kBins;
  T* const below = above - 1;
  for (int32_t i = 0; i < kBins / 2; ++i) {
    above[i] = join(above[2 * i], above[2 * i + 1]);
    below[-i] = join(below[-2 * i], below[-2 * i - 1]);
  }
  std::fill(bins->begin(), bins->begin() + kBins / 2, T());
  std::fill(bins->end() - kBins / 2, bins->end(), T());
}

// Bins are of |x|: those of x < 0 mirror the others. A power of two scales
// exactly.
void Count(const float* x, int64_t n, float scale, uint32_t* table) {
  alignas(64) int32_t bins[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t some = std::min(kBlock, n - at);
    const float* const v = x + at;
#pragma omp simd
    for (int64_t i = 0; i < some; ++i) {
      int32_t bits = 0;
      std::memcpy(&bits, v + i, sizeof(bits));
      const auto bin = static_cast<int32_t>(std::fabs(v[i]) * scale);
      bins[i] = (bin ^ (bits >> 31)) + kBins;
    }
    // Two at a time: half the reads.
    int64_t i = 0;
    for (; i + 1 < some; i += 2) {
      uint64_t two = 0;
      std::memcpy(&two, bins + i, sizeof(two));
      ++table[static_cast<uint32_t>(two)];
      ++table[two >> 32];
    }
    if (i < some) ++table[bins[i]];
  }
}

// Counts the values from `cut` on; gives the number of others. They are rare:
// eight flags at a time say that there is none.
int64_t CountTop(const float* x, int64_t n, float cut, float scale,
                 uint32_t* table) {
  constexpr int64_t kGroup = 8;
  alignas(64) uint8_t is_top[kBlock];
  int64_t others = n;
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t some = std::min(kBlock, n - at);
    const float* const v = x + at;
#pragma omp simd
    for (int64_t i = 0; i < some; ++i) is_top[i] = std::fabs(v[i]) >= cut;
    std::fill(is_top + some, is_top + kBlock, 0);
    for (int64_t group = 0; group < kBlock; group += kGroup) {
      uint64_t any = 0;
      std::memcpy(&any, is_top + group, sizeof(any));
      if (any == 0) continue;
      for (int64_t i = group; i < group + kGroup; ++i) {
        if (is_top[i] == 0) continue;
        const auto bin = static_cast<int32_t>(std::fabs(v[i]) * scale);
        ++table[kBins + (std::signbit(v[i]) ? -1 - bin : bin)];
        --others;
      }
    }
  }
  return others;
}

// How many of a bin's values lie below the part `edge` of its width. As many as
// its neighbours hold lie anywhere, what it holds beyond them lies at its mean:
// equal values. So do a few values.
int64_t Below(int64_t count, int64_t beside, double mean, double edge) {
  const int64_t anywhere = count <= kFew ? 0 : std::min(count, beside);
  auto below = static_cast<int64_t>(
      std::nearbyint(static_cast<double>(anywhere) * edge));
  // A value on an edge counts as above it, whatever has been rounded.
  constexpr double kRounding = 1.0 / 512;
  const double sum = (mean + kRounding) * static_cast<double>(count) -
                     static_cast<double>(anywhere) / 2;
  if (sum < edge * static_cast<double>(count - anywhere))
    below += count - anywhere;
  return below;
}

}  // namespace

void GrowingHistogram::GrowPart(int exponent, Part* part) {
  if (part->table.empty()) {
    part->table = Tables::Get().Take();
    part->exponent = exponent;
  }
  for (; part->exponent < exponent; ++part->exponent)
    Halve(&part->table, [](uint32_t a, uint32_t b) { return a + b; });
}

GrowingHistogram::Sampled GrowingHistogram::Joined(const Sampled& near,
                                                   const Sampled& far) {
  const auto a = static_cast<float>(near.number);
  const auto b = static_cast<float>(far.number);
  if (a + b == 0) return {};
  return {near.number + far.number,
          (a * near.mean + b * (1 + far.mean)) / (a + b) / 2};
}

void GrowingHistogram::GrowTo(int exponent) {
  if (counts_.empty()) {
    counts_.resize(2 * kBins);
    sampled_.resize(2 * kBins);
    exponent_ = exponent;
  }
  for (; exponent_ < exponent; ++exponent_) {
    Halve(&counts_, [](int64_t a, int64_t b) { return a + b; });
    Halve(&sampled_, Joined);
  }
}

void GrowingHistogram::Begin(int64_t n) {
  batch_size_ = n;
  parts_.resize(static_cast<size_t>(StretchParts(n)));
}

void GrowingHistogram::Add(int part, const float* x, int64_t n) {
  Part& mine = parts_[static_cast<size_t>(part)];
  const ValueRange range = RangeOf(x, n);
  mine.range.Join(range);
  if (!range.finite()) return;
  if (range.abs_max == 0 && mine.table.empty()) {
    mine.zeros += n;
    return;
  }
  PD_INVARIANT(mine.tabled + n <= kMostTabled);
  GrowPart(ExponentOf(range.abs_max), &mine);
  const float scale = std::ldexp(1.0f, -mine.exponent);
  if (cut_ > 0)
    mine.zeros += CountTop(x, n, cut_, scale, mine.table.data());
  else
    Count(x, n, scale, mine.table.data());
  mine.tabled += n;
  const int64_t sampled =
      std::max(kSampled, kStretch * kAllSampled / std::max(batch_size_, n));
  mine.sample.insert(mine.sample.end(), x, x + std::min(sampled, n));
}

ValueRange GrowingHistogram::End() {
  ValueRange all;
  int exponent = counts_.empty() ? kNoExponent : exponent_;
  for (const Part& part : parts_) {
    all.Join(part.range);
    zeros_ += part.zeros;
    if (!part.table.empty()) exponent = std::max(exponent, part.exponent);
  }
  if (exponent != kNoExponent) {
    GrowTo(exponent);
    counts_[kBins] += std::exchange(zeros_, 0);
  }
  for (Part& part : parts_)
    if (!part.table.empty()) Take(&part);
  parts_.clear();
  return all;
}

void GrowingHistogram::Take(Part* part) {
  GrowPart(exponent_, part);
  CountTable& table = part->table;
  ParallelFor(2 * kBins, 1 << 13, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      counts_[i] += std::exchange(table[i], 0);
  });
  Tables::Get().Give(std::move(table));
  const float scale = std::ldexp(1.0f, -exponent_);
  for (const float x : part->sample) {
    const float at = std::fabs(x) * scale;
    const auto bin = static_cast<int32_t>(at);
    Sampled& sampled = sampled_[static_cast<size_t>(
        kBins + (std::signbit(x) ? -1 - bin : bin))];
    ++sampled.number;
    sampled.mean += (at - static_cast<float>(bin) - sampled.mean) /
                    static_cast<float>(sampled.number);
  }
}

float GrowingHistogram::CutOf(double share) const {
  if (counts_.empty()) return 0;
  const int64_t all =
      std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
  const double most = share * static_cast<double>(all);
  int64_t above = 0;
  size_t i = kBins;
  while (i > 0 && static_cast<double>(above) <= most)
    above += counts_[kBins + --i];
  return std::ldexp(static_cast<float>(i), exponent_);
}

bool GrowingHistogram::KnowsTop(double share) const {
  if (cut_ == 0) return true;
  const auto top = static_cast<size_t>(std::ceil(std::ldexp(cut_, -exponent_)));
  const auto above = counts_.begin() + kBins;
  const int64_t all =
      std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
  return static_cast<double>(
             std::accumulate(above + top, counts_.end(), int64_t{0})) >
         share * static_cast<double>(all);
}

Histogram GrowingHistogram::Rebinned(double low, double high, int bins) const {
  std::vector<int64_t> counts(kBins);
  std::vector<Sampled> sampled(kBins);
  for (size_t i = 0; !counts_.empty() && i < kBins; ++i) {
    const size_t above = kBins + i, below = kBins - 1 - i;
    counts[i] = counts_[above] + counts_[below];
    const auto a = static_cast<float>(sampled_[above].number);
    const auto b = static_cast<float>(sampled_[below].number);
    if (a + b == 0) continue;
    sampled[i] = {
        sampled_[above].number + sampled_[below].number,
        (a * sampled_[above].mean + b * sampled_[below].mean) / (a + b)};
  }
  counts[0] += zeros_;
  return Wider(counts, sampled, low, high, bins);
}

Histogram GrowingHistogram::RebinnedRelu(double low, double high,
                                         int bins) const {
  if (counts_.empty()) return Rebinned(low, high, bins);
  const auto middle = counts_.begin() + kBins;
  Histogram histogram =
      Wider({middle, counts_.end()}, {sampled_.begin() + kBins, sampled_.end()},
            low, high, bins);
  histogram.mutable_counts()[0] +=
      std::accumulate(counts_.begin(), middle, int64_t{0});
  return histogram;
}

Histogram GrowingHistogram::Wider(const std::vector<int64_t>& counts,
                                  const std::vector<Sampled>& sampled,
                                  double low, double high, int bins) const {
  Histogram histogram(low, high, bins);
  std::vector<int64_t>& to = histogram.mutable_counts();
  const double each = std::ldexp(1.0, exponent_);
  const double first = histogram.low(), width = histogram.width();
  const auto last = static_cast<int64_t>(bins) - 1;
  const auto bin_of = [&](double v) {
    const auto bin = static_cast<int64_t>(std::floor((v - first) / width));
    return std::min(std::max<int64_t>(bin, 0), last);
  };
  for (size_t i = 0; i < kBins; ++i) {
    if (counts[i] == 0) continue;
    const int64_t beside =
        (counts[i - (i > 0)] + counts[i + (i + 1 < kBins)]) / 2;
    const double begin = static_cast<double>(i) * each;
    int64_t bin = bin_of(begin), done = 0;
    for (; bin < bin_of(begin + each); ++bin) {
      const double edge = first + static_cast<double>(bin + 1) * width;
      const int64_t below =
          Below(counts[i], beside,
                sampled[i].number == 0 ? 0.5 : double{sampled[i].mean},
                (edge - begin) / each);
      to[static_cast<size_t>(bin)] += below - done;
      done = below;
    }
    to[static_cast<size_t>(bin)] += counts[i] - done;
  }
  return histogram;
}

}  // namespace pd
