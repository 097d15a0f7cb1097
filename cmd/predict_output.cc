// SPDX-License-Identifier: Apache-2.0
#include "cmd/predict_output.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/text.h"
#include "formats/npz.h"
#include "libcore/base/dump_json.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostNumbers = 1000;  // of a record in a line of CSV

// A file that takes its place at the end, or a stream, which gets what there is
// after each batch.
class TextOutput {
 public:
  static absl::StatusOr<TextOutput> Open(const std::string& path,
                                         std::ostream& out) {
    TextOutput output;
    if (path.empty()) {
      output.stream_ = &out;
    } else if (IsDirectTarget(path)) {
      PD_ASSIGN_OR_RETURN(output.direct_, OutputFile::Open(path));
      output.stream_ = &output.direct_->stream();
    } else {
      PD_ASSIGN_OR_RETURN(output.file_, AtomicFile::Create(path));
    }
    return output;
  }

  absl::Status Append(const std::string& text) {
    if (file_ != nullptr) return file_->Append(text);
    *stream_ << text;
    return Check();
  }
  absl::Status Flush() {
    if (file_ != nullptr) return absl::OkStatus();
    stream_->flush();
    return Check();
  }
  absl::Status Finish() {
    if (file_ != nullptr) return file_->Commit();
    return direct_ != nullptr ? direct_->Finish() : Flush();
  }

 private:
  absl::Status Check() const {
    if (stream_->good()) return absl::OkStatus();
    if (direct_ != nullptr) return direct_->Finish();
    return DataLoss("standard output takes no more");
  }
  std::unique_ptr<AtomicFile> file_;
  std::unique_ptr<OutputFile> direct_;
  std::ostream* stream_ = nullptr;
};

// A record's name: its file, its line or number in it, or both.
bool ShowsFile(const PredictionLayout& layout, const RecordPlace& place) {
  return place.unit[0] == '\0' || (layout.files && !place.file.empty());
}

std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

class CsvPredictions : public PredictionWriter {
 public:
  CsvPredictions(TextOutput output, PredictionLayout layout)
      : output_(std::move(output)), layout_(std::move(layout)) {}

  absl::Status Write(const Prediction& prediction) override {
    size_t numbers = prediction.numbers.size();
    for (const auto& [name, values] : prediction.fetched)
      numbers += values.size();
    if (numbers > kMostNumbers)
      return InvalidArgument(
          "an answer has %d numbers, too many for a line of CSV; --out with a "
          "name that ends in .npz or .jsonl takes them",
          numbers);
    if (!prediction.has_boxes) return WriteLine(ColumnsOf(prediction));
    // A line for each box; a record without boxes has none.
    for (const DetectedBox& box : prediction.boxes) {
      Columns columns = ColumnsOf(prediction);
      AddBox(box, &columns);
      PD_RETURN_IF_ERROR(WriteLine(columns));
    }
    return absl::OkStatus();
  }
  absl::Status Flush() override { return output_.Flush(); }
  absl::Status Finish() override { return output_.Finish(); }

 private:
  using Columns = std::vector<std::pair<std::string, std::string>>;

  absl::Status WriteLine(const Columns& columns) {
    std::string names, values;
    for (const auto& [name, value] : columns) {
      absl::StrAppend(&names, names.empty() ? "" : ",", Quoted(name));
      absl::StrAppend(&values, &name == &columns[0].first ? "" : ",",
                      Quoted(value));
    }
    if (names_.empty()) PD_RETURN_IF_ERROR(output_.Append(names + "\n"));
    if (!names_.empty() && names != names_)
      return Unimplemented(
          "records have different columns, '%s' and '%s': --out with a name "
          "that ends in .jsonl takes them",
          names_, names);
    names_ = std::move(names);
    return output_.Append(values + "\n");
  }

  void AddBox(const DetectedBox& box, Columns* columns) const {
    columns->emplace_back("class", ClassName(layout_.classes, box.number));
    columns->emplace_back("score", absl::StrFormat("%.6g", box.score));
    const char* const kNames[] = {"x1", "y1", "x2", "y2"};
    for (size_t i = 0; i < 4; ++i)
      columns->emplace_back(kNames[i], absl::StrFormat("%.6g", box.corners[i]));
  }

  // Whole numbers, which may be ids, keep all of their digits.
  static std::string NumberText(double number) {
    constexpr double kNine = 1e9, kExact = 9007199254740992;
    const double size = std::fabs(number);
    if (size >= kNine && size < kExact && number == std::trunc(number))
      return absl::StrCat(static_cast<int64_t>(number));
    return absl::StrFormat("%.9g", number);
  }

