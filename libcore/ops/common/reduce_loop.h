// SPDX-License-Identifier: Apache-2.0
// Reductions over any set of axes: of contiguous runs, of columns, and of what
// lies between. Every output element is made by one thread, or, when there is
// only one, from a fixed number of parts, so results do not depend on the
// number of threads.
#ifndef PD_LIBCORE_OPS_COMMON_REDUCE_LOOP_H_
#define PD_LIBCORE_OPS_COMMON_REDUCE_LOOP_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/base/shape.h"
#include "libcore/ops/common/strided_loop.h"

namespace pd {

/// Where the elements of each output of a reduction lie in a contiguous input.
struct ReducePlan {
  StridedLoop<1> kept;     ///< first input element of each output
  StridedLoop<1> reduced;  ///< from there, the elements to reduce
  bool columns = false;    ///< neighbouring outputs read neighbouring inputs
};

/// `reduce[i]`: axis i of `shape` is reduced.
inline ReducePlan MakeReducePlan(const Shape& shape,
                                 const std::vector<bool>& reduce) {
  ReducePlan plan;
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    (reduce[i] ? plan.reduced : plan.kept).Add(shape[i], {strides[i]});
    if (shape[i] != 1) plan.columns = !reduce[i];
  }
  return plan;
}

// A Reducer has: type Acc, Acc Identity(), Acc Load(T), W Combine(W, W) for W
// = Acc and Wide<Acc>. It may have Acc Part(const T*, int64_t) for contiguous
// elements. Long sums of float add up parts of this many elements in double.
inline constexpr int64_t kReducePart = 512;

template <typename Acc>
using Wide = std::conditional_t<std::is_same_v<Acc, float>, double, Acc>;

template <typename Reducer, typename T, typename = void>
inline constexpr bool kHasPart = false;
template <typename Reducer, typename T>
inline constexpr bool
    kHasPart<Reducer, T,
             std::void_t<decltype(std::declval<const Reducer&>().Part(
                 std::declval<const T*>(), int64_t{}))>> = true;

/// The reduction of n contiguous elements, at most kReducePart.
template <typename T, typename Reducer>
typename Reducer::Acc ReducePart(const T* in, int64_t n, const Reducer& r) {
  using Acc = typename Reducer::Acc;
  if constexpr (kHasPart<Reducer, T>) return r.Part(in, n);
  // More than two vectors of them would not stay in registers.
  constexpr int kLanes = std::is_arithmetic_v<Acc> && sizeof(Acc) == 8 ? 8 : 16;
  Acc lane[kLanes];
  for (int l = 0; l < kLanes; ++l) lane[l] = r.Identity();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int l = 0; l < kLanes; ++l)
      lane[l] = r.Combine(lane[l], r.Load(in[i + l]));
  }
  for (; i < n; ++i) lane[0] = r.Combine(lane[0], r.Load(in[i]));
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] = r.Combine(lane[l], lane[l + half]);
  return lane[0];
}

/// Elements [begin, end) of the reduced ones of one output.
template <typename T, typename Reducer>
Wide<typename Reducer::Acc> ReduceOne(const ReducePlan& plan, const T* in,
                                      int64_t begin, int64_t end,
                                      const Reducer& r) {
  using Acc = typename Reducer::Acc;
  Wide<Acc> total = r.Identity();
  const int64_t stride = plan.reduced.row_strides()[0];
  plan.reduced.ForParts(begin, end, [&](const auto& at, int64_t count) {
    const T* part = in + at[0];
    if (stride == 1) {
      for (int64_t i = 0; i < count; i += kReducePart)
        total = r.Combine(
            total, Wide<Acc>(ReducePart(part + i,
                                        std::min(kReducePart, count - i), r)));
    } else {
      for (int64_t i = 0; i < count; ++i)
        total = r.Combine(total, Wide<Acc>(r.Load(part[i * stride])));
    }
  });
  return total;
}

/// `count` neighbouring outputs, at most kReducePart.
template <typename T, typename Reducer, typename Write>
void ReduceColumns(const ReducePlan& plan, const T* in, int64_t count,
                   const Reducer& r, const Write& write) {
  using Acc = typename Reducer::Acc;
  Acc sum[kReducePart];
  Wide<Acc> total[kReducePart];
  std::fill_n(sum, count, r.Identity());
  std::fill_n(total, count, r.Identity());
  int64_t rows = 0;
  const int64_t stride = plan.reduced.row_strides()[0];
  const auto flush = [&] {
    for (int64_t j = 0; j < count; ++j)
      total[j] = r.Combine(total[j], Wide<Acc>(sum[j]));
    std::fill_n(sum, count, r.Identity());
    rows = 0;
  };
  plan.reduced.ForParts(0, plan.reduced.size(),
                        [&](const auto& at, int64_t part) {
                          for (int64_t i = 0; i < part; ++i) {
                            const T* row = in + at[0] + i * stride;
#pragma omp simd
                            for (int64_t j = 0; j < count; ++j)
                              sum[j] = r.Combine(sum[j], r.Load(row[j]));
                            if (++rows == kReducePart) flush();
                          }
                        });
  flush();
  for (int64_t j = 0; j < count; ++j) write(j, total[j]);
}

/// Calls `write(output element, total)` for every output. `total` is a
/// Wide<Acc>.
template <typename T, typename Reducer, typename Write>
void Reduce(const ReducePlan& plan, const T* in, const Reducer& r,
            const Write& write) {
  const int64_t outputs = plan.kept.size(), each = plan.reduced.size();
  if (outputs == 1) {
    constexpr int64_t kParts = 64;
    Wide<typename Reducer::Acc> parts[kParts];
    ParallelFor(kParts,
                std::max<int64_t>(1, kParts * kElementGrain / (each + 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i)
                    parts[i] = ReduceOne(plan, in, each * i / kParts,
                                         each * (i + 1) / kParts, r);
                });
    for (int64_t i = 1; i < kParts; ++i)
      parts[0] = r.Combine(parts[0], parts[i]);
    write(int64_t{0}, parts[0]);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kElementGrain / (each + 1));
  const int64_t stride = plan.kept.row_strides()[0];
  ParallelFor(outputs, grain, [&](int64_t begin, int64_t end) {
    int64_t out = begin;
    plan.kept.ForParts(begin, end, [&](const auto& at, int64_t count) {
      if (plan.columns) {
        for (int64_t j = 0; j < count; j += kReducePart)
          ReduceColumns(plan, in + at[0] + j, std::min(kReducePart, count - j),
                        r, [&](int64_t k, auto v) { write(out + j + k, v); });
      } else {
        for (int64_t j = 0; j < count; ++j)
          write(out + j, ReduceOne(plan, in + at[0] + j * stride, 0, each, r));
      }
      out += count;
    });
  });
}

/// Adds.
template <typename T, typename A = T>
struct SumReducer {
  using Acc = A;
  A Identity() const { return A(0); }
  A Load(T v) const { return static_cast<A>(v); }
  template <typename W>
  W Combine(W a, W b) const {
    return a + b;
  }
};

/// Adds squares.
template <typename T>
struct SquareReducer {
  using Acc = T;
  T Identity() const { return T(0); }
  T Load(T v) const { return v * v; }
  template <typename W>
  W Combine(W a, W b) const {
    return a + b;
  }
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_REDUCE_LOOP_H_
