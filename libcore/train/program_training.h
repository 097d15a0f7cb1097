// SPDX-License-Identifier: Apache-2.0
// Runs training Programs that somebody saved, as they are: several in turn in
// every step, over one set of variables.
#ifndef PD_LIBCORE_TRAIN_PROGRAM_TRAINING_H_
#define PD_LIBCORE_TRAIN_PROGRAM_TRAINING_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/exec/session.h"
#include "libcore/model/lod_json.h"

namespace pd {

class NanGuard;

struct ProgramTrainingOptions {
  std::vector<ProgramDesc> programs;
  std::vector<std::string> paths;  ///< their files, for messages; or empty
  /// As many as programs: each of its own program. Else each of the last
  /// program that makes it. Where several processes train, one that a program
  /// of another process alone has is left out.
  std::vector<std::string> losses;
  std::vector<std::string> fetches;  ///< found as losses are
  /// Variable -> [steps, ...]: what is fed, or set where it is persistable.
  NamedArrays batches;
  int64_t steps = 0;       ///< where there are no batches
  std::vector<LoDs> lods;  ///< by step, for feeds that are sequences
  uint64_t seed = 0;
  /// Parts of a batch, equal and along axis 0, that stages of pipelines run one
  /// after the other (pipeline_stage.h).
  int64_t micro_batches = 1;
  PassOptions passes;
  NanGuard* guard = nullptr;  ///< looks for NaN and Inf; outlives the training
};

class ProgramTraining {
 public:
  /// InvalidArgument when batches do not agree on the number of steps or the
  /// programs lack a loss; the registry outlives the result.
  static absl::StatusOr<std::unique_ptr<ProgramTraining>> Create(
      const OpRegistry* registry, ProgramTrainingOptions options);

  /// Sets initial values: from startup programs and state files.
  Session& session() { return session_; }
  int64_t steps() const { return steps_; }
  /// The losses that programs of this process have.
  const std::vector<std::string>& loss_names() const { return options_.losses; }

  /// Step `step` (from 0): sets and feeds its batch and runs every program.
  absl::Status Run(int64_t step);
  /// After a step: the losses, in the order of the options; each of every
  /// micro-batch.
  const std::vector<double>& losses() const { return losses_; }
  const NamedArrays& fetched() const { return fetched_; }

  /// Writes PREFIX.pdmodel (the first program), PREFIX.pdparams (parameters)
  /// and PREFIX.pdopt (every other persistable that has a value), which
  /// paddle.static.load takes.
  absl::Status Save(const std::string& prefix) const;

 private:
  ProgramTraining(const OpRegistry* registry, ProgramTrainingOptions options)
      : options_(std::move(options)), session_(registry, options_.seed) {
    session_.set_pass_options(options_.passes);
  }

  absl::Status Prepare();
  absl::Status Assign(const std::string& name, size_t* program) const;
  bool Makes(size_t program, const std::string& name) const;
  bool Knows(const std::string& name) const;
  absl::Status CutIntoStages();
  absl::StatusOr<Array> BatchOf(const std::string& name, int64_t step) const;
  absl::StatusOr<NamedArrays> FeedsOf(size_t program, int64_t step,
                                      int64_t micro_batch) const;
  absl::Status SetPersistables(int64_t step);
  absl::StatusOr<Plan*> PlanFor(size_t program, const NamedArrays& feeds);
  absl::Status RunProgram(size_t program, int64_t step, int64_t micro_batch);
  absl::Status RunPrograms(int64_t step, size_t count);
  void BeginGuard();
  absl::Status TraceNan(int64_t step, const absl::Status& found);

  // A program with what it is fed and what is taken from it.
  struct Part {
    int64_t micro_batches = 1;
    std::vector<std::string> feeds, fetches;
    std::map<std::string, std::unique_ptr<Plan>> plans;  // by shapes and LoD
  };

  ProgramTrainingOptions options_;
  Session session_;
  std::vector<ProgramDesc> given_;  // programs before they were cut
  int64_t steps_ = 0;
  std::vector<std::string> persistable_batches_;
  std::vector<size_t> loss_program_, fetch_program_;
  std::vector<Part> parts_;
  std::vector<Plan*> step_plans_;  // of the step, those that were run
  std::vector<double> losses_;
  NamedArrays fetched_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_PROGRAM_TRAINING_H_
