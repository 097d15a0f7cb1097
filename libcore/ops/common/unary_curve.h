// SPDX-License-Identifier: Apache-2.0
// Second and higher gradients of element-wise functions, by ops. The gradient
// op X@GRAD = Out@GRAD * D(v), v being X or Out, has for the cotangent p of
// X@GRAD the gradients
//   Out@GRAD:  p * D(v)                the gradient op again
//   v:         p * Out@GRAD * D'(v)
// A table says for each function how something is multiplied by D', in ops that
// have gradients themselves.
#ifndef PD_LIBCORE_OPS_COMMON_UNARY_CURVE_H_
#define PD_LIBCORE_OPS_COMMON_UNARY_CURVE_H_

#include <string>
#include <vector>

#include "libcore/ops/op_def.h"

namespace pd {

/// The argument of D.
enum class GradReads { kNothing, kX, kOut };

/// Gives `grad`, the gradient op of `type`, a gradient, or says that there is
/// none where the table has no line for it.
void SetUnarySecond(const std::string& type, GradReads reads, OpDef* grad);

/// The same for the op that computes both gradients at once: its slots are v,
/// "grad_x@GRAD" (p) and, unless the function is linear by pieces, `with`,
/// which is Out@GRAD or, with the name "grad_x", X@GRAD; then v's gradient is
/// p * X@GRAD * D'(v) / D(v).
void SetUnaryThird(const std::string& type, GradReads reads,
                   const std::string& with, const std::string& dout,
                   OpDef* second);

/// The gradient of a second gradient op ddOut = ddX * D(v) of a function that
/// is linear by pieces: the gradient op `first` again. `v` and `second_v` are
/// the slots of v in the two ops; the inputs named in `keep` are handed on.
GradMaker LinearThird(std::string first, std::string v, std::string second_v,
                      std::vector<std::string> keep = {});

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_UNARY_CURVE_H_
