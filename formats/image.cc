// SPDX-License-Identifier: Apache-2.0
#include "formats/image.h"

#include "absl/strings/str_cat.h"
#include "formats/format_table.h"
#include "formats/image_header.h"
#include "libcore/base/error.h"

namespace pd {

absl::Status PrepareImage(int64_t height, int64_t width,
                          const ImageOptions& options, Image* image) {
  if (height <= 0 || width <= 0)
    return DataLoss("the image is %d x %d pixels", width, height);
  if (height > options.max_pixels / width) {
    return ResourceExhausted("the image is %d x %d pixels; at most %d are read",
                             width, height, options.max_pixels);
  }
  image->height = height;
  image->width = width;
  image->channels = options.channels;
  // Grey images may pass through RGB.
  image->pixels.resize(static_cast<size_t>(height * width * 3));
  return absl::OkStatus();
}

void RgbToGrey(Image* image) {
  const size_t pixels = static_cast<size_t>(image->height * image->width);
  uint8_t* p = image->pixels.data();
  for (size_t i = 0; i < pixels; ++i)
    p[i] = Luma(p[3 * i], p[3 * i + 1], p[3 * i + 2]);
}

void GreyToRgb(Image* image) {
  uint8_t* p = image->pixels.data();
  for (auto i = static_cast<size_t>(image->height * image->width); i-- > 0;) {
    const uint8_t grey = p[i];
    p[3 * i] = p[3 * i + 1] = p[3 * i + 2] = grey;
  }
}

absl::Status DecodeImage(absl::string_view bytes, const ImageOptions& options,
                         Image* image) {
  if (bytes.empty()) return DataLoss("the file is empty; expected an image");
  const FileFormat* format = ImageFormatOf(bytes);
  if (options.mask && (format == nullptr || !format->image.masks))
    return InvalidArgument("a mask must be a %s image",
                           ImageFormatNames(/*masks=*/true));
  if (format == nullptr) return UnknownImage();
  return Annotate(format->image.decode(bytes, options, image),
                  absl::StrCat(format->image.name, " image"));
}

}  // namespace pd
