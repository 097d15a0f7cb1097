// SPDX-License-Identifier: Apache-2.0
#include "libcore/optim/line_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// The parts of the first slope by which the loss must fall, and that may be
// left of the slope.
constexpr double kDecrease = 1e-4, kCurvature = 0.9;
constexpr int64_t kMostEvaluations = 25;
constexpr double kLongestStep = 10;  // minimize_bfgs
constexpr double kNarrowest = 1e-8;  // the same: of a bracket

// The minimum of the cubic through two points and their slopes, kept between
// `least` and `most`.
double CubicMinimum(const LinePoint& a, const LinePoint& b, double least,
                    double most) {
  const double d1 =
      a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length);
  const double square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (least + most) / 2;
  const bool ordered = a.length <= b.length;
  const LinePoint& low = ordered ? a : b;
  const LinePoint& high = ordered ? b : a;
  const double d2 = std::sqrt(square);
  const double at = high.length - (high.length - low.length) *
                                      ((high.slope + d2 - d1) /
                                       (high.slope - low.slope + 2 * d2));
  return std::min(std::max(at, least), most);
}

double CubicMinimum(const LinePoint& a, const LinePoint& b) {
  return CubicMinimum(a, b, std::min(a.length, b.length),
                      std::max(a.length, b.length));
}

bool IsTooHigh(const LinePoint& point, const LinePoint& start) {
  return point.loss > start.loss + kDecrease * point.length * start.slope;
}

bool IsFlat(const LinePoint& point, const LinePoint& start) {
  return std::abs(point.slope) <= -kCurvature * start.slope;
}

// The two ends of SearchByCubic's bracket.
struct Bracket {
  LinePoint end[2];
  int low = 0;
  bool stuck = false;  // the last length was close to an end

  void Order() { low = end[0].loss <= end[1].loss ? 0 : 1; }

  // The next length to try: one that is not close to an end twice.
  double Next() {
    const double least = std::min(end[0].length, end[1].length);
    const double most = std::max(end[0].length, end[1].length);
    double at = CubicMinimum(end[0], end[1]);
    const double margin = 0.1 * (most - least);
    if (std::min(most - at, at - least) >= margin) {
      stuck = false;
    } else if (stuck || at >= most || at <= least) {
      at = std::abs(at - most) < std::abs(at - least) ? most - margin
                                                      : least + margin;
      stuck = false;
    } else {
      stuck = true;
    }
    return at;
  }
};

// Narrows SearchByCubic's bracket; `*evaluations` counts on.
absl::Status Narrow(const LineFunction& line, const LinePoint& start,
                    double largest, double tolerance_change, int64_t iteration,
                    Bracket* bracket, int64_t* evaluations) {
  LinePoint* end = bracket->end;
  for (; iteration < kMostEvaluations; ++iteration) {
    if (std::abs(end[1].length - end[0].length) * largest < tolerance_change)
      break;
    PD_ASSIGN_OR_RETURN(LinePoint now, line(bracket->Next()));
    ++*evaluations;
    LinePoint& low = end[bracket->low];
    LinePoint& high = end[1 - bracket->low];
    if (IsTooHigh(now, start) || now.loss >= low.loss) {
      high = std::move(now);
      bracket->Order();
      continue;
    }
    const bool done = IsFlat(now, start);
    if (!done && now.slope * (high.length - low.length) >= 0) high = low;
    low = std::move(now);
    if (done) break;
  }
  return absl::OkStatus();
}

// Narrows SearchByDoubling's bracket; gives how many lengths did not end it.
absl::StatusOr<int64_t> Zoom(const LineFunction& line, const LinePoint& start,
                             int64_t max_iters, LinePoint* low,
                             LinePoint high) {
  for (int64_t i = 0; i < max_iters; ++i) {
    const double width = std::abs(high.length - low->length);
    if (width < kNarrowest) return i;
    double at = CubicMinimum(*low, high);
    if (std::min(std::abs(at - low->length), std::abs(at - high.length)) <
        0.1 * width)
      at = 0.5 * (low->length + high.length);
    PD_ASSIGN_OR_RETURN(LinePoint now, line(at));
    if (IsTooHigh(now, start) || now.loss >= low->loss) {
      high = std::move(now);
      continue;
    }
    const bool done = IsFlat(now, start);
    if (!done && now.slope * (high.length - low->length) >= 0) high = *low;
    *low = std::move(now);
    if (done) return i + 1;
  }
  return max_iters;
}

}  // namespace

absl::StatusOr<LineResult> SearchByCubic(const LineFunction& line,
                                         const LinePoint& start, double length,
                                         double largest,
                                         double tolerance_change) {
  LineResult result;
  LinePoint before = start;
  PD_ASSIGN_OR_RETURN(LinePoint now, line(length));
  result.evaluations = 1;
  int64_t i = 0;
  for (; i < kMostEvaluations; ++i) {
    const bool high =
        IsTooHigh(now, start) || (i > 1 && now.loss >= before.loss);
    if (!high && IsFlat(now, start)) {
      result.point = std::move(now);
      return result;
    }
    if (high || now.slope >= 0) break;
    const double least = now.length + 0.01 * (now.length - before.length);
    const double next = CubicMinimum(before, now, least, now.length * 10);
    before = std::move(now);
    PD_ASSIGN_OR_RETURN(now, line(next));
    ++result.evaluations;
  }
  Bracket bracket;
  bracket.end[0] = i == kMostEvaluations ? start : std::move(before);
  bracket.end[1] = std::move(now);
  bracket.Order();
  PD_RETURN_IF_ERROR(Narrow(line, start, largest, tolerance_change, i, &bracket,
                            &result.evaluations));
  result.point = std::move(bracket.end[bracket.low]);
  return result;
}

absl::StatusOr<LineResult> SearchByDoubling(const LineFunction& line,
                                            const LinePoint& start,
                                            double length, int64_t max_iters) {
  LineResult result;
  result.point = start;
  LinePoint before = start;
  for (int64_t i = 0; i < max_iters; ++i) {
    PD_ASSIGN_OR_RETURN(LinePoint now, line(length));
    ++result.evaluations;
    if (std::isinf(now.loss)) return result;
    const bool high =
        IsTooHigh(now, start) || (i > 1 && now.loss >= before.loss);
    if (!high && IsFlat(now, start)) {
      result.point = std::move(now);
      return result;
    }
    if (high || now.slope >= 0) {
      result.point = high ? before : now;
      PD_ASSIGN_OR_RETURN(const int64_t tried,
                          Zoom(line, start, max_iters, &result.point,
                               high ? std::move(now) : std::move(before)));
      result.evaluations += tried;
      return result;
    }
    before = std::move(now);
    length = std::min(2 * length, kLongestStep);
  }
  return result;
}

}  // namespace pd
