// SPDX-License-Identifier: Apache-2.0
// Gradients of the gradient ops of elementwise_add, sub, mul and div
// (elementwise_second.cc), and of max, min, fmax, fmin and pow, which no op of
// PaddlePaddle's computes (elementwise_formulas.cc).
#ifndef PD_LIBCORE_OPS_ELEMENTWISE_ELEMENTWISE_SECOND_H_
#define PD_LIBCORE_OPS_ELEMENTWISE_ELEMENTWISE_SECOND_H_

#include "libcore/ops/op_def.h"

namespace pd {

/// The gradient maker of ops like "elementwise_add_grad": it makes
/// "elementwise_add_grad_grad" and so on.
GradMaker ElementwiseSecondMaker();

/// Of "elementwise_max_grad" and its kind, which pick one operand.
GradMaker PickedSecondMaker();
/// Of "elementwise_pow_grad".
GradMaker PowSecondMaker();

}  // namespace pd

#endif  // PD_LIBCORE_OPS_ELEMENTWISE_ELEMENTWISE_SECOND_H_
