// SPDX-License-Identifier: Apache-2.0
// Binds a late op, whose tensors are all there. Internal to libcore/exec.
#ifndef PD_LIBCORE_EXEC_LATE_BINDER_H_
#define PD_LIBCORE_EXEC_LATE_BINDER_H_

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libcore/ops/bind_context.h"

namespace pd {

class LateBinder : public BindContext {
 public:
  using Tensors = std::map<std::string, Tensor*>;
  /// Gives a tensor bytes.
  using AllocateFn = std::function<absl::Status(Tensor*)>;

  LateBinder(const OpDesc& op, const Tensors& inputs, const Tensors& outputs,
             BlockRunner* blocks, AllocateFn allocate)
      : BindContext(op),
        inputs_(inputs),
        outputs_(outputs),
        blocks_(blocks),
        allocate_(std::move(allocate)) {}

  void Alias(Tensor* in, Tensor* out) override {
    aliases_.emplace_back(in, out);
  }
  void MayShare(Tensor*, Tensor*) override {}
  void NoBuffer(Tensor* input) override { no_buffer_.push_back(input); }
  Tensor* Scratch(size_t bytes) override {
    return NewTensor(DType::kUInt8, {static_cast<int64_t>(bytes)});
  }
  // Values that a forward op keeps for its gradient are lost: the gradient's
  // other implementations do without.
  Tensor* Keep(const std::string&, DType dtype, Shape shape) override {
    return NewTensor(dtype, std::move(shape));
  }
  Tensor* Kept(const std::string&) override { return nullptr; }
  BlockRunner* blocks() override { return blocks_; }
  absl::StatusOr<Tensor*> In(Tensor* tensor, const LayoutPtr& layout) override {
    return RowMajorOnly(tensor, layout);
  }
  absl::StatusOr<Tensor*> Out(Tensor* tensor,
                              const LayoutPtr& layout) override {
    return RowMajorOnly(tensor, layout);
  }
  LayoutPtr LayoutOf(const std::string&) const override { return nullptr; }
  bool IsConstant(const Tensor*) const override { return false; }
  bool IsFrozen(const Tensor*) const override { return false; }
  bool IsTraining() const override { return true; }

  /// Pairs of tensors that take the place of a step: the second is to become
  /// the bytes of the first.
  const std::vector<std::pair<Tensor*, Tensor*>>& aliases() const {
    return aliases_;
  }
  /// The step reads its bytes.
  bool Reads(const Tensor* input) const {
    return std::find(no_buffer_.begin(), no_buffer_.end(), input) ==
           no_buffer_.end();
  }
  /// Of the bytes that were asked for.
  const absl::Status& status() const { return status_; }

 protected:
  Tensor* FindInput(const std::string& name) const override {
    const auto it = inputs_.find(name);
    return it == inputs_.end() ? nullptr : it->second;
  }
  Tensor* FindOutput(const std::string& name) const override {
    const auto it = outputs_.find(name);
    return it == outputs_.end() ? nullptr : it->second;
  }

 private:
  Tensor* NewTensor(DType dtype, Shape shape) {
    made_.emplace_back(dtype, std::move(shape));
    status_.Update(allocate_(&made_.back()));
    return &made_.back();
  }
  static absl::StatusOr<Tensor*> RowMajorOnly(Tensor* tensor,
                                              const LayoutPtr& layout) {
    if (layout == nullptr) return tensor;
    return Unimplemented("shapes are known only when it runs");
  }

  const Tensors& inputs_;
  const Tensors& outputs_;
  BlockRunner* blocks_;
  AllocateFn allocate_;
  std::vector<std::pair<Tensor*, Tensor*>> aliases_;
  std::vector<const Tensor*> no_buffer_;
  std::deque<Tensor> made_;
  absl::Status status_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_LATE_BINDER_H_
