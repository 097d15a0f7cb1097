// SPDX-License-Identifier: Apache-2.0
// Operators that cannot be layers of a job. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_OP_REFUSALS_H_
#define PD_LIBCORE_NN_LAYERS_OP_REFUSALS_H_

#include <string>

#include "libcore/ops/registry.h"

namespace pd {

/// The reason why an operator of this type cannot be a layer, as the second
/// half of a sentence ("runs blocks of a program; ..."); "" where it can. Types
/// that no registry holds (feed, save) have their reasons as well.
std::string ReasonAgainstLayer(const std::string& type,
                               const OpRegistry& registry);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_OP_REFUSALS_H_
