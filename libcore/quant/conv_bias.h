// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_QUANT_CONV_BIAS_H_
#define PD_LIBCORE_QUANT_CONV_BIAS_H_

#include "libcore/deploy/inference_model.h"

namespace pd {

/// Moves the bias that an elementwise_add brings to a convolution, as a
/// parameter or through a reshape2 of one, into the convolution's slot "Bias":
/// ONNX's operator holds it too. Gives the number moved.
int MoveConvBiases(InferenceModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_QUANT_CONV_BIAS_H_
