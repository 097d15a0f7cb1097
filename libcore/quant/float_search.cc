// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/float_search.h"

#include <algorithm>
#include <limits>

#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<int64_t> FewestWithin(
    size_t count, double most,
    const std::function<absl::StatusOr<double>(size_t left)>& cost) {
  size_t good = 0, bad = 0;
  for (size_t left = 0;;
       left = std::min(std::max<size_t>(1, 2 * left), count)) {
    PD_ASSIGN_OR_RETURN(const double c, cost(left));
    if (c <= most) {
      good = left;
      break;
    }
    if (left == count) return -1;
    bad = left;
  }
  while (good > bad + 1) {
    const size_t middle = (good + bad) / 2;
    PD_ASSIGN_OR_RETURN(const double c, cost(middle));
    (c <= most ? good : bad) = middle;
  }
  return static_cast<int64_t>(good);
}

absl::StatusOr<bool> SearchFloatOps(const FloatSearch& search,
                                    const FloatCost& cost,
                                    Quantization* quantization,
                                    std::vector<Sensitivity>* order) {
  PD_ASSIGN_OR_RETURN(
      *order,
      MeasureSensitivity(search.registry, *search.model, *quantization,
                         search.loader, search.batches, search.progress));
  const auto leave = [&](size_t count) {
    Quantization rest = *quantization;
    for (size_t i = 0; i < count; ++i)
      LeaveInFloat(*search.model, (*order)[i].output, search.why, &rest.plan);
    return rest;
  };
  PD_ASSIGN_OR_RETURN(const int64_t left,
                      FewestWithin(order->size(), search.most, [&](size_t n) {
                        return cost(leave(n), n);
                      }));
  if (left < 0 || static_cast<size_t>(left) == order->size()) return false;
  *quantization = leave(static_cast<size_t>(left));
  return true;
}

absl::StatusOr<double> LeastAnswerSqnr(OpRegistry* registry,
                                       const InferenceModel& model,
                                       const InferenceModel& quantized,
                                       Loader* loader, int64_t batches) {
  PD_ASSIGN_OR_RETURN(
      const auto errors,
      CompareModels(registry, model, quantized, model.names.fetches, loader,
                    batches, nullptr));
  double least = std::numeric_limits<double>::infinity();
  for (const ValueError& e : errors) least = std::min(least, e.Sqnr());
  return least;
}

}  // namespace pd
