// SPDX-License-Identifier: Apache-2.0
// Fields of JSON objects, one object a line.
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "formats/json_line.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/row_datasets.h"
#include "libcore/data/table_dataset.h"

namespace pd {
namespace {

// One step of a path: a member's name, or a number in brackets.
struct PathStep {
  std::string member;
  size_t index = 0;
  bool is_index = false;
};

absl::StatusOr<std::vector<PathStep>> ParsePath(const std::string& path) {
  std::vector<PathStep> steps;
  absl::string_view rest = path;
  bool first = true;
  while (!rest.empty()) {
    if (rest[0] == '[') {
      const size_t close = rest.find(']');
      PathStep step;
      step.is_index = true;
      if (close == absl::string_view::npos ||
          !absl::SimpleAtoi(rest.substr(1, close - 1), &step.index))
        return InvalidArgument("path '%s': expected a number in brackets",
                               path);
      steps.push_back(std::move(step));
      rest.remove_prefix(close + 1);
    } else {
      if (!first && rest[0] == '.') rest.remove_prefix(1);
      const size_t end = std::min(rest.find_first_of(".["), rest.size());
      if (end == 0) return InvalidArgument("path '%s': expected a name", path);
      steps.push_back({std::string(rest.substr(0, end))});
      rest.remove_prefix(end);
    }
    first = false;
  }
  return steps;
}

class JsonlLoader {
 public:
  explicit JsonlLoader(const JsonlDatasetOptions& options)
      : options_(options), table_(std::make_shared<TableDataset>()) {}

  absl::Status Load(const std::string& path);
  absl::StatusOr<DatasetPtr> Finish();

 private:
  absl::Status MakeFields();
  absl::Status Record(int64_t line);
  // The node at the field's path; 0 when there is none.
  size_t Find(size_t field) const;
  absl::Status Field(size_t field);
  absl::Status Scalar(size_t node, size_t place, RowField* field);
  absl::Status Array(size_t node, size_t axis, const Shape& shape,
                     size_t* place, RowField* field);
  absl::Status Wrong(size_t node, absl::string_view expected) const;

