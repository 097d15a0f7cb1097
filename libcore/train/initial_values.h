// SPDX-License-Identifier: Apache-2.0
// What a training takes over from elsewhere: a model's parameters, the values
// of a checkpoint.
#ifndef PD_LIBCORE_TRAIN_INITIAL_VALUES_H_
#define PD_LIBCORE_TRAIN_INITIAL_VALUES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/exec/session.h"
#include "libcore/train/checkpoint.h"
#include "libcore/train/train_program.h"

namespace pd {

/// Whose parameters a network begins with, and which of them.
struct InitialParameters {
  std::string model = {};  ///< a MODEL
  /// "backbone.*=>*": other names for the model's parameters; the first that
  /// matches counts.
  std::vector<std::string> rename = {};
  /// "classifier.*": parameters of these names, as the network has them, keep
  /// their initial values.
  std::vector<std::string> skip = {};
};

/// What became of them, by the network's names, sorted.
struct TakenParameters {
  /// With the name in the model, where `rename` changed it.
  std::vector<std::pair<std::string, std::string>> taken;
  std::vector<std::string> skipped;  ///< the network's, as `skip` says
  std::vector<std::string> initial;  ///< the network's, which the model lacks
  std::vector<std::string> left;     ///< the model's, which nobody takes
};

/// Takes the parameters and running statistics of the network `test` that the
/// model has, and says in the log which were taken, skipped, and left at their
/// initial values. InvalidArgument where none is taken, where one has another
/// shape, and where a pattern matches nothing or two parameters get one name.
absl::StatusOr<TakenParameters> TakeParameters(const ProgramDesc& test,
                                               const InitialParameters& from,
                                               Session* session);

/// How a checkpoint is gone on with.
struct ResumeOptions {
  uint64_t seed = 0;  ///< the job's; must be the checkpoint's
  int threads = 1;    ///< a word in the log where the checkpoint had others
  /// Takes only what the network has without its optimizer: parameters, and
  /// statistics such as those of batch norm.
  bool weights_only = false;
};

/// Puts the values of the checkpoint in `folder`, which must be the program's,
/// into the session, and gives its state.
absl::StatusOr<TrainState> ResumeFrom(const TrainProgram& program,
                                      const std::string& folder,
                                      const ResumeOptions& options,
                                      Session* session);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_INITIAL_VALUES_H_
