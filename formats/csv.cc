// SPDX-License-Identifier: Apache-2.0
#include "formats/csv.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Walks over the fields of a file. Quoted fields are unescaped into a buffer;
// the others are views.
class Scanner {
 public:
  Scanner(absl::string_view text, size_t begin, char delimiter)
      : text_(text), delimiter_(delimiter) {
    for (size_t i = 0; i < begin; ++i) line_ += text[i] == '\n';
    at_ = line_start_ = begin;
  }

  bool AtEnd() const { return at_ >= text_.size(); }
  size_t at() const { return at_; }
  int64_t field_line() const { return field_line_; }
  int64_t field_column() const { return field_column_; }
  bool ended_row() const { return ended_row_; }
  absl::string_view field() const { return field_; }
  bool quoted() const { return quoted_; }

  // Reads one field and what ends it; InvalidArgument on broken quoting.
  absl::Status Next() {
    field_line_ = line_;
    field_column_ = static_cast<int64_t>(at_ - line_start_) + 1;
    quoted_ = at_ < text_.size() && text_[at_] == '"';
    if (quoted_) {
      PD_RETURN_IF_ERROR(Quoted());
    } else {
      Plain();
    }
    return EndField();
  }

 private:
  void Plain() {
    const size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ &&
           text_[at_] != '\n' && text_[at_] != '\r')
      ++at_;
    field_ = text_.substr(begin, at_ - begin);
  }

  absl::Status Quoted() {
    buffer_.clear();
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
        ++at_;  // "" is one quote
      } else if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
      }
      buffer_.push_back(c);
    }
    if (at_ >= text_.size())
      return DataLoss("the quote that opens here is never closed");
    ++at_;
    field_ = buffer_;
    return absl::OkStatus();
  }

  absl::Status EndField() {
    ended_row_ = true;
    if (at_ >= text_.size()) return absl::OkStatus();
    if (text_[at_] == delimiter_) {
      ended_row_ = false;
      ++at_;
      // A delimiter at the very end: one more, empty field follows.
      return absl::OkStatus();
    }
    if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n')
      ++at_;
    if (text_[at_] == '\n') {
      ++at_;
      ++line_;
      line_start_ = at_;
      return absl::OkStatus();
    }
    return DataLoss("'%s' after a field; expected '%c' or the end of the line",
                    absl::CHexEscape(text_.substr(at_, 1)), delimiter_);
  }

  absl::string_view text_;
  char delimiter_;
  size_t at_ = 0, line_start_ = 0;
  int64_t line_ = 1;
  int64_t field_line_ = 1, field_column_ = 1;
  bool ended_row_ = false, quoted_ = false;
  absl::string_view field_;
  std::string buffer_;
};

absl::Status At(const std::string& path, const Scanner& scanner,
                const absl::Status& status) {
  return Annotate(status,
                  absl::StrFormat("'%s':%d:%d", path, scanner.field_line(),
                                  scanner.field_column()));
}

absl::string_view Trim(absl::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
    text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
    text.remove_suffix(1);
  return text;
}

std::string Shown(absl::string_view field) {
  constexpr size_t kMost = 40;
  return absl::StrCat("'", absl::CHexEscape(field.substr(0, kMost)),
                      field.size() > kMost ? "...'" : "'");
}

absl::StatusOr<double> ParseNumber(absl::string_view field, bool allow_nan) {
  absl::string_view digits = Trim(field);
  if (digits.empty()) return DataLoss("the field is empty; expected a number");
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-')
    digits.remove_prefix(1);  // from_chars takes no plus sign
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error == std::errc::result_out_of_range)
    return DataLoss("%s is outside the range of a double", Shown(field));
  if (error != std::errc() || stop != end)
    return DataLoss("%s is not a number", Shown(field));
  if (!std::isfinite(value) && !allow_nan)
    return DataLoss("%s is not a finite number", Shown(field));
  return value;
}

// A blank line at the end of a file, or between rows, is no row.
bool IsBlankRow(const Scanner& scanner, size_t fields, size_t columns) {
  return fields == 1 && columns > 1 && scanner.ended_row() &&
         scanner.field().empty() && !scanner.quoted();
}

}  // namespace

absl::StatusOr<CsvFile> OpenCsvFile(const std::string& path,
                                    const CsvOptions& options) {
  CsvFile csv;
  csv.path = path;
  csv.options = options;
  PD_ASSIGN_OR_RETURN(csv.file, ReadFile(path));
  const absl::string_view text = csv.file.view();
  const size_t begin = text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0;
  if (text.size() == begin)
    return DataLoss("'%s': the file is empty; expected CSV rows", path);
  Scanner scanner(text, begin, options.delimiter);
  do {
    const absl::Status status = scanner.Next();
    if (!status.ok()) return At(path, scanner, status);
    ++csv.columns;
    if (options.header) csv.names.emplace_back(Trim(scanner.field()));
  } while (!scanner.ended_row());
  csv.body = options.header ? scanner.at() : begin;
  return csv;
}

absl::StatusOr<CsvNumbers> ReadCsvNumbers(const CsvFile& csv,
                                          const std::vector<size_t>& columns) {
  std::vector<std::vector<size_t>> places(csv.columns);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] >= csv.columns)
      return OutOfRange("'%s': column %d; the file has %d columns", csv.path,
                        columns[i], csv.columns);
    places[columns[i]].push_back(i);
  }
  CsvNumbers numbers;
  std::vector<double> row(columns.size());
  Scanner scanner(csv.file.view(), csv.body, csv.options.delimiter);
  size_t column = 0;
  int64_t line = 1;
  while (!scanner.AtEnd() || column > 0) {
    const absl::Status status = scanner.Next();
    if (!status.ok()) return At(csv.path, scanner, status);
    if (column == 0) line = scanner.field_line();
    if (IsBlankRow(scanner, column + 1, csv.columns)) continue;
    if (column >= csv.columns ||
        (scanner.ended_row() && column + 1 != csv.columns)) {
      return At(csv.path, scanner,
                DataLoss("the row has %s %d fields; the first has %d",
                         column >= csv.columns ? "more than" : "only",
                         column >= csv.columns ? csv.columns : column + 1,
                         csv.columns));
    }
    if (!places[column].empty()) {
      const auto value = ParseNumber(scanner.field(), csv.options.allow_nan);
      if (!value.ok()) return At(csv.path, scanner, value.status());
      for (size_t place : places[column]) row[place] = *value;
    }
    ++column;
    if (scanner.ended_row()) {
      numbers.values.insert(numbers.values.end(), row.begin(), row.end());
      numbers.lines.push_back(line);
      ++numbers.rows;
      column = 0;
    }
  }
  if (numbers.rows == 0)
    return DataLoss("'%s': no rows after the header", csv.path);
  return numbers;
}

}  // namespace pd
