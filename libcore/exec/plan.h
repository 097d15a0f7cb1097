// SPDX-License-Identifier: Apache-2.0
// A program compiled for given input shapes: a flat list of bound steps over
// one arena. Running it allocates nothing and looks nothing up.
#ifndef PD_LIBCORE_EXEC_PLAN_H_
#define PD_LIBCORE_EXEC_PLAN_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/exec/block_executor.h"
#include "libcore/exec/nan_rules.h"
#include "libcore/exec/scope.h"
#include "libcore/exec/step_hook.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/device_place.h"
#include "libcore/ops/registry.h"

namespace pd {

/// A variable that is given from outside at every run.
struct FeedSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  LoD lod = {};  ///< of sequences; a plan is for one LoD as it is for one shape
};

struct PlanOptions {
  /// Fills the arena with NaN bits before it is used (tests).
  bool poison = false;
  /// Every step's outputs are checked for NaN and Inf (nan_check.h).
  bool check_nan_inf = false;
  /// Exemptions from that check; null: those of the environment.
  std::shared_ptr<const NanRules> nan_rules;
  /// No step writes over its inputs: they are there when it has run.
  /// Persistable variables are still updated in place.
  bool separate = false;
  /// Nobody outside of the plan writes persistable variables while it lives:
  /// steps may keep what they make of weights, such as a form of their own.
  bool frozen = false;
  /// Where to compute; null: on the CPU. Ops that have no implementation there
  /// run on the CPU, between copies.
  std::shared_ptr<const DevicePlace> place;
  /// On a GPU, a run whose work is the same every time is captured once.
  bool capture = true;
};

/// Options for the plans of a session that only runs inference.
inline PlanOptions InferencePlans() {
  PlanOptions options;
  options.frozen = true;
  return options;
}

/// The report on one op, or on a reorder that was put between ops.
struct StepInfo {
  std::string op_type;         ///< "reorder" for a change of layout
  std::string output;          ///< its first output
  std::string implementation;  ///< the label that accepted
  /// Or a copy to or from one. Of a late op: where the last run had it; of one
  /// that runs blocks, that all of them that make floats were there.
  bool on_device = false;
  /// "label: reason" of those that were asked before.
  std::vector<std::string> refusals;
  int32_t role = kRoleForward;  ///< op_role; of a reorder, its op's
  std::string layer;            ///< op_namescope: "/stage1/0/conv1/", or ""
  /// As OpFlops counts; 0 for types that count nothing and for late ops.
  int64_t flops = 0;
  /// Of the tensors that it reads and writes; 0 for late ops.
  int64_t bytes_read = 0, bytes_written = 0;
};

/// "op 'mul' that makes 'fc_0.tmp_0'".
std::string DescribeStep(const StepInfo& info);

/// A buffer of a plan's arena. Buffers that are alive in different steps share
/// bytes.
struct PlannedBuffer {
  std::string name;  ///< the first variable in it; "" for scratch memory
  size_t bytes = 0;
  int first = 0, last = 0;  ///< the steps that it is needed in
};

/// Bytes, to be printed.
struct PlanStats {
  size_t arena_bytes = 0;      ///< allocated by the plan
  size_t unplanned_bytes = 0;  ///< the same tensors without sharing memory
  size_t persistable_bytes = 0;
  size_t device_bytes = 0;  ///< the arena in a GPU's memory
};

/// The op of a step and its variables, whose tensors are those of the plan.
struct StepVariables {
  using List = std::vector<std::pair<std::string, Tensor*>>;
  int64_t index = -1;  ///< of the op in block 0; -1 for reorders and copies
  OpDesc op;           ///< normalized
  /// In name order. The bytes of an input are gone where the plan computes in
  /// place or in another layout (PlanOptions::separate).
  List inputs, outputs;
};

class DevicePool;
class LateDevice;
class NanCheck;
class PlanDevice;

