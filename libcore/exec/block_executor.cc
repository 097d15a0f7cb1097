// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/block_executor.h"

#include <algorithm>
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

// The BlockRunner of one op that runs blocks or hands values on.
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
  bool MayShareFrame(int32_t block) override {
    return executor_->MayShareFrame(block);
  }
  bool IsOnlyGradient(int32_t gradient) override {
    return executor_->IsOnlyGradient(gradient);
  }
  std::set<std::string> WrittenIn(int32_t block) override {
    return executor_->WrittenIn(block);
  }
  std::vector<std::string> LoopVariables(int32_t block,
                                         const OpDesc& loop) override {
    return executor_->LoopVariables(block, loop);
  }

 private:
  BlockExecutor* executor_;
  Frame* frame_;
};

// A value whose bytes may go to another variable.
bool IsMovable(const Tensor& tensor) {
  return tensor.kind() == VarKind::kLodTensor && tensor.layout() == nullptr &&
         tensor.raw() != nullptr;
}

// Whether ops with dense tensors write each variable that `block` declares
// before one of them reads it, so that values of an earlier run do not show.
bool WritesBeforeItReads(const BlockDesc& block,
                         const std::vector<LateOp>& ops) {
  std::set<std::string> written;
  for (const LateOp& op : ops) {
    if (!op.is_dense()) return false;
    for (const std::string& name : op.inputs())
      if (written.count(name) == 0 && block.FindVar(name) != nullptr)
        return false;
    written.insert(op.outputs().begin(), op.outputs().end());
  }
  return true;
}

// The most bytes of a value that was moved from which a frame keeps.
constexpr size_t kMostSpare = size_t{64} << 10;

}  // namespace

absl::StatusOr<BlockExecutor::Block*> BlockExecutor::BlockOf(int32_t index) {
  const auto found = blocks_.find(index);
  if (found != blocks_.end()) return &found->second;
  if (index <= 0 || static_cast<size_t>(index) >= program_->blocks.size())
    return InvalidArgument("sub-block %d; the program has blocks 0 to %d",
                           index, program_->blocks.size() - 1);
  const BlockDesc& desc = program_->blocks[static_cast<size_t>(index)];
  Block block;
  block.index = index;
  for (const OpDesc& op : desc.ops) {
    auto late = LateOp::Make(*registry_, op, program_->version);
    if (!late.ok())
      return Annotate(late.status(),
                      absl::StrCat("block ", index, ", ", DescribeOp(op)));
    std::vector<bool> declared;
    for (const std::string& name : late->outputs())
      declared.push_back(desc.FindVar(name) != nullptr);
    block.ops.push_back({*std::move(late), std::move(declared)});
  }
  if (!HasGradient(index)) {
    std::vector<LateOp> ops;
    for (const BlockOp& op : block.ops) ops.push_back(op.op);
    const std::vector<OpMove> moves = FindMoves(*program_, desc, ops);
    for (size_t i = 0; i < moves.size(); ++i) block.ops[i].move = moves[i];
    block.may_share_frame =
        device_ == nullptr && WritesBeforeItReads(desc, ops);
  }
  // No op creates a tensor array: it is there, empty, when a block that
  // declares it begins. A gradient block goes on with the arrays of its forward
  // block.
  if (desc.forward_block_idx <= 0)
    for (const VarDesc& var : desc.vars)
      if (var.kind == VarKind::kLodTensorArray)
        block.arrays.push_back(var.name);
  return &(blocks_[index] = std::move(block));
}

Values* BlockExecutor::values() const {
  return device_ == nullptr ? HostValues() : device_;
}

absl::Status BlockExecutor::Run(int32_t index, Frame* frame,
                                const RunContext& context) {
  if (depth_ >= kMaxDepth)
    return FailedPrecondition("blocks run %d deep in each other", depth_);
  PD_ASSIGN_OR_RETURN(Block * block, BlockOf(index));
  ++depth_;
  absl::Status status;
  for (const std::string& name : block->arrays)
    if (frame->FindLocal(name) == nullptr)
      frame->Make(name).tensor->set_kind(VarKind::kLodTensorArray);
  // The block may run in itself meanwhile, in another frame.
  const std::shared_ptr<const Found> found = block->found;
  const bool known = found != nullptr && found->frame == frame &&
                     found->last_change == frame->LastChange();
  std::shared_ptr<Found> fresh;
  if (!known && block->may_share_frame) fresh = std::make_shared<Found>();
  for (size_t i = 0; i < block->ops.size() && status.ok(); ++i) {
    if (known) {
      status = RunIn(*block, i, found->ops[i], frame, context);
    } else {
      absl::StatusOr<OpFound> one = FindVariables(block->ops[i], frame);
      status = one.ok() ? RunIn(*block, i, *one, frame, context) : one.status();
      if (fresh != nullptr && status.ok())
        fresh->ops.push_back(*std::move(one));
    }
    if (!status.ok())
      status =
          Annotate(status, absl::StrCat("block ", index, ", ",
                                        DescribeOp(block->ops[i].op.op())));
  }
  --depth_;
  if (fresh != nullptr && status.ok()) {
    fresh->frame = frame;
    fresh->last_change = frame->LastChange();
    block->found = std::move(fresh);
  }
  return status;
}

bool BlockExecutor::MayShareFrame(int32_t block) {
  const absl::StatusOr<Block*> found = BlockOf(block);
  return found.ok() && (*found)->may_share_frame;  // an error shows in its run
}

bool BlockExecutor::HasGradient(int32_t block) const {
  for (const BlockDesc& other : program_->blocks)
    if (block > 0 && other.forward_block_idx == block) return true;
  return false;
}

