// SPDX-License-Identifier: Apache-2.0
// The parameters of other models that a network begins with: a job's `init`,
// and --init-from of the command line.
#ifndef PD_LIBCORE_TRAIN_INITIAL_VALUES_H_
#define PD_LIBCORE_TRAIN_INITIAL_VALUES_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/vocabulary.h"
#include "libcore/exec/session.h"
#include "libcore/ir/program_desc.h"
#include "libcore/nn/job.h"
#include "libcore/train/train_program.h"

namespace pd {

/// A source: a model whose parameters a network begins with, and which of them.
struct InitialParameters {
  enum class Missing { kFail, kWarn, kIgnore };

  std::string model = {};  ///< a MODEL
  /// "backbone.*=>*": other names for the model's parameters; the first that
  /// matches counts.
  std::vector<std::string> rename = {};
  /// "classifier.*": parameters of these names, as the network has them, keep
  /// their initial values.
  std::vector<std::string> skip = {};
  /// "fc.weight": matrices of these names, as the network has them, are
  /// transposed.
  std::vector<std::string> transpose = {};
  /// About parameters of the network that no source gives; of several sources'
  /// the strictest counts.
  Missing missing = Missing::kWarn;
  /// Set where the source is a text file of word vectors: the parameter that
  /// they are rows of, and the field whose vocabulary numbers the rows.
  struct Words {
    std::string parameter, field;
    bool lower = false;  ///< missing words are looked for in lower case
  };
  std::optional<Words> words = {};
  /// The source's place in a job, "job.pbtxt:31:1"; "" for the command line's.
  std::string place = {};
};

/// Parameters that were taken or not, by the network's names, sorted.
struct TakenParameters {
  /// With the name in the model, where `rename` changed it.
  std::vector<std::pair<std::string, std::string>> taken;
  std::vector<std::string> skipped;  ///< the network's, as `skip` says
  std::vector<std::string> initial;  ///< the network's, which the model lacks
  std::vector<std::string> left;     ///< the model's, which nobody takes
};

/// The sources of the job's `init`, in their order.
std::vector<InitialParameters> InitialParametersOf(const LoadedJob& job);

/// Takes the parameters and running statistics of the network `test` that the
/// model has, in the network's element types where both are floating, and says
/// in the log which were taken and skipped. InvalidArgument where none is
/// taken, where one has another shape, and where a pattern matches nothing or
/// two parameters get one name; it begins with the source's place.
absl::StatusOr<TakenParameters> TakeParameters(const ProgramDesc& test,
                                               const InitialParameters& from,
                                               Session* session);

/// By field: what its numbers stand for (Dataset::vocabularies).
using FieldVocabularies =
    std::map<std::string, std::shared_ptr<const Vocabulary>>;

/// TakeParameters, or TakeWordVectors, from one source after the other; says in
/// the log, or refuses with InvalidArgument, what none of them gives, nor a
/// saved network that the job goes on from. `vocabularies` are the training
/// set's.
absl::Status SetInitialParameters(const TrainProgram& program,
                                  const std::vector<InitialParameters>& sources,
                                  const FieldVocabularies& vocabularies,
                                  Session* session);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_INITIAL_VALUES_H_
