// SPDX-License-Identifier: Apache-2.0
// The cases of testdata/train: training programs, batches, losses and states
// that PaddlePaddle saved, and a way to run them.
#ifndef PD_TESTS_TRAIN_GOLDEN_RUN_H_
#define PD_TESTS_TRAIN_GOLDEN_RUN_H_

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "libcore/exec/session.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// One folder.
struct TrainCase {
  std::filesystem::path folder;
  nlohmann::json info;  ///< case.json
  std::vector<ProgramDesc> programs;
  NamedArrays batches;  ///< [steps, ...]
  nlohmann::json lods;  ///< feed -> [steps][levels][lengths], for sequences
  Array losses, rates;
  std::vector<std::string> losses_of;  ///< the loss of each program
};

/// testdata/train, or what PD_TRAIN_GOLDENS names.
std::filesystem::path TrainFolder();
/// The cases there, in name order.
std::vector<std::string> TrainCaseNames();
/// A failure of the test when the case is damaged.
TrainCase LoadTrainCase(const std::string& name);
ProgramDesc LoadProgram(const std::filesystem::path& file);

/// A string or a list of strings.
std::vector<std::string> Strings(const nlohmann::json& json);
/// Element i of a float32 or float64 array.
double NumberAt(const Array& array, int64_t i);
/// Infinite where the sizes differ or a NaN is in it.
double WorstDifference(const Array& want, const Array& got);

/// A program, and its plan for the step that it was last run in.
struct CaseRunner {
  const ProgramDesc* program = nullptr;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::unique_ptr<Plan> plan = nullptr;

  absl::Status Run(const TrainCase& c, int64_t step, Session* session);
};

/// A runner for each program of the case.
std::vector<CaseRunner> RunnersOf(const TrainCase& c);

/// Sets what init.pdparams and init.pdopt hold.
void SetInitialState(const TrainCase& c, Session* session);
/// Runs every step and compares every loss.
void FollowLosses(const TrainCase& c, std::vector<CaseRunner>* runners,
                  Session* session);
/// Compares with final.pdparams, and with final.pdopt unless `params_only`.
void CheckFinalState(const TrainCase& c, const Session& session,
                     bool params_only = false);
/// Compares with applied_params.npz: the averages in the parameters' place.
void CheckAppliedParams(const TrainCase& c, const Session& session);

}  // namespace pd

#endif  // PD_TESTS_TRAIN_GOLDEN_RUN_H_
