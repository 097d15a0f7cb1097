// SPDX-License-Identifier: Apache-2.0
// Pixels into the bytes of a PNG file, by libpng's simplified interface, which
// returns its errors.
#include <png.h>

#include <cstring>

#include "formats/image.h"
#include "libcore/base/error.h"

namespace pd {

absl::StatusOr<std::string> EncodePng(const Image& image) {
  if (image.height <= 0 || image.width <= 0 ||
      (image.channels != 1 && image.channels != 3) ||
      image.height > INT32_MAX / 4 || image.width > INT32_MAX / 4 ||
      static_cast<int64_t>(image.pixels.size()) !=
          image.height * image.width * image.channels)
    return InvalidArgument(
        "a picture of %dx%d with %d channels in %d bytes; a PNG file holds "
        "pixels of 1 or 3 channels",
        image.height, image.width, image.channels, image.pixels.size());
  png_image png;
  std::memset(&png, 0, sizeof(png));
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = image.channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(png), '\0');
  png_alloc_size_t size = bytes.size();
  const int done = png_image_write_to_memory(&png, &bytes[0], &size, 0,
                                             image.pixels.data(), 0, nullptr);
  png_image_free(&png);
  if (done == 0) return Internal("libpng: %s", png.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace pd
