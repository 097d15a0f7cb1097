// SPDX-License-Identifier: Apache-2.0
// Datasets made of others: one after the other, side by side, or a part.
#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/box_fields.h"
#include "libcore/data/row_datasets.h"

namespace pd {
namespace {

void TakeNotes(const Dataset& part, std::vector<std::string>* notes) {
  notes->insert(notes->end(), part.notes().begin(), part.notes().end());
}

class Concat : public Dataset {
 public:
  absl::Status Add(DatasetPtr part) {
    if (parts_.empty()) fields_ = part->fields();
    PD_RETURN_IF_ERROR(CheckFields(*part));
    size_ += part->size();
    ends_.push_back(size_);
    left_out_.Add(part->left_out());
    TakeNotes(*part, &notes_);
    for (const auto& [field, words] : part->vocabularies())
      vocabularies_.emplace(field, words);
    parts_.push_back(std::move(part));
    return absl::OkStatus();
  }

  absl::Status Read(int64_t index, Record* record) const override {
    const auto [part, own] = Find(index);
    PD_RETURN_IF_ERROR(part->Read(own, record));
    // Extents that only the other parts leave open.
    for (size_t i = 0; i < fields_.size(); ++i) {
      const Shape& shape = part->fields()[i].shape;
      if (!IsDynamic(fields_[i].shape) || IsDynamic(shape)) continue;
      std::copy(shape.begin(), shape.end(), record->fields[i].extents.begin());
    }
    return absl::OkStatus();
  }
  void Prefetch(int64_t index) const override {
    const auto [part, own] = Find(index);
    part->Prefetch(own);
  }
  std::string Describe(int64_t index) const override {
    const auto [part, own] = Find(index);
    return part->Describe(own);
  }
  RecordPlace Place(int64_t index) const override {
    const auto [part, own] = Find(index);
    return part->Place(own);
  }
  absl::StatusOr<std::vector<int64_t>> Lengths(size_t field) const override {
    std::vector<int64_t> lengths;
    for (const DatasetPtr& part : parts_) {
      PD_ASSIGN_OR_RETURN(const auto more, part->Lengths(field));
      lengths.insert(lengths.end(), more.begin(), more.end());
    }
    return lengths;
  }
  absl::Status WaitReady() const override {
    for (const DatasetPtr& part : parts_) PD_RETURN_IF_ERROR(part->WaitReady());
    return absl::OkStatus();
  }

 private:
  std::pair<const Dataset*, int64_t> Find(int64_t index) const {
    const auto i = static_cast<size_t>(
        std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    return {parts_[i].get(), index - (i == 0 ? 0 : ends_[i - 1])};
  }

  absl::Status CheckFields(const Dataset& part) {
    const std::vector<FieldSpec>& fields = part.fields();
    if (fields.size() != fields_.size())
      return InvalidArgument("%s has %d fields; %s has %d", part.Describe(0),
                             fields.size(), parts_[0]->Describe(0),
                             fields_.size());
    for (size_t i = 0; i < fields.size(); ++i) {
      FieldSpec& own = fields_[i];
      const FieldSpec& more = fields[i];
      if (own.name != more.name || own.dtype != more.dtype ||
          own.is_image != more.is_image ||
          own.shape.size() != more.shape.size())
        return InvalidArgument(
            "field %d of %s is '%s' %s%s; of %s it is '%s' %s%s", i,
            part.Describe(0), more.name, Name(more.dtype), ToString(more.shape),
            parts_[0]->Describe(0), own.name, Name(own.dtype),
            ToString(own.shape));
      // One number would stand for two classes.
      if (own.classes != more.classes)
        return InvalidArgument(
            "the classes of field '%s' are %s in %s and %s in %s", own.name,
            ClassesText(more.classes), part.Describe(0),
            ClassesText(own.classes), parts_[0]->Describe(0));
      for (size_t axis = 0; axis < own.shape.size(); ++axis)
        if (own.shape[axis] != more.shape[axis]) own.shape[axis] = -1;
      if (IsDynamic(own.shape) && own.shape.size() > kMostVaryingAxes)
        return Unimplemented("field '%s' has more than %d axes that differ",
                             own.name, kMostVaryingAxes);
    }
    return absl::OkStatus();
  }

  std::vector<DatasetPtr> parts_;
  std::vector<int64_t> ends_;
};

class Compose : public Dataset {
 public:
  absl::Status Add(DatasetPtr part) {
    if (parts_.empty()) size_ = part->size();
    if (part->size() != size_)
      return InvalidArgument(
          "%s: the data set has %d records; that of %s has "
          "%d",
          part->Describe(0), part->size(), parts_[0]->Describe(0), size_);
    // A record that one part left out would shift the others' records.
    if (part->left_out().count > 0)
      return InvalidArgument(
          "data sets side by side cannot leave out records (on_error: skip): "
          "%s",
          part->left_out().first.front());
    for (const FieldSpec& field : part->fields()) {
      for (const FieldSpec& own : fields_)
        if (own.name == field.name)
          return AlreadyExists("two data sets have a field '%s'", field.name);
      fields_.push_back(field);
    }
    TakeNotes(*part, &notes_);
    for (const auto& [field, words] : part->vocabularies())
      vocabularies_.emplace(field, words);
    parts_.push_back(std::move(part));
    return absl::OkStatus();
  }

