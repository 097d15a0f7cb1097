// SPDX-License-Identifier: Apache-2.0
// Pictures of the formats in format_table.cc into uint8 pixels, height x width
// x channels, as Pillow's Image.open(...).convert('RGB' or 'L') gives them:
// palettes expanded, alpha dropped, 16 bits cut to 8, gamma and EXIF
// orientation left alone (TIFF's own is applied).
#ifndef PD_FORMATS_IMAGE_H_
#define PD_FORMATS_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

struct Image {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  ///< [height, width, channels]; kept when reused
};

struct ImageOptions {
  int channels = 3;  ///< 3: RGB, 1: grey (Pillow's 'L')
  /// PNG: what the file holds for each pixel, a palette's index or a grey
  /// value, as masks are kept; `channels` is taken for 1. InvalidArgument for
  /// other images.
  bool mask = false;
  /// Images with more are refused before anything is allocated; Pillow warns
  /// from here on.
  int64_t max_pixels = 89478485;
};

/// Decodes the bytes of an image's file, told apart by their first bytes.
/// DataLoss when truncated or damaged, Unimplemented for CMYK JPEGs and other
/// formats, ResourceExhausted when larger than allowed; errors name the format.
absl::Status DecodeImage(absl::string_view bytes, const ImageOptions& options,
                         Image* image);

/// The bytes of a PNG file. InvalidArgument unless the pixels are those of 1 or
/// 3 channels.
absl::StatusOr<std::string> EncodePng(const Image& image);

/// Sets the size of `image` and makes room for its pixels. DataLoss on an empty
/// image, ResourceExhausted on one that is larger than allowed.
absl::Status PrepareImage(int64_t height, int64_t width,
                          const ImageOptions& options, Image* image);

/// Pillow's luma of RGB pixels: (19595 R + 38470 G + 7471 B + 2^15) >> 16.
inline uint8_t Luma(uint8_t r, uint8_t g, uint8_t b) {
  return static_cast<uint8_t>((r * 19595u + g * 38470u + b * 7471u + 0x8000u) >>
                              16);
}

/// Turns RGB pixels into grey ones in place.
void RgbToGrey(Image* image);
/// Turns grey pixels into RGB ones in place; there is room for them.
void GreyToRgb(Image* image);

}  // namespace pd

#endif  // PD_FORMATS_IMAGE_H_
