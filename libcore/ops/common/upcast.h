// SPDX-License-Identifier: Apache-2.0
// Kernels for floats applied to halves: inputs are widened to float32 before
// the step, outputs are narrowed (as PaddlePaddle does on CPU, truncate_half.h)
// after it.
#ifndef PD_LIBCORE_OPS_COMMON_UPCAST_H_
#define PD_LIBCORE_OPS_COMMON_UPCAST_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"

namespace pd {

/// One op's tensors while it is bound.
class Upcaster {
 public:
  explicit Upcaster(BindContext* context) : context_(context) {}

  /// The tensor itself (also null); where it holds halves, a float32 tensor
  /// that has its elements when the wrapped step runs.
  Tensor* In(Tensor* tensor) { return Wide(tensor, &inputs_); }
  /// The tensor itself (also null); where it holds halves, a float32 tensor
  /// whose elements it gets after the wrapped step.
  Tensor* Out(Tensor* tensor) { return Wide(tensor, &outputs_); }
  /// The step that widens, runs `step`, and narrows. An error stays one.
  absl::StatusOr<Step> Wrap(absl::StatusOr<Step> step) const;

 private:
  struct Pair {
    Tensor* half;
    std::shared_ptr<Tensor> wide;
    Tensor* scratch;
  };
  Tensor* Wide(Tensor* tensor, std::vector<Pair>* pairs);

  BindContext* context_;
  std::vector<Pair> inputs_, outputs_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_UPCAST_H_
