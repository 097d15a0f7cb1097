// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/table_dataset.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/read_picture.h"

namespace pd {

size_t TableDataset::AddField(FieldSpec spec) {
  PD_INVARIANT(size_ == 0 && spec.shape.size() <= kMostVaryingAxes);
  Column column;
  column.element_bytes = SizeOf(spec.dtype);
  column.varying = !spec.shape.empty() && spec.shape[0] < 0;
  column.row_bytes =
      column.element_bytes *
      static_cast<size_t>(
          NumElements(spec.shape, column.varying ? 1 : 0, spec.shape.size()));
  PD_INVARIANT(!column.varying || column.row_bytes > 0);
  columns_.push_back(std::move(column));
  fields_.push_back(std::move(spec));
  return columns_.size() - 1;
}

size_t TableDataset::AddPicture(FieldSpec spec, const ImageOptions& options,
                                int64_t classes) {
  PD_INVARIANT(size_ == 0 && (spec.is_image || spec.is_mask));
  Column column;
  column.pictures = {options, classes};
  column.element_bytes = column.row_bytes = 1;
  column.varying = true;
  columns_.push_back(std::move(column));
  fields_.push_back(std::move(spec));
  has_pictures_ = true;
  return columns_.size() - 1;
}

void TableDataset::BeginFile(const std::string& path, const std::string& unit) {
  files_.push_back({path, unit, size_});
}

int64_t TableDataset::Pushed(size_t field) const {
  const Column& column = columns_[field];
  return static_cast<int64_t>((column.bytes.size() - column.begin) /
                              column.element_bytes);
}

absl::Status TableDataset::EndRecord(int64_t place) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const size_t bytes = column.bytes.size() - column.begin;
    const bool fits = column.varying
                          ? bytes == 0 || (column.row_bytes > 0 &&
                                           bytes % column.row_bytes == 0)
                          : bytes == column.row_bytes;
    if (fits) continue;
    const absl::Status status = InvalidArgument(
        "field '%s' has %d values; its records have the shape %s",
        fields_[i].name, Pushed(i), ToString(fields_[i].shape));
    DropRecord();
    return status;
  }
  for (Column& column : columns_) {
    column.begin = column.bytes.size();
    if (column.varying) column.ends.push_back(column.begin);
  }
  places_.push_back(place);
  ++size_;
  return absl::OkStatus();
}

void TableDataset::DropRecord() {
  for (Column& column : columns_) column.bytes.resize(column.begin);
}

void TableDataset::LeaveOut(const absl::Status& why) {
  DropRecord();
  left_out_.Add(why);
}

void TableDataset::Renumber(size_t field,
                            const std::vector<int64_t>& renumber) {
  Column& column = columns_[field];
  PD_INVARIANT(fields_[field].dtype == DType::kInt64);
  auto* numbers = reinterpret_cast<int64_t*>(column.bytes.data());
  for (size_t i = 0; i < column.bytes.size() / sizeof(int64_t); ++i)
    numbers[i] = renumber[static_cast<size_t>(numbers[i])];
}

absl::Status TableDataset::Finish(bool may_be_empty) {
  DropRecord();
  if (size_ == 0 && !may_be_empty) {
    const std::string path = files_.empty() ? "" : files_.front().path;
    if (left_out_.count == 0) return DataLoss("'%s' holds no records", path);
    return DataLoss("'%s': none of the %d records could be read: %s", path,
                    left_out_.count, left_out_.first.front());
  }
  for (Column& column : columns_) {
    column.bytes.shrink_to_fit();
    column.ends.shrink_to_fit();
  }
  places_.shrink_to_fit();
  return absl::OkStatus();
}

std::pair<size_t, size_t> TableDataset::RangeOf(const Column& column,
                                                int64_t index) const {
  const size_t i = static_cast<size_t>(index);
  if (!column.varying) return {i * column.row_bytes, column.row_bytes};
  const size_t begin = i == 0 ? 0 : column.ends[i - 1];
  return {begin, column.ends[i] - begin};
}

