// SPDX-License-Identifier: Apache-2.0
// Constant weights in another form, made once for all plans over one scope: a
// predictor and its clones, and each shape of the inputs.
#ifndef PD_LIBCORE_KERNELS_CPU_KEPT_WEIGHTS_H_
#define PD_LIBCORE_KERNELS_CPU_KEPT_WEIGHTS_H_

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "libcore/tensor/tensor.h"

namespace pd {
namespace cpu {

using KeptWeights = std::shared_ptr<const std::vector<float>>;

/// The form number `form` of `weights`, which BindContext::IsFrozen says do not
/// change: the one that another step holds, else what `make` gives. It lives as
/// long as a step holds it; a plan does not outlive its weights.
absl::StatusOr<KeptWeights> KeepWeights(
    const Tensor* weights, int form,
    absl::FunctionRef<absl::StatusOr<KeptWeights>()> make);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_KEPT_WEIGHTS_H_
