// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a run: RUN/checkpoints/step-N/ with model.pdmodel,
// model.pdparams, model.pdopt (as PaddlePaddle writes them) and state.json,
// where the network acts in environments experience.npz, and RUN/latest, which
// names the newest. A checkpoint is written in a folder of another name, synced
// and renamed, and renamed again before it is removed: it is complete or
// absent. state.json holds sizes and checksums of the other files, so damage is
// found when it is read.
#ifndef PD_LIBCORE_MODEL_CHECKPOINT_H_
#define PD_LIBCORE_MODEL_CHECKPOINT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "formats/pickle.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/optim/lr_schedule.h"

namespace pd {

/// The state of early stopping.
struct EarlyStoppingState {
  double best_value = 0;
  int64_t best_step = -1;  ///< -1: nothing was better yet than the baseline
  int64_t wait = 0;        ///< comparisons since then
};

/// Where a run stands, exactly: resuming from it gives the bits of a run that
/// was never stopped.
struct TrainState {
  int64_t step = 0;   ///< steps done
  int64_t epoch = 0;  ///< of the next step, from 0
  int64_t batch = 0;  ///< of the next step, in its epoch
  uint64_t seed = 0;
  int threads = 0;  ///< the bits depend on it
  /// Loss of the epoch so far: sum over records and number of records.
  double loss_sum = 0;
  int64_t loss_records = 0;
  std::string best_metric;  ///< "" when none is followed
  double best_value = 0;
  int64_t best_step = -1;  ///< -1: nothing evaluated yet
  EarlyStoppingState early_stopping;
  std::optional<ReduceOnPlateau> plateau;  ///< the schedule, where it is one
  int64_t evaluated_step = -1;             ///< the last evaluation's; -1: none
  int64_t log_bytes = 0;  ///< size of RUN/log.jsonl at this moment
  bool done = false;      ///< training has reached its end
};

struct Checkpoint {
  TrainState state;
  ProgramDesc program;  ///< the training program
  NamedArrays params;   ///< parameters
  NamedArrays opt;      ///< every other persistable variable
  /// The past of environments (libcore/data/experience.h), where there is one.
  NamedArrays experience;
  // Further contents that PaddlePaddle needs in the files; not read back.
  /// Variable -> PaddlePaddle's name of the parameter or statistic:
  /// "fc.weight" -> "linear_0.w_0".
  std::vector<std::pair<std::string, std::string>> parameter_names;
  /// The state_dict of the job's learning rate schedule, where it has one.
  std::optional<PickleDict> lr_scheduler;
};

/// The folder of the checkpoint of `step`.
std::string CheckpointPath(const std::string& run, int64_t step);

/// Writes the checkpoint of `state.step` and makes it RUN/latest. Then removes
/// checkpoints older than the `keep_last` newest (0: none), never
/// those of the best steps of `state`.
absl::Status WriteCheckpoint(const std::string& run,
                             const Checkpoint& checkpoint, int keep_last);

/// Removes what killed processes left in a run's folder: temporary files, and
/// checkpoints half-written or half-removed. The caller holds the folder's
/// lock.
void RemoveRemainsOfRun(const std::string& run);

/// Steps of the complete checkpoints of a run, rising; empty when there are
/// none.
std::vector<int64_t> ListCheckpoints(const std::string& run);

/// The folder of the newest complete checkpoint: the one that RUN/latest names.
/// NotFound when the run has none.
absl::StatusOr<std::string> NewestCheckpoint(const std::string& run);

/// The state of a checkpoint alone; its other files are not looked at.
absl::StatusOr<TrainState> ReadTrainState(const std::string& folder);

/// Reads a checkpoint's folder. DataLoss names the damaged file and says how.
absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& folder);

}  // namespace pd

#endif  // PD_LIBCORE_MODEL_CHECKPOINT_H_
