// SPDX-License-Identifier: Apache-2.0
// Compiles a block into a Plan: keeps the ops that are needed, infers shapes,
// asks implementations in order, inserts reorders, plans the memory. Internal
// to libcore/exec.
#ifndef PD_LIBCORE_EXEC_PLAN_BUILDER_H_
#define PD_LIBCORE_EXEC_PLAN_BUILDER_H_

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "libcore/exec/offer.h"
#include "libcore/exec/plan.h"
#include "libcore/exec/plan_tensors.h"
#include "libcore/exec/residency.h"

namespace pd {

class OpBinder;

/// The description of a step that moves values between steps of ops.
StepInfo MoveInfo(const char* kind, std::string output, const Tensor& from,
                  const Tensor& to);

class PlanBuilder {
 public:
  PlanBuilder(const OpRegistry& registry, const ProgramDesc& program,
              Scope* scope, const PlanOptions& options);

  absl::StatusOr<std::unique_ptr<Plan>> Build(
      const std::vector<FeedSpec>& feeds,
      const std::vector<std::string>& fetches);

 private:
  friend class OpBinder;

  using Kind = PlanTensors::Kind;
  using Info = PlanTensors::Info;

  // A permission to put `out` into the bytes of `in` at a step.
  struct Sharing {
    int step;
    Tensor *in, *out;
    std::shared_ptr<const std::vector<Tensor*>> touched;  // by the same op
  };

  std::vector<bool> NeededOps(const std::vector<std::string>& fetches) const;
  absl::Status AddFeeds(const std::vector<FeedSpec>& feeds);
  absl::Status AddOp(const OpDesc& op, size_t index);
  // Whether an op of the program reads an output of `op`.
  bool IsReadByOps(const OpDesc& op) const;
  absl::Status InferOutputs(const OpDef& def, const OpDesc& op,
                            std::map<std::string, TensorMeta>* outputs);
  // known_values.cc: small values that follow from shapes and constants.
  const Tensor* KnownValue(Tensor* tensor);
  absl::Status LearnValues(const OpDef& def, const OpDesc& op,
                           const TensorMap& inputs, const TensorMap& outputs);

  // late_steps.cc: ops that are inferred and bound when they run.
  bool MustBeLate(const OpDef& def, const TensorMap& inputs) const;
  absl::Status AddLateOp(const OpDesc& op, size_t index);
  absl::Status ResolveLateInputs(const OpDesc& op, TensorMap* inputs,
                                 TensorMap* previous, TensorMap* outputs);
  Tensor* MakeLateOutput(const std::string& name);
  absl::Status PrepareLate();
  absl::Status PlaceLate(const LateOp& op, OpBinder* binder);
  Tensor* LateFetch(const std::string& name, Tensor* tensor);
  bool IsArray(const std::string& name) const;

  // device_steps.cc: ops and values on a device.
  absl::StatusOr<bool> MakeConstants(const OpDef& def, const TensorMap& inputs,
                                     const TensorMap& outputs);
  // The newest value of a variable that an op has written.
  Tensor* NewestOf(Tensor* tensor) {
    return residency_ == nullptr ? tensor : residency_->Newest(tensor);
  }
  absl::StatusOr<Tensor*> FetchedOnHost(const std::string& name,
                                        Tensor* tensor);
  absl::Status CompleteDevice();

  absl::StatusOr<Tensor*> ResolveInput(const std::string& name);
  absl::StatusOr<Tensor*> MakeOutput(const std::string& name,
                                     const TensorMeta& meta);
  absl::Status BindOp(const OpDef& def, const OpDesc& op, size_t index,
                      const TensorMap& inputs, const TensorMap& outputs);
  absl::Status AddFetches(const std::vector<std::string>& fetches);
  int AddStep(Step step, StepInfo info);
  StepInfo Describe(const OpDesc& op) const;
  void SetVariables(int step, StepVariables variables);
  void Link(Tensor* in, Tensor* out, size_t op_index);
  absl::StatusOr<Step> Reorder(Tensor* from, Tensor* to);
  // Between fp16 or bf16 and float32, both of one layout; rounds to nearest.
  absl::StatusOr<Step> Cast(Tensor* from, Tensor* to);
  // Binds one implementation; the plan has its step when it accepts.
  absl::Status Bind(const Implementation& implementation, bool upcast,
                    OpBinder* binder, StepInfo* info);

  bool IsPersistable(const std::string& name) const;
  // True when an op at or after `op_index` writes the persistable.
  bool WrittenLater(const Tensor* tensor, size_t op_index) const;

  void ShareBuffers();
  absl::Status PlaceBuffers();
  absl::Status PlaceBuffers(bool device);
  void CollectFeedAliases();

  const OpRegistry& registry_;
  const ProgramDesc& program_;
  const BlockDesc& block_;
  Scope* scope_;
  PlanOptions options_;
  bool training_ = false;  // there are gradient ops
  std::unique_ptr<Plan> plan_;
  PlanTensors tensors_;
  std::unique_ptr<Residency> residency_;  // of a plan for a GPU; else null
  absl::flat_hash_map<absl::string_view, const VarDesc*> vars_;
  absl::flat_hash_map<std::string, Tensor*> current_;  // name -> newest value
  absl::flat_hash_map<std::string, Tensor*> kept_;
  absl::flat_hash_map<std::string, size_t> last_write_;  // persistable -> op
  std::vector<Sharing> sharings_;
  std::unordered_map<const Tensor*, std::unique_ptr<Tensor>> known_;
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_PLAN_BUILDER_H_
