// SPDX-License-Identifier: Apache-2.0
// Opening files of rows other than CSV: JSON lines, LIBSVM's lines, lines of
// text, running text. All are read into memory; "-" is standard input.
#ifndef PD_LIBCORE_DATA_ROW_DATASETS_H_
#define PD_LIBCORE_DATA_ROW_DATASETS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/text_pieces.h"
#include "libcore/data/datasets.h"
#include "libcore/data/row_field.h"
#include "libcore/data/tokenizer.h"

namespace pd {

/// A value of a JSON object.
struct JsonlField {
  std::string name;
  std::string path;  ///< "a.b[0]"
  /// Of arrays; empty: [1] or [-1] as the first record has it.
  Shape shape = {};
  ValueOptions value;
};
struct JsonlDatasetOptions {
  std::vector<std::string> paths;
  std::vector<JsonlField> fields;
  bool skip_bad = false;
  /// Lines in memory in place of the (source) files; the dataset may be empty
  /// then.
  const TextPiece* piece = nullptr;
};
absl::StatusOr<DatasetPtr> OpenJsonl(const JsonlDatasetOptions& options);

struct LibSvmDatasetOptions {
  std::vector<std::string> paths;
  int64_t features = 0;
  bool sparse = false;  ///< fields "ids" and "values" in place of "features"
  bool zero_based = false;
  int64_t classes = 0;                    ///< 0: labels are float32
  std::vector<double> label_values = {};  ///< the file's numbers of classes
  bool skip_bad = false;
  /// Lines in memory in place of the (source) files; the dataset may be empty
  /// then.
  const TextPiece* piece = nullptr;
};
absl::StatusOr<DatasetPtr> OpenLibSvm(const LibSvmDatasetOptions& options);

/// Lines of text, or of two texts side by side.
struct ParallelTextOptions {
  std::vector<std::string> source_paths, target_paths;
  TextOptions source, target;
  std::string source_name = "source", target_name = "target",
              label_name = "label";
  bool skip_bad = false;
  /// Lines in memory in place of the (source) files; the dataset may be empty
  /// then.
  const TextPiece* piece = nullptr;
};
/// FailedPrecondition when source and target have different numbers of lines.
absl::StatusOr<DatasetPtr> OpenParallelText(const ParallelTextOptions& options);

/// Windows of a running text and the tokens that follow each of theirs.
struct LanguageModelOptions {
  std::vector<std::string> paths;
  TextOptions text;
  int64_t seq_len = 64, stride = 64;
  std::string input_name = "input", label_name = "label";
};
absl::StatusOr<DatasetPtr> OpenLanguageModel(
    const LanguageModelOptions& options);

/// Records of several datasets, one dataset after the other. InvalidArgument
/// when their fields differ.
absl::StatusOr<DatasetPtr> ConcatDatasets(std::vector<DatasetPtr> datasets);
/// Fields of several datasets side by side. InvalidArgument when their sizes
/// differ or a field comes twice.
absl::StatusOr<DatasetPtr> ComposeDatasets(std::vector<DatasetPtr> datasets);
/// Some records of a dataset, by number.
absl::StatusOr<DatasetPtr> SubsetOf(DatasetPtr dataset,
                                    std::vector<int64_t> records);

/// The same records; `classes`, by field, names classes that the dataset itself
/// has no names for.
DatasetPtr WithClasses(
    DatasetPtr dataset,
    const std::map<std::string, std::vector<std::string>>& classes);

/// Which field of a dataset holds boxes, and which have a row for each box.
struct BoxDeclaration {
  std::string field;
  BoxForm form;
  /// Empty: "gt_label" and "difficult", where there are such fields.
  std::vector<std::string> beside = {};
};
/// The same records; transforms move the boxes. NotFound for a field that is
/// not there, InvalidArgument for shapes that do not fit.
absl::StatusOr<DatasetPtr> WithBoxes(DatasetPtr dataset,
                                     const BoxDeclaration& boxes);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_ROW_DATASETS_H_
