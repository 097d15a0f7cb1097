// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/row_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/base/parallel.h"
#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/row_softmax.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;

// The exponential of x <= 0; NaN stays NaN.
template <class V>
HWY_INLINE V ExpOf(V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(kTag, x));
}

void SoftmaxRow(const float* x, int64_t n, float* softmax, float* maximum,
                float* log_sum) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const auto lowest = hn::Set(kTag, -std::numeric_limits<float>::infinity());
  auto best = lowest;
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, n - i)));
    best = hn::Max(
        best, hn::IfThenElse(mask, hn::MaskedLoad(mask, kTag, x + i), lowest));
  }
  const auto max = hn::MaxOfLanes(kTag, best);
  auto sums = hn::Zero(kTag);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, n - i)));
    const auto e = hn::IfThenElseZero(
        mask, ExpOf(hn::Sub(hn::MaskedLoad(mask, kTag, x + i), max)));
    sums = hn::Add(sums, e);
    hn::BlendedStore(e, mask, kTag, softmax + i);
  }
  const float sum = hn::GetLane(hn::SumOfLanes(kTag, sums));
  const auto scale = hn::Set(kTag, 1.0f / sum);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, n - i)));
    hn::BlendedStore(hn::Mul(hn::MaskedLoad(mask, kTag, softmax + i), scale),
                     mask, kTag, softmax + i);
  }
  if (maximum != nullptr) *maximum = hn::GetLane(max);
  if (log_sum != nullptr) *log_sum = std::log(sum);
}

void SoftmaxRows(const float* x, int64_t begin, int64_t end, int64_t columns,
                 float* softmax, float* maximum, float* log_sum) {
  for (int64_t r = begin; r < end; ++r)
    SoftmaxRow(x + r * columns, columns, softmax + r * columns,
               maximum != nullptr ? maximum + r : nullptr,
               log_sum != nullptr ? log_sum + r : nullptr);
}

// The gradient of softmax, with `kLog` that of its logarithm.
template <bool kLog>
HWY_INLINE void GradRows(const float* y, const float* dy, int64_t begin,
                         int64_t end, int64_t columns, float* dx) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  for (int64_t r = begin; r < end; ++r) {
    const int64_t first = r * columns;
    auto sums = hn::Zero(kTag);
    for (int64_t i = 0; i < columns; i += lanes) {
      const auto mask =
          hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, columns - i)));
      const auto g = hn::MaskedLoad(mask, kTag, dy + first + i);
      if constexpr (kLog)
        sums = hn::Add(g, sums);
      else
        sums = hn::MulAdd(hn::MaskedLoad(mask, kTag, y + first + i), g, sums);
    }
    const auto sum = hn::SumOfLanes(kTag, sums);
    for (int64_t i = 0; i < columns; i += lanes) {
      const auto mask =
          hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, columns - i)));
      const auto v = hn::MaskedLoad(mask, kTag, y + first + i);
      const auto g = hn::MaskedLoad(mask, kTag, dy + first + i);
      const auto result =
          kLog ? hn::NegMulAdd(ExpOf(v), sum, g) : hn::Mul(v, hn::Sub(g, sum));
      hn::BlendedStore(result, mask, kTag, dx + first + i);
    }
  }
}

void SoftmaxGradRows(const float* y, const float* dy, int64_t begin,
                     int64_t end, int64_t columns, float* dx) {
  GradRows<false>(y, dy, begin, end, columns, dx);
}

void LogSoftmaxGradRows(const float* y, const float* dy, int64_t begin,
                        int64_t end, int64_t columns, float* dx) {
  GradRows<true>(y, dy, begin, end, columns, dx);
}

// Parts of so many elements are summed in float32, their sums in double.
constexpr int64_t kLogSumPart = 4096;

// log(sum(exp(x - maximum))). NaN where an element is, and where the maximum is
// infinite; the maximum is NaN for NaN.
HWY_INLINE double LogSumRow(const float* x, int64_t n, float* maximum) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const auto lowest = hn::Set(kTag, -std::numeric_limits<float>::infinity());
  auto best = lowest;
  auto strange = hn::Zero(kTag);  // NaN where an element is
  for (int64_t i = 0; i < n; i += lanes) {
    const auto mask =
        hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, n - i)));
    const auto v = hn::MaskedLoad(mask, kTag, x + i);
    best = hn::Max(best, hn::IfThenElse(mask, v, lowest));
    strange = hn::IfThenElse(hn::IsNaN(v), v, strange);
  }
  const float nan = hn::GetLane(hn::SumOfLanes(kTag, strange));
  const float max = hn::GetLane(hn::MaxOfLanes(kTag, best));
  *maximum = max + nan;
  if (!std::isfinite(*maximum)) return std::numeric_limits<double>::quiet_NaN();
  const auto top = hn::Set(kTag, max);
  double total = 0;
  for (int64_t part = 0; part < n; part += kLogSumPart) {
    const int64_t end = std::min(n, part + kLogSumPart);
    auto sums = hn::Zero(kTag);
    for (int64_t i = part; i < end; i += lanes) {
      const auto mask =
          hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, end - i)));
      const auto e = ExpOf(hn::Sub(hn::MaskedLoad(mask, kTag, x + i), top));
      sums = hn::Add(sums, hn::IfThenElseZero(mask, e));
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(kTag, sums)));
  }
  return std::log(total);
}

