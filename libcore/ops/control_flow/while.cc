// SPDX-License-Identifier: Apache-2.0
// while: runs sub_block again and again as long as Condition holds. The block
// reads variables around it (X) and writes some of them (Out), Condition too.
// Where the program has the block's gradient, StepScopes keeps the variables of
// each run for it; among them the values that loop variables had when the run
// began, except for persistables and for those that the gradient block takes
// back itself (a counter, which it counts down).
//
// while_grad: runs its sub_block once for each kept scope, from the last to the
// first. Out@GRAD is visible in it under the names `original_output_grad`. A
// loop variable's gradient is what the block makes of it; X@GRAD of any other
// variable is the sum over the runs.
//
// In the block the gradient of x is "x@GRAD". Where a program had gradients
// before, pdkit's has another name and two attributes more, which PaddlePaddle
// does not have: `original_input_grad`, the names of X's gradients, and
// `original_output`, the variables whose gradients are Out@GRAD.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
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

absl::StatusOr<bool> ReadCondition(BlockRunner* blocks,
                                   const std::string& name) {
  const Frame::Variable* v = blocks->frame()->Find(name);
  if (v == nullptr || !v->tensor->has_value())
    return FailedPrecondition("'Condition' ('%s') has no value", name);
  if (v->tensor->dtype() != DType::kBool || v->tensor->size() != 1)
    return InvalidArgument("'Condition' is %s%s; expected one bool",
                           Name(v->tensor->dtype()),
                           ToString(v->tensor->shape()));
  PD_ASSIGN_OR_RETURN(const Tensor here, blocks->values()->OnHost(*v->tensor));
  return *here.data<bool>();
}

absl::StatusOr<Step> BindWhile(BindContext* context) {
  BlockRunner* blocks = context->blocks();
  const int32_t block = context->Attr<BlockRef>("sub_block").index;
  Tensor* scopes = context->Output("StepScopes");
  const bool keep = scopes != nullptr && blocks->HasGradient(block);
  const std::string condition = context->op().In("Condition");
  std::vector<std::string> carried;
  if (keep) carried = blocks->LoopVariables(block, context->op());
  const bool share = !keep && blocks->MayShareFrame(block);
  return Step([=](const RunContext& run) -> absl::Status {
    if (scopes != nullptr) {
      scopes->set_kind(VarKind::kStepScopes);
      scopes->frames().clear();
    }
    std::shared_ptr<Frame> frame;
    for (;;) {
      PD_ASSIGN_OR_RETURN(const bool go_on, ReadCondition(blocks, condition));
      if (!go_on) return absl::OkStatus();
      if (frame == nullptr || !share)
        frame = std::make_shared<Frame>(blocks->frame());
      std::vector<std::pair<std::string, Tensor>> before;
      for (const std::string& name : carried)
        if (const Frame::Variable* v = blocks->frame()->Find(name)) {
          PD_ASSIGN_OR_RETURN(Tensor value,
                              blocks->values()->Clone(*v->tensor));
          before.emplace_back(name, std::move(value));
        }
      PD_RETURN_IF_ERROR(blocks->Run(block, frame.get(), run));
      for (auto& [name, value] : before)
        *frame->Make(name).tensor = std::move(value);
      if (keep) scopes->frames().push_back(frame);
    }
  });
}

struct WhileGrad {
  BlockRunner* blocks;
  int32_t block;
  bool only;  // nothing reads the kept scopes afterwards
  std::vector<std::string> x, x_grad, x_inside;         // aligned
  std::vector<std::string> out_grad, inside_grad, out;  // aligned
  std::set<std::string> written;                        // by the block

  // The outer gradient of a loop variable goes in under its inner name.
  absl::Status Link(const std::set<std::string>& spent, Frame* frame) const {
    for (size_t i = 0; i < out_grad.size(); ++i) {
      const Frame::Variable* outside = Outside(out_grad[i]);
      Tensor* inside = frame->Make(inside_grad[i]).tensor;
      if (outside != nullptr && outside->tensor->has_value() &&
          spent.count(inside_grad[i]) == 0) {
        *inside = *outside->tensor;  // shares bytes until it is written
        continue;
      }
      // Nobody reads the last value: its gradient is zero.
      const Frame::Variable* value = frame->Find(out[i]);
      if (value != nullptr && value->tensor->has_value())
        PD_RETURN_IF_ERROR(values()->ZerosLike(*value->tensor, inside));
    }
    return absl::OkStatus();
  }
  Values* values() const { return blocks->values(); }

  const Frame::Variable* Outside(const std::string& name) const {
    return blocks->frame()->Find(name);
  }
  bool IsCarried(size_t i) const {
    return std::count(inside_grad.begin(), inside_grad.end(), x_inside[i]) > 0;
  }

  // Loop variables that the block writes and does not read: only their last
  // value had an effect.
  std::set<std::string> WrittenOnly() const {
    std::set<std::string> names(inside_grad.begin(), inside_grad.end());
    for (const std::string& name : x_inside) names.erase(name);
    return names;
  }

  // A variable that the block writes around it and takes back itself (a
  // counter) is not the kept value, which another gradient block may need.
  void TakeBack(Frame* frame) const {
    for (const std::string& name : x)
      if (written.count(name) > 0)
        if (const Frame::Variable* outside = Outside(name))
          frame->Lend(name, *outside);
  }

