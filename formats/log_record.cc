// SPDX-License-Identifier: Apache-2.0
#include "formats/log_record.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pd {
namespace {

double Share(int64_t part, int64_t rest) {
  const int64_t all = part + rest;
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

}  // namespace

LogHistogram MakeHistogram(const float* values, size_t n, int bins) {
  LogHistogram histogram;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (size_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(values[i]);
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
    histogram.sum += value;
    histogram.sum_squares += value * value;
  }
  if (low > high) {
    low = 0;
    high = 1;
  } else if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  const double width = (high - low) / bins;
  for (int i = 0; i < bins; ++i) histogram.edges.push_back(low + i * width);
  histogram.edges.push_back(high);
  histogram.counts.assign(static_cast<size_t>(bins), 0);
  const auto& edges = histogram.edges;
  for (size_t i = 0; i < n; ++i) {
    const double value = static_cast<double>(values[i]);
    if (!std::isfinite(value)) continue;
    size_t bin = static_cast<size_t>(
        std::clamp((value - low) / width, 0.0, static_cast<double>(bins - 1)));
    // The edges decide where rounding does not agree with them.
    if (value < edges[bin] && bin > 0) --bin;
    if (bin + 1 < histogram.counts.size() && value >= edges[bin + 1]) ++bin;
    ++histogram.counts[bin];
  }
  return histogram;
}

double LogCurve::Precision(size_t i) const { return Share(tp[i], fp[i]); }
double LogCurve::Recall(size_t i) const { return Share(tp[i], fn[i]); }
double LogCurve::FalsePositiveRate(size_t i) const {
  return Share(fp[i], tn[i]);
}

double LogCurve::Area() const {
  if (tp.empty() || tp[0] + fn[0] == 0 || fp[0] + tn[0] == 0) return 0.5;
  double area = 0;
  double x = 0, y = 0;  // behind the last threshold nothing is positive
  for (size_t i = tp.size(); i-- > 0;) {
    const double next_x = FalsePositiveRate(i), next_y = Recall(i);
    area += (next_x - x) * (next_y + y) / 2;
    x = next_x;
    y = next_y;
  }
  return area;
}

}  // namespace pd
