// SPDX-License-Identifier: Apache-2.0
// Variables that one process has and others need: parameters after a divided
// update, states of the optimizer for a checkpoint.
#ifndef PD_LIBCORE_TRAIN_STATE_EXCHANGE_H_
#define PD_LIBCORE_TRAIN_STATE_EXCHANGE_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/dist/communicator.h"
#include "libcore/exec/scope.h"
#include "libcore/ir/array.h"

namespace pd {

/// Variables, and of each the process that has it.
using OwnedVariables = std::vector<std::pair<std::string, int>>;

/// Hands variables to all processes, small ones of one process together.
class VariableBroadcast {
 public:
  /// The variables exist in every process. Arguments outlive this.
  VariableBroadcast(const OwnedVariables& variables, Scope* scope,
                    const Communicator* processes);

  /// All processes run it together. Variables of a kernel's own layout and
  /// those of a GPU are brought into plain form.
  absl::Status Run();

 private:
  struct Variable {
    std::string name;
    Scope::Entry* entry = nullptr;
    size_t bytes = 0;
  };
  struct Pack {
    int owner = 0;
    std::vector<Variable> variables;
    size_t bytes = 0;
  };
  absl::Status Send(const Pack& pack);

  Scope* scope_;
  const Communicator& processes_;
  std::vector<Pack> packs_;
  std::vector<std::byte> buffer_;
};

/// Gives process 0 the values of the variables, in no process else. All
/// processes call it with the same variables.
absl::StatusOr<NamedArrays> GatherAtFirst(const OwnedVariables& variables,
                                          const ProgramDesc& program,
                                          const Scope& scope,
                                          const Communicator& processes);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_STATE_EXCHANGE_H_
