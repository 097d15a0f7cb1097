// SPDX-License-Identifier: Apache-2.0
// TIFF by libtiff, the first picture of a file: black and white, grey, palette
// and RGB of 1 to 16 bits in any of libtiff's compressions, by rows or tiles;
// YCbCr. As Pillow does, alpha is dropped (of premultiplied colours divided
// out) and the orientation that the file names is applied.
#include "formats/tiff.h"

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;  // of a tile, or libtiff's
constexpr int kMostSamples = 8;

// libtiff's view of the bytes; its first error, no warnings.
struct TiffFile {
  absl::string_view bytes;
  uint64_t at = 0;
  char message[160] = {};
  TIFF* tiff = nullptr;

  explicit TiffFile(absl::string_view all) : bytes(all) {}
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;
  ~TiffFile() {
    if (tiff != nullptr) TIFFClose(tiff);
  }

  absl::Status Damaged() const {
    return DataLoss("%s", message[0] != 0 ? message : "it cannot be read");
  }
};

TiffFile* FileOf(thandle_t handle) { return static_cast<TiffFile*>(handle); }

tmsize_t Read(thandle_t handle, void* to, tmsize_t size) {
  TiffFile* file = FileOf(handle);
  if (size < 0 || file->at >= file->bytes.size()) return 0;
  const size_t count = std::min(static_cast<size_t>(size),
                                file->bytes.size() - size_t{file->at});
  std::memcpy(to, file->bytes.data() + file->at, count);
  file->at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t Write(thandle_t, void*, tmsize_t) { return 0; }

toff_t Seek(thandle_t handle, toff_t offset, int whence) {
  TiffFile* file = FileOf(handle);
  const toff_t from = whence == SEEK_CUR   ? file->at
                      : whence == SEEK_END ? file->bytes.size()
                                           : 0;
  return file->at = from + offset;
}

int Close(thandle_t) { return 0; }
toff_t Size(thandle_t handle) { return FileOf(handle)->bytes.size(); }
int Map(thandle_t, void**, toff_t*) { return 0; }
void Unmap(thandle_t, void*, toff_t) {}

int OnError(TIFF*, void* user, const char*, const char* format,
            va_list arguments) {
  auto* file = static_cast<TiffFile*>(user);
  if (file->message[0] == 0)
    std::vsnprintf(file->message, sizeof(file->message), format, arguments);
  return 1;  // nobody else need hear of it
}

int OnWarning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

absl::Status Open(TiffFile* file) {
  TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return ResourceExhausted("no memory for libtiff");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, kMostBytes);
  TIFFOpenOptionsSetErrorHandlerExtR(options, OnError, file);
  TIFFOpenOptionsSetWarningHandlerExtR(options, OnWarning, nullptr);
  file->tiff = TIFFClientOpenExt("", "rm", file, Read, Write, Seek, Close, Size,
                                 Map, Unmap, options);
  TIFFOpenOptionsFree(options);
  return file->tiff != nullptr ? absl::OkStatus() : file->Damaged();
}

// The tags of a file on its picture.
struct Layout {
  int64_t width = 0, height = 0;
  int bits = 1, samples = 1, photometric = 0, compression = 1, orientation = 1;
  bool separate = false, tiled = false, premultiplied = false;
  std::vector<uint8_t> palette;  // red, green, blue of each index

  bool grey() const {
    return photometric == PHOTOMETRIC_MINISWHITE ||
           photometric == PHOTOMETRIC_MINISBLACK;
  }
  int colours() const {  // samples of a pixel that are not alpha or more
    return grey() || photometric == PHOTOMETRIC_PALETTE ? 1 : 3;
  }
};

int Field(TIFF* tiff, uint32_t tag, int otherwise) {
  uint16_t value = 0;
  return TIFFGetFieldDefaulted(tiff, tag, &value) != 0 ? value : otherwise;
}

