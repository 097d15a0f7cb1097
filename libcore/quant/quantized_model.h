// SPDX-License-Identifier: Apache-2.0
// Writes quantization into a model's program, in PaddlePaddle's three forms.
#ifndef PD_LIBCORE_QUANT_QUANTIZED_MODEL_H_
#define PD_LIBCORE_QUANT_QUANTIZED_MODEL_H_

#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "libcore/deploy/inference_model.h"
#include "libcore/quant/plan.h"
#include "libcore/quant/weights.h"

namespace pd {

/// Everything that the writers need.
struct Quantization {
  QuantPlan plan;
  std::map<std::string, QuantizedWeight> weights;  ///< of plan.ops
  std::map<std::string, double> thresholds;        ///< of activations
  std::string algorithm;                           ///< as in "post_kl"
  /// Least and greatest value, where integers shall lie between them and not
  /// around zero: for ONNX alone, PaddlePaddle has no zero points.
  std::map<std::string, std::pair<float, float>> ends;
};

/// The form that PaddlePaddle calls onnx_format: weights are int8, each behind
/// a dequantize_linear; an activation that an op of the plan reads goes through
/// quantize_linear and dequantize_linear, and the other outputs with a
/// threshold through a pair that only records it (only_observer).
/// `observers` false: those pairs quantize as well, as ONNX knows no others.
InferenceModel WithQuantizeLinear(const InferenceModel& model,
                                  const Quantization& quantization,
                                  bool observers = true);

/// The older form: an op of the plan multiplies integers, held in float32, of
/// fake_quantize_moving_average_abs_max by those of its weight, and
/// fake_channel_wise_dequantize_max_abs (fake_dequantize_max_abs for a weight
/// with one scale) brings the result back. Products of two activations read
/// fake_quantize_dequantize_moving_average_abs_max. Ops have `out_threshold`.
InferenceModel WithFakeQuantize(const InferenceModel& model,
                                const Quantization& quantization);

/// The form of libcore/deploy/weight_scales.h. `quantization` is of weights
/// alone, and of a plan that KeepWeightScaleOps has seen.
InferenceModel WithWeightScales(const InferenceModel& model,
                                const Quantization& quantization);

/// Leaves in float what that form has no place for: it knows conv2d,
/// depthwise_conv2d and mul, which linear layers become.
void KeepWeightScaleOps(const InferenceModel& model, QuantPlan* plan);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_QUANTIZED_MODEL_H_
