// SPDX-License-Identifier: Apache-2.0
// Roundings of weights that are learned, layer by layer (AdaRound: Nagel,
// Amjad, van Baalen, Louizos, Blankevoort, "Up or Down? Adaptive Rounding for
// Post-Training Quantization", ICML 2020). Each weight goes to the integer
// below or above it so that what the layer gives changes least, which is not
// the nearest one: errors of weights whose inputs go together may cancel.
#ifndef PD_LIBCORE_QUANT_ADAROUND_H_
#define PD_LIBCORE_QUANT_ADAROUND_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/quant/input_moments.h"
#include "libcore/quant/quantized_model.h"

namespace pd {

/// The mean squared error of what a layer gives, over the calibration set,
/// with the weight in integers and its input in float.
struct RoundingGain {
  std::string weight;
  double nearest = 0, learned = 0;
};

/// Chooses the integers of `q` anew, between the same scales, from `w` and what
/// it is multiplied by. A sigmoid for each weight moves between both integers
/// and is pressed towards them, as in the paper; its loss here is that of the
/// whole calibration set. Then single weights are turned over as long as that
/// helps. No output gets a greater error than with the nearest integers.
RoundingGain LearnRounding(const Array& w, const InputMoments& moments,
                           QuantizedWeight* q);

/// The same for every weight of the plan; those that MeasureInputMoments does
/// not know keep the nearest integers and are missing in the result, which is
/// in the order of the plan. `progress` counts weights.
absl::StatusOr<std::vector<RoundingGain>> LearnRoundings(
    OpRegistry* registry, const InferenceModel& model, Loader* loader,
    int64_t most_batches, const BatchProgress& progress,
    Quantization* quantization);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_ADAROUND_H_
