// SPDX-License-Identifier: Apache-2.0
// Helpers of the files that open data: one file for each family of data sets.
#ifndef PD_LIBCORE_TRAIN_OPEN_INTERNAL_H_
#define PD_LIBCORE_TRAIN_OPEN_INTERNAL_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/data/datasets.h"
#include "libcore/data/loader.h"
#include "libcore/data/row_datasets.h"
#include "libcore/data/tokenizer.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/run_vocabularies.h"

namespace pd {

template <typename To, typename Repeated>
std::vector<To> ListOf(const Repeated& values) {
  return std::vector<To>(values.begin(), values.end());
}

inline DType DTypeOf(job::Element::Type type) {
  return *DTypeFromName(job::Element::Type_Name(type));
}

/// The job, and where vocabularies that no file gives come from: the training
/// set makes them, other sets take them from it.
class OpenContext {
 public:
  OpenContext(const LoadedJob& job, bool is_training,
              RunVocabularies* vocabularies)
      : job_(job), is_training_(is_training), vocabularies_(vocabularies) {}

  const LoadedJob& job() const { return job_; }
  bool is_training() const { return is_training_; }
  /// Records that cannot be read are left out.
  bool skip_bad() const { return skip_bad_; }
  void set_skip_bad(bool skip) { skip_bad_ = skip; }
  /// Only these fields are read, those that a network is fed; null: all.
  void set_wanted(const std::set<std::string>* wanted) { wanted_ = wanted; }
  bool Wants(const std::string& field) const {
    return wanted_ == nullptr || wanted_->count(field) > 0;
  }
  /// For data sets whose parts must agree on a vocabulary.
  void ForbidBuilding() { may_build_ = false; }

  /// The names of the classes of `field` by number, where the run or the
  /// training set has them; empty where they do not, or where this is the
  /// training set.
  absl::StatusOr<std::vector<std::string>> Classes(const std::string& field);
  /// The columns that `field` of the run's training set has; empty where they
  /// are not known.
  absl::StatusOr<std::vector<std::string>> Columns(const std::string& field) {
    return vocabularies_->Columns(field);
  }
  /// How boxes of VOC's and COCO's files are written; set before they are
  /// opened.
  void set_boxes(const job::Boxes* boxes) { boxes_ = boxes; }
  const job::Boxes& boxes() const {
    return boxes_ != nullptr ? *boxes_ : job::Boxes::default_instance();
  }
  /// The classes of picture folders that are parts of one set.
  void set_folder_classes(std::vector<std::string> classes) {
    folder_classes_ = std::move(classes);
  }
  const std::vector<std::string>& folder_classes() const {
    return folder_classes_;
  }

  /// Null where the set that is being opened shall build the vocabulary of this
  /// field. Errors are placed at `part`.
  absl::StatusOr<std::shared_ptr<const Vocabulary>> Words(
      const std::string& field, const SpecialTokens& special,
      const google::protobuf::Message& part);

 private:
  const LoadedJob& job_;
  std::vector<std::string> folder_classes_;
  const std::set<std::string>* wanted_ = nullptr;
  const job::Boxes* boxes_ = nullptr;
  bool is_training_, skip_bad_ = false, may_build_ = true;
  RunVocabularies* vocabularies_;
};

/// csv, tsv, jsonl, libsvm.
absl::StatusOr<DatasetPtr> OpenRowsOf(OpenContext* context,
                                      const job::DataSet& set);
/// How the files of each kind are read, with all fields that are wanted.
absl::StatusOr<CsvDatasetOptions> CsvOptionsOf(OpenContext* context,
                                               const job::Csv& csv,
                                               char delimiter);
absl::StatusOr<JsonlDatasetOptions> JsonlOptionsOf(OpenContext* context,
                                                   const job::Jsonl& jsonl);
absl::StatusOr<LibSvmDatasetOptions> LibSvmOptionsOf(OpenContext* context,
                                                     const job::LibSvm& svm);
/// The text of a language model's job; characters where it says none.
absl::StatusOr<TextOptions> TextOptionsOf(OpenContext* context,
                                          const job::LanguageModel& model,
                                          const std::string& field);
/// Batches, padding, threads and transforms of a set, records in their order.
LoaderOptions PlainLoaderOptions(const job::DataSet& set, uint64_t seed);

/// language_model, parallel_text.
absl::StatusOr<DatasetPtr> OpenTextOf(OpenContext* context,
                                      const job::DataSet& set);
/// How the texts of `field` become numbers.
absl::StatusOr<TextOptions> TextOptionsOf(OpenContext* context,
                                          const job::Text& text,
                                          const std::string& field);

/// pipe.
absl::StatusOr<DatasetPtr> OpenPipeOf(OpenContext* context,
                                      const job::Pipe& pipe);
/// environment.
absl::StatusOr<DatasetPtr> OpenEnvironmentOf(OpenContext* context,
                                             const job::DataSet& set);
/// InvalidArgument where `set` or its parts ask a program's records for what a
/// stream cannot give.
absl::Status CheckStreamUse(const LoadedJob& job, const job::DataSet& set);

/// The records of a set of `size` that a subset names.
absl::StatusOr<std::vector<int64_t>> SubsetRecords(const job::Subset& subset,
                                                   int64_t size);

/// True when the set reads standard input.
bool ReadsStandardInput(const job::DataSet& set);

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_OPEN_INTERNAL_H_
