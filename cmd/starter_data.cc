// SPDX-License-Identifier: Apache-2.0
#include "cmd/starter_data.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "cmd/common/exit_status.h"
#include "formats/csv.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/datasets.h"

namespace pd {
namespace {

// Fewer records do not split into some to learn from and some to judge by.
constexpr int64_t kLeastRecords = 10;
// Texts that are counted apart in a column.
constexpr size_t kMostTexts = 100000;

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(text), "\"");
}

std::string QuotedNames(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(Quoted(name));
  return absl::StrJoin(quoted, ", ");
}

// The kind of a column's cells.
struct ColumnFacts {
  std::string name;  // or its number
  int64_t empty = 0, texts = 0, letters = 0;
  std::string first_text;  // and its line
  int64_t first_line = 0;
  std::set<std::string> values;  // some of them
  bool is_number() const { return texts == 0; }
};

struct TableFacts {
  bool header = true, tabs = false;
  int64_t rows = 0;
  std::vector<ColumnFacts> columns;
  size_t target = 0;
};

void Note(const CsvCell& cell, ColumnFacts* column) {
  const absl::string_view text = TrimBlanks(cell.text);
  column->letters += static_cast<int64_t>(text.size());
  if (column->values.size() < kMostTexts)
    column->values.insert(std::string(text));
  if (text.empty()) {
    ++column->empty;
  } else if (!ParseNumber(text).ok() && column->texts++ == 0) {
    column->first_text = std::string(text);
    column->first_line = cell.line;
  }
}

// The column that is meant, by its name or number.
absl::StatusOr<size_t> FindTarget(const std::string& path,
                                  const std::string& target,
                                  const std::vector<std::string>& names,
                                  bool* header) {
  const auto named = std::find(names.begin(), names.end(), target);
  *header = named != names.end() &&
            !std::all_of(names.begin(), names.end(), [](const auto& name) {
              return ParseNumber(name).ok();
            });
  if (*header) return static_cast<size_t>(named - names.begin());
  uint64_t number;
  if (absl::SimpleAtoi(target, &number) && number < names.size())
    return static_cast<size_t>(number);
  return UsageError(NotFound(
      "'%s' has no column '%s'; its first line has %s, and numbers count from "
      "0 "
      "where no names stand there",
      path, target, QuotedNames(names)));
}

absl::StatusOr<TableFacts> LookAtTable(const StarterData& data) {
  TableFacts table;
  table.tabs = !absl::EndsWithIgnoreCase(data.path, ".csv") &&
               !absl::EndsWithIgnoreCase(data.path, ".csv.gz");
  CsvOptions options;
  options.delimiter = table.tabs ? '\t' : ',';
  options.quoting = !table.tabs;
  PD_ASSIGN_OR_RETURN(const CsvFile csv, OpenCsvFile(data.path, options));
  PD_ASSIGN_OR_RETURN(table.target, FindTarget(data.path, data.target,
                                               csv.names, &table.header));
  if (csv.columns < 2)
    return InvalidArgument(
        "'%s' has one column; expected columns between %s, the predicted one "
        "and others",
        data.path, table.tabs ? "tabs" : "commas (or tabs, in a .tsv file)");
  for (size_t i = 0; i < csv.columns; ++i) {
    table.columns.emplace_back();
    table.columns[i].name = table.header ? csv.names[i] : absl::StrCat(i);
  }
  options.header = table.header;
  PD_ASSIGN_OR_RETURN(const CsvFile rows, OpenCsvFile(data.path, options));
  CsvReader reader(rows);
  std::vector<CsvCell> cells;
  for (;;) {
    PD_ASSIGN_OR_RETURN(const bool more, reader.Next(&cells));
    if (!more) break;
    ++table.rows;
    for (size_t i = 0; i < cells.size(); ++i) Note(cells[i], &table.columns[i]);
  }
  if (table.rows < kLeastRecords)
    return InvalidArgument(
        "'%s' has %d rows; at least %d are needed to learn from some and judge "
        "by others",
        data.path, table.rows, kLeastRecords);
  const ColumnFacts& target = table.columns[table.target];
  if (target.empty > 0)
    return InvalidArgument("'%s': column '%s' is empty in %d of %d rows",
                           data.path, target.name, target.empty, table.rows);
  return table;
}

