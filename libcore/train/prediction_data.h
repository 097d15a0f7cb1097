// SPDX-License-Identifier: Apache-2.0
// Records without labels for a network to answer: files of rows, lines of text,
// pictures, arrays, standard input. How a record becomes what the network is
// fed is said by a data set of the job that trained it: its fields, words,
// columns and transforms. Streams are read in pieces and never held whole.
#ifndef PD_LIBCORE_TRAIN_PREDICTION_DATA_H_
#define PD_LIBCORE_TRAIN_PREDICTION_DATA_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/data/tokenizer.h"
#include "libcore/exec/plan.h"
#include "libcore/nn/job.h"
#include "libcore/train/run_vocabularies.h"

namespace pd {
namespace job {
class DataSet;
}

/// The part of a set that says how records are read: the first of several one
/// after the other.
const job::DataSet& FirstPartOf(const job::DataSet& set);

struct PredictionSources {
  /// Files, folders of pictures, "-"; none: the records of the job's own set.
  std::vector<std::string> paths;
  /// "csv", "tsv", "jsonl", "libsvm", "text", "pictures", "npz"; "": by the
  /// ending of each name, else as the job's set.
  std::string form;
};

class PredictionData {
 public:
  /// `job`, whose part `set` is, and `vocabularies` outlive it. `inputs` are
  /// what the network is fed; no other field is read.
  PredictionData(const LoadedJob& job, const job::DataSet& set,
                 std::vector<FeedSpec> inputs, RunVocabularies* vocabularies,
                 PredictionSources sources);
  ~PredictionData();

  /// A loader over the next records; null at the end. InvalidArgument where the
  /// job does not say how such a source is read.
  absl::StatusOr<std::unique_ptr<Loader>> Next();

  /// Records that have been left out while files were read.
  const BadRecords& left_out() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The encoder that turns numbers of `field`, a label of `set`, into words;
/// null where the job reads no text into it.
absl::StatusOr<std::unique_ptr<TextEncoder>> WordsOf(
    const LoadedJob& job, const job::DataSet& set, const std::string& field,
    RunVocabularies* vocabularies);

/// Texts by the field that reads them.
using WordsByField = std::map<std::string, std::shared_ptr<const TextEncoder>>;
/// WordsOf for every field of `set` that is a text.
absl::StatusOr<WordsByField> AllWordsOf(const LoadedJob& job,
                                        const job::DataSet& set,
                                        RunVocabularies* vocabularies);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_PREDICTION_DATA_H_