class Plan {
 public:
  /// Compiles block 0 of `program`, whose feed and fetch ops are left out.
  /// Only ops that fetches or persistable variables need are compiled. Errors
  /// name the op. `registry` and `scope` outlive the plan.
  static absl::StatusOr<std::unique_ptr<Plan>> Compile(
      const OpRegistry& registry, const ProgramDesc& program,
      const std::vector<FeedSpec>& feeds,
      const std::vector<std::string>& fetches, Scope* scope,
      const PlanOptions& options = {});
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// The bytes of feed i for the next runs, row-major, of the compiled shape.
  void SetFeed(size_t i, const void* data);
  const Tensor& feed(size_t i) const { return *feeds_[i].tensors.front(); }

  /// Runs every step. A hook's After comes before the plan's own check. An
  /// error names the op and its output.
  absl::Status Run(const RunContext& context, StepHook* hook = nullptr);

  /// True where runs may be started ahead: on a GPU, with all of the work there
  /// and nothing to look at between steps.
  bool runs_ahead() const;
  /// The two parts of Run: while the GPU computes one run, the next can be fed
  /// and started. At most two runs are under way; Wait ends the older one,
  /// whose fetches are then there until the next Wait.
  absl::Status Start(const RunContext& context, StepHook* hook = nullptr);
  absl::Status Wait();

  /// Fetch i after a run, row-major; valid until the next one.
  const Tensor& fetch(size_t i) const { return *fetches_[i]; }

  const std::vector<StepInfo>& steps() const { return infos_; }
  /// The op of step i, what it reads and what it writes. Their bytes may be on
  /// a device: see OnHost.
  const StepVariables& variables(size_t i) const { return variables_[i]; }
  size_t feeds() const { return feeds_.size(); }
  /// A variable of a step, or of an op of a block, as host code can read it: of
  /// what lies on a device a copy, which is waited for. For hooks.
  absl::StatusOr<Tensor> OnHost(const Tensor& tensor) const;
  /// Device memory for values whose shapes follow from data; null where there
  /// are none.
  const DevicePool* pool() const;
  /// Where it computes; null: on the CPU.
  const DevicePlace* place() const;
  /// The tensor whose bytes this one is another view of (reshape), else itself.
  const Tensor* ValueOf(const Tensor* tensor) const;
  /// Null unless PlanOptions::check_nan_inf asked for it.
  NanCheck* nan_check() const { return check_.get(); }
  const PlanStats& stats() const { return stats_; }
  const std::vector<PlannedBuffer>& buffers() const { return buffers_; }

 private:
  friend class PlanBuilder;
  Plan();

  struct Feed {
    std::vector<Tensor*> tensors;  // the feed and what aliases it
    const void* data = nullptr;    // given by SetFeed
  };
  absl::Status RunSteps(const RunContext& context, StepHook* hook);
  absl::Status RunOnDevice(const RunContext& context, StepHook* hook);
  void Attach(const Feed& feed, const void* data);
  void NoteLate(size_t step, const LateOp::Variables& outputs);
  std::deque<Tensor> tensors_;
  std::vector<Step> steps_;
  std::vector<StepInfo> infos_;
  std::vector<StepVariables> variables_;                    // per step
  std::unordered_map<const Tensor*, const Tensor*> views_;  // -> of what
  std::unique_ptr<NanCheck> check_;  // where it was asked for
  std::vector<Feed> feeds_;
  std::vector<Tensor*> fetches_;
  std::vector<Scope::Entry*> pinned_;
  std::shared_ptr<void> arena_;
  std::unique_ptr<PlanDevice> device_;  // where it computes on one
  ProgramDesc program_;                 // where steps run its blocks
  std::unique_ptr<LateDevice> late_;    // both
  std::unique_ptr<BlockExecutor> blocks_;
  std::deque<Frame> frames_;  // of those steps
  PlanStats stats_;
  std::vector<PlannedBuffer> buffers_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_PLAN_H_
