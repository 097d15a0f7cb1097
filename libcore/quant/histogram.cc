// SPDX-License-Identifier: Apache-2.0
// Histograms of |x|, and the thresholds that are read from them.
#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/parallel.h"
#include "libcore/quant/thresholds.h"

namespace pd {
namespace {

constexpr int64_t kGrain = 1 << 15;

// The divergence of a histogram that is cut behind bin `end` and rounded to
// `levels` values from the whole one. What lies behind the cut counts for the
// last bin.
class Divergence {
 public:
  Divergence(const std::vector<int64_t>& counts, int levels)
      : counts_(counts),
        levels_(levels),
        behind_(counts.size() + 1, 0),
        used_(counts.size() + 1, 0),
        entropy_(counts.size() + 1, 0) {
    for (size_t i = counts.size(); i-- > 0;)
      behind_[i] = behind_[i + 1] + counts[i];
    for (size_t i = 0; i < counts.size(); ++i) {
      used_[i + 1] = used_[i] + (counts[i] != 0);
      entropy_[i + 1] = entropy_[i] + Entropy(counts[i]);
    }
  }

  double At(size_t end) const {
    const int64_t behind = behind_[end];
    const auto reference = [&](size_t i) {
      return counts_[i] + (i + 1 == end ? behind : 0);
    };
    // sum of p log(p), p the reference's bins; own = that + sum of p log(sum).
    const int64_t last = reference(end - 1);
    double own = entropy_[end - 1] + Entropy(last), other = 0, sum = 0;
    // Each level's count goes evenly to those of its bins that hold something,
    // so all of these have one logarithm.
    const size_t merged = end / static_cast<size_t>(levels_);
    for (size_t level = 0; level < static_cast<size_t>(levels_); ++level) {
      const size_t begin = level * merged;
      const size_t stop =
          level + 1 == static_cast<size_t>(levels_) ? end : begin + merged;
      const bool to_end = stop == end;
      const int64_t count = behind_[begin] - behind_[stop];
      int64_t used = used_[stop] - used_[begin];
      if (to_end && counts_[end - 1] == 0 && last != 0) ++used;
      if (used == 0) continue;
      const double each =
          static_cast<double>(count) / static_cast<double>(used);
      sum += each * static_cast<double>(used);
      const double p = static_cast<double>(count + (to_end ? behind : 0));
      if (p > 0) other += p * std::log(total() * each);
    }
    return (own + total() * std::log(sum) - other) / total();
  }

 private:
  static double Entropy(int64_t count) {
    const auto p = static_cast<double>(count);
    return count == 0 ? 0 : p * std::log(p);
  }
  double total() const { return static_cast<double>(behind_[0]); }

  const std::vector<int64_t>& counts_;
  const int levels_;
  std::vector<int64_t> behind_;  // counts of bin i and all after it
  std::vector<int64_t> used_;    // how many bins before i hold something
  std::vector<double> entropy_;  // the sum of p log(p) before bin i
};

}  // namespace

Histogram::Histogram(double low, double high, int bins)
    : counts_(static_cast<size_t>(bins), 0) {
  if (low == high) low -= 0.5, high += 0.5;
  const double step = (high - low) / bins;
  for (int i = 0; i < bins; ++i) edges_.push_back(low + i * step);
  edges_.push_back(high);
}

void Histogram::Add(const float* x, int64_t n) {
  const int bins = static_cast<int>(counts_.size());
  const double low = edges_.front(), scale = bins / (edges_.back() - low);
  std::vector<std::vector<int64_t>> parts(static_cast<size_t>(Threads()));
  const auto count = [&](int64_t begin, int64_t end,
                         std::vector<int64_t>* counts) {
    counts->assign(counts_.size(), 0);
    for (int64_t i = begin; i < end; ++i) {
      const double v = std::fabs(x[i]);
      int bin = static_cast<int>((v - low) * scale);
      bin = std::min(std::max(bin, 0), bins - 1);
      // The product may be off by a rounding; the edges decide.
      const size_t at = static_cast<size_t>(bin);
      if (v < edges_[at] && bin > 0)
        --bin;
      else if (bin + 1 < bins && v >= edges_[at + 1])
        ++bin;
      ++(*counts)[static_cast<size_t>(bin)];
    }
  };
  if (n < kGrain) {
    parts.resize(1);
    count(0, n, &parts[0]);
  } else {
    ParallelParts([&](int part, int of) {
      count(n * part / of, n * (part + 1) / of,
            &parts[static_cast<size_t>(part)]);
    });
  }
  for (const std::vector<int64_t>& part : parts)
    for (size_t i = 0; i < part.size(); ++i) counts_[i] += part[i];
}

double PercentileThreshold(const Histogram& histogram, double percentile) {
  int64_t total = 0;
  for (const int64_t count : histogram.counts()) total += count;
  double share = 0;
  size_t bins = 0;
  for (size_t i = 0; i < histogram.counts().size(); ++i) {
    share +=
        static_cast<double>(histogram.counts()[i]) / static_cast<double>(total);
    if (share < percentile) continue;
    bins = i + 1;
    break;
  }
  // Roundings may keep the sum below a share of one.
  if (bins == 0) bins = histogram.counts().size();
  return (static_cast<double>(bins) - 0.5) * histogram.width();
}

double KlThreshold(const Histogram& histogram, int bits) {
  const std::vector<int64_t>& counts = histogram.counts();
  const Divergence divergence(counts, (1 << (bits - 1)) - 1);
  size_t start = (counts.size() - 1) / 2, best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (size_t end = std::max<size_t>(start, 1); end < counts.size(); ++end) {
    if (counts[end - 1] == 0) continue;
    const double d = divergence.At(end);
    if (best != 0 && d >= least) continue;
    least = d;
    best = end;
  }
  if (best == 0) {
    while (start > 0 && counts[start] == 0) --start;
    best = start;
  }
  return (static_cast<double>(best) + 0.5) * histogram.width();
}

}  // namespace pd