// A text that is changed where it stands for made-up data.
class Text {
 public:
  explicit Text(std::string text) : text_(std::move(text)) {}
  void Replace(absl::string_view from, absl::string_view to) {
    const size_t at = text_.find(std::string(from));
    PD_INVARIANT(at != std::string::npos);
    text_.replace(at, from.size(), to.data(), to.size());
  }
  // The comment before the first field.
  void SetHead(const std::string& head) {
    text_.replace(0, text_.find("\nname:") + 1, head);
  }
  // One set for both, divided.
  void Split() {
    Replace("    batch_size:",
            "    # Four fifths to learn from; others are judged by below.\n"
            "    subset { split: [0.8, 0.2] part: 0 }\n    batch_size:");
    const size_t eval = text_.find("\n  eval {");
    PD_INVARIANT(eval != std::string::npos);
    const size_t at = text_.find("    batch_size:", eval);
    text_.insert(at, "    subset { split: [0.8, 0.2] part: 1 }\n");
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

// As many hashes that few of these values share one.
int64_t BucketsFor(int64_t values) {
  int64_t buckets = 64;
  while (buckets < 10 * values) buckets *= 2;
  return buckets;
}

// The table's own delimiter and header in place of a CSV file's.
void SetForm(const TableFacts& table, Text* text) {
  if (table.tabs) {
    text->Replace("    csv {\n", "    tsv {\n");
    text->Replace("    csv {", "    tsv {");
  }
  std::string form;
  if (!table.header) form += "      header: false\n";
  if (table.tabs) form += "      quoting: false\n";
  if (!form.empty())
    text->Replace("      field {", absl::StrCat(form, "      field {"));
}

// Columns of texts become vectors beside the numbers.
void AddTexts(const std::vector<std::string>& names, int64_t buckets,
              bool numbers, Text* text) {
  std::string layers =
      "  # Each column of texts is a vector of 8 numbers.\n"
      "  input { name: \"texts\" shape: [-1, @columns] dtype: int64 }\n"
      "  layer {\n    name: \"vectors\"\n    input: \"texts\"\n"
      "    embedding { num_embeddings: @vocabulary(texts) embedding_dim: 8 }\n"
      "  }\n  layer { name: \"flatten\" flatten {} }\n";
  if (numbers)
    layers +=
        "  layer { name: \"all\" input: [\"x\", \"flatten\"] concat { axis: 1 "
        "} "
        "}\n";
  text->Replace("  layer { name: \"fc1\"",
                absl::StrCat(layers, "  layer { name: \"fc1\""));
  text->Replace(
      "      field { name: \"x\"",
      absl::StrCat("      # Texts are hashed; few share a number.\n"
                   "      field {\n        name: \"texts\"\n        column: [",
                   QuotedNames(names), "]\n        hash_buckets: ", buckets,
                   "\n      }\n      field { name: \"x\""));
  if (numbers) return;
  text->Replace(
      "  # As many numbers as columns are read.\n"
      "  input { name: \"x\" shape: [-1, @columns] }\n",
      "");
  text->Replace("      field { name: \"x\" column: \"*\" standardize: true }\n",
                "");
}

absl::Status CheckNumbers(const StarterData& data, const ColumnFacts& target,
                          const std::string& other) {
  if (target.is_number()) return absl::OkStatus();
  return InvalidArgument("'%s':%d: column '%s' holds %s, which is no number%s",
                         data.path, target.first_line, target.name,
                         ShownText(target.first_text), other);
}

absl::Status MakeTabular(const StarterData& data, const TableFacts& table,
                         bool classes, Text* text, StarterJob* job) {
  const ColumnFacts& target = table.columns[table.target];
  if (!classes)
    PD_RETURN_IF_ERROR(CheckNumbers(
        data, target, "; --new tabular-classification predicts classes"));
  if (classes && static_cast<int64_t>(target.values.size()) * 2 > table.rows)
    return InvalidArgument(
        "'%s': column '%s' has %d different values in %d rows, which are no "
        "classes; --new tabular-regression predicts numbers",
        data.path, target.name, target.values.size(), table.rows);
  std::vector<std::string> texts, gaps;
  int64_t values = 0, numbers = 0;
  for (const ColumnFacts& column : table.columns) {
    if (&column == &target) continue;
    if (column.is_number()) {
      ++numbers;
      if (column.empty > 0) gaps.push_back(column.name);
    } else {
      texts.push_back(column.name);
      values += static_cast<int64_t>(column.values.size());
    }
  }
  text->Replace(classes ? "column: \"class\"" : "column: \"y\"",
                absl::StrCat("column: ", Quoted(target.name)));
  if (!gaps.empty()) {
    text->Replace("standardize: true }", "missing: 0 standardize: true }");
    job->notes.push_back(absl::StrCat("empty cells of ", QuotedNames(gaps),
                                      " count as 0: see 'missing'"));
  }
  if (!texts.empty()) {
    AddTexts(texts, BucketsFor(values), numbers > 0, text);
    job->notes.push_back(
        absl::StrCat("columns of texts: ", QuotedNames(texts)));
  }
  if (classes)
    job->notes.push_back(absl::StrCat(target.values.size(), " classes in ",
                                      Quoted(target.name)));
  SetForm(table, text);
  return absl::OkStatus();
}

absl::Status MakeRecommendation(const StarterData& data,
                                const TableFacts& table, Text* text) {
  const ColumnFacts& target = table.columns[table.target];
  PD_RETURN_IF_ERROR(CheckNumbers(data, target, ""));
  if (target.values != std::set<std::string>{"0", "1"})
    return InvalidArgument(
        "'%s': column '%s' must hold 1 and 0, for taken and not; it holds %s",
        data.path, target.name,
        QuotedNames({target.values.begin(),
                     std::next(target.values.begin(),
                               static_cast<std::ptrdiff_t>(std::min<size_t>(
                                   target.values.size(), 5)))}));
  std::vector<std::string> names;
  int64_t values = 0;
  for (const ColumnFacts& column : table.columns) {
    if (&column == &target) continue;
    names.push_back(column.name);
    values += static_cast<int64_t>(column.values.size());
  }
  text->Replace(
      "field { name: \"ids\" column: [\"user\", \"item\", \"day\"] "
      "hash_buckets: 100000 }",
      absl::StrCat("field {\n        name: \"ids\"\n        column: [",
                   QuotedNames(names), "]\n        hash_buckets: ",
                   BucketsFor(values), "\n      }"));
  text->Replace("column: \"clicked\"",
                absl::StrCat("column: ", Quoted(target.name)));
  SetForm(table, text);
  return absl::OkStatus();
}

absl::Status MakeTextClassification(const TableFacts& table, Text* text,
                                    StarterJob* job) {
  // Of the other columns the one with the longest texts.
  const ColumnFacts* words = nullptr;
  for (size_t i = 0; i < table.columns.size(); ++i)
    if (i != table.target &&
        (words == nullptr || table.columns[i].letters > words->letters))
      words = &table.columns[i];
  text->Replace(
      "column: \"0\"",
      absl::StrCat("column: ", Quoted(table.columns[table.target].name)));
  text->Replace("column: \"1\"", absl::StrCat("column: ", Quoted(words->name)));
  if (table.header) text->Replace("      header: false\n", "");
  if (!table.tabs) {
    text->Replace("    tsv {\n", "    csv {\n");
    text->Replace("    tsv {", "    csv {");
    text->Replace(
        "      # Quotes are characters of the text like others.\n"
        "      quoting: false\n",
        "");
  }
  if (table.columns.size() > 2)
    job->notes.push_back(
        absl::StrCat("the text is column ", Quoted(words->name)));
  return absl::OkStatus();
}

// "../data/train.csv": from the job's folder.
std::string FromFolder(const std::string& path, const std::string& folder) {
  namespace fs = std::filesystem;
  if (fs::path(path).is_absolute()) return path;
  std::error_code error;
  const fs::path there = fs::weakly_canonical(fs::absolute(folder), error);
  const fs::path file = fs::weakly_canonical(fs::absolute(path), error);
  const fs::path relative = file.lexically_relative(there);
  return error || relative.empty() ? file.string() : relative.string();
}

// The job's first lines.
std::string HeadOf(const std::string& kind, const StarterData& data,
                   const std::string& what) {
  return absl::StrCat(
      "# ", kind, ", made for ", what, "\n#   ",
      absl::Utf8SafeCEscape(data.path), "\n",
      data.target.empty() ? ""
                          : absl::StrCat("# whose column ", Quoted(data.target),
                                         " is predicted.\n"),
      "#\n# A fifth of them are kept to judge by. Type `make`; every field is\n"
      "# explained in pd-job(5). One is changed for a single run by\n#\n"
      "#   pd-train -c job.pbtxt --out run2 -o train.epochs=5\n");
}

}  // namespace

bool TakesTarget(const std::string& kind) {
  return absl::StartsWith(kind, "tabular-") || kind == "recommendation" ||
         kind == "text-classification";
}

bool TakesData(const std::string& kind) {
  return TakesTarget(kind) || kind == "image-classification" ||
         kind == "language-model";
}

absl::StatusOr<StarterJob> MakeStarter(const std::string& kind,
                                       const std::string& text,
                                       const StarterData& data,
                                       const std::string& folder) {
  StarterJob job;
  Text changed(text);
  std::string what;
  const std::string path = Quoted(FromFolder(data.path, folder));
  if (TakesTarget(kind)) {
    PD_ASSIGN_OR_RETURN(const TableFacts table, LookAtTable(data));
    what = absl::StrCat("the ", table.rows, " rows of");
    const char* ending = kind == "text-classification" ? "tsv" : "csv";
    for (const char* set : {"train", "eval"})
      changed.Replace(absl::StrCat("path: \"data/", set, ".", ending, "\""),
                      absl::StrCat("path: ", path));
    if (kind == "recommendation") {
      PD_RETURN_IF_ERROR(MakeRecommendation(data, table, &changed));
    } else if (kind == "text-classification") {
      PD_RETURN_IF_ERROR(MakeTextClassification(table, &changed, &job));
    } else {
      PD_RETURN_IF_ERROR(MakeTabular(
          data, table, kind == "tabular-classification", &changed, &job));
    }
  } else if (kind == "image-classification") {
    PD_ASSIGN_OR_RETURN(const DatasetPtr pictures,
                        OpenImageFolder({data.path}));
    const size_t classes = pictures->FindField("label")->classes.size();
    if (pictures->size() < kLeastRecords || classes < 2)
      return InvalidArgument(
          "'%s' has %d pictures in %d folders; expected a folder for each "
          "class, two or more, and at least %d pictures",
          data.path, pictures->size(), classes, kLeastRecords);
    job.notes = pictures->notes();
    what = absl::StrCat("the ", pictures->size(), " pictures in ", classes,
                        " folders of");
    for (const char* set : {"train", "eval"})
      changed.Replace(absl::StrCat("root: \"data/", set, "\""),
                      absl::StrCat("root: ", path));
  } else {
    PD_ASSIGN_OR_RETURN(const FileBytes bytes, ReadInput(data.path));
    LineReader lines(bytes.view());
    absl::string_view line;
    while (lines.Next(&line)) continue;
    what = absl::StrCat("the ", lines.number(), " lines of");
    for (const char* set : {"train", "eval"})
      changed.Replace(absl::StrCat("path: \"data/", set, ".txt\""),
                      absl::StrCat("path: ", path));
  }
  changed.Split();
  changed.SetHead(HeadOf(kind, data, what));
  job.text = changed.Take();
  return job;
}

}  // namespace pd
