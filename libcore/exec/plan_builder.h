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
#include <unordered_set>
#include <utility>
#include <vector>

#include "libcore/exec/plan.h"

namespace pd {

class OpBinder;

/// What is known of a step that moves values between those of ops.
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

  // kLate: bytes of its own: its shape is known when it runs, or it is a fetch
  // from a device. kConstant: bytes of its own that no step writes.
  enum class Kind { kArena, kFeed, kPersistable, kLate, kConstant };

  // What is known of a Tensor of this plan.
  struct Info {
    Kind kind = Kind::kArena;
    Scope::Entry* entry = nullptr;  // of a persistable
    Tensor* root = nullptr;         // whose bytes it uses; itself mostly
    int first = -1, last = -1;      // steps that touch it; of roots, the union
    bool keep = false;              // until the end of the run
    bool device = false;            // the bytes are in the device's memory
    std::string name;               // the variable, where it is one
  };
  // A permission to put `out` into the bytes of `in` at a step.
  struct Sharing {
    int step;
    Tensor *in, *out;
    std::shared_ptr<const std::vector<Tensor*>> touched;  // by the same op
  };

  // The two copies of a persistable in a plan for a device.
  struct Sides {
    enum class Writer { kNone, kHost, kDevice };
    Tensor *host = nullptr, *twin = nullptr;
    bool host_reads = false, device_reads = false;  // what was before the run
    Writer writer = Writer::kNone;                  // the last one so far
  };

  std::vector<bool> NeededOps(const std::vector<std::string>& fetches) const;
  absl::Status AddFeeds(const std::vector<FeedSpec>& feeds);
  absl::Status AddOp(const OpDesc& op, size_t index);
  absl::Status InferOutputs(const OpDef& def, const OpDesc& op,
                            std::map<std::string, TensorMeta>* outputs);
  // known_values.cc: small values that follow from shapes and constants.
  const Tensor* KnownValue(Tensor* tensor);
  absl::Status LearnValues(const OpDesc& op,
                           const std::map<std::string, Tensor*>& inputs,
                           const std::map<std::string, Tensor*>& outputs);

  // late_steps.cc: ops that are inferred and bound when they run.
  bool MustBeLate(const OpDef& def,
                  const std::map<std::string, Tensor*>& inputs) const;
  absl::Status AddLateOp(const OpDesc& op, size_t index);
  absl::Status ResolveLateInputs(const OpDesc& op,
                                 std::map<std::string, Tensor*>* inputs,
                                 std::map<std::string, Tensor*>* previous,
                                 std::map<std::string, Tensor*>* outputs);
  Tensor* MakeLateOutput(const std::string& name);
  absl::Status PrepareLate();
  absl::Status PlaceLate(const LateOp& op, OpBinder* binder);
  Tensor* LateFetch(const std::string& name, Tensor* tensor);
  bool IsArray(const std::string& name) const;

  // device_steps.cc: ops and values on a device.
  absl::StatusOr<bool> BindOnDevice(
      const OpDesc& op, size_t index,
      const std::map<std::string, Tensor*>& inputs,
      const std::map<std::string, Tensor*>& outputs, StepInfo* info);
  bool FitsDevice(const std::map<std::string, Tensor*>& tensors,
                  bool selected_rows);
  bool OnDevice(Tensor* tensor);
  Sides* SidesOf(Tensor* persistable);
  absl::StatusOr<Tensor*> TwinOf(Sides* sides);
  absl::StatusOr<Tensor*> ReadOn(Tensor* tensor, bool device);
  absl::StatusOr<bool> MakeConstants(
      const OpDesc& op, const std::map<std::string, Tensor*>& inputs,
      const std::map<std::string, Tensor*>& outputs);
  absl::StatusOr<Tensor*> ConstantOnDevice(Tensor* host);
  absl::StatusOr<Tensor*> WriteOn(Tensor* tensor, bool device);
  void NoteWritten(const std::map<std::string, Tensor*>& outputs);
  Tensor* NewestOf(Tensor* tensor);
  absl::StatusOr<Step> Transfer(Tensor* from, Tensor* to);
  Step CopyBytes(Tensor* in, Tensor* out);
  absl::StatusOr<Tensor*> FetchedOnHost(const std::string& name,
                                        Tensor* tensor);
  absl::Status CompleteDevice();

  absl::StatusOr<Tensor*> ResolveInput(const std::string& name);
  absl::StatusOr<Tensor*> MakeOutput(const std::string& name,
                                     const TensorMeta& meta);
  absl::Status BindOp(const OpDef& def, const OpDesc& op, size_t index,
                      const std::map<std::string, Tensor*>& inputs,
                      const std::map<std::string, Tensor*>& outputs);
  absl::Status AddFetches(const std::vector<std::string>& fetches);
  int AddStep(Step step, StepInfo info);
  StepInfo Describe(const OpDesc& op) const;
  void SetVariables(int step, StepVariables variables);
  void Link(Tensor* in, Tensor* out, size_t op_index);
  absl::StatusOr<Step> Reorder(Tensor* from, Tensor* to);
  // Between a half and float32, both of one layout; rounds to nearest.
  absl::StatusOr<Step> Cast(Tensor* from, Tensor* to);
  absl::StatusOr<Step> CastOnDevice(const OpDesc& cast, Tensor* from,
                                    Tensor* to);
  // One attempt of one implementation; the plan has the step when it gives
  // true. False: refused, with the reason in `info`.
  absl::StatusOr<bool> TryToBind(const Implementation& implementation,
                                 OpBinder* binder, bool widened,
                                 StepInfo* info);

  void TrackPersistable(const std::string& name, Scope::Entry* entry);
  Tensor* NewTensor(DType dtype, Shape shape, Kind kind);
  // Room for the same value on the other side.
  Tensor* CopyOf(const Tensor* tensor, Kind kind);
  Info& InfoOf(const Tensor* tensor);
  Tensor* Root(Tensor* tensor);
  void Touch(Tensor* tensor, int step);
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
  std::unordered_map<std::string, const VarDesc*> vars_;
  std::unordered_map<std::string, Tensor*> current_;  // name -> newest value
  std::unordered_map<const Tensor*, Info> infos_;
  std::unordered_map<std::string, Tensor*> kept_;
  // Row-major or other copies of a tensor, until it is written again.
  std::unordered_map<const Tensor*, std::vector<Tensor*>> copies_;
  std::unordered_map<std::string, size_t> last_write_;  // persistable -> op
  std::unordered_map<const Tensor*, std::string> persistable_names_;
  std::vector<Sharing> sharings_;
  std::unordered_map<const Tensor*, std::unique_ptr<Tensor>> known_;
  std::unordered_set<const Tensor*> late_;          // shape known when it runs
  std::map<Tensor*, Sides> sides_;                  // by the host's tensor
  std::unordered_map<Tensor*, Tensor*> twins_;      // -> the host's tensor
  std::unordered_map<Tensor*, Tensor*> constants_;  // -> the device's copy
  bool all_here_ = true;  // every fetch comes from the device
};

}  // namespace pd

#endif  // PD_LIBCORE_EXEC_PLAN_BUILDER_H_
