// SPDX-License-Identifier: Apache-2.0
// Dynamic quantization: 8-bit weights of linear and recurrent layers, in a form
// that PaddlePaddle runs in floating point and the pass int8_dynamic makes
// integer products of.
#ifndef PD_LIBCORE_QUANT_DYNAMIC_H_
#define PD_LIBCORE_QUANT_DYNAMIC_H_

#include "absl/status/status.h"
#include "libcore/quant/quantized_model.h"

namespace pd {

/// Plans products by a weight matrix, and rnn ops, and rounds their weights.
/// Errors: those of PlanQuantization and QuantizeWeight; FailedPrecondition
/// where there is no such layer.
absl::Status PlanDynamic(const InferenceModel& model, const SkipList& skips,
                         const WeightOptions& options, Quantization* q);

/// The weights of the plan behind dequantize_linear ops, their readers marked
/// with quantization_type "dynamic".
InferenceModel WithDynamic(const InferenceModel& model, const Quantization& q);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_DYNAMIC_H_