  absl::Status Run(Tensor* scopes, const RunContext& run) const {
    std::vector<Tensor> sums(x.size());
    std::map<std::string, Tensor> carried;  // inside name -> gradient so far
    std::set<std::string> spent;
    auto& frames = scopes->frames();
    for (auto it = frames.rbegin(); it != frames.rend(); ++it) {
      (*it)->set_parent(blocks->frame());
      // Gradients in a frame of their own: a second gradient block finds the
      // kept variables alone.
      Frame own(it->get());
      Frame* frame = &own;
      if (!only) TakeBack(frame);
      PD_RETURN_IF_ERROR(Link(spent, frame));
      for (const auto& [name, value] : carried)
        *frame->Make(name).tensor = value;
      PD_RETURN_IF_ERROR(blocks->Run(block, frame, run));
      for (size_t i = 0; i < x.size(); ++i) {
        if (x_grad[i] == kEmptyVar) continue;
        const Frame::Variable* inside = frame->FindLocal(x_inside[i]);
        if (inside == nullptr || !inside->tensor->has_value()) continue;
        if (IsCarried(i)) {
          PD_ASSIGN_OR_RETURN(carried[x_inside[i]],
                              values()->Clone(*inside->tensor));
        } else {
          PD_RETURN_IF_ERROR(values()->Accumulate(*inside->tensor, &sums[i]));
        }
      }
      if (spent.empty()) spent = WrittenOnly();
    }
    if (only) frames.clear();
    for (size_t i = 0; i < x.size(); ++i) {
      if (x_grad[i] == kEmptyVar) continue;
      Tensor* out = Outside(x_grad[i])->tensor;
      const auto loop = carried.find(x_inside[i]);
      if (loop != carried.end())
        *out = std::move(loop->second);
      else if (sums[i].has_value())
        *out = std::move(sums[i]);
      else
        PD_RETURN_IF_ERROR(Untouched(i, out));
    }
    return absl::OkStatus();
  }

  // No run of the block made a gradient.
  absl::Status Untouched(size_t i, Tensor* out) const {
    for (size_t k = 0; k < out_grad.size(); ++k) {
      if (inside_grad[k] != x_inside[i]) continue;
      const Frame::Variable* outside = Outside(out_grad[k]);
      if (outside != nullptr && outside->tensor->has_value()) {
        if (outside->tensor == out) return absl::OkStatus();
        PD_ASSIGN_OR_RETURN(*out, values()->Clone(*outside->tensor));
        return absl::OkStatus();
      }
    }
    const Frame::Variable* value = Outside(x[i]);
    if (value == nullptr)
      return FailedPrecondition("'X' ('%s') has no value", x[i]);
    return values()->ZerosLike(*value->tensor, out);
  }
};

std::string WithoutGrad(const std::string& name) {
  return name.substr(0,
                     name.size() - std::min(name.size(), kGradSuffix.size()));
}

absl::StatusOr<Step> BindWhileGrad(BindContext* context) {
  WhileGrad grad;
  grad.blocks = context->blocks();
  grad.block = context->Attr<BlockRef>("sub_block").index;
  grad.x = context->op().Input("X");
  grad.x_grad = context->op().Output("X@GRAD");
  grad.out_grad = context->op().Input("Out@GRAD");
  grad.inside_grad =
      context->Attr<std::vector<std::string>>("original_output_grad");
  if (grad.x.size() != grad.x_grad.size() ||
      grad.out_grad.size() != grad.inside_grad.size())
    return InvalidArgument(
        "%d X, %d X@GRAD, %d Out@GRAD, %d original_output_grad; expected as "
        "many X as X@GRAD, and as many names as Out@GRAD",
        grad.x.size(), grad.x_grad.size(), grad.out_grad.size(),
        grad.inside_grad.size());
  for (const std::string& name : grad.x)
    grad.x_inside.push_back(GradName(name));
  for (const std::string& name : grad.inside_grad)
    grad.out.push_back(WithoutGrad(name));
  PD_RETURN_IF_ERROR(
      NamesByAttr(context->op(), "original_input_grad", &grad.x_inside));
  PD_RETURN_IF_ERROR(NamesByAttr(context->op(), "original_output", &grad.out));
  grad.only = grad.blocks->IsOnlyGradient(grad.block);
  grad.written = grad.blocks->WrittenIn(grad.block);
  Tensor* scopes = context->Input("StepScopes");
  if (scopes == nullptr)
    return InvalidArgument("'StepScopes' has no value: the while did not run");
  return Step(
      [grad, scopes](const RunContext& run) { return grad.Run(scopes, run); });
}

}  // namespace

absl::Status RegisterWhile(OpRegistry* registry) {
  OpDef op("while");
  op.OptionalInputs("X").Input("Condition");
  op.OptionalOutputs("Out").IntermediateOutput("StepScopes");
  op.RequiredAttr("sub_block", AttrType::kBlock).Attr("is_test", false);
  op.RunsBlocks().NoGrad().Infer(InferNothing).Reference(BindWhile);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("while_grad");
  grad.OptionalInputs("X").OptionalInputs("Out").OptionalInputs("Out@GRAD");
  grad.Input("StepScopes").OptionalOutputs("X@GRAD");
  grad.RequiredAttr("sub_block", AttrType::kBlock);
  grad.Attr("original_output_grad", std::vector<std::string>());
  grad.RunsBlocks().NoGrad().Infer(InferGradLikeInput).Reference(BindWhileGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
