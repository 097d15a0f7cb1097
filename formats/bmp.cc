// SPDX-License-Identifier: Apache-2.0
// Windows bitmaps: 1, 4, 8, 16, 24 and 32 bits a pixel, palettes, runs (RLE4,
// RLE8), bit fields; headers of OS/2 and of Windows up to version 5. Rows are
// padded to 4 bytes and lie bottom up unless the height is negative. Alpha is
// dropped.
#include "formats/bmp.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "absl/numeric/bits.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

enum Compression : uint32_t { kNone = 0, kRle8 = 1, kRle4 = 2, kFields = 3 };
constexpr size_t kFileHeader = 14;

struct Bmp {
  int64_t width = 0, height = 0;
  bool top_down = false;
  uint32_t bits = 0, compression = kNone;
  std::array<uint32_t, 3> masks = {};  // red, green, blue; of 16 and 32 bits
  absl::string_view palette;           // blue, green, red, and a byte or none
  size_t palette_step = 4;
  absl::string_view pixels;

  bool indexed() const { return bits <= 8; }
  size_t colours() const { return palette.size() / palette_step; }
};

uint32_t Little(absl::string_view bytes, size_t at, size_t size) {
  uint32_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value |= uint32_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

absl::Status ParseMasks(absl::string_view bytes, Bmp* bmp) {
  if (bmp->compression != kFields) {
    if (bmp->bits == 16) bmp->masks = {0x7c00, 0x3e0, 0x1f};
    if (bmp->bits == 32) bmp->masks = {0xff0000, 0xff00, 0xff};
    return absl::OkStatus();
  }
  if (bmp->bits != 16 && bmp->bits != 32)
    return DataLoss("bit fields of %d bits; expected 16 or 32", bmp->bits);
  const size_t at = kFileHeader + 40;  // in the header, or right behind
  if (bytes.size() < at + 12) return DataLoss("the file is truncated");
  for (size_t i = 0; i < 3; ++i) {
    const uint32_t mask = Little(bytes, at + 4 * i, 4);
    bmp->masks[i] = mask;
    // One run of ones.
    const int low = absl::countr_zero(mask);
    if (mask == 0 || (bmp->bits == 16 && mask > 0xffff) ||
        (((mask >> low) + 1) & (mask >> low)) != 0)
      return DataLoss("a colour has the bits %#x of %d", mask, bmp->bits);
  }
  return absl::OkStatus();
}

absl::Status CheckKind(const Bmp& bmp) {
  switch (bmp.bits) {
    case 1:
    case 4:
    case 8:
    case 16:
    case 24:
    case 32:
      break;
    default:
      return DataLoss("a pixel has %d bits", bmp.bits);
  }
  if (bmp.compression > kFields)
    return Unimplemented("compression %d of BMP images is not read",
                         bmp.compression);
  if ((bmp.compression == kRle8 && bmp.bits != 8) ||
      (bmp.compression == kRle4 && bmp.bits != 4))
    return DataLoss("runs of %d bits", bmp.bits);
  return absl::OkStatus();
}

// Everything but the pixels themselves.
absl::StatusOr<Bmp> Parse(absl::string_view bytes) {
  if (bytes.size() < kFileHeader + 12) return DataLoss("the file is truncated");
  const size_t start = Little(bytes, 10, 4);
  const size_t header = Little(bytes, kFileHeader, 4);
  const bool os2 = header == 12;
  if ((!os2 && header < 40) || header > 4096)
    return DataLoss("the header has %d bytes", header);
  if (bytes.size() < kFileHeader + header)
    return DataLoss("the file is truncated");
  Bmp bmp;
  size_t used = 0;  // colours of the palette
  if (os2) {
    bmp.width = Little(bytes, 18, 2);
    bmp.height = Little(bytes, 20, 2);
    bmp.bits = Little(bytes, 24, 2);
    bmp.palette_step = 3;
  } else {
    bmp.width = static_cast<int32_t>(Little(bytes, 18, 4));
    bmp.height = static_cast<int32_t>(Little(bytes, 22, 4));
    bmp.top_down = bmp.height < 0;
    bmp.height = bmp.top_down ? -bmp.height : bmp.height;
    bmp.bits = Little(bytes, 28, 2);
    bmp.compression = Little(bytes, 30, 4);
    used = Little(bytes, 46, 4);
  }
  if (bmp.width <= 0 || bmp.height <= 0)
    return DataLoss("the image is %d x %d pixels", bmp.width, bmp.height);
  PD_RETURN_IF_ERROR(CheckKind(bmp));
  PD_RETURN_IF_ERROR(ParseMasks(bytes, &bmp));
  if (start > bytes.size())
    return DataLoss("the pixels begin at byte %d of %d", start, bytes.size());
  if (bmp.indexed()) {
    const size_t at = kFileHeader + header, most = size_t{1} << bmp.bits;
    const size_t there = bytes.size() - at;
    size_t count = used == 0 ? most : std::min(used, most);
    // Some files have shorter palettes than they say: the pixels come first.
    const size_t room = start > at ? std::min(start - at, there) : there;
    count = std::min(count, room / bmp.palette_step);
    bmp.palette = bytes.substr(at, count * bmp.palette_step);
  }
  bmp.pixels = bytes.substr(start);
  return bmp;
}

// A row of the file as indices or colours.
class Canvas {
 public:
  Canvas(const Bmp& bmp, Image* image) : bmp_(bmp), image_(image) {}

  uint8_t* Row(int64_t y) const {  // y counts in the file's order
    const int64_t row = bmp_.top_down ? y : bmp_.height - 1 - y;
    return image_->pixels.data() + row * bmp_.width * 3;
  }
  absl::Status Set(int64_t x, int64_t y, size_t index) const {
    if (index >= bmp_.colours())
      return DataLoss("a pixel has colour %d; the palette has %d", index,
                      bmp_.colours());
    const char* colour = bmp_.palette.data() + index * bmp_.palette_step;
    uint8_t* pixel = Row(y) + 3 * x;
    for (int i = 0; i < 3; ++i) pixel[i] = static_cast<uint8_t>(colour[2 - i]);
    return absl::OkStatus();
  }

 private:
  const Bmp& bmp_;
  Image* image_;
};

absl::Status ReadIndexed(const Bmp& bmp, size_t stride, const Canvas& canvas) {
  const uint32_t bits = bmp.bits;
  for (int64_t y = 0; y < bmp.height; ++y) {
    const auto* in = reinterpret_cast<const uint8_t*>(bmp.pixels.data()) +
                     static_cast<size_t>(y) * stride;
    for (int64_t x = 0; x < bmp.width; ++x) {
      const auto bit = static_cast<size_t>(x) * bits;
      const uint32_t index =
          in[bit / 8] >> (8 - bits - bit % 8) & ((1u << bits) - 1);
      PD_RETURN_IF_ERROR(canvas.Set(x, y, index));
    }
  }
  return absl::OkStatus();
}

void ReadColours(const Bmp& bmp, size_t stride, const Canvas& canvas) {
  std::array<int, 3> shift = {};
  std::array<uint32_t, 3> most = {};
  for (size_t i = 0; bmp.bits != 24 && i < 3; ++i) {
    shift[i] = absl::countr_zero(bmp.masks[i]);
    most[i] = bmp.masks[i] >> shift[i];
  }
  const size_t step = bmp.bits / 8;
  for (int64_t y = 0; y < bmp.height; ++y) {
    const absl::string_view row =
        bmp.pixels.substr(static_cast<size_t>(y) * stride);
    uint8_t* out = canvas.Row(y);
    for (int64_t x = 0; x < bmp.width; ++x, out += 3) {
      const uint32_t pixel = Little(row, static_cast<size_t>(x) * step, step);
      for (size_t i = 0; i < 3; ++i) {
        if (bmp.bits == 24) {
          out[i] = static_cast<uint8_t>(pixel >> (16 - 8 * i));
          continue;
        }
        const uint64_t value = (pixel & bmp.masks[i]) >> shift[i];
        out[i] = static_cast<uint8_t>(value * 255 / most[i]);
      }
    }
  }
}

// Runs (count, index), and behind a 0: the end of a row (0), of the image (1),
// a jump (2), or so many indices as they are, padded to 2 bytes. What no run
// reaches has index 0.
absl::Status ReadRuns(const Bmp& bmp, const Canvas& canvas) {
  for (int64_t y = 0; y < bmp.height; ++y)
    for (int64_t x = 0; x < bmp.width; ++x)
      PD_RETURN_IF_ERROR(canvas.Set(x, y, 0));
  const auto* in = reinterpret_cast<const uint8_t*>(bmp.pixels.data());
  const size_t size = bmp.pixels.size();
  const bool nibbles = bmp.compression == kRle4;
  int64_t x = 0, y = 0;
  size_t at = 0;
  const auto put = [&](const uint8_t* byte, size_t place) {
    const uint32_t index =
        !nibbles ? *byte : (place % 2 == 0 ? *byte >> 4 : *byte & 15);
    if (x >= bmp.width || y >= bmp.height)
      return DataLoss("a run goes beyond the image");
    return canvas.Set(x++, y, index);
  };
  while (y < bmp.height) {
    if (size - at < 2) return DataLoss("the file is truncated");
    const uint8_t count = in[at], what = in[at + 1];
    at += 2;
    if (count > 0) {
      for (size_t i = 0; i < count; ++i)
        PD_RETURN_IF_ERROR(put(in + at - 1, i));
    } else if (what == 0) {
      x = 0, ++y;
    } else if (what == 1) {
      return absl::OkStatus();
    } else if (what == 2) {
      if (size - at < 2) return DataLoss("the file is truncated");
      x += in[at], y += in[at + 1], at += 2;
    } else {
      const size_t bytes = nibbles ? (what + 1u) / 2 : what;
      if (size - at < bytes) return DataLoss("the file is truncated");
      for (size_t i = 0; i < what; ++i)
        PD_RETURN_IF_ERROR(put(in + at + (nibbles ? i / 2 : i), i));
      at += std::min(size - at, bytes + bytes % 2);
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsBmp(absl::string_view bytes) {
  if (bytes.size() < kFileHeader + 4 || bytes.substr(0, 2) != "BM")
    return false;
  const uint32_t header = Little(bytes, kFileHeader, 4);
  return header == 12 || (header >= 40 && header <= 4096);
}

absl::StatusOr<ImageHeader> ParseBmpHeader(absl::string_view bytes) {
  PD_ASSIGN_OR_RETURN(const Bmp bmp, Parse(bytes));
  ImageHeader header;
  header.height = bmp.height;
  header.width = bmp.width;
  header.channels = bmp.indexed() ? 1 : bmp.bits == 32 ? 4 : 3;
  header.bits = bmp.indexed() ? bmp.bits : bmp.bits == 16 ? 5 : 8;
  header.colour = bmp.indexed()    ? "palette"
                  : bmp.bits == 32 ? "RGB and alpha"
                                   : "RGB";
  return header;
}

absl::Status DecodeBmp(absl::string_view bytes, const ImageOptions& options,
                       Image* image) {
  PD_ASSIGN_OR_RETURN(const Bmp bmp, Parse(bytes));
  const bool runs = bmp.compression == kRle8 || bmp.compression == kRle4;
  const uint64_t stride =
      (static_cast<uint64_t>(bmp.width) * bmp.bits + 31) / 32 * 4;
  // The last row's padding may be missing; a run has at most 255 pixels.
  const uint64_t row = (static_cast<uint64_t>(bmp.width) * bmp.bits + 7) / 8;
  const auto height = static_cast<uint64_t>(bmp.height);
  if (runs ? static_cast<uint64_t>(bmp.width) * height / 255 >
                 bmp.pixels.size() + 1
           : stride * (height - 1) + row > bmp.pixels.size())
    return DataLoss("%d bytes are too few for %d x %d pixels", bytes.size(),
                    bmp.width, bmp.height);
  PD_RETURN_IF_ERROR(PrepareImage(bmp.height, bmp.width, options, image));
  const Canvas canvas(bmp, image);
  if (runs) {
    PD_RETURN_IF_ERROR(ReadRuns(bmp, canvas));
  } else if (bmp.indexed()) {
    PD_RETURN_IF_ERROR(ReadIndexed(bmp, stride, canvas));
  } else {
    ReadColours(bmp, stride, canvas);
  }
  if (options.channels == 1) RgbToGrey(image);
  image->pixels.resize(static_cast<size_t>(bmp.height * bmp.width) *
                       static_cast<size_t>(options.channels));
  return absl::OkStatus();
}

}  // namespace pd
