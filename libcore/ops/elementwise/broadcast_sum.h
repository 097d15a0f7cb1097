// SPDX-License-Identifier: Apache-2.0
// The way back of a broadcast: a gradient of the result's shape is summed over
// what an operand was repeated along.
#ifndef PD_LIBCORE_OPS_ELEMENTWISE_BROADCAST_SUM_H_
#define PD_LIBCORE_OPS_ELEMENTWISE_BROADCAST_SUM_H_

#include <vector>

#include "libcore/ops/bind_context.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/reduce_loop.h"

namespace pd {

/// The step that sums `from`, of extents `full`, to `to`, of extents `part`
/// (ones where it was broadcast), with the sign.
template <typename T>
Step BroadcastSumStep(const Shape& full, const Shape& part, Tensor* from,
                      Tensor* to, bool negative = false) {
  std::vector<bool> reduce(full.size());
  for (size_t i = 0; i < full.size(); ++i)
    reduce[i] = part[i] == 1 && full[i] != 1;
  return [plan = MakeReducePlan(full, reduce), from, to,
          negative](const RunContext&) {
    T* result = to->data<T>();
    Reduce(plan, from->data<T>(), SumReducer<T, Computed<T>>(),
           [&](int64_t i, auto total) {
             result[i] = Stored<T>(negative ? -total : total);
           });
    return absl::OkStatus();
  };
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_ELEMENTWISE_BROADCAST_SUM_H_