  static void AddNumbers(const std::string& name,
                         const std::vector<double>& numbers, Columns* columns) {
    for (size_t i = 0; i < numbers.size(); ++i)
      columns->emplace_back(
          numbers.size() == 1 ? name : absl::StrCat(name, "_", i),
          NumberText(numbers[i]));
  }

  Columns ColumnsOf(const Prediction& p) const {
    Columns columns;
    if (ShowsFile(layout_, p.place)) columns.emplace_back("file", p.place.file);
    if (p.place.unit[0] != '\0')
      columns.emplace_back(p.place.unit, absl::StrCat(p.place.number));
    for (size_t i = 0; i < p.top.size(); ++i) {
      const std::string suffix = i == 0 ? "" : absl::StrCat("_", i + 1);
      columns.emplace_back("class" + suffix,
                           ClassName(layout_.classes, p.top[i].first));
      columns.emplace_back("probability" + suffix,
                           absl::StrFormat("%.6g", p.top[i].second));
    }
    AddNumbers(layout_.answer, p.numbers, &columns);
    for (const auto& [name, values] : p.fetched)
      AddNumbers(name, values, &columns);
    if (p.has_text) columns.emplace_back("text", p.text);
    if (p.has_positions && !p.has_text) {
      std::string names;
      for (const int64_t c : p.positions)
        absl::StrAppend(&names, names.empty() ? "" : " ",
                        ClassName(layout_.classes, c));
      columns.emplace_back("classes", names);
    }
    if (!p.mask.empty()) columns.emplace_back("mask", p.mask);
    return columns;
  }

  TextOutput output_;
  PredictionLayout layout_;
  std::string names_;  // the header
};

// A line for each record; with `list` they are the elements of one list.
class JsonPredictions : public PredictionWriter {
 public:
  JsonPredictions(TextOutput output, PredictionLayout layout, bool list)
      : output_(std::move(output)), layout_(std::move(layout)), list_(list) {}

  absl::Status Write(const Prediction& p) override {
    Json line = Json::object();
    if (ShowsFile(layout_, p.place)) line["file"] = p.place.file;
    if (p.place.unit[0] != '\0') line[p.place.unit] = p.place.number;
    if (!p.top.empty()) {
      line["class"] = ClassName(layout_.classes, p.top[0].first);
      line["number"] = p.top[0].first;
      line["probability"] = p.top[0].second;
    }
    for (size_t i = 0; p.top.size() > 1 && i < p.top.size(); ++i)
      line["top"].push_back(
          {{"class", ClassName(layout_.classes, p.top[i].first)},
           {"number", p.top[i].first},
           {"probability", p.top[i].second}});
    if (p.scalar && p.numbers.size() == 1)
      line[layout_.answer] = p.numbers[0];
    else if (!p.numbers.empty())
      line[layout_.answer] = p.numbers;
    for (const auto& [name, values] : p.fetched) line[name] = values;
    if (p.has_text) line["text"] = p.text;
    if (p.has_positions && !p.has_text) {
      line["classes"] = Json::array();
      for (const int64_t c : p.positions)
        line["classes"].push_back(ClassName(layout_.classes, c));
    }
    if (!p.mask.empty()) line["mask"] = p.mask;
    if (p.has_boxes) line["boxes"] = Json::array();
    for (const DetectedBox& box : p.boxes)
      line["boxes"].push_back(
          {{"class", ClassName(layout_.classes, box.number)},
           {"number", box.number},
           {"score", box.score},
           {"x1", box.corners[0]},
           {"y1", box.corners[1]},
           {"x2", box.corners[2]},
           {"y2", box.corners[3]}});
    if (!list_) return output_.Append(DumpJson(line) + "\n");
    return output_.Append(absl::StrCat(Before(), DumpJson(line)));
  }
  absl::Status Flush() override { return output_.Flush(); }
  absl::Status Finish() override {
    if (list_) PD_RETURN_IF_ERROR(output_.Append(begun_ ? "\n]\n" : "[]\n"));
    return output_.Finish();
  }

 private:
  const char* Before() { return std::exchange(begun_, true) ? ",\n" : "[\n"; }

  TextOutput output_;
  PredictionLayout layout_;
  const bool list_;
  bool begun_ = false;
};

