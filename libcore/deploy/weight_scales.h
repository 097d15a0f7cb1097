// SPDX-License-Identifier: Apache-2.0
// The form of PaddlePaddle's WeightQuantization, which Paddle Lite reads:
// weights are int8 or int16, declared as float32, and the ops that read them
// have `quantize_weight_bits` and `<weight>_quant_scale`, how much one step is.
// PaddlePaddle loads such a model and has nothing that runs it. It is written
// by WithWeightScales (libcore/quant/quantized_model.h).
#ifndef PD_LIBCORE_DEPLOY_WEIGHT_SCALES_H_
#define PD_LIBCORE_DEPLOY_WEIGHT_SCALES_H_

#include <string>

#include "absl/status/status.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

inline constexpr char kWeightBitsAttr[] = "quantize_weight_bits";

/// The attribute with the steps of `weight`.
std::string WeightStepsAttr(const std::string& weight);

/// The axis along which the op's weight may have a step for each index; -1:
/// the form defines none.
int WeightStepsAxis(const OpDesc& op);

/// Puts the ops that give such weights back in float32 before their readers,
/// and takes the attributes away. Other programs stay as they are.
/// InvalidArgument for steps that do not fit the weight, Unimplemented for
/// several steps of an op without an axis.
absl::Status ReadWeightScales(ProgramDesc* program, NamedArrays* params);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_WEIGHT_SCALES_H_
