// SPDX-License-Identifier: Apache-2.0
// Counts of |x| before it is known how large x becomes, so that data is read
// once. Bins are a power of two wide and begin at 0; where a greater value
// comes by, neighbours become one. There are so many that the histogram in the
// end, of wider bins that begin anywhere, is right but for what lies at its
// edges: each of its bins is made of 16 to 32 of these, or more. The mean of
// each bin is known too, so that equal values, which are many where images have
// a background, fall on the right side of an edge.
#ifndef PD_LIBCORE_QUANT_GROWING_HISTOGRAM_H_
#define PD_LIBCORE_QUANT_GROWING_HISTOGRAM_H_

#include <cstdint>
#include <vector>

#include "libcore/quant/thresholds.h"

namespace pd {

class GrowingHistogram {
 public:
  /// Counts n values and gives their range, in one pass but for what is
  /// greater than all before. Some are left out where any is NaN or Inf.
  ValueRange Add(const float* x, int64_t n);

  /// The counts in bins of equal width from `low` to `high`, which no value
  /// lies outside of.
  Histogram Rebinned(double low, double high, int bins) const;

 private:
  struct Bin {
    int64_t count = 0;
    int64_t places = 0;  // the sum of where values lie in it, in 256ths
  };

  void GrowTo(float abs_max);
  void AddFew(const float* x, int64_t n);
  ValueRange AddMany(const float* x, int64_t n);
  void Take(uint64_t* tables, size_t threads);
  // How many of bin `i` lie below the part `edge` of its width.
  int64_t Below(size_t i, double edge) const;

  int exponent_ = 0;       // a bin is 2^exponent_ wide
  std::vector<Bin> bins_;  // empty before a value other than 0
  int64_t zeros_ = 0;      // that came before
};

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_GROWING_HISTOGRAM_H_
