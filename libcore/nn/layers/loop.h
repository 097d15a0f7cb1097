// SPDX-License-Identifier: Apache-2.0
// Loops and branches of a program under construction: `while` and
// `conditional_block` with the blocks that they run. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_LOOP_H_
#define PD_LIBCORE_NN_LAYERS_LOOP_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/layers/layer_context.h"

namespace pd {

class Loop {
 public:
  /// The results of one run of the body.
  struct Run {
    std::string condition;            ///< one bool: whether to run again
    std::vector<std::string> values;  ///< of the variables, in their order
  };

  explicit Loop(LayerContext* c) : c_(c) {}

  /// A variable of the loop with its value before the first run. Gives its
  /// name, which is read in the body and behind the loop. `called` is for
  /// messages: "'h'".
  absl::StatusOr<std::string> Add(const std::string& first, std::string called);

  /// Appends the loop, which runs while a bool holds that is `condition` at
  /// first. `body` appends the ops of a run; it is called again where extents
  /// change from run to run, which are open (-1) then. InvalidArgument where a
  /// variable changes its type or rank.
  absl::Status Build(const std::string& condition,
                     const std::function<absl::StatusOr<Run>()>& body);

 private:
  struct Variable {
    std::string name, called;
  };
  absl::StatusOr<std::string> Copy(const std::string& x);
  /// Whether the declared shapes fit the values of a run; else `open` gets
  /// those that do.
  absl::StatusOr<bool> Fits(const Run& run, std::vector<Shape>* open) const;
  absl::Status Assign(const Run& run);

  LayerContext* c_;
  std::vector<Variable> variables_;
  std::string condition_;
};

/// OK where `variable` may be one bool: whether open extents are 1 is seen when
/// it runs. `called` is for messages.
absl::Status CheckCondition(const std::string& variable,
                            const std::string& called, const LayerContext& c);

/// Appends an op that runs block `block` of the program: it lists the variables
/// around the block that it reads and writes in these slots, and has a variable
/// for what it keeps in the output slot `scopes`.
absl::Status AppendBlockOp(OpDesc op, int32_t block, const char* reads,
                           const char* writes, const char* scopes,
                           LayerContext* c);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_LOOP_H_
