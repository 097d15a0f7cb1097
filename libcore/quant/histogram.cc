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
      : counts_(counts), levels_(levels), behind_(counts.size() + 1, 0) {
    for (size_t i = counts.size(); i-- > 0;)
      behind_[i] = behind_[i + 1] + counts[i];
  }

  double At(size_t end) {
    reference_.assign(counts_.begin(),
                      counts_.begin() + static_cast<std::ptrdiff_t>(end));
    reference_[end - 1] += behind_[end];
    Spread(end);
    double sum = 0;
    for (const double q : candidate_) sum += q;
    const double total = static_cast<double>(behind_[0]);
    double own = 0, other = 0;
    for (size_t i = 0; i < end; ++i) {
      const double p = static_cast<double>(reference_[i]);
      if (p == 0) continue;
      own += p * std::log(sum * p);
      other += p * std::log(total * candidate_[i]);
    }
    return (own - other) / total;
  }

 private:
  // Each level's count goes evenly to those of its bins that hold something.
  void Spread(size_t end) {
    candidate_.assign(end, 0.0);
    const size_t merged = end / static_cast<size_t>(levels_);
    for (size_t level = 0; level < static_cast<size_t>(levels_); ++level) {
      const size_t first = level * merged;
      const size_t last =
          level + 1 == static_cast<size_t>(levels_) ? end : first + merged;
      int64_t count = 0, used = 0;
      for (size_t i = first; i < last; ++i) {
        count += counts_[i];
        used += reference_[i] != 0;
      }
      if (used == 0) continue;
      const double each =
          static_cast<double>(count) / static_cast<double>(used);
      for (size_t i = first; i < last; ++i)
        if (reference_[i] != 0) candidate_[i] = each;
    }
  }

  const std::vector<int64_t>& counts_;
  const int levels_;
  std::vector<int64_t> behind_;  // counts of bin i and all after it
  std::vector<int64_t> reference_;
  std::vector<double> candidate_;
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
  Divergence divergence(counts, (1 << (bits - 1)) - 1);
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
