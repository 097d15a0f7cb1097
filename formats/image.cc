// SPDX-License-Identifier: Apache-2.0
#include "formats/image.h"

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
  if (bytes.substr(0, 4) == "\x89PNG") return DecodePng(bytes, options, image);
  if (options.mask) return InvalidArgument("a mask must be a PNG image");
  if (bytes.substr(0, 2) == "\xFF\xD8")
    return DecodeJpeg(bytes, options, image);
  if (IsTiff(bytes))
    return Annotate(DecodeTiff(bytes, options, image), "TIFF image");
  if (IsWebp(bytes))
    return Annotate(DecodeWebp(bytes, options, image), "WebP image");
  if (IsBmp(bytes))
    return Annotate(DecodeBmp(bytes, options, image), "BMP image");
  if (IsPnm(bytes))
    return Annotate(DecodePnm(bytes, options, image), "PNM image");
  return UnknownImage();
}

}  // namespace pd
