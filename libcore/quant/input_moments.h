// SPDX-License-Identifier: Apache-2.0
// The inputs of a weight, as far as squared errors need them: with x the
// inputs of one output and e the errors of a row of weights, the output's
// squared error is on average e C e^T, C the mean of x^T x. C is small; the
// inputs are not kept.
#ifndef PD_LIBCORE_QUANT_INPUT_MOMENTS_H_
#define PD_LIBCORE_QUANT_INPUT_MOMENTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/quant/observe.h"
#include "libcore/quant/plan.h"

namespace pd {

/// A weight as rows, one for each output: `groups` times `outputs` of `size`
/// inputs each.
struct WeightRows {
  int64_t groups = 1, outputs = 0, size = 0;
  bool columns = false;  ///< it lies as [size, outputs]

  /// Where element `k` of row `o` of group `g` lies.
  size_t At(int64_t g, int64_t o, int64_t k) const {
    return static_cast<size_t>(columns ? k * outputs + o
                                       : (g * outputs + o) * size + k);
  }
};

struct InputMoments {
  WeightRows rows;
  int64_t count = 0;        ///< of inputs that were added up
  std::vector<float> sums;  ///< [groups][size][size]
};

/// By weight, over all ops of the plan that read it. Of each batch up to 2048
/// evenly spread outputs of an op are looked at. Filters of transposed
/// convolutions, weights that stand on the left and those with more than
/// kMostInputs inputs a row are missing.
inline constexpr int64_t kMostInputs = 8192;
absl::StatusOr<std::map<std::string, InputMoments>> MeasureInputMoments(
    OpRegistry* registry, const InferenceModel& model, const QuantPlan& plan,
    Loader* loader, int64_t most_batches, const BatchProgress& progress);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_INPUT_MOMENTS_H_
