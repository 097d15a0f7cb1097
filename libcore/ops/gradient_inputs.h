// SPDX-License-Identifier: Apache-2.0
// Loops of gradient kernels trust extents and attributes that the inference of
// the forward op has looked at. In a program out of a file nothing says that
// the gradient op's are the same, so the forward op's inference is asked again.
#ifndef PD_LIBCORE_OPS_GRADIENT_INPUTS_H_
#define PD_LIBCORE_OPS_GRADIENT_INPUTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "libcore/ops/registry.h"

namespace pd {

/// The op whose gradient `type` is ("relu" of "relu_grad"), or null.
const OpDef* ForwardOf(const OpRegistry& registry, const std::string& type);

/// Infers `forward` from the inputs and attributes of its gradient op `grad`,
/// which is normalized. InvalidArgument where that fails, and where `grad`
/// reads an output, or an output's gradient, of another shape than was
/// inferred. OK where `grad` lacks an input that the inference needs. `find` is
/// that of InferContext.
absl::Status CheckGradientInputs(
    const OpDef& forward, const OpDef& def, const OpDesc& grad, int64_t version,
    const std::function<const TensorMeta*(const std::string&)>& find);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_GRADIENT_INPUTS_H_
