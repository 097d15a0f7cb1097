// SPDX-License-Identifier: Apache-2.0
// A sum of doubles without rounding (Shewchuk's expansions, 1997): its value
// does not depend on the order of what was added, so not on batches either.
#ifndef PD_LIBCORE_TRAIN_METRICS_EXACT_SUM_H_
#define PD_LIBCORE_TRAIN_METRICS_EXACT_SUM_H_

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace pd {

class ExactSum {
 public:
  void Add(double x) {
    if (!std::isfinite(x)) {
      strange_ += x;  // infinities and NaN decide the sum by themselves
      any_strange_ = true;
      return;
    }
    size_t kept = 0;
    for (double part : parts_) {
      if (std::fabs(x) < std::fabs(part)) std::swap(x, part);
      const double high = x + part;
      const double low = part - (high - x);
      if (low != 0) parts_[kept++] = low;
      x = high;
    }
    parts_.resize(kept);
    parts_.push_back(x);
  }

  /// The sum, rounded once, to nearest.
  double Value() const {
    if (any_strange_) return strange_;
    if (parts_.empty()) return 0;
    // From the largest part down, until something is lost.
    size_t n = parts_.size() - 1;
    double high = parts_[n], low = 0;
    while (n > 0 && low == 0) {
      const double before = high;
      const double part = parts_[--n];
      high = before + part;
      low = part - (high - before);
    }
    // Half-way: what is left says to which side.
    if (n > 0 &&
        ((low < 0 && parts_[n - 1] < 0) || (low > 0 && parts_[n - 1] > 0))) {
      const double twice = low * 2, moved = high + twice;
      if (moved - high == twice) high = moved;
    }
    return high;
  }

 private:
  std::vector<double> parts_;
  double strange_ = 0;
  bool any_strange_ = false;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_METRICS_EXACT_SUM_H_
