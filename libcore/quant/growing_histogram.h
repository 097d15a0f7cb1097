// SPDX-License-Identifier: Apache-2.0
// Counts of x before it is known how large x becomes, so that data is read
// once. Bins are a power of two wide and begin at 0, on both sides of it; where
// a greater value comes by, neighbours become one. There are so many that the
// histogram in the end, of wider bins that begin anywhere, is right but for
// what lies at its edges: each of its bins is made of 4 to 8 of these, or
// more. Of a sample it is known where in its bin it lies, so that equal values,
// which are many where images have a background, fall on the right side of an
// edge.
#ifndef PD_LIBCORE_QUANT_GROWING_HISTOGRAM_H_
#define PD_LIBCORE_QUANT_GROWING_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libcore/quant/thresholds.h"

namespace pd {

class GrowingHistogram {
 public:
  /// A batch of n values begins.
  void Begin(int64_t n);
  /// Counts a stretch of it, unless it holds NaN or Inf. Threads have numbers
  /// of their own, below StretchParts(n).
  void Add(int part, const float* x, int64_t n);
  /// The batch ends. Gives its range.
  ValueRange End();

  /// From now on |x| below `cut` counts as 0: for those who ask for the upper
  /// end alone.
  void CountFrom(float cut) { cut_ = cut; }
  /// A number that about `share` of all |x| are above, and of all x too.
  float CutOf(double share) const;
  /// Whether more than `share` of all x were counted at the cut or above.
  bool KnowsTop(double share) const;

  /// The counts of |x| in bins of equal width from `low` to `high`, which no
  /// value lies outside of.
  Histogram Rebinned(double low, double high, int bins) const;
  /// The same of max(x, 0).
  Histogram RebinnedRelu(double low, double high, int bins) const;

 private:
  // Of what is known more exactly in a bin: how many, and the mean of where
  // they lie, as a part of its width.
  struct Sampled {
    uint32_t number = 0;
    float mean = 0;
  };
  // The counts of one thread for a batch.
  struct Part {
    ValueRange range;
    int64_t zeros = 0;            // that came before other values
    int64_t tabled = 0;           // values in the table
    int exponent = 0;             // its bins are 2^exponent wide
    std::vector<uint32_t> table;  // like `counts_`
    std::vector<float> sample;
  };

  static Sampled Joined(const Sampled& near, const Sampled& far);
  static void GrowPart(int exponent, Part* part);
  void GrowTo(int exponent);
  void Take(Part* part);
  Histogram Wider(const std::vector<int64_t>& counts,
                  const std::vector<Sampled>& sampled, double low, double high,
                  int bins) const;

  int exponent_ = 0;  // a bin is 2^exponent_ wide
  // Bins of x >= 0 begin in the middle, those of x < 0 lie before them, the
  // nearest to 0 last. Empty before a value other than 0 has come.
  std::vector<int64_t> counts_;
  std::vector<Sampled> sampled_;
  int64_t zeros_ = 0;  // that came before
  int64_t batch_size_ = 0;
  float cut_ = 0;
  std::vector<Part> parts_;
};

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_GROWING_HISTOGRAM_H_
