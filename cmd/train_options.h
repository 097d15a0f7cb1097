// SPDX-License-Identifier: Apache-2.0
#ifndef PD_CMD_TRAIN_OPTIONS_H_
#define PD_CMD_TRAIN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common/amp_options.h"
#include "cmd/common/pass_options.h"
#include "cmd/common/tool.h"
#include "libcore/train/initial_values.h"

namespace pd {

struct TrainOptions {
  CommonOptions common;
  std::string config;                  ///< the job file
  std::vector<std::string> overrides;  ///< "path=value"
  std::string out;                     ///< RUN
  bool weights_only = false;
  bool resume = false;
  std::string init_from;                    ///< a MODEL
  std::vector<std::string> init_skip;       ///< "classifier.*"
  std::vector<std::string> init_rename;     ///< "A=>B"
  std::vector<std::string> init_transpose;  ///< "fc.weight"
  std::string init_missing = "warn";        ///< or "fail", "ignore"
  std::vector<std::string> requirements;    ///< "acc>=0.99"
  std::optional<int64_t> steps;
  std::optional<double> bench;          ///< seconds
  std::string log_json;                 ///< "-" or a file
  bool networks = false;                ///< lists the zoo
  bool run_check = false;               ///< does this installation compute?
  std::string new_kind;                 ///< of a job to begin with, or "list"
  std::vector<std::string> new_folder;  ///< where it goes; none or one
  std::string new_data, new_target;     ///< of that job
  bool check_nan_inf = false;
  std::vector<std::string> logs;  ///< "visualdl,tensorboard"
  std::string log_audio;          ///< "INPUT=HERTZ"
  bool report = false, summary = false, dry_run = false;
  std::string link;  ///< of --dry-run: "10Gb,50us"
  // Of --program.
  std::vector<std::string> programs;
  std::string startup;  ///< a startup program
  std::string init;     ///< PREFIX of .pdparams and .pdopt
  std::string batches;  ///< npz
  std::string lod;      ///< JSON
  std::string loss;     ///< names, separated by commas
  std::string fetch;    ///< names, separated by commas
  std::string save;     ///< PREFIX
  std::optional<int64_t> micro_batches;
  AmpFlags amp;
  PassFlags passes;
  ProcessOptions processes;
};

/// The source of --init-from and its companions; none where it is not given.
std::vector<InitialParameters> InitialSources(const TrainOptions& options);

Tool TrainTool(TrainOptions* options);

}  // namespace pd

#endif  // PD_CMD_TRAIN_OPTIONS_H_
