// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_DEPLOY_ONNX_CONV_BIAS_H_
#define PD_LIBCORE_DEPLOY_ONNX_CONV_BIAS_H_

#include "libcore/deploy/inference_model.h"

namespace pd {

/// Moves the bias that an elementwise_add brings to a convolution, as a
/// parameter or through a reshape2 of one, into the convolution's slot "Bias":
/// ONNX's operator holds it too, so that the bias keeps its name and shape.
/// Attributes must have been filled in. What is no longer needed becomes an
/// operator without a type: the others keep their numbers, which messages name.
void MoveConvBiases(InferenceModel* model);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_CONV_BIAS_H_