  // Each part has buffers of its own, which lie one after the other.
  absl::Status Read(int64_t index, Record* record) const override {
    record->parts.resize(parts_.size());
    record->fields.clear();
    for (size_t i = 0; i < parts_.size(); ++i) {
      PD_RETURN_IF_ERROR(parts_[i]->Read(index, &record->parts[i]));
      record->fields.insert(record->fields.end(),
                            record->parts[i].fields.begin(),
                            record->parts[i].fields.end());
    }
    return absl::OkStatus();
  }
  void Prefetch(int64_t index) const override {
    for (const DatasetPtr& part : parts_) part->Prefetch(index);
  }
  std::string Describe(int64_t index) const override {
    return parts_[0]->Describe(index);
  }
  RecordPlace Place(int64_t index) const override {
    return parts_[0]->Place(index);
  }
  absl::StatusOr<std::vector<int64_t>> Lengths(size_t field) const override {
    for (const DatasetPtr& part : parts_) {
      if (field < part->fields().size()) return part->Lengths(field);
      field -= part->fields().size();
    }
    return Dataset::Lengths(field);
  }
  absl::Status WaitReady() const override {
    for (const DatasetPtr& part : parts_) PD_RETURN_IF_ERROR(part->WaitReady());
    return absl::OkStatus();
  }

 private:
  std::vector<DatasetPtr> parts_;
};

class Subset : public Dataset {
 public:
  Subset(DatasetPtr whole, std::vector<int64_t> records)
      : whole_(std::move(whole)), records_(std::move(records)) {
    size_ = static_cast<int64_t>(records_.size());
    fields_ = whole_->fields();
    left_out_ = whole_->left_out();
    notes_ = whole_->notes();
    vocabularies_ = whole_->vocabularies();
  }

  absl::Status Read(int64_t index, Record* record) const override {
    return whole_->Read(Of(index), record);
  }
  void Prefetch(int64_t index) const override { whole_->Prefetch(Of(index)); }
  std::string Describe(int64_t index) const override {
    return whole_->Describe(Of(index));
  }
  RecordPlace Place(int64_t index) const override {
    return whole_->Place(Of(index));
  }
  absl::StatusOr<std::vector<int64_t>> Lengths(size_t field) const override {
    PD_ASSIGN_OR_RETURN(const auto all, whole_->Lengths(field));
    std::vector<int64_t> lengths;
    for (int64_t record : records_)
      lengths.push_back(all[static_cast<size_t>(record)]);
    return lengths;
  }
  absl::Status WaitReady() const override { return whole_->WaitReady(); }

