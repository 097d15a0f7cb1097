// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/box_fields.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

PixelBox ReadBox(const BoxForm& form, const float* in, double height,
                 double width) {
  const double across = form.normalized ? width : 1;
  const double down = form.normalized ? height : 1;
  const double a = in[0] * across, b = in[1] * down;
  const double c = in[2] * across, d = in[3] * down;
  if (!form.centre) return {a, b, c, d};
  return {a - c / 2, b - d / 2, a + c / 2, b + d / 2};
}

}  // namespace

void WriteBox(const BoxForm& form, const PixelBox& box, int64_t height,
              int64_t width, float* out) {
  const double across = form.normalized ? static_cast<double>(width) : 1;
  const double down = form.normalized ? static_cast<double>(height) : 1;
  double numbers[4] = {box.xmin, box.ymin, box.xmax, box.ymax};
  if (form.centre) {
    numbers[0] = (box.xmin + box.xmax) / 2;
    numbers[1] = (box.ymin + box.ymax) / 2;
    numbers[2] = box.xmax - box.xmin;
    numbers[3] = box.ymax - box.ymin;
  }
  for (size_t i = 0; i < 4; ++i)
    out[i] = static_cast<float>(numbers[i] / (i % 2 == 0 ? across : down));
}

absl::StatusOr<BoxFields::Field> BoxFields::FieldOf(const FieldSpec& spec,
                                                    size_t number) {
  Field field;
  field.number = number;
  field.name = spec.name;
  if (spec.shape.empty() || spec.is_image || spec.is_mask ||
      IsDynamic({spec.shape.begin() + 1, spec.shape.end()}))
    return InvalidArgument(
        "field '%s' is %s%s; expected a row of one shape for each box",
        spec.name, Name(spec.dtype), ToString(spec.shape));
  field.varying = spec.shape[0] < 0;
  field.rows = spec.shape[0];
  field.row_bytes = SizeOf(spec.dtype) * static_cast<size_t>(NumElements(
                                             spec.shape, 1, spec.shape.size()));
  return field;
}

absl::StatusOr<std::optional<BoxFields>> BoxFields::Create(
    const std::vector<FieldSpec>& specs) {
  BoxFields fields;
  bool pictured = false;
  for (size_t i = 0; i < specs.size(); ++i) {
    const FieldSpec& spec = specs[i];
    pictured = pictured || spec.is_image;
    if (!spec.boxes.has_value()) continue;
    if (!fields.fields_.empty())
      return InvalidArgument(
          "fields '%s' and '%s' are both boxes; a record has one",
          fields.fields_[0].name, spec.name);
    if (spec.dtype != DType::kFloat32 || spec.shape.size() != 2 ||
        spec.shape[1] != 4)
      return InvalidArgument("field '%s' is %s%s; boxes are float32 [boxes, 4]",
                             spec.name, Name(spec.dtype), ToString(spec.shape));
    PD_ASSIGN_OR_RETURN(Field field, FieldOf(spec, i));
    fields.fields_.push_back(std::move(field));
    fields.form_ = *spec.boxes;
  }
  if (fields.fields_.empty()) return std::optional<BoxFields>();
  if (!pictured)
    return InvalidArgument(
        "field '%s' has boxes, and the record has no picture that they are in",
        fields.fields_[0].name);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].beside_boxes) continue;
    if (specs[i].boxes.has_value())
      return InvalidArgument(
          "field '%s' holds the boxes; it cannot be beside them too",
          specs[i].name);
    PD_ASSIGN_OR_RETURN(Field field, FieldOf(specs[i], i));
    const Field& boxes = fields.fields_[0];
    if (!field.varying && !boxes.varying && field.rows != boxes.rows)
      return InvalidArgument(
          "field '%s' has %d rows beside the %d boxes of field '%s'",
          field.name, field.rows, boxes.rows, boxes.name);
    fields.fields_.push_back(std::move(field));
  }
  return std::optional<BoxFields>(std::move(fields));
}

int64_t BoxFields::RowsOf(const Field& field, const Record& record) const {
  return field.varying ? record.fields[field.number].extents[0] : field.rows;
}

absl::Status BoxFields::Take(const Record& record, const Picture& picture,
                             std::vector<PixelBox>* boxes) const {
  const int64_t rows = RowsOf(fields_[0], record);
  for (const Field& field : fields_)
    if (RowsOf(field, record) != rows)
      return InvalidArgument(
          "field '%s' has %d rows beside the %d boxes of field '%s'",
          field.name, RowsOf(field, record), rows, fields_[0].name);
  boxes->clear();
  const auto* numbers =
      reinterpret_cast<const float*>(record.fields[fields_[0].number].data);
  for (int64_t row = 0; row < rows; ++row) {
    PixelBox box =
        ReadBox(form_, numbers + row * 4, static_cast<double>(picture.height),
                static_cast<double>(picture.width));
    box.row = static_cast<size_t>(row);
    if (box.xmax > box.xmin && box.ymax > box.ymin) boxes->push_back(box);
  }
  return absl::OkStatus();
}

void BoxFields::Put(const std::vector<PixelBox>& boxes, const Picture& picture,
                    Record* record) const {
  record->moved.resize(record->fields.size());
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    FieldView& view = record->fields[field.number];
    std::vector<std::byte>& room = record->moved[field.number];
    const size_t rows =
        field.varying ? boxes.size() : static_cast<size_t>(field.rows);
    // At least a byte: a view of nothing is none.
    room.resize(std::max<size_t>(rows * field.row_bytes, 1));
    std::fill(room.begin(), room.end(), std::byte{0});
    std::byte* out = room.data();
    for (const PixelBox& box : boxes) {
      if (i == 0)
        WriteBox(form_, box, picture.height, picture.width,
                 reinterpret_cast<float*>(out));
      else
        std::memcpy(out, view.data + box.row * field.row_bytes,
                    field.row_bytes);
      out += field.row_bytes;
    }
    view.data = room.data();
    if (field.varying) view.extents[0] = static_cast<int64_t>(boxes.size());
  }
}

}  // namespace pd
