// SPDX-License-Identifier: Apache-2.0
// conditional_block: runs sub_block once if the condition holds; otherwise its
// outputs get no value. The condition is the bool Cond (is_scalar_condition),
// or that no Input is empty. Scope keeps the variables of the run.
// conditional_block_grad: runs its sub_block over those variables; Input@GRAD
// is what that makes. Where the condition did not hold, it is the gradient of
// Out for a variable that is both, since that kept its value, else zeros.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/block_runner.h"
#include "libcore/ops/control_flow/gradient_names.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/values.h"

namespace pd {
namespace {

// Reads the condition each time it is asked.
struct Condition {
  std::vector<Tensor*> tensors;
  bool scalar;

  static absl::StatusOr<Condition> Of(BindContext* context) {
    Condition c;
    c.scalar = context->Attr<bool>("is_scalar_condition");
    const char* slot = c.scalar ? "Cond" : "Input";
    for (size_t i = 0; i < context->InputCount(slot); ++i)
      c.tensors.push_back(context->Input(slot, i));
    if (c.scalar && (c.tensors.size() != 1 || c.tensors[0] == nullptr))
      return InvalidArgument("'Cond' holds %d variables; expected 1",
                             c.tensors.size());
    return c;
  }

  absl::StatusOr<bool> Holds(Values* values) const {
    if (!scalar) {
      for (const Tensor* t : tensors)
        if (t == nullptr || t->size() == 0) return false;
      return true;
    }
    PD_ASSIGN_OR_RETURN(const Tensor t, values->OnHost(*tensors[0]));
    if (!t.has_value() || t.dtype() != DType::kBool || t.size() != 1)
      return InvalidArgument("'Cond' is %s%s; expected one bool",
                             Name(t.dtype()), ToString(t.shape()));
    return *t.data<bool>();
  }
};

absl::StatusOr<Step> BindConditionalBlock(BindContext* context) {
  BlockRunner* blocks = context->blocks();
  const int32_t block = context->Attr<BlockRef>("sub_block").index;
  PD_ASSIGN_OR_RETURN(const Condition condition, Condition::Of(context));
  Tensor* scope = context->Output("Scope");
  return Step([=](const RunContext& run) -> absl::Status {
    PD_ASSIGN_OR_RETURN(const bool holds, condition.Holds(blocks->values()));
    if (scope != nullptr) {
      scope->set_kind(VarKind::kStepScopes);
      scope->frames().clear();
    }
    if (!holds) return absl::OkStatus();
    auto frame = std::make_shared<Frame>(blocks->frame());
    if (scope != nullptr) scope->frames().push_back(frame);
    return blocks->Run(block, frame.get(), run);
  });
}

struct ConditionalBlockGrad {
  struct Input {
    std::string gradient_inside;  // its name in the block
    Tensor* value;
    Tensor* gradient;        // null: nobody wants it
    const Tensor* after_it;  // the gradient of its value after the op, or null
  };

  BlockRunner* blocks;
  int32_t block;
  bool only;  // nothing reads the kept scope afterwards
  Condition condition;
  Tensor* scope;
  std::vector<Input> inputs;

  // Input has more variables than the forward op's, and these may be written
  // since: whether the block ran then, the scope knows.
  absl::StatusOr<bool> Ran() const {
    const bool kept = scope != nullptr && !scope->frames().empty();
    if (!condition.scalar) return kept;
    PD_ASSIGN_OR_RETURN(const bool holds, condition.Holds(blocks->values()));
    if (holds && !kept)
      return FailedPrecondition("'Scope' has no value: the block did not run");
    return holds;
  }

