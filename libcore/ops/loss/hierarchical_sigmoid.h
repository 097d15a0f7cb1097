// SPDX-License-Identifier: Apache-2.0
// Inputs of hierarchical_sigmoid and its gradient (hierarchical_sigmoid.cc),
// read for every kernel.
#ifndef PD_LIBCORE_OPS_LOSS_HIERARCHICAL_SIGMOID_H_
#define PD_LIBCORE_OPS_LOSS_HIERARCHICAL_SIGMOID_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// The default tree of `classes`, or where there is a table a path of at most
/// `depth` nodes for each sample.
struct HsigmoidTree {
  Tensor *label = nullptr, *table = nullptr, *code = nullptr;
  int64_t classes = 0, nodes = 0, depth = 0;
};

/// InvalidArgument for inputs that do not fit.
absl::StatusOr<HsigmoidTree> ReadHsigmoidTree(const BindContext& context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LOSS_HIERARCHICAL_SIGMOID_H_