absl::Status TableDataset::Read(int64_t index, Record* record) const {
  record->fields.resize(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (column.pictures.has_value()) continue;
    const auto [begin, bytes] = RangeOf(column, index);
    FieldView& view = record->fields[i];
    view.data = column.bytes.data() + begin;
    if (!column.varying) continue;
    const Shape& shape = fields_[i].shape;
    std::copy(shape.begin(), shape.end(), view.extents.begin());
    view.extents[0] = static_cast<int64_t>(bytes / column.row_bytes);
  }
  return has_pictures_ ? ReadPictures(index, record) : absl::OkStatus();
}

absl::Status TableDataset::ReadPictures(int64_t index, Record* record) const {
  record->bytes.resize(columns_.size());
  const FieldView* first = nullptr;  // picture, whose size a mask has
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    if (!column.pictures.has_value()) continue;
    const auto [begin, bytes] = RangeOf(column, index);
    const std::string path(
        reinterpret_cast<const char*>(column.bytes.data()) + begin, bytes);
    FieldView* view = &record->fields[i];
    absl::Status status =
        ReadPicture(path, column.pictures->options, &record->bytes[i], view);
    const int64_t classes = column.pictures->classes;
    if (status.ok() && classes > 0)
      status = CheckMaskClasses(*view, classes, absl::StrCat("'", path, "'"),
                                absl::StrCat("0 to ", classes - 1));
    if (!status.ok()) return Annotate(status, Describe(index));
    if (fields_[i].is_image && first == nullptr) first = view;
  }
  for (size_t i = 0; i < columns_.size(); ++i) {
    const FieldView& mask = record->fields[i];
    if (!fields_[i].is_mask || first == nullptr ||
        (mask.height == first->height && mask.width == first->width))
      continue;
    return DataLoss(
        "%s: the picture is %d x %d pixels; its mask in field '%s' is %d x %d",
        Describe(index), first->width, first->height, fields_[i].name,
        mask.width, mask.height);
  }
  return absl::OkStatus();
}

void TableDataset::Prefetch(int64_t index) const {
  for (const Column& column : columns_) {
    if (column.pictures.has_value()) continue;
    const auto [begin, bytes] = RangeOf(column, index);
    PrefetchBytes(column.bytes.data() + begin, static_cast<int64_t>(bytes));
  }
}

RecordPlace TableDataset::Place(int64_t index) const {
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), index,
                       [](int64_t i, const File& f) { return i < f.first; });
  if (after == files_.begin()) return {"", index};
  const File& file = *std::prev(after);
  return {file.path, places_[static_cast<size_t>(index)],
          file.unit.empty() ? "line" : "record"};
}

std::string TableDataset::Describe(int64_t index) const {
  const auto after =
      std::upper_bound(files_.begin(), files_.end(), index,
                       [](int64_t i, const File& f) { return i < f.first; });
  if (after == files_.begin()) return absl::StrFormat("record %d", index);
  const File& file = *std::prev(after);
  const int64_t place = places_[static_cast<size_t>(index)];
  return file.unit.empty()
             ? absl::StrFormat("'%s':%d", file.path, place)
             : absl::StrFormat("'%s' %s %d", file.path, file.unit, place);
}

absl::StatusOr<std::vector<int64_t>> TableDataset::Lengths(size_t field) const {
  const Column& column = columns_[field];
  if (!column.varying || column.pictures.has_value())
    return Dataset::Lengths(field);
  std::vector<int64_t> lengths;
  lengths.reserve(static_cast<size_t>(size_));
  for (int64_t i = 0; i < size_; ++i)
    lengths.push_back(
        static_cast<int64_t>(RangeOf(column, i).second / column.row_bytes));
  return lengths;
}

}  // namespace pd