  const JsonlDatasetOptions& options_;
  std::shared_ptr<TableDataset> table_;
  std::vector<std::vector<PathStep>> paths_;
  std::vector<RowField> fields_;
  std::vector<Shape> shapes_;
  JsonLine json_;
  std::string buffer_;
};

absl::Status JsonlLoader::Wrong(size_t node, absl::string_view expected) const {
  return DataLoss("column %d: %s; expected %s", json_.nodes()[node].at + 1,
                  KindName(json_.nodes()[node].kind), expected);
}

size_t JsonlLoader::Find(size_t field) const {
  size_t node = 0;
  for (const PathStep& step : paths_[field]) {
    node = step.is_index ? json_.Item(node, step.index)
                         : json_.Member(node, step.member);
    if (node == 0) return 0;
  }
  return node;
}

// The first record says which values are arrays where no shape does.
absl::Status JsonlLoader::MakeFields() {
  for (const JsonlField& field : options_.fields) {
    PD_ASSIGN_OR_RETURN(
        std::vector<PathStep> path,
        ParsePath(field.path.empty() ? field.name : field.path));
    paths_.push_back(std::move(path));
  }
  for (size_t i = 0; i < options_.fields.size(); ++i) {
    const JsonlField& field = options_.fields[i];
    Shape shape = field.shape;
    if (field.value.picture.has_value() && !shape.empty())
      return InvalidArgument(
          "field '%s' is a picture, whose shape its file says: leave it out",
          field.name);
    if (field.value.picture.has_value()) shape = {1};
    if (shape.empty()) {
      const size_t node = Find(i);
      shape = {node > 0 && json_.nodes()[node].kind == JsonNode::Kind::kArray
                   ? int64_t{-1}
                   : int64_t{1}};
    }
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == 0 || (axis > 0 && shape[axis] < 0) ||
          shape.size() > kMostVaryingAxes)
        return InvalidArgument(
            "field '%s' has the shape %s; only the first extent may be -1, "
            "and there are at most %d",
            field.name, ToString(shape), kMostVaryingAxes);
    PD_RETURN_IF_ERROR(
        CheckedBytes(Shape(shape.begin() + (shape[0] < 0), shape.end()), 8)
            .status());
    PD_ASSIGN_OR_RETURN(RowField made, RowField::Create(field.name, field.value,
                                                        shape, table_.get()));
    fields_.push_back(std::move(made));
    shapes_.push_back(std::move(shape));
  }
  return absl::OkStatus();
}

absl::Status JsonlLoader::Scalar(size_t node, size_t place, RowField* field) {
  const JsonNode& value = json_.nodes()[node];
  if (value.kind == JsonNode::Kind::kNull)
    return field->Missing(
        place, field->takes_text()
                   ? Wrong(node, "a text")
                   : Wrong(node, absl::StrCat("a number (missing: 0 in field '",
                                              field->name(),
                                              "' would stand for null)")));
  if (field->takes_text()) {
    // Numbers and words name classes, too, as they are written.
    if (value.kind != JsonNode::Kind::kString) return Wrong(node, "a text");
    PD_ASSIGN_OR_RETURN(const absl::string_view text,
                        json_.Text(node, &buffer_));
    return field->Text(text, place);
  }
  if (value.kind != JsonNode::Kind::kNumber &&
      value.kind != JsonNode::Kind::kBool)
    return Wrong(node, "a number");
  const absl::Status status = field->Number(value.number, place);
  return status.ok() ? status
                     : Annotate(status, absl::StrCat("column ", value.at + 1));
}

absl::Status JsonlLoader::Array(size_t node, size_t axis, const Shape& shape,
                                size_t* place, RowField* field) {
  if (axis == shape.size()) return Scalar(node, (*place)++, field);
  const JsonNode& array = json_.nodes()[node];
  // One number stands for an array of one.
  if (array.kind != JsonNode::Kind::kArray && axis + 1 == shape.size() &&
      shape[axis] == 1)
    return Scalar(node, (*place)++, field);
  if (array.kind != JsonNode::Kind::kArray) return Wrong(node, "an array");
  if (shape[axis] >= 0 && static_cast<int64_t>(array.items) != shape[axis])
    return DataLoss(
        "column %d: the array has %d items; field '%s' has the shape %s",
        array.at + 1, array.items, field->name(), ToString(shape));
  for (size_t item = node + 1; item < array.end; item = json_.nodes()[item].end)
    PD_RETURN_IF_ERROR(Array(item, axis + 1, shape, place, field));
  return absl::OkStatus();
}

absl::Status JsonlLoader::Field(size_t i) {
  const JsonlField& wanted = options_.fields[i];
  RowField& field = fields_[i];
  const size_t node = Find(i);
  if (node == 0 && !paths_[i].empty()) {
    const bool number = shapes_[i] == Shape{1} && !field.takes_text();
    const absl::Status missing = DataLoss(
        "there is no value '%s' for field '%s'%s",
        wanted.path.empty() ? wanted.name : wanted.path, wanted.name,
        number ? " (missing: 0 in the field would stand for such values)" : "");
    if (shapes_[i] != Shape{1}) return missing;
    return wanted.value.missing.has_value() ? field.Missing(0, missing)
                                            : missing;
  }
  if (wanted.value.text.has_value() || wanted.value.picture.has_value())
    return Scalar(node, 0, &field);
  size_t place = 0;
  return Array(node, 0, shapes_[i], &place, &field);
}

absl::Status JsonlLoader::Record(int64_t line) {
  if (json_.nodes()[0].kind != JsonNode::Kind::kObject)
    return Wrong(0, "an object");
  if (fields_.empty()) PD_RETURN_IF_ERROR(MakeFields());
  for (size_t i = 0; i < fields_.size(); ++i) {
    const absl::Status status = Field(i);
    if (!status.ok()) return status;
  }
  return table_->EndRecord(line);
}

absl::Status JsonlLoader::Load(const std::string& path) {
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
    if (TrimBlanks(line).empty()) continue;
    absl::Status status = json_.Parse(line);
    if (status.ok()) status = Record(lines.number());
    if (status.ok()) continue;
    status = Annotate(status, absl::StrFormat("'%s':%d", path, lines.number()));
    // Fields that could not be made are the job's fault, not the record's.
    if (!options_.skip_bad || (fields_.size() < options_.fields.size() &&
                               absl::IsInvalidArgument(status)))
      return status;
    table_->LeaveOut(status);
  }
  return absl::OkStatus();
}

absl::StatusOr<DatasetPtr> JsonlLoader::Finish() {
  for (RowField& field : fields_) PD_RETURN_IF_ERROR(field.Finish());
  PD_RETURN_IF_ERROR(table_->Finish(options_.piece != nullptr));
  return table_;
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenJsonl(const JsonlDatasetOptions& options) {
  JsonlLoader loader(options);
  for (const std::string& path : options.paths)
    PD_RETURN_IF_ERROR(loader.Load(path));
  return loader.Finish();
}

}  // namespace pd
