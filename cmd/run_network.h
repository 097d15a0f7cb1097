// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_RUN_NETWORK_H_
#define PD_CMD_RUN_NETWORK_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/exec/plan.h"
#include "libcore/exec/session.h"
#include "libcore/model/load_model.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/train/answer.h"

namespace pd {

/// A network of a job, with what the job says of it.
struct NetworkOfJob {
  std::optional<LoadedJob> job;   ///< none for a model with its own network
  std::vector<LayerInfo> layers;  ///< as evaluation runs them
  std::vector<std::string> training_layers;  ///< names, as training runs them
  std::string run;  ///< whose words and classes count; "": none
  std::vector<FeedSpec> inputs;
  Answer answer;  ///< which of the model's fetches says what
};

/// Turns a run directory's model, a training program, or parameters alone into
/// the network that a job describes, as evaluation runs it (losses included):
/// program, inputs and outputs. The job is the file `config`; "" is the run's
/// own, and a usage error for parameters. Other models stay as they are.
/// Classes are those of the run. `network`, where given, gets what the job says
/// besides; nothing for other models.
absl::Status UseNetworkOfJob(const OpRegistry& registry,
                             const std::string& config, LoadedModel* model,
                             NetworkOfJob* network = nullptr);

/// The network that a job describes, with the first values that the job's seed
/// gives its parameters.
absl::StatusOr<LoadedModel> UntrainedNetwork(const OpRegistry& registry,
                                             const std::string& config,
                                             NetworkOfJob* network);

/// The variables of `program` that the names stand for: a variable's own, or a
/// layer's for what it gives in evaluation. NotFound for a name that a job's
/// network does not have; other models keep theirs, whose users know them.
absl::StatusOr<std::vector<std::string>> VariablesNamed(
    std::vector<std::string> names, const ProgramDesc& program,
    const NetworkOfJob& network);

/// Puts into the scope whatever the model brought, and what the startup program
/// (a file, or "") makes.
absl::Status SetVariables(const LoadedModel& model, const std::string& startup,
                          Session* session);

/// An error of running, rewriting or looking through what the model's file
/// holds, with the file named before it. Bad numbers stay as they are: their
/// report names more.
absl::Status OfModel(const LoadedModel& model, const absl::Status& status);

/// Holds the arrays of the file `path` against what the model declares before
/// anything runs: FitFeeds of libcore/program/match_feeds.h.
absl::Status FitFeedsOf(const LoadedModel& model,
                        const std::vector<std::string>& fetches,
                        const std::string& path, NamedArrays* feeds);

/// The arrays of an npz file, with the sequence lengths of a JSON file (or "").
absl::StatusOr<NamedArrays> ReadFeeds(const std::string& npz,
                                      const std::string& lod);

/// A usage error for parameters alone.
absl::Status NeedsJob(const LoadedModel& model);

}  // namespace pd

#endif  // PD_CMD_RUN_NETWORK_H_
