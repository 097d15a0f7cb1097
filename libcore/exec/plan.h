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

/// A variable whose value the caller gives at every run.
struct FeedSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  LoD lod = {};  ///< of sequences; a plan fits one LoD, as it fits one shape
};

struct PlanOptions {
  /// Fills the arena with NaN bits before it is used (tests).
  bool poison = false;
  /// Every step's outputs are checked for NaN and Inf (nan_check.h).
  bool check_nan_inf = false;
  /// Exemptions from that check; null: those of the environment.
  std::shared_ptr<const NanRules> nan_rules;
  /// No step overwrites its inputs, so that a hook can read them after the
  /// step. Persistable variables are still updated in place.
  bool separate = false;
  /// Persistable variables do not change while the plan exists, except by the
  /// plan itself, so steps may cache data derived from weights, such as a
  /// packed form.
  bool frozen = false;
  /// The device of the plan; null: the CPU. Ops without an implementation on
  /// the device run on the CPU, between copies.
  std::shared_ptr<const DevicePlace> place;
  /// On a GPU, work that is the same in every run is captured into a CUDA graph
  /// once and replayed.
  bool capture = true;
};

/// Options for the plans of a session that only runs inference.
inline PlanOptions InferencePlans() {
  PlanOptions options;
  options.frozen = true;
  return options;
}

/// The report on the step of one op, or on a reorder or copy between ops.
struct StepInfo {
  std::string op_type;         ///< "reorder" for a change of layout
  std::string output;          ///< its first output
  std::string implementation;  ///< the label that accepted
  /// Whether the step runs on the device. A copy between host and device does;
  /// for a late op it is true when its last run did; for an op that runs
  /// blocks, when every step of theirs that produces floats did.
  bool on_device = false;
  /// "label: reason" of each implementation that refused before.
  std::vector<std::string> refusals;
  int32_t role = kRoleForward;  ///< op_role; for a reorder, that of its op
  std::string layer;            ///< op_namescope: "/stage1/0/conv1/", or ""
  /// As OpFlops counts; 0 for op types without a count and for late ops.
  int64_t flops = 0;
  /// Bytes of the tensors that the step reads and writes; 0 for late ops.
  int64_t bytes_read = 0, bytes_written = 0;
};

/// "op 'mul' that makes 'fc_0.tmp_0'".
std::string DescribeStep(const StepInfo& info);

/// A buffer of a plan's arena. Buffers whose lifetimes do not overlap share
/// bytes.
struct PlannedBuffer {
  std::string name;  ///< the first variable in it; "" for scratch memory
  size_t bytes = 0;
  int first = 0, last = 0;  ///< its lifetime, in steps
};

/// Memory of a plan, in bytes.
struct PlanStats {
  size_t arena_bytes = 0;      ///< allocated by the plan
  size_t unplanned_bytes = 0;  ///< if no two tensors shared memory
  size_t persistable_bytes = 0;
  size_t device_bytes = 0;  ///< the arena in a GPU's memory
};

/// The op of a step, and the plan's tensors of its variables.
struct StepVariables {
  using List = std::vector<std::pair<std::string, Tensor*>>;
  int64_t index = -1;  ///< the op's in block 0; -1 for reorders and copies
  OpDesc op;           ///< normalized
  /// In name order. After the step the bytes of an input may be overwritten or
  /// in another layout, unless PlanOptions::separate is set.
  List inputs, outputs;
};

class DevicePool;
class LateDevice;
class NanCheck;
class PlanDevice;

class Plan {
 public:
  /// Compiles block 0 of `program` without its feed and fetch ops, and without
  /// ops that neither a fetch nor a persistable variable needs. Errors name the
  /// op. `registry` and `scope` outlive the plan.
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

  /// Runs every step. `hook` is called before the plan's own check for NaN. An
  /// error names the op and its output.
  absl::Status Run(const RunContext& context, StepHook* hook = nullptr);

  /// Whether a run may be started before the previous one has ended: on a GPU
  /// that does all of the work, without hooks or checks between steps.
  bool runs_ahead() const;
  /// Run in two parts: while the GPU computes one run, the next one can be fed
  /// and started. At most two runs are in flight; Wait blocks until the older
  /// one has ended, whose fetches are valid until the next Wait.
  absl::Status Start(const RunContext& context, StepHook* hook = nullptr);
  absl::Status Wait();

  /// Fetch i after a run, row-major; valid until the next one.
  const Tensor& fetch(size_t i) const { return *fetches_[i]; }

  const std::vector<StepInfo>& steps() const { return infos_; }
  /// The op of step i with its inputs and outputs. Their bytes may be in a
  /// device's memory: see OnHost.
  const StepVariables& variables(size_t i) const { return variables_[i]; }
  size_t feeds() const { return feeds_.size(); }
  /// A variable of a step, or of an op of a block, in the host's memory: a
  /// tensor in a device's memory is copied, synchronously. For hooks.
  absl::StatusOr<Tensor> OnHost(const Tensor& tensor) const;
  /// Device memory for values whose shapes depend on data; null when the plan
  /// has none.
  const DevicePool* pool() const;
  /// The plan's device; null: the CPU.
  const DevicePlace* place() const;
  /// The tensor that owns the bytes of `tensor`, which may be a view (reshape).
  const Tensor* ValueOf(const Tensor* tensor) const;
  /// Null unless PlanOptions::check_nan_inf is set.
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
  std::unordered_map<const Tensor*, const Tensor*> views_;  // to its owner
  std::unique_ptr<NanCheck> check_;                         // null: no check
  std::vector<Feed> feeds_;
  std::vector<Tensor*> fetches_;
  std::vector<Scope::Entry*> pinned_;
  std::shared_ptr<void> arena_;
  std::unique_ptr<PlanDevice> device_;  // null: the CPU
  ProgramDesc program_;                 // empty unless steps run its blocks
  std::unique_ptr<LateDevice> late_;    // null without a device or late ops
  std::unique_ptr<BlockExecutor> blocks_;
  std::deque<Frame> frames_;  // variables of steps that run blocks
  PlanStats stats_;
  std::vector<PlannedBuffer> buffers_;
  const World* world_ = nullptr;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_PLAN_H_