bool BlockExecutor::IsOnlyGradient(int32_t gradient) const {
  const auto at = static_cast<size_t>(gradient);
  if (at >= program_->blocks.size()) return true;  // refused when it runs
  const int32_t block = program_->blocks[at].forward_block_idx;
  for (const BlockDesc& other : program_->blocks)
    if (other.idx != gradient && other.forward_block_idx == block) return false;
  return true;
}

std::set<std::string> BlockExecutor::WrittenIn(int32_t block) const {
  std::set<std::string> written;
  const auto at = static_cast<size_t>(block);
  if (at >= program_->blocks.size()) return written;
  for (const OpDesc& op : program_->blocks[at].ops)
    for (const auto& [slot, names] : op.outputs)
      written.insert(names.begin(), names.end());
  return written;
}

std::vector<std::string> BlockExecutor::LoopVariables(
    int32_t block, const OpDesc& loop) const {
  std::vector<std::set<std::string>> taken_back;  // by each gradient block
  for (const BlockDesc& other : program_->blocks)
    if (other.forward_block_idx == block)
      taken_back.push_back(WrittenIn(other.idx));
  const auto by_all = [&taken_back](const std::string& name) {
    return std::all_of(taken_back.begin(), taken_back.end(),
                       [&name](const std::set<std::string>& written) {
                         return written.count(name) > 0;
                       });
  };
  const OuterNames outer = OuterNamesOf(*program_, loop);
  std::vector<std::string> names;
  for (const std::string& name : loop.Input("X")) {
    const VarDesc* var = program_->global().FindVar(name);
    if (outer.writes.count(name) > 0 && !by_all(name) &&
        (var == nullptr || !var->persistable))
      names.push_back(name);
  }
  return names;
}

absl::StatusOr<BlockExecutor::OpFound> BlockExecutor::FindVariables(
    const BlockOp& block_op, Frame* frame) const {
  const LateOp& op = block_op.op;
  OpFound found;
  for (const std::string& name : op.inputs()) {
    const Frame::Variable* variable = frame->Find(name);
    if (variable != nullptr)
      found.inputs.Add(name, *variable);
    else if (!op.def().runs_blocks())
      return FailedPrecondition(
          "variable '%s' is read, but nothing has written it", name);
  }
  for (size_t i = 0; i < op.outputs().size(); ++i) {
    const std::string& name = op.outputs()[i];
    const Frame::Variable* variable =
        block_op.declared[i] ? frame->FindLocal(name) : frame->Find(name);
    found.outputs.Add(name,
                      variable != nullptr ? *variable : frame->Make(name));
  }
  return found;
}

absl::Status BlockExecutor::RunIn(const Block& block, size_t index,
                                  const OpFound& found, Frame* frame,
                                  const RunContext& context) {
  const LateOp& op = block.ops[index].op;
  const OpMove move = block.ops[index].move;
  const auto& [inputs, outputs] = found;
  if (hook_ == nullptr) {
    if (device_ == nullptr && move == OpMove::kInPlace) {
      OpFound shared = found;
      ShareInPlace(op, &shared.inputs, &shared.outputs);
      return RunOp(op, shared.inputs, shared.outputs, frame, context);
    }
    if (device_ == nullptr && move == OpMove::kMove && Move(inputs, outputs))
      return absl::OkStatus();
    return RunOp(op, inputs, outputs, frame, context);
  }
  const BlockStep step = {block.index, index, &op.op(), &inputs, &outputs};
  hook_->BeforeInBlock(step);
  PD_RETURN_IF_ERROR(RunOp(op, inputs, outputs, frame, context));
  return hook_->AfterInBlock(step);
}

bool BlockExecutor::Move(const LateOp::Variables& inputs,
                         const LateOp::Variables& outputs) {
  const Frame::Variable& from = inputs[0].variable;
  const Frame::Variable& to = outputs[0].variable;
  if (from.fixed || to.fixed || !IsMovable(*from.tensor)) return false;
  std::swap(*from.tensor, *to.tensor);
  if (from.tensor->bytes() > kMostSpare) *from.tensor = Tensor();
  moved_[to.tensor] = to.tensor->raw();
  return true;
}

void BlockExecutor::ShareInPlace(const LateOp& op, LateOp::Variables* inputs,
                                 LateOp::Variables* outputs) {
  const InPlaceSlots* slots = InPlaceSlotsOf(op.op().type);
  const std::string& changed = op.op().In(slots->input);
  const std::string& result = op.op().Out(slots->output);
  for (auto& input : *inputs) {
    if (input.name != changed) continue;
    for (auto& output : *outputs) {
      if (output.name != result) continue;
      Frame::Variable &from = input.variable, &to = output.variable;
      const auto moved = moved_.find(from.tensor);
      if (from.fixed || to.fixed || !IsMovable(*from.tensor) ||
          moved == moved_.end() || moved->second != from.tensor->raw())
        return;
      std::swap(*from.tensor, *to.tensor);
      from = to = {to.tensor, /*fixed=*/true};
    }
  }
}

absl::Status BlockExecutor::RunOp(const LateOp& op,
                                  const LateOp::Variables& inputs,
                                  const LateOp::Variables& outputs,
                                  Frame* frame, const RunContext& context) {
  if (op.def().runs_blocks()) moved_.clear();
  Runner runner(this, frame);
  RecordEvent event(op.op().type, EventType::kOperatorInner);
  const absl::Status status =
      op.Run(context, inputs, outputs, &runner, device_);
  if (event.recording()) event.set_site(op.Site());
  return status;
}

}  // namespace pd
