// SPDX-License-Identifier: Apache-2.0
#include "formats/csv.h"

#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

CsvReader::CsvReader(const CsvFile& csv)
    : csv_(csv),
      text_(csv.file.view()),
      at_(csv.body),
      line_start_(csv.body),
      line_(csv.body_line) {}

absl::Status CsvReader::At(const CsvCell& cell,
                           const absl::Status& status) const {
  return Annotate(
      status, absl::StrFormat("'%s':%d:%d", csv_.path, cell.line, cell.column));
}

void CsvReader::Newline() {
  ++line_;
  line_start_ = at_;
}

// Reads a quoted field from behind its first quote to behind its last. Where it
// holds no quotes itself, it is a view into the file.
absl::Status CsvReader::Quoted(CsvCell* cell) {
  const size_t begin = ++at_;
  std::string* buffer = nullptr;
  size_t copied = begin;
  for (; at_ < text_.size(); ++at_) {
    if (text_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    } else if (text_[at_] == '"') {
      if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
      if (buffer == nullptr) {
        if (used_ == buffers_.size()) buffers_.emplace_back();
        buffer = &buffers_[used_++];
        buffer->clear();
      }
      ++at_;  // "" is one quote
      buffer->append(text_.data() + copied, at_ - copied);
      copied = at_ + 1;
    }
  }
  if (at_ >= text_.size())
    return DataLoss("the quote that opens here is never closed");
  if (buffer == nullptr) {
    cell->text = text_.substr(begin, at_ - begin);
  } else {
    buffer->append(text_.data() + copied, at_ - copied);
    cell->text = *buffer;
  }
  ++at_;
  return absl::OkStatus();
}

// Reads a field and what ends it.
absl::Status CsvReader::Field(CsvCell* cell, bool* last) {
  cell->line = line_;
  cell->column = static_cast<int64_t>(at_ - line_start_) + 1;
  cell->quoted =
      csv_.options.quoting && at_ < text_.size() && text_[at_] == '"';
  if (cell->quoted) {
    PD_RETURN_IF_ERROR(Quoted(cell));
  } else {
    const char delimiter = csv_.options.delimiter;
    const char* const begin = text_.data() + at_;
    const char* const end = text_.data() + text_.size();
    const char* stop = begin;
    while (stop < end && *stop != delimiter && *stop != '\n' && *stop != '\r')
      ++stop;
    cell->text = {begin, static_cast<size_t>(stop - begin)};
    at_ += cell->text.size();
  }
  *last = true;
  if (at_ >= text_.size()) return absl::OkStatus();
  if (text_[at_] == csv_.options.delimiter) {
    *last = false;
    ++at_;
    // A delimiter at the very end: one more, empty field follows.
    return absl::OkStatus();
  }
  if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n')
    ++at_;
  if (text_[at_] == '\n') {
    ++at_;
    Newline();
    return absl::OkStatus();
  }
  return DataLoss("'%s' after a field; expected '%c' or the end of the line",
                  absl::CHexEscape(text_.substr(at_, 1)),
                  csv_.options.delimiter);
}

absl::Status CsvReader::Row(std::vector<CsvCell>* cells) {
  used_ = 0;
  for (size_t column = 0;; ++column) {
    if (column == cells->size()) cells->emplace_back();
    CsvCell& cell = (*cells)[column];
    if (column == 0) {
      row_begin_ = at_;
      row_line_ = line_;
    }
    bool last = false;
    const absl::Status status = Field(&cell, &last);
    if (!status.ok()) return At(cell, status);
    // A blank line at the end of a file, or between rows, is no row.
    if (column == 0 && last && csv_.columns > 1 && cell.text.empty() &&
        !cell.quoted) {
      if (at_ >= text_.size()) {
        cells->clear();
        return absl::OkStatus();
      }
      --column;
      continue;
    }
    if (csv_.columns > 0 &&
        (column >= csv_.columns || (last && column + 1 != csv_.columns)))
      return At(cell,
                DataLoss("the row has %s %d fields; the first has %d",
                         column >= csv_.columns ? "more than" : "only",
                         column >= csv_.columns ? csv_.columns : column + 1,
                         csv_.columns));
    if (!last) continue;
    cells->resize(column + 1);
    return absl::OkStatus();
  }
}

absl::StatusOr<bool> CsvReader::Next(std::vector<CsvCell>* cells) {
  if (at_ >= text_.size()) return false;
  const absl::Status status = Row(cells);
  if (status.ok()) return !cells->empty();
  const size_t end = text_.find('\n', row_begin_);
  at_ = end == absl::string_view::npos ? text_.size() : end + 1;
  line_ = row_line_;
  Newline();
  return status;
}

absl::StatusOr<CsvFile> OpenCsvFile(const std::string& path,
                                    const CsvOptions& options) {
  PD_ASSIGN_OR_RETURN(FileBytes bytes, ReadInput(path));
  return ParseCsvHead(path, std::move(bytes), options);
}

absl::StatusOr<CsvFile> ParseCsvHead(const std::string& path, FileBytes bytes,
                                     const CsvOptions& options) {
  CsvFile csv;
  csv.path = path;
  csv.options = options;
  csv.file = std::move(bytes);
  const absl::string_view text = csv.file.view();
  csv.body = text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0;
  if (text.size() == csv.body)
    return DataLoss("'%s': the file is empty; expected CSV rows", path);
  CsvReader reader(csv);
  std::vector<CsvCell> cells;
  PD_RETURN_IF_ERROR(reader.Row(&cells));
  csv.columns = cells.size();
  if (!options.header) return csv;
  for (const CsvCell& cell : cells)
    csv.names.emplace_back(TrimBlanks(cell.text));
  csv.body = reader.at_;
  csv.body_line = reader.line_;
  return csv;
}

}  // namespace pd
