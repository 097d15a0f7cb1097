// SPDX-License-Identifier: Apache-2.0
#ifndef PD_LIBCORE_DEPLOY_ONNX_QUANTIZED_BIAS_H_
#define PD_LIBCORE_DEPLOY_ONNX_QUANTIZED_BIAS_H_

#include <string>

#include "libcore/deploy/onnx/op.h"

namespace pd {

/// The value of a convolution's slot "Bias", "" when it has none: int32 in
/// steps of input times filter where both are dequantized, which runtimes need
/// to convolve integers.
std::string QuantizedBias(OnnxOp* op);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_QUANTIZED_BIAS_H_
