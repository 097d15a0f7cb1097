// SPDX-License-Identifier: Apache-2.0
// From a network that was trained with fake-quantize ops (quant { } of a job)
// to a model of integers.
#ifndef PD_LIBCORE_QUANT_AWARE_H_
#define PD_LIBCORE_QUANT_AWARE_H_

#include <string>

#include "absl/status/statusor.h"
#include "libcore/quant/quantized_model.h"

namespace pd {

/// True where weights go through quantize_dequantize ops, as in training.
bool SimulatesQuantization(const ProgramDesc& program);

/// The quantization that such a program has learned.
struct LearnedQuantization {
  InferenceModel model;  ///< without the fake-quantize ops
  Quantization quantization;
  /// Why it cannot be written with integers; "" when it can.
  std::string only_simulated;
};

/// Takes the test program apart: products whose weight and activation were
/// quantized become the plan, with the scales of training; outputs of other
/// layers have the thresholds that were recorded. With `fold`, batch norms are
/// folded into convolutions, which changes no integer where channels have their
/// own scales. Errors: those of Freeze; FailedPrecondition for a scale that is
/// no positive number.
absl::StatusOr<LearnedQuantization> LearnQuantization(
    const ProgramDesc& program, const FeedFetch& names,
    const NamedArrays& params, bool fold);

/// For ONNX Runtime, which computes with integers only where rounding follows
/// at once: what a quantized activation was made of by a maximum, or by moving
/// values, has its threshold too, where nobody else reads it; and what a relu
/// gives lies between 0 and the threshold, in steps half as long.
void RoundBeforeMoves(const InferenceModel& model, Quantization* q);

/// The inference part with its fake-quantize ops, computed in float32: what
/// PaddlePaddle's ImperativeQuantAware saves.
absl::StatusOr<InferenceModel> FreezeSimulated(const ProgramDesc& program,
                                               const FeedFetch& names,
                                               const NamedArrays& params);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_AWARE_H_
