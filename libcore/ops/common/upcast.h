// SPDX-License-Identifier: Apache-2.0
// Kernels for floats applied to fp16 and bf16: inputs are upcast to float32
// before the step, its outputs are cast back after it.
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
  enum class Rounding {
    kOfTheOp,  ///< as PaddlePaddle's kernels on CPUs store it: they cut off
               ///< (truncate_half.h), oneDNN's (attribute use_mkldnn) round
    kNearest,  ///< to the nearest value
  };
  explicit Upcaster(BindContext* context,
                    Rounding rounding = Rounding::kOfTheOp)
      : context_(context), rounding_(rounding) {}

  /// The tensor itself (also null); of fp16 or bf16, a float32 tensor that has
  /// its elements when the wrapped step runs.
  Tensor* In(Tensor* tensor) { return Wide(tensor, &inputs_); }
  /// The tensor itself (also null); of fp16 or bf16, a float32 tensor whose
  /// elements it gets after the wrapped step, with the shape and the LoD that
  /// the step has given that.
  Tensor* Out(Tensor* tensor) { return Wide(tensor, &outputs_); }
  /// The step that upcasts, runs `step`, and casts back. An error stays one.
  absl::StatusOr<Step> Wrap(absl::StatusOr<Step> step) const;

 private:
  struct Pair {
    Tensor* half;
    std::shared_ptr<Tensor> wide;
    Tensor* scratch;
  };
  Tensor* Wide(Tensor* tensor, std::vector<Pair>* pairs);

  BindContext* context_;
  Rounding rounding_;
  std::vector<Pair> inputs_, outputs_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_COMMON_UPCAST_H_
