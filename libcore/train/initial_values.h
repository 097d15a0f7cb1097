// SPDX-License-Identifier: Apache-2.0
// The parameters of another model that a network begins with.
#ifndef PD_LIBCORE_TRAIN_INITIAL_VALUES_H_
#define PD_LIBCORE_TRAIN_INITIAL_VALUES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/exec/session.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// The model whose parameters a network begins with, and which of them.
struct InitialParameters {
  std::string model = {};  ///< a MODEL
  /// "backbone.*=>*": other names for the model's parameters; the first that
  /// matches counts.
  std::vector<std::string> rename = {};
  /// "classifier.*": parameters of these names, as the network has them, keep
  /// their initial values.
  std::vector<std::string> skip = {};
};

/// Parameters that were taken or not, by the network's names, sorted.
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

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_INITIAL_VALUES_H_
