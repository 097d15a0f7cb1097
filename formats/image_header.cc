// SPDX-License-Identifier: Apache-2.0
#include "formats/image_header.h"

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// A big-endian number of `size` bytes; they are there.
int64_t BigEndian(absl::string_view bytes, size_t at, size_t size) {
  int64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

absl::StatusOr<ImageHeader> Checked(ImageHeader header) {
  if (header.height <= 0 || header.width <= 0)
    return DataLoss("the image is %d x %d pixels", header.width, header.height);
  return header;
}

// Signature, then the chunk IHDR: size, name, width, height, depth, colour.
absl::StatusOr<ImageHeader> ParsePngHeader(absl::string_view bytes) {
  constexpr size_t kHeaderBytes = 29;
  if (bytes.size() < kHeaderBytes || bytes.substr(12, 4) != "IHDR")
    return DataLoss("damaged PNG image: it has no header");
  ImageHeader header;
  header.width = BigEndian(bytes, 16, 4);
  header.height = BigEndian(bytes, 20, 4);
  header.bits = BigEndian(bytes, 24, 1);
  switch (const int64_t colour = BigEndian(bytes, 25, 1); colour) {
    case 0:
      header.channels = 1, header.colour = "grey";
      break;
    case 2:
      header.channels = 3, header.colour = "RGB";
      break;
    case 3:
      header.channels = 1, header.colour = "palette";
      break;
    case 4:
      header.channels = 2, header.colour = "grey and alpha";
      break;
    case 6:
      header.channels = 4, header.colour = "RGB and alpha";
      break;
    default:
      return DataLoss("damaged PNG image: its colour type is %d", colour);
  }
  return Checked(header);
}

// The frame's header among the segments: FF, marker, size, payload.
absl::StatusOr<ImageHeader> ParseJpegHeader(absl::string_view bytes) {
  size_t at = 2;
  while (at + 4 <= bytes.size()) {
    if (bytes[at] != '\xff')
      return DataLoss("damaged JPEG image: byte %d starts no segment", at);
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    const int64_t size = BigEndian(bytes, at + 2, 2);
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
                       marker != 0xc8 && marker != 0xcc;
    if (frame && size >= 8 && at + 10 <= bytes.size()) {
      ImageHeader header;
      header.bits = BigEndian(bytes, at + 4, 1);
      header.height = BigEndian(bytes, at + 5, 2);
      header.width = BigEndian(bytes, at + 7, 2);
      header.channels = BigEndian(bytes, at + 9, 1);
      header.colour = header.channels == 1   ? "grey"
                      : header.channels == 4 ? "CMYK"
                                             : "RGB";
      return Checked(header);
    }
    if (frame || size < 2 || marker == 0xda || marker == 0xd9) break;
    at += 2 + static_cast<size_t>(size);
  }
  return DataLoss("damaged JPEG image: it has no header");
}

}  // namespace

absl::StatusOr<ImageHeader> ParseImageHeader(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\x89PNG")) return ParsePngHeader(bytes);
  if (absl::StartsWith(bytes, "\xff\xd8")) return ParseJpegHeader(bytes);
  if (IsBmp(bytes)) {
    auto header = ParseBmpHeader(bytes);
    return header.ok() ? header : Annotate(header.status(), "BMP image");
  }
  if (IsPnm(bytes)) {
    auto header = ParsePnmHeader(bytes);
    return header.ok() ? Checked(*header)
                       : Annotate(header.status(), "PNM image");
  }
  if (IsTiff(bytes)) {
    auto header = ParseTiffHeader(bytes);
    return header.ok() ? header : Annotate(header.status(), "TIFF image");
  }
  if (IsWebp(bytes)) {
    auto header = ParseWebpHeader(bytes);
    return header.ok() ? Checked(*header)
                       : Annotate(header.status(), "WebP image");
  }
  return UnknownImage();
}

absl::Status UnknownImage() {
  return Unimplemented(
      "not an image that is read: PNG, JPEG, TIFF, WebP, BMP, PBM, PGM, PPM");
}

}  // namespace pd