  absl::Status Run(const RunContext& run) const {
    PD_ASSIGN_OR_RETURN(const bool ran, Ran());
    Frame* kept = ran ? scope->frames().front().get() : nullptr;
    if (ran) kept->set_parent(blocks->frame());
    // Gradients in a frame of their own: a second gradient block finds the kept
    // variables alone.
    Frame frame(kept);
    if (ran) PD_RETURN_IF_ERROR(blocks->Run(block, &frame, run));
    for (const Input& input : inputs)
      if (input.gradient != nullptr)
        PD_RETURN_IF_ERROR(Give(input, ran ? &frame : nullptr));
    if (only && scope != nullptr) scope->frames().clear();
    return absl::OkStatus();
  }

  // `frame`: null where the block did not run.
  absl::Status Give(const Input& input, const Frame* frame) const {
    const Tensor* from = input.after_it;
    if (frame != nullptr) {
      const Frame::Variable* made = frame->FindLocal(input.gradient_inside);
      from = made == nullptr ? nullptr : made->tensor;
    }
    if (from != nullptr && from->has_value()) {
      if (from == input.gradient) return absl::OkStatus();
      PD_ASSIGN_OR_RETURN(*input.gradient, blocks->values()->Clone(*from));
      return absl::OkStatus();
    }
    if (input.value == nullptr)
      return FailedPrecondition(
          "'Input' has no value whose gradient '%s' could be zero",
          input.gradient_inside);
    return blocks->values()->ZerosLike(*input.value, input.gradient);
  }
};

absl::StatusOr<Step> BindConditionalBlockGrad(BindContext* context) {
  ConditionalBlockGrad grad;
  grad.blocks = context->blocks();
  grad.block = context->Attr<BlockRef>("sub_block").index;
  PD_ASSIGN_OR_RETURN(grad.condition, Condition::Of(context));
  grad.only = grad.blocks->IsOnlyGradient(grad.block);
  grad.scope = context->Input("Scope");
  const OpDesc& op = context->op();
  std::vector<std::string> inside;
  for (const std::string& name : op.Input("Input"))
    inside.push_back(GradName(name));
  PD_RETURN_IF_ERROR(NamesByAttr(op, "original_input_grad", &inside));
  const std::vector<std::string>& outputs = op.Input("Out");
  const std::vector<std::string>& given = op.Input("Out@GRAD");
  for (size_t i = 0; i < op.Input("Input").size(); ++i) {
    const std::string& name = op.Input("Input")[i];
    ConditionalBlockGrad::Input input = {inside[i], context->Input("Input", i),
                                         context->Output("Input@GRAD", i),
                                         nullptr};
    const bool both = std::count(outputs.begin(), outputs.end(), name) > 0;
    for (size_t k = 0; both && k < given.size(); ++k)
      if (given[k] == input.gradient_inside)
        input.after_it = context->Input("Out@GRAD", k);
    grad.inputs.push_back(std::move(input));
  }
  return Step([grad](const RunContext& run) { return grad.Run(run); });
}

}  // namespace

absl::Status RegisterConditionalBlock(OpRegistry* registry) {
  // The second is what an inference model has.
  for (const char* type : {"conditional_block", "conditional_block_infer"}) {
    OpDef op(type);
    op.Inputs("Cond").OptionalInputs("Input");
    op.OptionalOutputs("Out").IntermediateOutput("Scope");
    op.RequiredAttr("sub_block", AttrType::kBlock);
    op.Attr("is_scalar_condition", false);
    op.RunsBlocks().NoGrad().Infer(InferNothing);
    op.Reference(BindConditionalBlock);
    PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  }
  OpDef grad("conditional_block_grad");
  grad.OptionalInputs("Cond").OptionalInputs("Input").OptionalInputs("Out");
  grad.OptionalInputs("Out@GRAD").Input("Scope");
  grad.OptionalOutputs("Input@GRAD").OptionalOutputs("Cond@GRAD");
  grad.RequiredAttr("sub_block", AttrType::kBlock);
  grad.Attr("is_scalar_condition", false);
  grad.RunsBlocks().NoGrad().Infer(InferGradLikeInput);
  grad.Reference(BindConditionalBlockGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
