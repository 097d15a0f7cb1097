// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/elementwise/broadcast_sum.h"

#include <complex>
#include <utility>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/computed.h"
#include "libcore/ops/common/in_order.h"
#include "libcore/ops/common/reduce_loop.h"

namespace pd {

absl::StatusOr<Step> BroadcastSumStep(const Shape& full, const Shape& part,
                                      Tensor* from, Tensor* to, bool negative) {
  std::vector<bool> reduce(full.size());
  for (size_t i = 0; i < full.size(); ++i)
    reduce[i] = part[i] == 1 && full[i] != 1;
  return DispatchTypes<float, double, int32_t, int64_t, Float16, BFloat16,
                       std::complex<float>, std::complex<double>>(
      to->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([plan = MakeReducePlan(full, reduce), from, to,
                     negative](const RunContext&) {
          T* result = to->data<T>();
          Reduce(plan, static_cast<const T*>(from->raw()),
                 SumReducer<T, Computed<T>>(), [&](int64_t i, auto total) {
                   result[i] = Stored<T>(negative ? -total : total);
                 });
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> SummedStep(
    BindContext* context, const Shape& full, const Shape& part, Tensor* to,
    absl::FunctionRef<Step(Tensor* whole)> compute) {
  if (part == full) return compute(to);
  Tensor* whole = context->Scratch(SizeOf(to->dtype()) *
                                   static_cast<size_t>(NumElements(full)));
  PD_ASSIGN_OR_RETURN(Step sum, BroadcastSumStep(full, part, whole, to));
  return InOrder({compute(whole), std::move(sum)});
}

}  // namespace pd
