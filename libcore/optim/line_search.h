// SPDX-License-Identifier: Apache-2.0
// Searches along a direction for a length that satisfies the strong Wolfe
// conditions (Nocedal and Wright, Numerical Optimization, algorithms 3.5 and
// 3.6), in the two forms that PaddlePaddle has.
#ifndef PD_LIBCORE_OPTIM_LINE_SEARCH_H_
#define PD_LIBCORE_OPTIM_LINE_SEARCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"

namespace pd {

/// A point on the line: what the loss and its slope along the direction are.
struct LinePoint {
  double length = 0;
  double loss = 0;
  double slope = 0;
  std::vector<float> gradient;
};

/// Evaluates the loss at a length along the direction.
using LineFunction = std::function<absl::StatusOr<LinePoint>(double length)>;

struct LineResult {
  LinePoint point;
  int64_t evaluations = 0;
};

/// As the class LBFGS: lengths grow by cubic interpolation, at most 25
/// evaluations. `start` is the point of length 0, `largest` the largest element
/// of the direction; where lengths times it differ by less than
/// `tolerance_change`, the search ends.
absl::StatusOr<LineResult> SearchByCubic(const LineFunction& line,
                                         const LinePoint& start, double length,
                                         double largest,
                                         double tolerance_change);

/// As minimize_bfgs: lengths double up to 10. Gives `start` where none is
/// found.
absl::StatusOr<LineResult> SearchByDoubling(const LineFunction& line,
                                            const LinePoint& start,
                                            double length, int64_t max_iters);

}  // namespace pd

#endif  // PD_LIBCORE_OPTIM_LINE_SEARCH_H_
