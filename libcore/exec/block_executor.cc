// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/block_executor.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/late_device.h"
#include "libcore/trace/recorder.h"

namespace pd {
namespace {

constexpr int kMaxDepth = 64;

// The runner that an op with sub-blocks sees, or one that hands values on.
class Runner : public BlockRunner {
 public:
  Runner(BlockExecutor* executor, Frame* frame)
      : executor_(executor), frame_(frame) {}
  Values* values() override { return executor_->values(); }
  Frame* frame() override { return frame_; }
  absl::Status Run(int32_t block, Frame* frame,
                   const RunContext& context) override {
    return executor_->Run(block, frame, context);
  }
  bool HasGradient(int32_t block) override {
    return executor_->HasGradient(block);
  }
  std::vector<std::string> LoopVariables(int32_t block,
                                         const OpDesc& loop) override {
    return executor_->LoopVariables(block, loop);
  }

 private:
  BlockExecutor* executor_;
  Frame* frame_;
};

// No op creates a list: it is there, empty, when a block that declares it
// begins. A gradient block comes back to the lists of its forward block.
void MakeArrays(const BlockDesc& block, Frame* frame) {
  if (block.forward_block_idx > 0) return;
  for (const VarDesc& var : block.vars)
    if (var.kind == VarKind::kLodTensorArray &&
        frame->FindLocal(var.name) == nullptr)
      frame->Make(var.name).tensor->set_kind(var.kind);
}

}  // namespace

absl::StatusOr<const std::vector<LateOp>*> BlockExecutor::OpsOf(int32_t block) {
  const auto found = ops_.find(block);
  if (found != ops_.end()) return &found->second;
  if (block <= 0 || static_cast<size_t>(block) >= program_->blocks.size())
    return InvalidArgument("sub-block %d; the program has blocks 0 to %d",
                           block, program_->blocks.size() - 1);
  std::vector<LateOp> ops;
  for (const OpDesc& desc : program_->blocks[static_cast<size_t>(block)].ops) {
    auto op = LateOp::Make(*registry_, desc, program_->version);
    if (!op.ok())
      return Annotate(op.status(),
                      absl::StrCat("block ", block, ", ", DescribeOp(desc)));
    ops.push_back(*std::move(op));
  }
  return &(ops_[block] = std::move(ops));
}

Values* BlockExecutor::values() const {
  return device_ == nullptr ? HostValues() : device_;
}

absl::Status BlockExecutor::Run(int32_t block, Frame* frame,
                                const RunContext& context) {
  if (depth_ >= kMaxDepth)
    return FailedPrecondition("blocks run %d deep in each other", depth_);
  PD_ASSIGN_OR_RETURN(const std::vector<LateOp>* ops, OpsOf(block));
  ++depth_;
  absl::Status status;
  const BlockDesc& desc = program_->blocks[static_cast<size_t>(block)];
  MakeArrays(desc, frame);
  for (size_t i = 0; i < ops->size() && status.ok(); ++i) {
    status = RunIn(desc, (*ops)[i], i, frame, context);
    if (!status.ok())
      status = Annotate(status, absl::StrCat("block ", block, ", ",
                                             DescribeOp((*ops)[i].op())));
  }
  --depth_;
  return status;
}

bool BlockExecutor::HasGradient(int32_t block) const {
  for (const BlockDesc& other : program_->blocks)
    if (block > 0 && other.forward_block_idx == block) return true;
  return false;
}

std::vector<std::string> BlockExecutor::LoopVariables(
    int32_t block, const OpDesc& loop) const {
  std::set<std::string> taken_back;
  for (const BlockDesc& other : program_->blocks)
    if (other.forward_block_idx == block)
      for (const OpDesc& op : other.ops)
        for (const auto& [slot, names] : op.outputs)
          taken_back.insert(names.begin(), names.end());
  const OuterNames outer = OuterNamesOf(*program_, loop);
  std::vector<std::string> names;
  for (const std::string& name : loop.Input("X")) {
    const VarDesc* var = program_->global().FindVar(name);
    if (outer.writes.count(name) > 0 && taken_back.count(name) == 0 &&
        (var == nullptr || !var->persistable))
      names.push_back(name);
  }
  return names;
}

absl::Status BlockExecutor::RunIn(const BlockDesc& block, const LateOp& op,
                                  size_t index, Frame* frame,
                                  const RunContext& context) {
  RecordEvent event(op.op().type, EventType::kOperatorInner);
  LateOp::Variables inputs, outputs;
  for (const auto& [slot, names] : op.op().inputs) {
    for (const std::string& name : names) {
      if (name == kEmptyVar) continue;
      const Frame::Variable* variable = frame->Find(name);
      if (variable != nullptr)
        inputs[name] = *variable;
      else if (!op.def().runs_blocks())
        return FailedPrecondition(
            "variable '%s' is read, but nothing has written it", name);
    }
  }
  for (const auto& [slot, names] : op.op().outputs) {
    for (const std::string& name : names) {
      if (name == kEmptyVar) continue;
      const Frame::Variable* variable = block.FindVar(name) != nullptr
                                            ? frame->FindLocal(name)
                                            : frame->Find(name);
      outputs[name] = variable != nullptr ? *variable : frame->Make(name);
    }
  }
  if (hook_ == nullptr) return RunOp(op, inputs, outputs, frame, context);
  const BlockStep step = {block.idx, index, &op.op(), &inputs, &outputs};
  hook_->BeforeInBlock(step);
  PD_RETURN_IF_ERROR(RunOp(op, inputs, outputs, frame, context));
  return hook_->AfterInBlock(step);
}

absl::Status BlockExecutor::RunOp(const LateOp& op,
                                  const LateOp::Variables& inputs,
                                  const LateOp::Variables& outputs,
                                  Frame* frame, const RunContext& context) {
  Runner runner(this, frame);
  return op.Run(context, inputs, outputs, &runner, device_);
}

}  // namespace pd
