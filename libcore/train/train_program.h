// SPDX-License-Identifier: Apache-2.0
// From a job to the programs that training runs.
#ifndef PD_LIBCORE_TRAIN_TRAIN_PROGRAM_H_
#define PD_LIBCORE_TRAIN_TRAIN_PROGRAM_H_

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/exec/plan.h"
#include "libcore/exec/session.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "libcore/ops/registry.h"
#include "libcore/optim/averages.h"
#include "libcore/optim/quasi_newton.h"
#include "libcore/train/metrics.h"

namespace pd {

/// A metric of the job and what it judges.
struct MetricUse {
  /// Another thing that it looks at: a variable of the test program, or a field
  /// of the data set.
  struct More {
    MetricSlot slot = MetricSlot::kLength;
    std::string name;
    bool variable = false;
    bool required = true;  ///< else a data set may lack the field
  };
  std::shared_ptr<Metric> metric;
  std::string name;        ///< as the job calls it
  std::string prediction;  ///< a variable of the test program
  /// A field of the data set, or a variable of the test program.
  std::string label;
  bool label_variable = false;
  std::vector<More> more;
  std::string place;  ///< in the job: FILE:LINE:COLUMN
};

/// A phase of each step of training.
struct PhaseProgram {
  std::string name;
  ProgramDesc main;             ///< forward, losses, backward, optimizer
  std::vector<FeedSpec> feeds;  ///< those of the job's that it needs
  std::string loss;             ///< of `main`: one element
  std::string learning_rate;    ///< set before every step
  std::string loss_scaling;     ///< as in TrainProgram
  /// The learning rate of step `step` (from 0) in epoch `epoch`.
  std::function<double(int64_t step, int64_t epoch)> rate;
  int steps = 1;           ///< runs in each step of training
  bool new_batch = false;  ///< each run draws a batch
};

/// The programs that make parameters follow others.
struct CopyProgram {
  ProgramDesc main;   ///< runs after a step
  int64_t every = 1;  ///< steps between two runs
};

/// An update that is divided over processes (sharded_update.h), as this process
/// makes it.
struct ShardedUpdate {
  int stage = 1;
  /// Parameters that the update changes: the process that does.
  std::vector<std::pair<std::string, int>> owners;
  /// Other variables that some processes lack: one that has it.
  std::vector<std::pair<std::string, int>> states;
  std::set<std::string> absent;  ///< variables that this process lacks
  /// Stage 2: fed the sums of own gradients; `squares`, fetched of it, are
  /// exchanged and fed to the update. Of each, its process.
  ProgramDesc norms;
  std::vector<std::pair<std::string, int>> squares;
  ProgramDesc after;  ///< averages; runs when all parameters have arrived
};

/// A step in which several processes work together (shard_runner.h): `main` in
/// two.
struct ShardPrograms {
  int64_t shards = 1;
  bool together = false;  ///< ops of `shard` exchange numbers with other shards
  int64_t bucket_bytes = 0;  ///< of gradients that travel together
  ProgramDesc shard;   ///< forward and backward, for each shard of a batch
  ProgramDesc update;  ///< once, fed the means of the gradients
  std::vector<FeedSpec> gradients;  ///< fetched of `shard`, fed to `update`
  /// By gradient: whether it is some rows (selected rows) of that shape.
  std::vector<uint8_t> rows;
  /// Float32 variables that `shard` writes and that stay: their means over
  /// shards count.
  std::vector<std::string> statistics;
  int stage = 0;                          ///< of sharding; 0: none
  std::optional<ShardedUpdate> sharding;  ///< several processes share `update`
};

struct TrainProgram {
  /// A step that evaluates a batch several times (newton_runner.h): `main` has
  /// no updates.
  struct Newton {
    QuasiNewtonSpec spec;
    LbfgsNames state;  ///< empty for bfgs
  };
  /// Forward, loss, backward, optimizer; with phases the last one's, which
  /// declares the persistable variables of all of them.
  ProgramDesc main;
  ProgramDesc test;     ///< forward and loss as evaluation runs them
  ProgramDesc startup;  ///< initial values, but those of saved networks:
  NamedArrays values;
  /// Model inputs, then labels; the first extent of the shapes is -1. A level
  /// of LoD has no offsets here.
  std::vector<FeedSpec> feeds;
  std::vector<std::string> inputs;     ///< names of the model inputs among them
  std::string loss;                    ///< of `main`: float32, one element
  std::string test_loss;               ///< that of `test`
  std::vector<std::string> outputs;    ///< the predictions
  std::vector<LayerInfo> layers;       ///< of `main`
  std::vector<LayerInfo> test_layers;  ///< of `test`
  /// Parameters and statistics, and what PaddlePaddle calls them.
  std::vector<std::pair<std::string, std::string>> paddle_names;
  /// Set before every step; "" with phases, quasi-Newton methods, and in a
  /// saved program, which has its own.
  std::string learning_rate;
  /// The rate of a saved program: float32, as a step has left it. "" where it
  /// is not known, and elsewhere.
  std::string own_rate;
  /// The factor of the loss in mixed precision; "" where there is none.
  std::string loss_scaling;
  /// Trainable parameters and their gradients in `main`, before clipping.
  std::vector<std::pair<std::string, std::string>> gradients;
  /// Put averages in the parameters' place for an evaluation, and take them
  /// back, where the job asks for averages.
  std::optional<AveragePrograms> averages;
  /// The learning rate of step `step` (from 0) in epoch `epoch`; NaN in a saved
  /// program, where it is not known before the step.
  std::function<double(int64_t step, int64_t epoch)> rate;
  std::vector<MetricUse> metrics;
  /// The parts that each step of training runs in turn, where the job has
  /// phases; else it runs `main`.
  std::vector<PhaseProgram> phases;
  std::optional<ShardPrograms> shards;  ///< where the job is `distributed`
  std::optional<Newton> newton;         ///< where a quasi-Newton method trains
  int64_t batches_per_step = 1;
  /// Parameters that follow others: what is run after steps, and once before
  /// the first one of a run that does not go on from a checkpoint.
  std::vector<CopyProgram> copies;
  std::optional<ProgramDesc> initial_copies;
  /// Trainable parameters that no phase updates.
  std::vector<std::string> untrained;
};

/// Builds everything that the job describes. Errors carry FILE:LINE:COLUMN.
absl::StatusOr<TrainProgram> BuildTrainProgram(const OpRegistry& registry,
                                               const LoadedJob& job);

/// The part that evaluation and export need: `test`, `startup`, `feeds`,
/// `inputs`, `loss` ("" when the job has none), `outputs`, `metrics`. The job
/// needs a model only.
absl::StatusOr<TrainProgram> BuildTestProgram(const OpRegistry& registry,
                                              const LoadedJob& job);

/// The tensor in the scope that takes the learning rate of each step; null
/// where `learning_rate`, a program's or a phase's, is "". The variables have
/// their first values.
Tensor* RateTensor(const std::string& learning_rate, Scope* scope);

/// Gives all variables their first values: those of saved networks, then what
/// the startup program makes.
absl::Status SetFirstValues(const TrainProgram& program, Session* session);

/// The feeds with `records` for the unknown first extent.
std::vector<FeedSpec> FeedsFor(const std::vector<FeedSpec>& feeds,
                               int64_t records);

/// For each feed, the number of the data set's field with its name.
/// InvalidArgument when there is none or shape or dtype do not fit (extents of
/// 1 may differ, and what a feed leaves open fits all); the message names both.
/// A feed with a level of LoD takes sequences: fields [records, longest, ...].
absl::StatusOr<std::vector<size_t>> MatchFields(
    const std::vector<FeedSpec>& feeds, const std::vector<BatchField>& fields);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_TRAIN_PROGRAM_H_
