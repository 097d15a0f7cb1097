// SPDX-License-Identifier: Apache-2.0
// The vocabularies and classes that the training set of a run has, so that its
// other sets, a resumed run and an evaluation number words in the same way. A
// run keeps them in RUN/vocabularies/FIELD.txt, a token a line; control
// characters and backslashes in tokens are escaped as in C, by three octal
// digits.
#ifndef PD_LIBCORE_TRAIN_RUN_VOCABULARIES_H_
#define PD_LIBCORE_TRAIN_RUN_VOCABULARIES_H_

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/dataset.h"
#include "libcore/data/vocabulary.h"

namespace pd {

class RunVocabularies {
 public:
  /// `run` is the run directory that is gone on with or evaluated; "" where
  /// nothing was stored before.
  explicit RunVocabularies(std::string run = "") : run_(std::move(run)) {}

  /// The vocabulary of a field; null where it is not known. DataLoss when a
  /// stored one is no such file.
  absl::StatusOr<std::shared_ptr<const Vocabulary>> Find(
      const std::string& field, const SpecialTokens& special);

  /// Takes those of the training set that are not known yet.
  void Add(const Dataset& training);

  /// Stores into `run` whatever was not read from there.
  absl::Status Write(const std::string& run) const;

 private:
  std::string run_;
  std::map<std::string, std::shared_ptr<const Vocabulary>> known_;
  std::set<std::string> stored_;  // fields whose vocabulary was read from run_
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_RUN_VOCABULARIES_H_
