// SPDX-License-Identifier: Apache-2.0
// The activations that PaddlePaddle's passes for oneDNN and cuDNN fuse behind
// another op, as parts of a composition.
#ifndef PD_LIBCORE_OPS_FUSED_POST_OPS_H_
#define PD_LIBCORE_OPS_FUSED_POST_OPS_H_

#include <string>

#include "absl/status/statusor.h"
#include "libcore/ops/common/composed.h"

namespace pd {

/// The name of `type`(x), with oneDNN's alpha and beta:
///   "", identity: x             relu, tanh, sigmoid, sqrt, abs, mish, exp,
///   gelu leaky_relu: below 0 alpha x   relu6: x kept inside [0, alpha] clip: x
///   kept inside [alpha, beta]    linear: alpha x + beta swish: x sigmoid(alpha
///   x) hard_sigmoid: alpha x + beta inside [0, 1]; hard_swish: x times that
/// InvalidArgument for another one.
absl::StatusOr<std::string> AddActivation(Composition* parts, std::string x,
                                          const std::string& type, float alpha,
                                          float beta);

/// Adds a part that gives `x` the name of an output.
void WriteTo(Composition* parts, const std::string& x, const std::string& out);

/// x * scale + bias, which is x itself for 1 and 0.
std::string AddScale(Composition* parts, const std::string& x, float scale,
                     float bias = 0);

/// "in" or "out" reshaped, and with axes changed, where the lists say so.
std::string AddReshape(Composition* parts, const std::string& x,
                       const std::vector<int32_t>& shape);
std::string AddTranspose(Composition* parts, const std::string& x,
                         const std::vector<int32_t>& axis);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_FUSED_POST_OPS_H_
