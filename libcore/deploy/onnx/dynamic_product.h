// SPDX-License-Identifier: Apache-2.0
// Products that pd-quant --dynamic has marked, of an activation and an 8-bit
// weight behind a dequantize_linear:
//   DynamicQuantizeLinear, MatMulInteger, Cast, Mul by both scales
// ONNX has one scale and zero point for all of the activation, not one for each
// row as we do.
#ifndef PD_LIBCORE_DEPLOY_ONNX_DYNAMIC_PRODUCT_H_
#define PD_LIBCORE_DEPLOY_ONNX_DYNAMIC_PRODUCT_H_

#include "libcore/deploy/onnx/op.h"

namespace pd {

/// Writes the nodes of such a product; false for an op that multiplies floating
/// point.
bool GiveDynamicProduct(OnnxOp* op);

/// Whether such products alone read what the dequantize_linear op makes.
bool IsForDynamicProducts(const OnnxOp& op);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_DYNAMIC_PRODUCT_H_
