// SPDX-License-Identifier: Apache-2.0
// The BindContext of one op in a PlanBuilder. What an implementation asks for
// is collected here and takes effect only when it accepts.
#ifndef PD_LIBCORE_EXEC_OP_BINDER_H_
#define PD_LIBCORE_EXEC_OP_BINDER_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "libcore/exec/plan_builder.h"

namespace pd {

class OpBinder : public BindContext {
 public:
  OpBinder(PlanBuilder* builder, const OpDesc& op, size_t op_index,
           const TensorMap& inputs, const TensorMap& outputs)
      : BindContext(op),
        builder_(builder),
        op_index_(op_index),
        inputs_(inputs),
        outputs_(outputs) {}

  void Alias(Tensor* in, Tensor* out) override;
  void MayShare(Tensor* in, Tensor* out) override;
  void NoBuffer(Tensor* input) override { no_buffer_.push_back(input); }
  Tensor* Scratch(size_t bytes) override;
  Tensor* Keep(const std::string& name, DType dtype, Shape shape) override;
  Tensor* Kept(const std::string& name) override;
  absl::StatusOr<Tensor*> In(Tensor* tensor, const LayoutPtr& layout) override;
  absl::StatusOr<Tensor*> Out(Tensor* tensor, const LayoutPtr& layout) override;
  LayoutPtr LayoutOf(const std::string& name) const override;
  bool IsConstant(const Tensor* tensor) const override;
  bool IsFrozen(const Tensor* tensor) const override;
  bool IsTraining() const override { return builder_->training_; }

  /// Replaces every input and output in another layout by a row-major one.
  absl::Status MakeRowMajor();
  /// Replaces every fp16 or bf16 tensor by one of float32, with casts around
  /// the step. False, with nothing changed, where there is none, or where one
  /// cannot be replaced.
  absl::StatusOr<bool> Upcast();
  /// False: a tensor of the host has a layout other than row-major, which no
  /// kernel of a device reads.
  bool CanMoveToDevice() const;
  /// Replaces every input and output by the one on the device, or the host;
  /// late ones stay as they are.
  absl::Status MoveTo(bool device);
  /// The same for each as `device` says.
  absl::Status MoveEach(const std::function<bool(const std::string& name,
                                                 Tensor* tensor)>& device);
  const TensorMap& inputs() const { return inputs_; }
  const TensorMap& outputs() const { return outputs_; }
  /// Adds the steps and records what they touch.
  void Accept(Step step, StepInfo info);
  /// OK, or the error of scratch memory that was asked for and is too large.
  const absl::Status& sizes() const { return sizes_; }
  /// Undoes what a refusing implementation did to the outputs.
  void Refuse();

 protected:
  Tensor* FindInput(const std::string& name) const override;
  Tensor* FindOutput(const std::string& name) const override;

 private:
  struct Move {
    Tensor *from, *to;
    Step step;          // null: a cast that is bound when layouts are final
    bool cast = false;  // between fp16 or bf16 and float32
  };

  static bool StaysRearranged(const PlanTensors::Info& info);
  StepVariables Variables() const;
  void CountBytes(StepInfo* info) const;
  int AddMove(Move* move, const std::string& output, const StepInfo& op);
  // Between host and device.
  bool Crosses(const Move& move) const;
  bool IsWanted(const Move& move) const;
  void AddDowncast(Move* move, const StepInfo& op);

  PlanTensors& tensors() const { return builder_->tensors_; }

  PlanBuilder* builder_;
  size_t op_index_;
  bool device_ = false;  // MoveTo has moved the op to the device
  TensorMap inputs_, outputs_;
  std::vector<Move> before_, after_;
  std::vector<std::pair<Tensor*, Tensor*>> aliases_, sharings_;
  std::vector<Tensor*> touched_, no_buffer_, replaced_;
  std::vector<std::pair<std::string, Tensor*>> keeps_;
  std::vector<Tensor*> relaid_;  // outputs whose layout was set
  absl::Status sizes_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_OP_BINDER_H_