absl::StatusOr<Layout> ReadLayout(const TiffFile& file) {
  TIFF* tiff = file.tiff;
  Layout layout;
  uint32_t width = 0, height = 0;
  TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  if (width == 0 || height == 0)
    return DataLoss("the image is %d x %d pixels", width, height);
  layout.width = width;
  layout.height = height;
  layout.bits = Field(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  layout.samples = Field(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  layout.photometric = Field(tiff, TIFFTAG_PHOTOMETRIC, -1);
  layout.compression = Field(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  layout.orientation = Field(tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT);
  layout.separate = Field(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) ==
                    PLANARCONFIG_SEPARATE;
  layout.tiled = TIFFIsTiled(tiff) != 0;
  uint16_t extras = 0;
  uint16_t* kinds = nullptr;
  layout.premultiplied =
      TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extras, &kinds) != 0 &&
      extras > 0 && kinds[0] == EXTRASAMPLE_ASSOCALPHA;
  return layout;
}

// Refuses what is not decoded here, and sizes that the file is too short for.
absl::Status Check(const TiffFile& file, const Layout& layout) {
  switch (layout.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
    case PHOTOMETRIC_PALETTE:
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_YCBCR:
      break;
    default:
      return Unimplemented(
          "colours of kind %d; grey, palette, RGB and YCbCr are read",
          layout.photometric);
  }
  const int bits = layout.bits;
  const bool fits = layout.photometric == PHOTOMETRIC_RGB ||
                            layout.photometric == PHOTOMETRIC_YCBCR
                        ? bits == 8 || bits == 16
                        : bits == 1 || bits == 2 || bits == 4 || bits == 8 ||
                              (bits == 16 && layout.grey());
  if (!fits || layout.samples < layout.colours() ||
      layout.samples > kMostSamples ||
      Field(file.tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT) !=
          SAMPLEFORMAT_UINT)
    return Unimplemented(
        "%d samples of %d bits a pixel; integers of 1, 2, 4, 8 and 16 are "
        "read",
        layout.samples, bits);
  // A row of fax takes a bit at least; other codes do not reach this share.
  constexpr int64_t kMostShare = 1 << 15;
  const auto size = static_cast<int64_t>(file.bytes.size());
  const bool fax = layout.compression >= COMPRESSION_CCITTRLE &&
                   layout.compression <= COMPRESSION_CCITT_T6;
  const int64_t row = layout.width * layout.samples * bits / 8;
  const int64_t most =
      layout.compression == COMPRESSION_NONE ? size : size * kMostShare;
  if (fax ? layout.height / 8 > size : row > 0 && layout.height > most / row)
    return DataLoss("%d bytes are too few for %d x %d pixels", size,
                    layout.width, layout.height);
  return absl::OkStatus();
}

absl::Status ReadPalette(TIFF* tiff, Layout* layout) {
  if (layout->photometric != PHOTOMETRIC_PALETTE) return absl::OkStatus();
  uint16_t* parts[3] = {};
  if (TIFFGetField(tiff, TIFFTAG_COLORMAP, &parts[0], &parts[1], &parts[2]) ==
      0)
    return DataLoss("it has no palette");
  for (size_t i = 0; i < size_t{1} << layout->bits; ++i)
    for (const uint16_t* part : parts)
      layout->palette.push_back(static_cast<uint8_t>(part[i] >> 8));
  return absl::OkStatus();
}

// Puts samples where they belong in the picture, as 8 bits.
class Canvas {
 public:
  Canvas(const Layout& layout, Image* image) : layout_(layout), image_(image) {}

  // Row y from column x on: `count` pixels of packed samples, all of each pixel
  // or the one of a plane.
  void Put(int64_t y, int64_t x, int64_t count, int plane,
           const uint8_t* packed) const {
    uint8_t* out = image_->pixels.data() + 3 * (y * layout_.width + x);
    const int step = layout_.separate ? 1 : layout_.samples;
    for (int64_t i = 0; i < count; ++i, out += 3) {
      if (layout_.separate) {
        PutSample(plane, Sample(packed, i), out);
        continue;
      }
      for (int k = 0; k < layout_.colours(); ++k)
        PutSample(k, Sample(packed, i * step + k), out);
      if (layout_.premultiplied && layout_.samples > layout_.colours())
        Divide(Value(Sample(packed, i * step + layout_.colours())), out);
    }
  }

 private:
  unsigned Sample(const uint8_t* packed, int64_t i) const {
    const int bits = layout_.bits;
    if (bits == 8) return packed[i];
    if (bits == 16) {  // in the machine's order
      uint16_t value;
      std::memcpy(&value, packed + 2 * i, sizeof(value));
      return value;
    }
    const int64_t bit = i * bits;
    return (packed[bit / 8] >> (8 - bits - bit % 8)) & ((1u << bits) - 1);
  }
  uint8_t Value(unsigned sample) const {
    if (layout_.bits == 16) return static_cast<uint8_t>(sample >> 8);
    return static_cast<uint8_t>(sample * 255 / ((1u << layout_.bits) - 1));
  }
  void PutSample(int k, unsigned sample, uint8_t* out) const {
    if (k >= layout_.colours()) return;
    if (!layout_.palette.empty()) {
      std::copy_n(&layout_.palette[3 * sample], 3, out);
      return;
    }
    const uint8_t value = Value(sample);
    if (layout_.grey())
      out[0] = out[1] = out[2] =
          layout_.photometric == PHOTOMETRIC_MINISWHITE ? 255 - value : value;
    else
      out[k] = value;
  }
  static void Divide(unsigned alpha, uint8_t* out) {
    if (alpha == 0 || alpha == 255) return;
    for (int k = 0; k < 3; ++k)
      out[k] = static_cast<uint8_t>(std::min(255u, 255u * out[k] / alpha));
  }

  const Layout& layout_;
  Image* image_;
};

absl::Status ReadRows(const TiffFile& file, const Layout& layout,
                      const Canvas& canvas) {
  const int64_t size = TIFFScanlineSize64(file.tiff);
  const int64_t needed =
      (layout.width * (layout.separate ? 1 : layout.samples) * layout.bits +
       7) /
      8;
  if (size < needed || size > kMostBytes)
    return DataLoss("a row has %d bytes", size);
  std::vector<uint8_t> row(static_cast<size_t>(size));
  const int planes = layout.separate ? layout.colours() : 1;
  for (int plane = 0; plane < planes; ++plane) {
    for (int64_t y = 0; y < layout.height; ++y) {
      if (TIFFReadScanline(file.tiff, row.data(), static_cast<uint32_t>(y),
                           static_cast<uint16_t>(plane)) < 0)
        return file.Damaged();
      canvas.Put(y, 0, layout.width, plane, row.data());
    }
  }
  return absl::OkStatus();
}

absl::Status ReadTiles(const TiffFile& file, const Layout& layout,
                       const Canvas& canvas) {
  uint32_t width = 0, height = 0;
  TIFFGetField(file.tiff, TIFFTAG_TILEWIDTH, &width);
  TIFFGetField(file.tiff, TIFFTAG_TILELENGTH, &height);
  const int64_t row = TIFFTileRowSize64(file.tiff);
  const int64_t size = TIFFTileSize64(file.tiff);
  if (width == 0 || height == 0 || row <= 0 || size <= 0 || size > kMostBytes ||
      row > size / height ||
      row < (int64_t{width} * (layout.separate ? 1 : layout.samples) *
                 layout.bits +
             7) /
                8)
    return DataLoss("tiles of %d x %d pixels have %d bytes", width, height,
                    size);
  std::vector<uint8_t> tile(static_cast<size_t>(size));
  const int planes = layout.separate ? layout.colours() : 1;
  for (int plane = 0; plane < planes; ++plane) {
    for (int64_t y = 0; y < layout.height; y += height) {
      for (int64_t x = 0; x < layout.width; x += width) {
        if (TIFFReadTile(file.tiff, tile.data(), static_cast<uint32_t>(x),
                         static_cast<uint32_t>(y), 0,
                         static_cast<uint16_t>(plane)) < 0)
          return file.Damaged();
        const int64_t rows = std::min<int64_t>(height, layout.height - y);
        for (int64_t i = 0; i < rows; ++i)
          canvas.Put(y + i, x, std::min<int64_t>(width, layout.width - x),
                     plane, tile.data() + i * row);
      }
    }
  }
  return absl::OkStatus();
}

// libtiff knows how to make RGB of YCbCr, in every subsampling.
absl::Status ReadYcbcr(const TiffFile& file, Image* image) {
  const int64_t pixels = image->height * image->width;
  std::vector<uint32_t> raster(static_cast<size_t>(pixels));
  // The orientation that it asks for leaves pixels where they are.
  if (TIFFReadRGBAImageOriented(
          file.tiff, static_cast<uint32_t>(image->width),
          static_cast<uint32_t>(image->height), raster.data(),
          Field(file.tiff, TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT), 1) == 0)
    return file.Damaged();
  for (int64_t i = 0; i < pixels; ++i) {
    const uint32_t pixel = raster[static_cast<size_t>(i)];
    uint8_t* out = image->pixels.data() + 3 * i;
    out[0] = static_cast<uint8_t>(TIFFGetR(pixel));
    out[1] = static_cast<uint8_t>(TIFFGetG(pixel));
    out[2] = static_cast<uint8_t>(TIFFGetB(pixel));
  }
  return absl::OkStatus();
}

// Turns and mirrors RGB pixels so that row 0 is the top one.
void Orient(int orientation, Image* image) {
  if (orientation <= ORIENTATION_TOPLEFT || orientation > ORIENTATION_LEFTBOT)
    return;
  const std::vector<uint8_t> from = image->pixels;
  const int64_t height = image->height, width = image->width;
  const bool swapped = orientation >= ORIENTATION_LEFTTOP;
  const bool right = orientation == ORIENTATION_TOPRIGHT ||
                     orientation == ORIENTATION_BOTRIGHT ||
                     orientation == ORIENTATION_RIGHTTOP ||
                     orientation == ORIENTATION_RIGHTBOT;
  const bool bottom = orientation == ORIENTATION_BOTRIGHT ||
                      orientation == ORIENTATION_BOTLEFT ||
                      orientation == ORIENTATION_RIGHTBOT ||
                      orientation == ORIENTATION_LEFTBOT;
  if (swapped) std::swap(image->height, image->width);
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      int64_t row = swapped ? x : y, column = swapped ? y : x;
      if (bottom) row = image->height - 1 - row;
      if (right) column = image->width - 1 - column;
      std::copy_n(&from[static_cast<size_t>(3 * (y * width + x))], 3,
                  &image->pixels[static_cast<size_t>(
                      3 * (row * image->width + column))]);
    }
  }
}

}  // namespace

