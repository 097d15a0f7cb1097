// SPDX-License-Identifier: Apache-2.0
// Statistics of the values of an array, in one pass over its bytes where they
// lie (a mapped file is read once and never copied).
#ifndef PD_LIBCORE_TENSOR_TENSOR_STATS_H_
#define PD_LIBCORE_TENSOR_TENSOR_STATS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "libcore/ir/array.h"

namespace pd {

/// An element: integers and bools stay exact.
using Number = std::variant<int64_t, double>;

struct TensorStats {
  int64_t nan = 0;     ///< elements that are NaN; complex: in either part
  int64_t inf = 0;     ///< infinite elements that are not NaN
  int64_t finite = 0;  ///< the others
  /// Over the finite elements; nothing when there are none, and for complex
  /// arrays, which have no order.
  std::optional<Number> min, max;
  std::optional<double> mean;  ///< summed in double
};

/// The result does not depend on the number of threads. The elements may lie at
/// any address.
TensorStats StatsOf(const Array& array);

/// StatsOf an array that comes in blocks: with blocks of kStatsBlock elements
/// (the last one shorter) the same bits.
class StatsBuilder {
 public:
  /// Of an array of `elements` elements in all.
  StatsBuilder(DType dtype, int64_t elements);
  ~StatsBuilder();
  /// The next elements, of the dtype, at any address.
  void Add(const Array& block);
  TensorStats Finish() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

inline constexpr int64_t kStatsBlock = int64_t{1} << 20;

}  // namespace pd

#endif  // PD_LIBCORE_TENSOR_TENSOR_STATS_H_