 private:
  int64_t Of(int64_t index) const {
    return records_[static_cast<size_t>(index)];
  }
  DatasetPtr whole_;
  std::vector<int64_t> records_;
};

// Another dataset's records under field specs of its own.
class Respecified : public Dataset {
 public:
  Respecified(DatasetPtr whole, std::vector<FieldSpec> fields)
      : whole_(std::move(whole)) {
    size_ = whole_->size();
    fields_ = std::move(fields);
    left_out_ = whole_->left_out();
    notes_ = whole_->notes();
    vocabularies_ = whole_->vocabularies();
  }

  absl::Status Read(int64_t index, Record* record) const override {
    return whole_->Read(index, record);
  }
  bool is_stream() const override { return whole_->is_stream(); }
  absl::StatusOr<std::unique_ptr<RecordStream>> Start(
      const StreamPass& pass) const override {
    return whole_->Start(pass);
  }
  void Prefetch(int64_t index) const override { whole_->Prefetch(index); }
  std::string Describe(int64_t index) const override {
    return whole_->Describe(index);
  }
  RecordPlace Place(int64_t index) const override {
    return whole_->Place(index);
  }
  absl::StatusOr<std::vector<int64_t>> Lengths(size_t field) const override {
    return whole_->Lengths(field);
  }
  absl::Status WaitReady() const override { return whole_->WaitReady(); }

 private:
  DatasetPtr whole_;
};

template <typename Combined>
absl::StatusOr<DatasetPtr> Combine(std::vector<DatasetPtr> datasets) {
  auto combined = std::make_shared<Combined>();
  for (DatasetPtr& part : datasets)
    PD_RETURN_IF_ERROR(combined->Add(std::move(part)));
  return combined;
}

}  // namespace

absl::StatusOr<DatasetPtr> ConcatDatasets(std::vector<DatasetPtr> datasets) {
  return Combine<Concat>(std::move(datasets));
}

absl::StatusOr<DatasetPtr> ComposeDatasets(std::vector<DatasetPtr> datasets) {
  return Combine<Compose>(std::move(datasets));
}

DatasetPtr WithClasses(
    DatasetPtr dataset,
    const std::map<std::string, std::vector<std::string>>& classes) {
  std::vector<FieldSpec> fields = dataset->fields();
  for (FieldSpec& field : fields) {
    const auto names = classes.find(field.name);
    if (names != classes.end()) field.classes = names->second;
  }
  return std::make_shared<Respecified>(std::move(dataset), std::move(fields));
}

absl::StatusOr<DatasetPtr> WithBoxes(DatasetPtr dataset,
                                     const BoxDeclaration& boxes) {
  std::vector<FieldSpec> fields = dataset->fields();
  const auto find = [&fields](const std::string& name) {
    return std::find_if(fields.begin(), fields.end(),
                        [&](const FieldSpec& f) { return f.name == name; });
  };
  const auto missing = [&fields](const std::string& name) {
    std::vector<std::string> names;
    for (const FieldSpec& field : fields) names.push_back(field.name);
    return NotFound("the data set has no field '%s'; it has '%s'", name,
                    absl::StrJoin(names, "', '"));
  };
  for (FieldSpec& field : fields) {
    field.boxes = std::nullopt;
    field.beside_boxes = false;
  }
  const auto field = find(boxes.field);
  if (field == fields.end()) return missing(boxes.field);
  field->boxes = boxes.form;
  std::vector<std::string> beside = boxes.beside;
  if (beside.empty())
    for (const char* name : {"gt_label", "difficult"})
      if (find(name) != fields.end()) beside.push_back(name);
  for (const std::string& name : beside) {
    const auto other = find(name);
    if (other == fields.end()) return missing(name);
    other->beside_boxes = true;
  }
  PD_RETURN_IF_ERROR(BoxFields::Create(fields).status());
  return std::make_shared<Respecified>(std::move(dataset), std::move(fields));
}

absl::StatusOr<DatasetPtr> SubsetOf(DatasetPtr dataset,
                                    std::vector<int64_t> records) {
  if (records.empty()) return InvalidArgument("the subset holds no records");
  for (int64_t record : records)
    if (record < 0 || record >= dataset->size())
      return OutOfRange("record %d; the data set has %d", record,
                        dataset->size());
  return std::make_shared<Subset>(std::move(dataset), std::move(records));
}

}  // namespace pd
