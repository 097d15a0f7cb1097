// SPDX-License-Identifier: Apache-2.0
// Columns of CSV and TSV files as fields, parsed once.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/csv.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/datasets.h"
#include "libcore/data/table_dataset.h"

namespace pd {
namespace {

// The columns of a file that lacks the requested one. A header that is
// one column and holds other delimiters was cut at the wrong one.
std::string ColumnsText(const CsvFile& csv) {
  constexpr size_t kMostShown = 20;
  if (csv.names.empty())
    return absl::StrCat(
        "; it has no header, and columns are numbers from 0 to ",
        csv.columns - 1);
  std::string text = csv.columns == 1 ? "; its only column is "
                                      : absl::StrCat("; its columns are ");
  for (size_t i = 0; i < std::min(csv.names.size(), kMostShown); ++i)
    absl::StrAppend(&text, i > 0 ? ", " : "", ShownText(csv.names[i]));
  if (csv.names.size() > kMostShown)
    absl::StrAppend(&text, ", ... (", csv.columns, " columns)");
  for (const char other : {',', ';', '\t', '|'}) {
    if (csv.columns > 1 || other == csv.options.delimiter ||
        csv.names[0].find(other) == std::string::npos)
      continue;
    const std::string shown = other == '\t' ? "\\t" : std::string(1, other);
    absl::StrAppend(
        &text, ": its fields seem to be separated by '", shown, "', not by '",
        csv.options.delimiter == '\t' ? "\\t"
                                      : std::string(1, csv.options.delimiter),
        "' (delimiter: \"", shown, "\")");
    break;
  }
  return text;
}

// A column's number from its name or its number.
absl::StatusOr<size_t> FindColumn(const CsvFile& csv, const std::string& name) {
  const auto found = std::find(csv.names.begin(), csv.names.end(), name);
  if (found != csv.names.end())
    return static_cast<size_t>(found - csv.names.begin());
  uint64_t number;
  if (absl::SimpleAtoi(name, &number)) {
    if (number < csv.columns) return static_cast<size_t>(number);
    return OutOfRange("'%s': no column %d; expected 0 to %d", csv.path, number,
                      csv.columns - 1);
  }
  const std::string near = Nearest(name, csv.names);
  return NotFound("'%s' has no column '%s'%s%s", csv.path, name,
                  near.empty() ? "" : " (did you mean '" + near + "'?)",
                  ColumnsText(csv));
}

// The columns of one entry: a name, a number, or "first:last".
absl::Status AddColumns(const CsvFile& csv, const std::string& entry,
                        std::vector<size_t>* columns) {
  const size_t colon = entry.find(':');
  const bool named =
      std::find(csv.names.begin(), csv.names.end(), entry) != csv.names.end();
  if (named || colon == std::string::npos) {
    PD_ASSIGN_OR_RETURN(const size_t column, FindColumn(csv, entry));
    columns->push_back(column);
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const size_t first,
                      FindColumn(csv, entry.substr(0, colon)));
  PD_ASSIGN_OR_RETURN(const size_t last,
                      FindColumn(csv, entry.substr(colon + 1)));
  if (first > last)
    return InvalidArgument("'%s': columns '%s' run backwards", csv.path, entry);
  for (size_t column = first; column <= last; ++column)
    columns->push_back(column);
  return absl::OkStatus();
}

// Whether an entry depends on which columns the header has, in which order.
bool FollowsHeader(const std::string& entry) {
  if (entry == "*") return true;
  const size_t colon = entry.find(':');
  uint64_t number;
  return colon != std::string::npos &&
         !absl::SimpleAtoi(entry.substr(0, colon), &number) &&
         !absl::SimpleAtoi(entry.substr(colon + 1), &number);
}

// The entries to look up: the columns of the training set by their names where
// another file's order or further columns would change which they are.
const std::vector<std::string>& EntriesOf(const CsvFile& csv,
                                          const CsvField& field) {
  const bool follows =
      std::any_of(field.columns.begin(), field.columns.end(), FollowsHeader);
  return follows && !csv.names.empty() && !field.known.empty() ? field.known
                                                               : field.columns;
}

// The columns of one field but for "*". Those of an unused one may be missing.
absl::StatusOr<std::vector<size_t>> NamedColumns(const CsvFile& csv,
                                                 const CsvField& field) {
  std::vector<size_t> columns;
  for (const std::string& entry : EntriesOf(csv, field)) {
    if (entry == "*") continue;
    const absl::Status status = AddColumns(csv, entry, &columns);
    if (!status.ok() && !field.unused) return status;
  }
  return columns;
}

// The columns of each field; "*" takes those that no other field names.
absl::StatusOr<std::vector<std::vector<size_t>>> ResolveColumns(
    const CsvFile& csv, const std::vector<CsvField>& fields) {
  std::vector<std::vector<size_t>> resolved(fields.size());
  std::set<size_t> named;
  for (size_t i = 0; i < fields.size(); ++i) {
    PD_ASSIGN_OR_RETURN(resolved[i], NamedColumns(csv, fields[i]));
    named.insert(resolved[i].begin(), resolved[i].end());
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    for (const std::string& entry : EntriesOf(csv, fields[i])) {
      for (size_t column = 0; entry == "*" && column < csv.columns; ++column)
        if (named.count(column) == 0) resolved[i].push_back(column);
    }
    if (resolved[i].empty() && !fields[i].unused)
      return InvalidArgument("'%s': field '%s' has no columns", csv.path,
                             fields[i].name);
  }
  return resolved;
}

// One field of one column each.
std::vector<CsvField> FieldPerColumn(const CsvFile& csv) {
  std::vector<CsvField> fields(csv.columns);
  for (size_t i = 0; i < csv.columns; ++i) {
    fields[i].name =
        csv.names.empty() ? absl::StrCat("column", i) : csv.names[i];
    fields[i].columns = {absl::StrCat(i)};
  }
  return fields;
}

// Reads files of rows into a table.
class CsvLoader {
 public:
  explicit CsvLoader(const CsvDatasetOptions& options)
      : options_(options), table_(std::make_shared<TableDataset>()) {}

