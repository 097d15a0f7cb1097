// SPDX-License-Identifier: Apache-2.0
// Which operators stay in floating point so that a quantized model answers well
// enough: the fewest, beginning with the one whose quantization costs most.
#ifndef PD_LIBCORE_QUANT_FLOAT_SEARCH_H_
#define PD_LIBCORE_QUANT_FLOAT_SEARCH_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/quant/layer_errors.h"
#include "libcore/quant/quantized_model.h"

namespace pd {

struct FloatSearch {
  OpRegistry* registry = nullptr;
  const InferenceModel* model = nullptr;  ///< in float
  Loader* loader = nullptr;  ///< gives the records of MeasureSensitivity
  int64_t batches = 1;       ///< that it takes of them
  BatchProgress progress;    ///< counts operators; may be null
  std::string why;           ///< stands at the operators that are left
  double most = 0;           ///< the cost that is good enough
};

/// The cost of a model with these integers, in which the `left` most sensitive
/// operators are in float: a metric's drop, noise, ... Its errors end the
/// search.
using FloatCost = std::function<absl::StatusOr<double>(
    const Quantization& quantization, size_t left)>;

/// Orders the operators of `quantization` by sensitivity, then leaves as few of
/// them in float as bring the cost to `most`, which is asked O(log n) times.
/// `order` is what was measured. False where no integers would be left; then
/// `quantization` is as it was.
absl::StatusOr<bool> SearchFloatOps(const FloatSearch& search,
                                    const FloatCost& cost,
                                    Quantization* quantization,
                                    std::vector<Sensitivity>* order);

/// The SQNR in dB of the model's least accurate answer, on the first batches of
/// the loader; infinite without noise.
absl::StatusOr<double> LeastAnswerSqnr(OpRegistry* registry,
                                       const InferenceModel& model,
                                       const InferenceModel& quantized,
                                       Loader* loader, int64_t batches);

/// The least of 0 ... `count` whose cost is at most `most`, tried at 0, 1, 2,
/// 4,
/// ... and then between the last two; -1 where that of `count` is above it.
absl::StatusOr<int64_t> FewestWithin(
    size_t count, double most,
    const std::function<absl::StatusOr<double>(size_t left)>& cost);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_FLOAT_SEARCH_H_
