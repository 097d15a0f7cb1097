// SPDX-License-Identifier: Apache-2.0
// One model with its parameters, which a predictor and its clones share: a
// Session, and the rule by which several threads use it. Compiling rearranges
// parameters, so it waits for runs to end and holds back new ones.
#ifndef PD_LIBCORE_INFERENCE_SHARED_MODEL_H_
#define PD_LIBCORE_INFERENCE_SHARED_MODEL_H_

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/exec/session.h"
#include "libcore/model/load_model.h"

namespace pd {
namespace inference {

/// A config, as far as a run depends on it.
struct ModelOptions {
  std::string model_dir, prog_file, params_file;
  /// Instead of files, where not null.
  std::shared_ptr<const std::string> program_bytes, params_bytes;
  int threads = 1;
  size_t kept_plans = 10;   ///< per predictor; 0: all
  uint64_t kept_bytes = 0;  ///< of their arenas but the last one's; 0: any
  bool onednn = true;
  std::set<std::string> disabled_passes;
  std::string dump_folder;  ///< of programs after passes; "": none
  std::optional<AmpSpec> amp;
  /// Where not empty, the only ops that `amp` lets compute in 16 bits.
  std::set<std::string> amp_ops;
  bool profile = false;
  bool external_stream = false;              ///< clones are given streams
  std::shared_ptr<const DevicePlace> place;  ///< null: the CPU
};

class SharedModel {
 public:
  /// Reads the model. The readers' errors name the file; InvalidArgument where
  /// the options name none.
  static absl::StatusOr<std::shared_ptr<SharedModel>> Load(
      const ModelOptions& options);
  /// Shares a model that has been read already, with the process's flags as
  /// they are; the files of `options` are not looked at.
  static absl::StatusOr<std::shared_ptr<SharedModel>> Make(
      LoadedModel model, const ModelOptions& options);

  const ModelOptions& options() const { return options_; }
  const std::string& path() const { return model_.path; }
  const ProgramDesc& program() const { return model_.program; }
  const std::vector<std::string>& inputs() const { return model_.feeds; }
  const std::vector<std::string>& outputs() const { return model_.fetches; }
  /// Whether an output depends on the input.
  bool needs(size_t input) const { return needed_[input]; }
  /// As the program declares it; null when it does not.
  const VarDesc* Declared(const std::string& name) const {
    return model_.program.global().FindVar(name);
  }
  /// The program with feed and fetch ops, as a .pdmodel holds it.
  absl::StatusOr<std::string> Serialized() const;

  /// Each of these may be called from any thread. Errors name the model.
  absl::StatusOr<std::unique_ptr<Plan>> Compile(
      const std::vector<FeedSpec>& feeds);
  absl::Status Run(Plan* plan, StepHook* hook);
  void Forget(std::unique_ptr<Plan> plan);

 private:
  explicit SharedModel(const ModelOptions& options) : options_(options) {}
  absl::Status FillSession();
  absl::Status Annotated(const absl::Status& status) const;

  ModelOptions options_;
  LoadedModel model_;
  std::vector<bool> needed_;
  std::unique_ptr<OpRegistry> registry_;
  std::unique_ptr<Session> session_;
  // A thread that compiles takes the gate, then waits for the runs; one that
  // runs goes through the gate, so the runs of others cannot keep out the
  // former for ever.
  std::mutex gate_;
  std::shared_mutex runs_;
};

}  // namespace inference
}  // namespace pd

#endif  // PD_LIBCORE_INFERENCE_SHARED_MODEL_H_
