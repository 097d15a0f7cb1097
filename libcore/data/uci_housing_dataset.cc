// SPDX-License-Identifier: Apache-2.0
// Numbers between blanks, 14 a record whatever the lines. Scaling is computed
// in double over all records, as PaddlePaddle does.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/paddle_datasets.h"
#include "libcore/data/python_text.h"
#include "libcore/data/table_dataset.h"

namespace pd {
namespace {

constexpr size_t kColumns = 14;
constexpr double kTrainShare = 0.8;

absl::StatusOr<std::vector<double>> ReadNumbers(absl::string_view text) {
  std::vector<double> values;
  PD_RETURN_IF_ERROR(python::ForEachLine(
      text, [&values](absl::string_view line, int64_t) -> absl::Status {
        for (const absl::string_view word :
             python::Split(line, python::Blanks::kBytes)) {
          double value;
          if (!absl::SimpleAtod(word, &value) || !std::isfinite(value))
            return InvalidArgument("'%s' is not a number", word.substr(0, 32));
          values.push_back(value);
        }
        return absl::OkStatus();
      }));
  if (values.empty() || values.size() % kColumns != 0)
    return DataLoss("it holds %d numbers; expected %d a record", values.size(),
                    kColumns);
  return values;
}

absl::Status Scale(std::vector<double>* values) {
  const size_t rows = values->size() / kColumns;
  for (size_t column = 0; column + 1 < kColumns; ++column) {
    double* first = values->data() + column;
    double sum = 0, most = *first, least = *first;
    for (size_t row = 0; row < rows; ++row) {
      const double value = first[row * kColumns];
      sum += value;
      most = std::max(most, value);
      least = std::min(least, value);
    }
    if (!(most > least))
      return InvalidArgument(
          "column %d is %g in every record: its range of 0 "
          "cannot scale it",
          column, most);
    const double mean = sum / static_cast<double>(rows);
    for (size_t row = 0; row < rows; ++row)
      first[row * kColumns] = (first[row * kColumns] - mean) / (most - least);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenUciHousing(const UciHousingOptions& options) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(options.data_file));
  const std::string place = "'" + options.data_file + "'";
  auto values = ReadNumbers(file.view());
  if (!values.ok()) return Annotate(values.status(), place);
  PD_RETURN_IF_ERROR(Annotate(Scale(&*values), place));
  const size_t rows = values->size() / kColumns;
  const auto split =
      static_cast<size_t>(static_cast<double>(rows) * kTrainShare);
  const bool train = options.mode == "train";
  auto dataset = std::make_shared<TableDataset>();
  dataset->AddField({"feature", DType::kFloat32, {kColumns - 1}});
  dataset->AddField({"target", DType::kFloat32, {1}});
  dataset->BeginFile(options.data_file, "record");
  for (size_t row = train ? 0 : split; row < (train ? split : rows); ++row) {
    const double* value = values->data() + row * kColumns;
    for (size_t column = 0; column < kColumns; ++column)
      dataset->Push(column + 1 < kColumns ? 0 : 1,
                    static_cast<float>(value[column]));
    PD_RETURN_IF_ERROR(dataset->EndRecord(static_cast<int64_t>(row)));
  }
  if (dataset->size() == 0)
    return DataLoss("%s: its %d records leave none for mode '%s'", place, rows,
                    options.mode);
  PD_RETURN_IF_ERROR(dataset->Finish());
  return dataset;
}

}  // namespace pd