void LogSumRows(const float* x, int64_t begin, int64_t end, int64_t columns,
                float* maximum, float* log_sum) {
  for (int64_t r = begin; r < end; ++r)
    log_sum[r] =
        static_cast<float>(LogSumRow(x + r * columns, columns, maximum + r));
}

void LogSumExpRows(const float* x, int64_t begin, int64_t end, int64_t columns,
                   float* out) {
  for (int64_t r = begin; r < end; ++r) {
    float max = 0;
    const double log = LogSumRow(x + r * columns, columns, &max);
    out[r] = std::isfinite(max)
                 ? static_cast<float>(log + static_cast<double>(max))
                 : max;
  }
}

void LogSumExpGradRows(const float* x, const float* out, const float* dout,
                       int64_t begin, int64_t end, int64_t columns, float* dx) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  for (int64_t r = begin; r < end; ++r) {
    const auto less = hn::Set(kTag, out[r]), g = hn::Set(kTag, dout[r]);
    for (int64_t i = 0; i < columns; i += lanes) {
      const auto mask =
          hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, columns - i)));
      const int64_t at = r * columns + i;
      const auto v = hn::MaskedLoad(mask, kTag, x + at);
      hn::BlendedStore(hn::Mul(g, ExpOf(hn::Sub(v, less))), mask, kTag,
                       dx + at);
    }
  }
}

void ScaleSomeRows(const float* from, const float* factor, int64_t begin,
                   int64_t end, int64_t columns, float* to) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(kTag));
  for (int64_t r = begin; r < end; ++r) {
    const auto scale = hn::Set(kTag, factor[r]);
    for (int64_t i = 0; i < columns; i += lanes) {
      const auto mask =
          hn::FirstN(kTag, static_cast<size_t>(std::min(lanes, columns - i)));
      const int64_t at = r * columns + i;
      hn::BlendedStore(hn::Mul(hn::MaskedLoad(mask, kTag, from + at), scale),
                       mask, kTag, to + at);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(SoftmaxRows);
HWY_EXPORT(SoftmaxGradRows);
HWY_EXPORT(LogSoftmaxGradRows);
HWY_EXPORT(LogSumRows);
HWY_EXPORT(LogSumExpRows);
HWY_EXPORT(LogSumExpGradRows);
HWY_EXPORT(ScaleSomeRows);

namespace {

// Rows that make enough work for a thread: an element costs about a cycle.
int64_t RowGrain(int64_t columns) { return 1 + 8192 / (columns + 16); }

}  // namespace

void RowSoftmax(const float* x, int64_t rows, int64_t columns, float* softmax,
                float* maximum, float* log_sum) {
  const auto run = HWY_DYNAMIC_DISPATCH(SoftmaxRows);
  ParallelFor(rows, RowGrain(columns), [&](int64_t begin, int64_t end) {
    run(x, begin, end, columns, softmax, maximum, log_sum);
  });
}

void RowSoftmaxGrad(const float* y, const float* dy, int64_t rows,
                    int64_t columns, float* dx) {
  const auto run = HWY_DYNAMIC_DISPATCH(SoftmaxGradRows);
  ParallelFor(rows, RowGrain(columns), [&](int64_t begin, int64_t end) {
    run(y, dy, begin, end, columns, dx);
  });
}

void RowLogSoftmaxGrad(const float* y, const float* dy, int64_t rows,
                       int64_t columns, float* dx) {
  const auto run = HWY_DYNAMIC_DISPATCH(LogSoftmaxGradRows);
  ParallelFor(rows, RowGrain(columns), [&](int64_t begin, int64_t end) {
    run(y, dy, begin, end, columns, dx);
  });
}

void RowLogSum(const float* x, int64_t rows, int64_t columns, float* maximum,
               float* log_sum) {
  const auto run = HWY_DYNAMIC_DISPATCH(LogSumRows);
  ParallelFor(rows, RowGrain(columns), [&](int64_t begin, int64_t end) {
    run(x, begin, end, columns, maximum, log_sum);
  });
}

void RowLogSumExp(const float* x, int64_t rows, int64_t columns, float* out) {
  const auto run = HWY_DYNAMIC_DISPATCH(LogSumExpRows);
  ParallelFor(rows, RowGrain(columns), [&](int64_t begin, int64_t end) {
    run(x, begin, end, columns, out);
  });
}

void RowLogSumExpGrad(const float* x, const float* out, const float* dout,
                      int64_t rows, int64_t columns, float* dx) {
  const auto run = HWY_DYNAMIC_DISPATCH(LogSumExpGradRows);
  ParallelFor(rows, RowGrain(columns), [&](int64_t begin, int64_t end) {
    run(x, out, dout, begin, end, columns, dx);
  });
}

void RowSoftmaxHere(const float* x, int64_t rows, int64_t columns,
                    float* softmax, float* maximum, float* log_sum) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRows)
  (x, 0, rows, columns, softmax, maximum, log_sum);
}

void RowSoftmaxGradHere(const float* y, const float* dy, int64_t rows,
                        int64_t columns, float* dx) {
  HWY_DYNAMIC_DISPATCH(SoftmaxGradRows)(y, dy, 0, rows, columns, dx);
}

void ScaleRows(const float* from, const float* factor, int64_t rows,
               int64_t columns, float* to) {
  const auto run = HWY_DYNAMIC_DISPATCH(ScaleSomeRows);
  ParallelFor(rows, RowGrain(columns), [&](int64_t begin, int64_t end) {
    run(from, factor, begin, end, columns, to);
  });
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE
