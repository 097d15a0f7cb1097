// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/read_picture.h"

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::Status DecodePicture(absl::string_view bytes, const ImageOptions& options,
                           std::vector<uint8_t>* room, FieldView* view) {
  Image image;
  image.pixels.swap(*room);
  const absl::Status status = DecodeImage(bytes, options, &image);
  image.pixels.swap(*room);
  if (!status.ok()) return status;
  view->data = reinterpret_cast<const std::byte*>(room->data());
  view->height = image.height;
  view->width = image.width;
  view->channels = image.channels;
  view->extents = {image.height, image.width, image.channels};
  return absl::OkStatus();
}

absl::Status ReadPicture(const std::string& path, const ImageOptions& options,
                         std::vector<uint8_t>* room, FieldView* view) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  const absl::Status status = DecodePicture(file.view(), options, room, view);
  return status.ok() ? status : Annotate(status, absl::StrCat("'", path, "'"));
}

absl::Status CheckMaskClasses(const FieldView& mask, int64_t classes,
                              const std::string& what,
                              const std::string& expected) {
  constexpr uint8_t kNobodyKnows = 255;
  const auto* pixels = reinterpret_cast<const uint8_t*>(mask.data);
  const int64_t count = mask.height * mask.width;
  for (int64_t i = 0; i < count; ++i)
    if (pixels[i] >= classes && pixels[i] != kNobodyKnows)
      return OutOfRange(
          "%s holds class %d at row %d, column %d; the classes are %s, or 255",
          what, pixels[i], i / mask.width, i % mask.width, expected);
  return absl::OkStatus();
}

}  // namespace pd
