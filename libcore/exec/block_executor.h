// SPDX-License-Identifier: Apache-2.0
// Runs the sub-blocks of a program op by op over frames.
#ifndef PD_LIBCORE_EXEC_BLOCK_EXECUTOR_H_
#define PD_LIBCORE_EXEC_BLOCK_EXECUTOR_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/exec/block_moves.h"
#include "libcore/exec/late_op.h"
#include "libcore/exec/step_hook.h"
#include "libcore/ir/program_desc.h"
#include "libcore/program/outer_names.h"

namespace pd {

class BlockExecutor {
 public:
  /// All outlive the executor. `device` is where ops compute; null: on the
  /// host.
  BlockExecutor(const OpRegistry* registry, const ProgramDesc* program,
                LateDevice* device)
      : registry_(registry), program_(program), device_(device) {}

  /// Sees every op of every block; may be null.
  void set_hook(StepHook* hook) { hook_ = hook; }

  /// Runs a block over `frame`. Errors name block and op. Blocks deeper than
  /// 64 in each other are FailedPrecondition.
  absl::Status Run(int32_t block, Frame* frame, const RunContext& context);

  /// Runs one op whose variables `frame` knows.
  absl::Status RunOp(const LateOp& op, const LateOp::Variables& inputs,
                     const LateOp::Variables& outputs, Frame* frame,
                     const RunContext& context);

  /// See BlockRunner.
  Values* values() const;
  bool HasGradient(int32_t block) const;
  bool MayShareFrame(int32_t block);
  bool IsOnlyGradient(int32_t gradient) const;
  std::set<std::string> WrittenIn(int32_t block) const;
  std::vector<std::string> LoopVariables(int32_t block,
                                         const OpDesc& loop) const;

 private:
  struct BlockOp {
    LateOp op;
    std::vector<bool> declared;  // by output: the block itself declares it
    OpMove move = OpMove::kNone;
  };
  struct OpFound {
    LateOp::Variables inputs, outputs;
  };
  // The variables of a block's ops in a frame, as long as that has the same.
  struct Found {
    const Frame* frame = nullptr;
    uint64_t last_change = 0;
    std::vector<OpFound> ops;
  };
  struct Block {
    int32_t index = 0;
    bool may_share_frame = false;
    std::vector<std::string> arrays;  // declared here, and empty at first
    std::vector<BlockOp> ops;
    std::shared_ptr<const Found> found;  // in its last run; null: none is kept
  };

  absl::StatusOr<Block*> BlockOf(int32_t index);
  absl::StatusOr<OpFound> FindVariables(const BlockOp& op, Frame* frame) const;
  absl::Status RunIn(const Block& block, size_t index, const OpFound& found,
                     Frame* frame, const RunContext& context);
  // Whether the bytes of inputs[0] are those of outputs[0] now.
  bool Move(const LateOp::Variables& inputs, const LateOp::Variables& outputs);
  // Gives the output the bytes of the input that the op changes, where these
  // are the variable's alone.
  void ShareInPlace(const LateOp& op, LateOp::Variables* inputs,
                    LateOp::Variables* outputs);

  const OpRegistry* registry_;
  const ProgramDesc* program_;
  LateDevice* device_;
  std::map<int32_t, Block> blocks_;
  int depth_ = 0;
  // Variables with bytes that a move gave them in the loop that runs.
  std::map<const Tensor*, const void*> moved_;
  StepHook* hook_ = nullptr;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_BLOCK_EXECUTOR_H_
