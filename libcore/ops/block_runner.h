// SPDX-License-Identifier: Apache-2.0
// The interface that an op with sub-blocks (while, conditional_block) uses to
// run them, and any op of a block that hands values on.
#ifndef PD_LIBCORE_OPS_BLOCK_RUNNER_H_
#define PD_LIBCORE_OPS_BLOCK_RUNNER_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/values.h"
#include "libcore/tensor/frame.h"

namespace pd {

class BlockRunner {
 public:
  virtual ~BlockRunner() = default;
  /// Copies values on the side where they are.
  virtual Values* values() = 0;
  /// The variables of the block that the op stands in.
  virtual Frame* frame() = 0;
  /// Runs the ops of a block of the program, in order. What the block declares
  /// is made in `frame`; other names are looked up outwards from it.
  virtual absl::Status Run(int32_t block, Frame* frame,
                           const RunContext& context) = 0;
  /// Whether the program has a block that is the gradient of `block`: then the
  /// variables of each run of the block are kept for it.
  virtual bool HasGradient(int32_t block) = 0;
  /// Whether runs of a block may follow each other in one frame, where nobody
  /// keeps the variables of each: what the block declares it writes before it
  /// reads it.
  virtual bool MayShareFrame(int32_t block) = 0;
  /// Whether `gradient` is the one gradient block of its forward block: once it
  /// has run, nothing reads the variables that were kept for it.
  virtual bool IsOnlyGradient(int32_t gradient) = 0;
  /// The names that the ops of a block write.
  virtual std::set<std::string> WrittenIn(int32_t block) = 0;
  /// The variables in slot X of a loop that its block overwrites: those whose
  /// values a gradient block must find as they were. Persistables are left
  /// out, and variables that every gradient block takes back itself (a
  /// counter).
  virtual std::vector<std::string> LoopVariables(int32_t block,
                                                 const OpDesc& loop) = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_BLOCK_RUNNER_H_