  absl::Status Load(const std::string& path);
  absl::StatusOr<DatasetPtr> Finish();

 private:
  absl::Status Resolve(const CsvFile& csv);
  absl::Status Row(const CsvReader& reader, const std::vector<CsvCell>& cells);
  absl::Status Value(const CsvCell& cell, size_t place, RowField* field) const;

  const CsvDatasetOptions& options_;
  std::shared_ptr<TableDataset> table_;
  std::vector<RowField> fields_;
  std::vector<std::vector<size_t>> columns_;  // of each field, in this file
};

// The columns of the fields, which the first file makes.
absl::Status CsvLoader::Resolve(const CsvFile& csv) {
  std::vector<CsvField> fields = options_.fields;
  if (fields.empty()) fields = FieldPerColumn(csv);
  PD_ASSIGN_OR_RETURN(columns_, ResolveColumns(csv, fields));
  for (size_t i = fields.size(); i-- > 0;) {
    if (!fields[i].unused) continue;
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(i));
    columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (!fields_.empty() && fields_.size() != fields.size())
    return InvalidArgument("'%s' has %d columns; the file before it has %d",
                           csv.path, fields.size(), fields_.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    const auto width = static_cast<int64_t>(columns_[i].size());
    if (i < fields_.size()) {
      const FieldSpec& spec = table_->fields()[i];
      if (spec.name != fields[i].name)
        return InvalidArgument("'%s' has no column '%s', which '%s' has",
                               csv.path, spec.name, options_.paths[0]);
      if (spec.shape[0] >= 0 && spec.shape[0] != width)
        return InvalidArgument(
            "'%s': field '%s' has %d columns; the file before it has %d",
            csv.path, spec.name, width, spec.shape[0]);
      continue;
    }
    auto field = RowField::Create(fields[i].name, fields[i].value, {width},
                                  table_.get());
    if (!field.ok())
      return Annotate(field.status(), absl::StrCat("'", csv.path, "'"));
    fields_.push_back(*std::move(field));
    if (!csv.names.empty()) {
      std::vector<std::string> names;
      for (const size_t column : columns_[i])
        names.push_back(csv.names[column]);
      table_->set_columns(i, std::move(names));
    }
    const bool picture = fields[i].value.picture.has_value();
    if ((fields[i].value.text.has_value() || picture) && width != 1)
      return InvalidArgument("'%s': field '%s' has %d columns; a %s has one",
                             csv.path, fields[i].name, width,
                             picture ? "picture" : "text");
  }
  return absl::OkStatus();
}

absl::Status CsvLoader::Load(const std::string& path) {
  CsvOptions csv_options;
  csv_options.header = options_.header;
  csv_options.delimiter = options_.delimiter;
  csv_options.quoting = options_.quoting;
  CsvFile csv;
  if (options_.piece != nullptr) {
    csv = *options_.piece;
  } else {
    PD_ASSIGN_OR_RETURN(csv, OpenCsvFile(path, csv_options));
  }
  PD_RETURN_IF_ERROR(Resolve(csv));
  table_->BeginFile(path);
  CsvReader reader(csv);
  std::vector<CsvCell> cells;
  bool any = false;
  for (;;) {
    const absl::StatusOr<bool> more = reader.Next(&cells);
    if (more.ok() && !*more) break;
    any = true;
    const absl::Status status = more.ok() ? Row(reader, cells) : more.status();
    if (status.ok()) continue;
    if (!options_.skip_bad) return status;
    table_->LeaveOut(status);
  }
  if (any || options_.piece != nullptr) return absl::OkStatus();
  return DataLoss("'%s': no rows after the header", path);
}

absl::Status CsvLoader::Row(const CsvReader& reader,
                            const std::vector<CsvCell>& cells) {
  for (size_t i = 0; i < fields_.size(); ++i) {
    for (size_t place = 0; place < columns_[i].size(); ++place) {
      const CsvCell& cell = cells[columns_[i][place]];
      const absl::Status status = Value(cell, place, &fields_[i]);
      if (!status.ok()) return reader.At(cell, status);
    }
  }
  return table_->EndRecord(cells[0].line);
}

absl::Status CsvLoader::Value(const CsvCell& cell, size_t place,
                              RowField* field) const {
  if (field->takes_text()) return field->Text(cell.text, place);
  const absl::StatusOr<double> number =
      ParseNumber(cell.text, options_.allow_nan);
  if (number.ok()) return field->Number(*number, place);
  if (!TrimBlanks(cell.text).empty()) return number.status();
  return field->Missing(
      place, DataLoss("the cell is empty; expected a number (missing: 0 in "
                      "field '%s' would stand for empty cells)",
                      field->name()));
}

absl::StatusOr<DatasetPtr> CsvLoader::Finish() {
  for (RowField& field : fields_) PD_RETURN_IF_ERROR(field.Finish());
  PD_RETURN_IF_ERROR(table_->Finish(options_.piece != nullptr));
  return table_;
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenCsv(const CsvDatasetOptions& options) {
  CsvLoader loader(options);
  if (options.piece != nullptr) {
    PD_RETURN_IF_ERROR(loader.Load(options.piece->path));
    return loader.Finish();
  }
  for (const std::string& path : options.paths)
    PD_RETURN_IF_ERROR(loader.Load(path));
  return loader.Finish();
}

}  // namespace pd
