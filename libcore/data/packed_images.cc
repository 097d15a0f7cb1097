// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/packed_images.h"

#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/read_picture.h"

namespace pd {

absl::Status PackedImages::Decode(const TarFile& file, bool mask, int64_t index,
                                  size_t field, Record* record) const {
  ImageOptions options;
  options.mask = mask;
  const absl::Status status =
      DecodePicture(file.content.view(), options, &record->bytes[field],
                    &record->fields[field]);
  if (status.ok()) return status;
  return Annotate(status, absl::StrFormat("'%s': member '%s' (record %d)",
                                          path_, file.name, index));
}

absl::Status PackedImages::Finish() const {
  if (size_ > 0 || left_out_.count == 0) return absl::OkStatus();
  return DataLoss("'%s': none of the %d records could be read: %s", path_,
                  left_out_.count, left_out_.first.front());
}

absl::Status PackedImages::Read(int64_t index, Record* record) const {
  const auto i = static_cast<size_t>(index);
  record->fields.resize(2);
  record->bytes.resize(2);
  PD_RETURN_IF_ERROR(Decode(images_[i], false, index, 0, record));
  if (masks_.empty()) {
    record->fields[1] = {reinterpret_cast<const std::byte*>(&labels_[i])};
    return absl::OkStatus();
  }
  PD_RETURN_IF_ERROR(Decode(masks_[i], true, index, 1, record));
  const FieldView &image = record->fields[0], &mask = record->fields[1];
  if (image.height == mask.height && image.width == mask.width)
    return CheckMask(index, mask);
  return DataLoss("%s: the picture is %d x %d pixels; '%s' is %d x %d",
                  Describe(index), image.width, image.height, masks_[i].name,
                  mask.width, mask.height);
}

absl::Status PackedImages::CheckMask(int64_t index,
                                     const FieldView& mask) const {
  const std::vector<std::string>& classes = fields_[1].classes;
  if (classes.empty()) return absl::OkStatus();
  return CheckMaskClasses(
      mask, static_cast<int64_t>(classes.size()),
      absl::StrFormat("'%s': member '%s' (record %d)", path_,
                      masks_[static_cast<size_t>(index)].name, index),
      ClassesText(classes));
}

std::string PackedImages::Describe(int64_t index) const {
  return absl::StrFormat("'%s': member '%s' (record %d)", path_,
                         images_[static_cast<size_t>(index)].name, index);
}

}  // namespace pd
