// SPDX-License-Identifier: Apache-2.0
#include "formats/image_header.h"

#include "absl/strings/str_cat.h"
#include "formats/format_table.h"
#include "libcore/base/error.h"

namespace pd {

absl::StatusOr<ImageHeader> ParseImageHeader(absl::string_view bytes) {
  const FileFormat* format = ImageFormatOf(bytes);
  if (format == nullptr) return UnknownImage();
  auto header = format->image.header(bytes);
  if (header.ok() && (header->height <= 0 || header->width <= 0))
    header =
        DataLoss("the image is %d x %d pixels", header->width, header->height);
  if (header.ok()) return header;
  return Annotate(header.status(), absl::StrCat(format->image.name, " image"));
}

absl::Status UnknownImage() {
  return Unimplemented("not an image that is read: %s", ImageFormatNames());
}

}  // namespace pd
