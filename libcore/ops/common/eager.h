// SPDX-License-Identifier: Apache-2.0
// Operators that are computed at once, inside of the step of another: for ops
// whose values have sizes that are known only as they run.
#ifndef PD_LIBCORE_OPS_COMMON_EAGER_H_
#define PD_LIBCORE_OPS_COMMON_EAGER_H_

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ops/bind_context.h"

namespace pd {

class Eager {
 public:
  /// The inputs by slot; one that is null is left out.
  using Inputs = std::vector<std::pair<std::string, Tensor*>>;
  using Attrs = std::map<std::string, Attribute>;

  /// `run` is what the step got.
  explicit Eager(const RunContext& run) : run_(run) {}

  /// The output `slot` of an operator, computed by its reference kernel. The
  /// errors are those of its schema, inference and step.
  absl::StatusOr<Tensor> Run(absl::string_view type, const Inputs& inputs,
                             Attrs attrs = {},
                             absl::string_view slot = "Out") const;
  /// Several outputs of one, in the order of `slots`.
  absl::StatusOr<std::vector<Tensor>> RunAll(
      absl::string_view type, const Inputs& inputs, Attrs attrs,
      const std::vector<std::string>& slots) const;
  /// The gradients of the inputs `wanted` of an operator that has computed
  /// `outputs`, for that of its output `slot`.
  absl::StatusOr<std::vector<Tensor>> Gradients(
      absl::string_view type, const Inputs& inputs, Attrs attrs,
      const Inputs& outputs, absl::string_view slot, Tensor* out_grad,
      const std::vector<std::string>& wanted) const;

 private:
  using Values = std::map<std::string, Tensor*>;
  absl::Status RunOp(OpDesc op, Values* values, std::deque<Tensor>* made) const;

  const RunContext& run_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_EAGER_H_