// Rows of one array, in a file that has no name any more.
class Spill {
 public:
  explicit Spill(const Array& first) : dtype_(first.dtype), row_(first.shape) {}
  Spill(Spill&& other) noexcept
      : dtype_(other.dtype_),
        row_(std::move(other.row_)),
        rows_(other.rows_),
        file_(std::exchange(other.file_, nullptr)) {}
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;
  ~Spill() {
    if (file_ != nullptr) std::fclose(file_);
  }

  absl::Status Open(const std::string& beside) {
    std::string name = beside + ".rowsXXXXXX";
    const int fd = ::mkstemp(name.data());
    if (fd < 0)
      return ErrnoToStatus(errno, absl::StrCat("cannot write '", name, "'"));
    ::unlink(name.c_str());
    file_ = ::fdopen(fd, "w+b");
    if (file_ != nullptr) return absl::OkStatus();
    const int error = errno;
    ::close(fd);
    return ErrnoToStatus(error, absl::StrCat("cannot write '", name, "'"));
  }

  absl::Status Add(const std::string& name, const Array& row) {
    if (row.dtype != dtype_ || row.shape != row_)
      return Unimplemented(
          "'%s' has rows of different shapes, %s and %s (pad { length: ... } "
          "gives all records one length; .jsonl takes them as they are)",
          name, ToString(row_), ToString(row.shape));
    const size_t size = row.size_bytes();
    if (std::fwrite(row.bytes.get(), 1, size, file_) != size)
      return ErrnoToStatus(errno, absl::StrCat("cannot keep '", name, "'"));
    ++rows_;
    return absl::OkStatus();
  }

  // The rows as one array, which the file's pages hold.
  absl::StatusOr<Array> Take(const std::string& name) {
    Array array;
    array.dtype = dtype_;
    array.shape = row_;
    array.shape.insert(array.shape.begin(), rows_);
    const size_t size = array.size_bytes();
    if (std::fflush(file_) != 0)
      return ErrnoToStatus(errno, absl::StrCat("cannot keep '", name, "'"));
    if (size == 0) return array;
    void* bytes =
        ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, ::fileno(file_), 0);
    if (bytes == MAP_FAILED)
      return ErrnoToStatus(errno, absl::StrCat("cannot read '", name, "'"));
    array.bytes = std::shared_ptr<const std::byte>(
        static_cast<const std::byte*>(bytes), [size](const std::byte* mapped) {
          ::munmap(const_cast<std::byte*>(mapped), size);
        });
    return array;
  }

 private:
  DType dtype_;
  Shape row_;
  int64_t rows_ = 0;
  std::FILE* file_ = nullptr;
};

class NpzPredictions : public PredictionWriter {
 public:
  explicit NpzPredictions(std::string path) : path_(std::move(path)) {}

  bool wants_arrays() const override { return true; }
  absl::Status Write(const Prediction& prediction) override {
    for (const auto& [name, row] : prediction.arrays) {
      auto spill = spills_.find(name);
      if (spill == spills_.end()) {
        spill = spills_.emplace(name, Spill(row)).first;
        PD_RETURN_IF_ERROR(spill->second.Open(path_));
      }
      PD_RETURN_IF_ERROR(spill->second.Add(name, row));
    }
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    NamedArrays arrays;
    for (auto& [name, spill] : spills_) {
      PD_ASSIGN_OR_RETURN(arrays[name], spill.Take(name));
    }
    return WriteNpz(path_, arrays);
  }

 private:
  std::string path_;
  std::map<std::string, Spill> spills_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PredictionWriter>> OpenPredictions(
    const std::string& path, bool json, PredictionLayout layout,
    std::ostream& out) {
  const bool stream = path.empty() || IsDirectTarget(path);
  if (absl::EndsWith(path, ".npz"))
    return std::make_unique<NpzPredictions>(path);
  const bool list = !stream && absl::EndsWith(path, ".json");
  const bool lines = stream ? json : absl::EndsWith(path, ".jsonl");
  if (!stream && !list && !lines && !absl::EndsWith(path, ".csv"))
    return CommandLineError(absl::StrCat(
        "--out '", path,
        "': predictions are written as .csv, .json, .jsonl or .npz"));
  PD_ASSIGN_OR_RETURN(TextOutput output, TextOutput::Open(path, out));
  if (list || lines)
    return std::make_unique<JsonPredictions>(std::move(output),
                                             std::move(layout), list);
  return std::make_unique<CsvPredictions>(std::move(output), std::move(layout));
}

}  // namespace pd
