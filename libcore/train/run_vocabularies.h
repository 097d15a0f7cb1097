// SPDX-License-Identifier: Apache-2.0
// Vocabularies, classes and columns of a run's training set, so that its other
// sets, a resumed run, evaluation and prediction number words and classes in
// the same way and read the same columns. A run keeps three folders, each with
// a file FIELD.txt for a field, a name a line; control characters and
// backslashes in names are escaped as in C, by three octal digits:
//
//   RUN/vocabularies  what the numbers of a text or category field stand for
//   RUN/classes       the names of class numbers 0, 1, ... of any kind of data
//   RUN/columns       the columns that a field of several takes from a table
#ifndef PD_LIBCORE_TRAIN_RUN_VOCABULARIES_H_
#define PD_LIBCORE_TRAIN_RUN_VOCABULARIES_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/dataset.h"
#include "libcore/data/vocabulary.h"

namespace pd {

/// Names by field.
using NamesByField = std::map<std::string, std::vector<std::string>>;

class RunVocabularies {
 public:
  /// `run` is the run directory that is gone on with or evaluated; "" where
  /// nothing was stored before.
  explicit RunVocabularies(std::string run = "") : run_(std::move(run)) {}

  /// The vocabulary of a field; null where it is not known. DataLoss when a
  /// stored one is no such file.
  absl::StatusOr<std::shared_ptr<const Vocabulary>> Find(
      const std::string& field, const SpecialTokens& special);

  /// The names of a field's classes, by number; empty where they are not known.
  absl::StatusOr<std::vector<std::string>> Classes(const std::string& field) {
    return classes_.Find(run_, field);
  }
  /// The names of a field's columns, in order; empty where they are not known
  /// and for a single one.
  absl::StatusOr<std::vector<std::string>> Columns(const std::string& field) {
    return columns_.Find(run_, field);
  }

  /// Takes what of the training set is not known yet.
  void Add(const Dataset& training);

  /// Stores into `run` whatever was not read from there.
  absl::Status Write(const std::string& run) const;

 private:
  // Lists of names in a folder of the run.
  struct Lists {
    const char* folder;
    NamesByField known;
    std::set<std::string> stored = {};  // those that were read from the run
    absl::StatusOr<std::vector<std::string>> Find(const std::string& run,
                                                  const std::string& field);
    absl::Status Write(const std::string& from, const std::string& run) const;
  };

  std::string run_;
  std::map<std::string, std::shared_ptr<const Vocabulary>> known_;
  std::set<std::string> stored_;  // fields whose vocabulary was read from run_
  Lists classes_{"classes", {}}, columns_{"columns", {}};
};

/// The names of the classes of every field that has any, by number, as the run
/// directory keeps them: of "label" {"cat", "dog"}. Empty for a run that stored
/// none. DataLoss when a file is no such list.
absl::StatusOr<NamesByField> ReadRunClasses(const std::string& run);

/// The folder that keeps the names of the job file `config`: RUN of
/// RUN/job.pbtxt, OUT.preprocess of OUT.preprocess.pbtxt (preprocess.h); "" of
/// other files.
std::string RunOfJobFile(const std::string& config);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_RUN_VOCABULARIES_H_
