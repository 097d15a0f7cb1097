// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/packed_rows.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::StatusOr<PackedRows> PackedRows::Of(const FeedSpec& feed,
                                          const std::vector<BatchField>& fields,
                                          size_t field) {
  PackedRows rows;
  rows.field_ = field;
  rows.dtype_ = feed.dtype;
  rows.shape_ = feed.shape;
  int64_t row = 1;
  for (size_t axis = 1; axis < feed.shape.size(); ++axis) {
    if (feed.shape[axis] < 0)
      return InvalidArgument(
          "'%s' is fed sequences of rows %s; expected one open extent, the "
          "first",
          feed.name, ToString(feed.shape));
    row *= feed.shape[axis];
  }
  rows.row_bytes_ = static_cast<size_t>(row) * SizeOf(feed.dtype);
  const std::string lengths = absl::StrCat(feed.name, "_length");
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == lengths && fields[i].dtype == DType::kInt64 &&
        fields[i].shape.size() == 1)
      rows.lengths_ = i;
  return rows;
}

int64_t PackedRows::Length(const std::vector<BatchField>& fields,
                           int64_t record) const {
  if (!lengths_.has_value()) return fields[field_].shape[1];
  int64_t length = 0;
  std::memcpy(
      &length,
      fields[*lengths_].data + static_cast<size_t>(record) * sizeof(length),
      sizeof(length));
  return length;
}

void PackedRows::AddLengths(const std::vector<BatchField>& fields,
                            std::vector<int64_t>* key) const {
  const int64_t records = fields[field_].shape[0];
  key->push_back(records);
  for (int64_t i = 0; i < records; ++i) key->push_back(Length(fields, i));
}

absl::Status PackedRows::Pack(const std::vector<BatchField>& fields) {
  const BatchField& field = fields[field_];
  const int64_t records = field.shape[0], longest = field.shape[1];
  offsets_.assign(1, 0);
  for (int64_t i = 0; i < records; ++i) {
    const int64_t length = Length(fields, i);
    if (length < 0 || length > longest)
      return InvalidArgument("record %d has %d rows; the batch has %d", i,
                             length, longest);
    offsets_.push_back(offsets_.back() + static_cast<uint64_t>(length));
  }
  shape_[0] = static_cast<int64_t>(offsets_.back());
  std::byte* to = nullptr;
  PD_ASSIGN_OR_RETURN(rows_, NewArray(dtype_, shape_, &to));
  for (size_t i = 0; i < static_cast<size_t>(records); ++i) {
    const size_t bytes = (offsets_[i + 1] - offsets_[i]) * row_bytes_;
    if (bytes == 0) continue;
    std::memcpy(to, field.data + i * static_cast<size_t>(longest) * row_bytes_,
                bytes);
    to += bytes;
  }
  return absl::OkStatus();
}

}  // namespace pd
