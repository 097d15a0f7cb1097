// SPDX-License-Identifier: Apache-2.0
// LIBSVM's lines as rows of all features, or as ids and values.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "formats/libsvm.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/row_datasets.h"
#include "libcore/data/table_dataset.h"

namespace pd {
namespace {

class LibSvmLoader {
 public:
  explicit LibSvmLoader(const LibSvmDatasetOptions& options)
      : options_(options), table_(std::make_shared<TableDataset>()) {}

  absl::Status MakeFields();
  absl::Status Load(const std::string& path);
  absl::StatusOr<DatasetPtr> Finish() {
    PD_RETURN_IF_ERROR(table_->Finish(options_.piece != nullptr));
    return table_;
  }

 private:
  absl::Status Record(int64_t line);
  absl::Status Label(double label);

  const LibSvmDatasetOptions& options_;
  std::shared_ptr<TableDataset> table_;
  size_t label_ = 0, features_ = 0, values_ = 0;
  LibSvmRow row_;
  std::vector<float> dense_;
};

absl::Status LibSvmLoader::MakeFields() {
  FieldSpec label{
      "label", options_.classes > 0 ? DType::kInt64 : DType::kFloat32, {1}};
  // The classes are called as the file writes them.
  for (const double value : options_.label_values)
    label.classes.push_back(absl::StrFormat("%g", value));
  label_ = table_->AddField(std::move(label));
  if (options_.sparse) {
    features_ = table_->AddField({"ids", DType::kInt64, {-1}});
    values_ = table_->AddField({"values", DType::kFloat32, {-1}});
    return absl::OkStatus();
  }
  constexpr int64_t kMostDense = int64_t{1} << 24;
  if (options_.features > kMostDense)
    return InvalidArgument(
        "num_features is %d; more than %d are read as sparse features",
        options_.features, kMostDense);
  features_ =
      table_->AddField({"features", DType::kFloat32, {options_.features}});
  dense_.resize(static_cast<size_t>(options_.features));
  return absl::OkStatus();
}

absl::Status LibSvmLoader::Label(double label) {
  if (!options_.label_values.empty()) {
    const auto& values = options_.label_values;
    const auto found = std::find(values.begin(), values.end(), label);
    if (found == values.end())
      return OutOfRange("label %g is none of label_value", label);
    label = static_cast<double>(found - values.begin());
  }
  if (options_.classes == 0) {
    table_->Push(label_, static_cast<float>(label));
    return absl::OkStatus();
  }
  if (label < 0 || label >= static_cast<double>(options_.classes) ||
      label != static_cast<double>(static_cast<int64_t>(label)))
    return OutOfRange(
        "label is %g; expected 0 to %d%s", label, options_.classes - 1,
        label == -1 ? " (label_value: [-1, 1] maps -1 to 0)" : "");
  table_->Push(label_, static_cast<int64_t>(label));
  return absl::OkStatus();
}

absl::Status LibSvmLoader::Record(int64_t line) {
  PD_RETURN_IF_ERROR(Label(row_.label));
  const int64_t first = options_.zero_based ? 0 : 1;
  for (int64_t& index : row_.indices) {
    if (index < first || index - first >= options_.features)
      return OutOfRange("index is %d; expected %d to %d", index, first,
                        options_.features - 1 + first);
    index -= first;
  }
  if (options_.sparse) {
    table_->Extend(features_, row_.indices.data(), row_.indices.size());
    table_->Extend(values_, row_.values.data(), row_.values.size());
  } else {
    std::fill(dense_.begin(), dense_.end(), 0.0f);
    for (size_t i = 0; i < row_.indices.size(); ++i)
      dense_[static_cast<size_t>(row_.indices[i])] = row_.values[i];
    table_->Extend(features_, dense_.data(), dense_.size());
  }
  return table_->EndRecord(line);
}

absl::Status LibSvmLoader::Load(const std::string& path) {
  const TextPiece* const piece = options_.piece;
  FileBytes file;
  if (piece == nullptr) {
    PD_ASSIGN_OR_RETURN(file, ReadInput(path));
  }
  table_->BeginFile(path);
  LineReader lines(piece != nullptr ? piece->bytes.view() : file.view(),
                   piece != nullptr ? piece->first_line : 1);
  absl::string_view line;
  while (lines.Next(&line)) {
    bool found = false;
    absl::Status status = ParseLibSvm(line, &row_, &found);
    if (status.ok() && found) status = Record(lines.number());
    if (status.ok()) continue;
    status = Annotate(status, absl::StrFormat("'%s':%d", path, lines.number()));
    if (!options_.skip_bad) return status;
    table_->LeaveOut(status);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenLibSvm(const LibSvmDatasetOptions& options) {
  LibSvmLoader loader(options);
  PD_RETURN_IF_ERROR(loader.MakeFields());
  for (const std::string& path : options.paths)
    PD_RETURN_IF_ERROR(loader.Load(path));
  return loader.Finish();
}

}  // namespace pd
