// SPDX-License-Identifier: Apache-2.0
// libpng reports errors by longjmp. It is called from one function whose
// locals are trivially destructible and volatile where they change, and
// everything else lives in a struct outside of it.
#include "formats/png.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/match.h"
#include "formats/gzip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

struct PngReader {
  absl::string_view rest;
  size_t file_bytes = 0;
  const ImageOptions* options = nullptr;
  Image* image = nullptr;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[128] = {};  // of libpng's error
  absl::Status status;     // of ours

  ~PngReader() {
    if (png != nullptr)
      png_destroy_read_struct(&png, info != nullptr ? &info : nullptr, nullptr);
  }
};

[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::strncpy(reader->message, message, sizeof(reader->message) - 1);
  png_longjmp(png, 1);
}

void OnWarning(png_structp, png_const_charp) {}

void ReadBytes(png_structp png, png_bytep out, size_t size) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (reader->rest.size() < size) png_error(png, "the file is truncated");
  std::memcpy(out, reader->rest.data(), size);
  reader->rest.remove_prefix(size);
}

// After the header: checks sizes and asks for 8-bit grey or RGB.
absl::Status Prepare(PngReader* reader) {
  png_structp png = reader->png;
  const png_uint_32 width = png_get_image_width(png, reader->info);
  const png_uint_32 height = png_get_image_height(png, reader->info);
  const uint64_t row_bytes =
      (uint64_t{width} * png_get_channels(png, reader->info) *
           png_get_bit_depth(png, reader->info) +
       7) /
      8;
  if (!PlausibleInflatedSize(reader->file_bytes, (row_bytes + 1) * height)) {
    return DataLoss("%d bytes are too few for %d x %d pixels",
                    reader->file_bytes, width, height);
  }
  return PrepareImage(height, width, *reader->options, reader->image);
}

void AskForRgb(PngReader* reader) {
  png_structp png = reader->png;
  png_set_strip_16(png);
  png_set_palette_to_rgb(png);
  png_set_expand_gray_1_2_4_to_8(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, reader->info);
}

// Indices and grey values as they are, one byte each.
absl::Status AskForMask(PngReader* reader) {
  png_structp png = reader->png;
  const int colour = png_get_color_type(png, reader->info);
  const bool palette = colour == PNG_COLOR_TYPE_PALETTE;
  const int bits = png_get_bit_depth(png, reader->info);
  if ((!palette && colour != PNG_COLOR_TYPE_GRAY) || bits > 8)
    return InvalidArgument(
        "the image is %s of %d bits; a mask is a palette or grey image of at "
        "most 8",
        colour == PNG_COLOR_TYPE_GRAY ? "grey" : "in colour", bits);
  if (palette || bits == 1)
    png_set_packing(png);
  else
    png_set_expand_gray_1_2_4_to_8(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, reader->info);
  reader->image->channels = 1;
  return absl::OkStatus();
}

bool ReadRows(PngReader* reader) {
  const size_t stride = static_cast<size_t>(reader->image->width) *
                        (reader->options->mask ? 1 : 3);
  if (png_get_rowbytes(reader->png, reader->info) != stride) {
    std::strcpy(reader->message, "unexpected row length");
    return false;
  }
  const bool interlaced =
      png_get_interlace_type(reader->png, reader->info) != PNG_INTERLACE_NONE;
  const int passes = interlaced ? PNG_INTERLACE_ADAM7_PASSES : 1;
  for (int pass = 0; pass < passes; ++pass) {
    uint8_t* row = reader->image->pixels.data();
    for (int64_t y = 0; y < reader->image->height; ++y, row += stride)
      png_read_row(reader->png, row, nullptr);
  }
  png_read_end(reader->png, nullptr);
  return true;
}

// False: `message` or `status` says why.
bool Decode(PngReader* reader) {
  if (setjmp(png_jmpbuf(reader->png)) != 0) return false;
  png_set_read_fn(reader->png, reader, ReadBytes);
  // Text and profiles are not wanted; nothing may grow without bound.
  png_set_keep_unknown_chunks(reader->png, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
  png_set_chunk_malloc_max(reader->png, 8u << 20);
  png_set_chunk_cache_max(reader->png, 64);
  png_set_user_limits(reader->png, 0x7fffffff, 0x7fffffff);
  png_read_info(reader->png, reader->info);
  reader->status = Prepare(reader);
  if (!reader->status.ok()) return false;
  if (reader->options->mask) {
    reader->status = AskForMask(reader);
    if (!reader->status.ok()) return false;
  } else {
    AskForRgb(reader);
  }
  return ReadRows(reader);
}

// A big-endian number of `size` bytes; they are there.
int64_t BigEndian(absl::string_view bytes, size_t at, size_t size) {
  int64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

bool IsPng(absl::string_view bytes) {
  return absl::StartsWith(bytes, "\x89PNG");
}

// Signature, then the chunk IHDR: size, name, width, height, depth, colour.
absl::StatusOr<ImageHeader> ParsePngHeader(absl::string_view bytes) {
  constexpr size_t kHeaderBytes = 29;
  if (bytes.size() < kHeaderBytes || bytes.substr(12, 4) != "IHDR")
    return DataLoss("it has no header");
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
      return DataLoss("its colour type is %d", colour);
  }
  return header;
}

absl::Status DecodePng(absl::string_view bytes, const ImageOptions& options,
                       Image* image) {
  PngReader reader;
  reader.rest = bytes;
  reader.file_bytes = bytes.size();
  reader.options = &options;
  reader.image = image;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, OnError,
                                      OnWarning);
  if (reader.png != nullptr) reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr)
    return ResourceExhausted("no memory for a PNG decoder");
  if (!Decode(&reader)) {
    if (!reader.status.ok()) return reader.status;
    return DataLoss("%s", std::string(reader.message));
  }
  if (options.channels == 1 && !options.mask) RgbToGrey(image);
  image->pixels.resize(
      static_cast<size_t>(image->height * image->width * image->channels));
  return absl::OkStatus();
}

}  // namespace pd
