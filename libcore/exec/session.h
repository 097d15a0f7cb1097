// SPDX-License-Identifier: Apache-2.0
// A scope of variables and the programs that run over it.
#ifndef PD_LIBCORE_EXEC_SESSION_H_
#define PD_LIBCORE_EXEC_SESSION_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/exec/plan.h"
#include "libcore/exec/scope.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/passes/amp.h"
#include "libcore/passes/pipeline.h"

namespace pd {

class Session {
 public:
  /// `registry` outlives the session, which computes on the registry's device.
  /// `seed` is for random ops.
  explicit Session(const OpRegistry* registry, uint64_t seed = 0)
      : registry_(registry), seed_(seed), place_(registry->device()) {}

  Scope& scope() { return scope_; }
  const OpRegistry& registry() const { return *registry_; }
  uint64_t seed() const { return seed_; }
  const std::shared_ptr<const DevicePlace>& place() const { return place_; }
  void set_plan_options(const PlanOptions& options) { options_ = options; }
  void set_pass_options(const PassOptions& options) { passes_ = options; }
  /// Programs without gradients compute in mixed precision from now on; the
  /// dtypes of fetches do not change. Copies of parameters in fp16 or bf16 are
  /// added to the scope.
  void set_mixed_precision(std::optional<AmpSpec> amp) {
    amp_ = std::move(amp);
  }

  /// Runs the passes on a copy of `program` and compiles it for feeds of these
  /// shapes, over this session's scope and for its device. On a GPU only passes
  /// run whose results have kernels there, and a line in the log names the ops
  /// without a kernel. `label` identifies the program, with its fetches, to an
  /// observer of the passes.
  absl::StatusOr<std::unique_ptr<Plan>> Compile(
      const ProgramDesc& program, const std::vector<FeedSpec>& feeds,
      const std::vector<std::string>& fetches, const std::string& label = "");

  /// Compiles, runs once, and forgets the plan (startup programs).
  absl::Status RunOnce(const ProgramDesc& program,
                       const std::string& label = "startup");

  /// Compiles, runs once, and returns the fetches by name. A feed of a
  /// persistable variable becomes that variable's value.
  absl::StatusOr<NamedArrays> Run(const ProgramDesc& program,
                                  const NamedArrays& feeds,
                                  const std::vector<std::string>& fetches,
                                  const std::string& label = "");

 private:
  const OpRegistry* registry_;
  uint64_t seed_;
  std::shared_ptr<const DevicePlace> place_;
  PlanOptions options_;
  absl::Status MixPrecisionOf(const std::vector<std::string>& fetches,
                              ProgramDesc* program);
  // Gives variables that share memory (coalesce_tensor) bytes of their own
  // where that is possible; the scope records the others.
  absl::Status ShareMemory(const std::vector<std::string>& fetches,
                           ProgramDesc* program);

  PassOptions passes_;
  std::optional<AmpSpec> amp_;
  Scope scope_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_SESSION_H_