bool IsTiff(absl::string_view bytes) {
  for (const absl::string_view start :
       {absl::string_view("II*\0", 4), absl::string_view("MM\0*", 4),
        absl::string_view("II+\0", 4), absl::string_view("MM\0+", 4)})
    if (absl::StartsWith(bytes, start)) return true;
  return false;
}

absl::StatusOr<ImageHeader> ParseTiffHeader(absl::string_view bytes) {
  TiffFile file(bytes);
  PD_RETURN_IF_ERROR(Open(&file));
  PD_ASSIGN_OR_RETURN(const Layout layout, ReadLayout(file));
  ImageHeader header;
  header.width = layout.width;
  header.height = layout.height;
  header.bits = layout.bits;
  header.channels = layout.samples;
  const bool alpha = layout.samples > layout.colours();
  if (layout.photometric == PHOTOMETRIC_SEPARATED)
    header.colour = "CMYK";
  else if (layout.photometric == PHOTOMETRIC_PALETTE)
    header.colour = "palette";
  else if (layout.grey())
    header.colour = alpha ? "grey and alpha" : "grey";
  else
    header.colour = alpha ? "RGB and alpha" : "RGB";
  return header;
}

absl::Status DecodeTiff(absl::string_view bytes, const ImageOptions& options,
                        Image* image) {
  TiffFile file(bytes);
  PD_RETURN_IF_ERROR(Open(&file));
  PD_ASSIGN_OR_RETURN(Layout layout, ReadLayout(file));
  PD_RETURN_IF_ERROR(Check(file, layout));
  PD_RETURN_IF_ERROR(ReadPalette(file.tiff, &layout));
  PD_RETURN_IF_ERROR(PrepareImage(layout.height, layout.width, options, image));
  const Canvas canvas(layout, image);
  if (layout.photometric == PHOTOMETRIC_YCBCR)
    PD_RETURN_IF_ERROR(ReadYcbcr(file, image));
  else if (layout.tiled)
    PD_RETURN_IF_ERROR(ReadTiles(file, layout, canvas));
  else
    PD_RETURN_IF_ERROR(ReadRows(file, layout, canvas));
  Orient(layout.orientation, image);
  if (options.channels == 1) RgbToGrey(image);
  image->pixels.resize(
      static_cast<size_t>(image->height * image->width * options.channels));
  return absl::OkStatus();
}

}  // namespace pd
