// SPDX-License-Identifier: Apache-2.0
// The BindContext of a late op, whose shapes are known when it runs. Internal
// to libcore/exec.
#ifndef PD_LIBCORE_EXEC_LATE_BINDER_H_
#define PD_LIBCORE_EXEC_LATE_BINDER_H_

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libcore/exec/late_op.h"
#include "libcore/exec/offer.h"
#include "libcore/ops/common/row_major_binder.h"
#include "libcore/ops/common/upcast.h"

namespace pd {

class LateBinder : public RowMajorBinder {
 public:
  /// Gives a tensor bytes.
  using AllocateFn = std::function<absl::Status(Tensor*)>;

  /// With `upcast` the implementation sees dense float32 tensors in place of
  /// those in fp16 and bf16.
  LateBinder(const OpDesc& op, TensorMap inputs, TensorMap outputs,
             BlockRunner* blocks, bool upcast = false)
      : RowMajorBinder(op),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        blocks_(blocks) {
    if (upcast) upcaster_.emplace(this, Upcaster::Rounding::kNearest);
  }

  /// The step that an implementation has returned, with the copies that it
  /// asked for in place of a step, and the casts around it. For the host.
  absl::StatusOr<Step> Finish(Step step) const;

  void NoBuffer(Tensor* input) override { no_buffer_.push_back(input); }
  Tensor* Scratch(size_t bytes) override {
    return New(DType::kUInt8, {static_cast<int64_t>(bytes)});
  }
  // A late gradient op finds nothing that its forward op has kept, so an
  // implementation that needs it refuses.
  Tensor* Keep(const std::string&, DType dtype, Shape shape) override {
    return New(dtype, std::move(shape));
  }
  BlockRunner* blocks() override { return blocks_; }
  bool IsTraining() const override { return true; }

  /// The step reads the bytes of `input`, not its shape alone.
  bool Reads(const Tensor* input) const;

  /// Allocates the scratch memory that the implementation has asked for.
  absl::Status AllocateScratch(const AllocateFn& allocate);
  /// Frees it again if it is more than `most` bytes in sum.
  void ReleaseScratch(size_t most);

 protected:
  Tensor* FindInput(const std::string& name) const override;
  Tensor* FindOutput(const std::string& name) const override;

 private:
  Tensor* New(DType dtype, Shape shape) {
    scratch_.emplace_back(dtype, std::move(shape));
    return &scratch_.back();
  }
  TensorMap inputs_, outputs_;
  BlockRunner* blocks_;
  // It makes float32 tensors when the implementation asks for one.
  mutable std::optional<Upcaster> upcaster_;
  std::vector<const Tensor*> no_buffer_;
  std::deque<Tensor> scratch_;
};

/// A late op as one of its implementations on the host has bound it.
struct HostBinding {
  std::unique_ptr<LateBinder> binder;
  Step step;                 ///< null: nothing to do
  LateOp::ChoicePtr choice;  ///< never null
};

/// Offers the op to the implementations of the host. An error where none takes
/// it. The tensors outlive the binding; `blocks` may be null.
absl::StatusOr<HostBinding> BindOnHost(const OpDef& def, const OpDesc& op,
                                       const TensorMap& inputs,
                                       const TensorMap& outputs,
                                       BlockRunner* blocks, bool may_upcast);

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_LATE_BINDER_H_
