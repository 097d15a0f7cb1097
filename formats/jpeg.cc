// SPDX-License-Identifier: Apache-2.0
// libjpeg-turbo reports errors by longjmp; as in png.cc, one function calls it
// and everything that must survive lives outside of that function.
#include "formats/jpeg.h"

#include <cstddef>
#include <cstdio>
// jpeglib.h needs FILE and size_t declared.
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// A progressive file may hold scans without end; real ones have about ten.
constexpr int kMaxScans = 200;

struct JpegReader {
  jpeg_decompress_struct decoder = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  jmp_buf jump;
  const ImageOptions* options = nullptr;
  Image* image = nullptr;
  char message[JMSG_LENGTH_MAX] = {};  // of libjpeg's error
  absl::Status status;                 // of ours

  ~JpegReader() { jpeg_destroy_decompress(&decoder); }
};

JpegReader* ReaderOf(j_common_ptr common) {
  return static_cast<JpegReader*>(common->client_data);
}

[[noreturn]] void OnError(j_common_ptr common) {
  JpegReader* reader = ReaderOf(common);
  common->err->format_message(common, reader->message);
  std::longjmp(reader->jump, 1);
}

// Warnings about missing data are errors to us; the others (stray bytes
// between segments) are found in images that every program shows.
void OnMessage(j_common_ptr common, int level) {
  const int code = common->err->msg_code;
  if (level == -1 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
    OnError(common);
}

void OnProgress(j_common_ptr common) {
  JpegReader* reader = ReaderOf(common);
  if (reader->decoder.input_scan_number > kMaxScans) {
    std::snprintf(reader->message, sizeof(reader->message),
                  "more than %d scans", kMaxScans);
    std::longjmp(reader->jump, 1);
  }
}

// After the header: checks size and colour space.
absl::Status Prepare(JpegReader* reader) {
  jpeg_decompress_struct& decoder = reader->decoder;
  if (decoder.jpeg_color_space == JCS_CMYK ||
      decoder.jpeg_color_space == JCS_YCCK) {
    return Unimplemented(
        "its colours are CMYK; convert it to RGB (for example with "
        "ImageMagick's '-colorspace sRGB')");
  }
  const bool grey = decoder.jpeg_color_space == JCS_GRAYSCALE;
  // Through RGB to grey, as Pillow does, unless there is no colour.
  decoder.out_color_space =
      grey && reader->options->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  return PrepareImage(decoder.image_height, decoder.image_width,
                      *reader->options, reader->image);
}

// False: `message` or `status` says why.
bool Decode(JpegReader* reader, absl::string_view bytes) {
  jpeg_decompress_struct& decoder = reader->decoder;
  if (setjmp(reader->jump) != 0) return false;
  jpeg_create_decompress(&decoder);
  decoder.client_data = reader;
  decoder.progress = &reader->progress;
  jpeg_mem_src(&decoder, reinterpret_cast<const unsigned char*>(bytes.data()),
               bytes.size());
  jpeg_read_header(&decoder, TRUE);
  reader->status = Prepare(reader);
  if (!reader->status.ok()) return false;
  jpeg_start_decompress(&decoder);
  const size_t stride = static_cast<size_t>(decoder.output_width) *
                        static_cast<size_t>(decoder.output_components);
  while (decoder.output_scanline < decoder.output_height) {
    JSAMPROW row =
        reader->image->pixels.data() + decoder.output_scanline * stride;
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  return true;
}

}  // namespace

bool IsJpeg(absl::string_view bytes) {
  return absl::StartsWith(bytes, "\xff\xd8\xff");
}

// The frame's header among the segments: FF, marker, size, payload.
absl::StatusOr<ImageHeader> ParseJpegHeader(absl::string_view bytes) {
  const auto byte = [&](size_t i) -> int64_t {
    return static_cast<unsigned char>(bytes[i]);
  };
  size_t at = 2;
  while (at + 4 <= bytes.size()) {
    if (byte(at) != 0xff) return DataLoss("byte %d starts no segment", at);
    const int64_t marker = byte(at + 1);
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    const int64_t size = byte(at + 2) << 8 | byte(at + 3);
    const bool frame = marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
                       marker != 0xc8 && marker != 0xcc;
    if (frame && size >= 8 && at + 10 <= bytes.size()) {
      ImageHeader header;
      header.bits = byte(at + 4);
      header.height = byte(at + 5) << 8 | byte(at + 6);
      header.width = byte(at + 7) << 8 | byte(at + 8);
      header.channels = byte(at + 9);
      header.colour = header.channels == 1   ? "grey"
                      : header.channels == 4 ? "CMYK"
                                             : "RGB";
      return header;
    }
    if (frame || size < 2 || marker == 0xda || marker == 0xd9) break;
    at += 2 + static_cast<size_t>(size);
  }
  return DataLoss("it has no header");
}

absl::Status DecodeJpeg(absl::string_view bytes, const ImageOptions& options,
                        Image* image) {
  JpegReader reader;
  reader.options = &options;
  reader.image = image;
  reader.decoder.err = jpeg_std_error(&reader.errors);
  reader.decoder.client_data = &reader;
  reader.errors.error_exit = OnError;
  reader.errors.emit_message = OnMessage;
  reader.progress.progress_monitor = OnProgress;
  if (!Decode(&reader, bytes)) {
    if (!reader.status.ok()) return reader.status;
    return DataLoss("%s", std::string(reader.message));
  }
  if (options.channels == 1 && reader.decoder.out_color_space == JCS_RGB)
    RgbToGrey(image);
  image->pixels.resize(
      static_cast<size_t>(image->height * image->width * image->channels));
  return absl::OkStatus();
}

}  // namespace pd
