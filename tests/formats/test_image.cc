// SPDX-License-Identifier: Apache-2.0
// PNG, JPEG, TIFF, WebP and bitmaps against what Pillow decodes
// (testdata/images), and damaged.
#include "formats/image.h"

#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "formats/image_header.h"
#include "formats/npz.h"
#include "gtest/gtest.h"
#include "libcore/base/file.h"
#include "tests/formats/hostile.h"

namespace pd {
namespace test_image {

const char* const kFiles[] = {"rgb.png",
                              "grey.png",
                              "rgba.png",
                              "palette.png",
                              "one_bit.png",
                              "grey_alpha.png",
                              "rgb_444.jpg",
                              "rgb_420.jpg",
                              "grey.jpg",
                              "progressive.jpg",
                              "palette_transparent.png"};

const char* const kBitmaps[] = {
    "rgb.bmp",      "grey.bmp",  "one_bit.bmp", "palette.bmp", "four_bit.bmp",
    "rle8.bmp",     "rle4.bmp",  "rgb555.bmp",  "rgb565.bmp",  "rgb32.bmp",
    "top_down.bmp", "os2.bmp",   "rgb.ppm",     "grey.pgm",    "bits.pbm",
    "plain.pbm",    "plain.pgm", "plain.ppm",   "seven.pgm",   "deep.ppm"};

const char* const kTiffAndWebp[] = {"rgb.tif",
                                    "grey.tif",
                                    "rgba.tif",
                                    "lzw.tif",
                                    "deflate.tif",
                                    "packbits.tiff",
                                    "jpeg.tif",
                                    "fax.tif",
                                    "palette.tif",
                                    "turned2.tif",
                                    "turned3.tif",
                                    "turned4.tif",
                                    "turned5.tif",
                                    "turned6.tif",
                                    "turned7.tif",
                                    "turned8.tif",
                                    "white.tif",
                                    "four_bit.tif",
                                    "two_bit.tif",
                                    "deep.tif",
                                    "big.tif",
                                    "tiles.tif",
                                    "deep_big_endian.tif",
                                    "planes.tif",
                                    "premultiplied.tif",
                                    "lossless.webp",
                                    "lossy.webp",
                                    "alpha.webp",
                                    "animated.webp"};

std::string FileOf(const std::string& name) {
  const auto file = ReadFile(PD_TESTDATA "/images/" + name);
  EXPECT_TRUE(file.ok()) << file.status();
  return std::string(file->view());
}

// Reads every file both ways, into an image that is reused as the loader does.
void CheckPixels(const std::vector<std::string>& files,
                 const std::string& goldens) {
  const auto pixels = ReadNpz(PD_TESTDATA "/images/" + goldens);
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  Image image;
  for (const std::string& name : files) {
    for (int channels : {3, 1}) {
      const std::string key = name + (channels == 3 ? ".rgb" : ".grey");
      ASSERT_EQ(pixels->count(key), 1u) << key;
      const Array& golden = pixels->at(key);
      ImageOptions options;
      options.channels = channels;
      const absl::Status status = DecodeImage(FileOf(name), options, &image);
      ASSERT_TRUE(status.ok()) << name << ": " << status;
      ASSERT_EQ(image.height, golden.shape[0]) << key;
      ASSERT_EQ(image.width, golden.shape[1]) << key;
      ASSERT_EQ(image.pixels.size(), golden.size_bytes()) << key;
      EXPECT_EQ(std::memcmp(image.pixels.data(), golden.bytes.get(),
                            golden.size_bytes()),
                0)
          << key;
      const auto header = ParseImageHeader(FileOf(name));
      ASSERT_TRUE(header.ok()) << name << ": " << header.status();
      // A TIFF's header is that of the picture as it lies there.
      const bool lying = name >= "turned5.tif" && name <= "turned8.tif";
      EXPECT_EQ(header->width, lying ? image.height : image.width) << name;
      EXPECT_EQ(header->height, lying ? image.width : image.height) << name;
    }
  }
}

TEST(ImageTest, DecodesAsPillowDoes) {
  CheckPixels({std::begin(kFiles), std::end(kFiles)}, "pixels.npz");
}

TEST(ImageTest, DecodesBitmapsAsPillowDoes) {
  CheckPixels({std::begin(kBitmaps), std::end(kBitmaps)}, "bitmaps.npz");
}

TEST(ImageTest, DecodesTiffAndWebpAsPillowDoes) {
  CheckPixels({std::begin(kTiffAndWebp), std::end(kTiffAndWebp)},
              "tiff_webp.npz");
}

// `tag`'s first value in a little-endian TIFF of libtiff or Pillow becomes
// another one.
std::string WithTag(std::string tiff, int tag, uint32_t value) {
  const auto at = [&tiff](size_t i, size_t size) {
    uint32_t number = 0;
    for (size_t k = size; k-- > 0;)
      number = number << 8 | static_cast<unsigned char>(tiff[i + k]);
    return number;
  };
  const size_t directory = at(4, 4);
  for (size_t i = 0; i < at(directory, 2); ++i) {
    const size_t entry = directory + 2 + 12 * i;
    if (at(entry, 2) != static_cast<uint32_t>(tag)) continue;
    const size_t size = at(entry + 2, 2) == 3 ? 2 : 4;
    for (size_t k = 0; k < size; ++k)
      tiff[entry + 8 + k] = static_cast<char>(value >> (8 * k));
    return tiff;
  }
  ADD_FAILURE() << "no tag " << tag;
  return tiff;
}

TEST(ImageTest, TiffAndWebpSayWhatIsWrong) {
  Image image;
  const auto message = [&image](const std::string& bytes) {
    return std::string(DecodeImage(bytes, {}, &image).message());
  };
  const std::string grey = FileOf("white.tif"), lzw = FileOf("lzw.tif");
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(message(WithTag(grey, 257, 5000)),
            "TIFF image: 199 bytes are too few for 11 x 5000 pixels");
  EXPECT_EQ(message(WithTag(grey, 256, 0)),
            "TIFF image: Computed scanline size is zero");
  EXPECT_EQ(message(WithTag(grey, 262, 8)),
            "TIFF image: colours of kind 8; grey, palette, RGB and YCbCr are "
            "read");
  EXPECT_EQ(message(WithTag(grey, 258, 12)),
            "TIFF image: 1 samples of 12 bits a pixel; integers of 1, 2, "
            "4, 8 and 16 are read");
  for (const size_t size : {size_t{5}, lzw.size() - 40, lzw.size() / 2}) {
    const std::string cut = message(lzw.substr(0, size));
    EXPECT_TRUE(absl::StartsWith(cut, "TIFF image: ")) << cut;
    EXPECT_FALSE(absl::StrContains(cut, "\n")) << cut;
  }
  // libtiff and its warnings do not speak on their own.
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");

  const std::string webp = FileOf("lossy.webp");
  EXPECT_EQ(message(webp.substr(0, 60)), "WebP image: the file is truncated");
  EXPECT_EQ(message(webp.substr(0, 14)), "WebP image: the file is truncated");
  std::string changed = FileOf("lossless.webp");
  changed.replace(20, 1, "x");
  EXPECT_EQ(message(changed), "WebP image: its bits make no picture");
  changed = FileOf("animated.webp");
  EXPECT_TRUE(
      absl::StartsWith(message(changed.substr(0, 100)), "WebP image: "));
  ImageOptions small;
  small.max_pixels = 50;
  for (const std::string name : {"lossy.webp", "rgb.tif", "animated.webp"})
    EXPECT_EQ(DecodeImage(FileOf(name), small, &image).code(),
              absl::StatusCode::kResourceExhausted);
}

TEST(ImageTest, MessagesNameTheFormat) {
  Image image;
  const std::string png = FileOf("rgb.png"), jpeg = FileOf("rgb_444.jpg");
  EXPECT_EQ(DecodeImage(png.substr(0, 60), {}, &image).message(),
            "PNG image: the file is truncated");
  EXPECT_EQ(ParseImageHeader(png.substr(0, 20)).status().message(),
            "PNG image: it has no header");
  EXPECT_EQ(ParseImageHeader(jpeg.substr(0, 20)).status().message(),
            "JPEG image: it has no header");
  EXPECT_EQ(DecodeImage("GIF89a", {}, &image).message(),
            "not an image that is read: JPEG, PNG, PNM, BMP, TIFF, WebP");
  ImageOptions mask;
  mask.mask = true;
  for (const std::string& bytes : {jpeg, std::string("GIF89a")})
    EXPECT_EQ(DecodeImage(bytes, mask, &image).message(),
              "a mask must be a PNG image");
}

TEST(ImageTest, BitmapsSayWhatIsWrong) {
  Image image;
  const auto message = [&image](const std::string& bytes) {
    return std::string(DecodeImage(bytes, {}, &image).message());
  };
  const std::string bmp = FileOf("rgb.bmp"), runs = FileOf("rle8.bmp");
  EXPECT_EQ(message(bmp.substr(0, 100)),
            "BMP image: 100 bytes are too few for 11 x 7 pixels");
  EXPECT_EQ(message(bmp.substr(0, 40)), "BMP image: the file is truncated");
  std::string changed = bmp;
  changed[28] = 5;
  EXPECT_EQ(message(changed), "BMP image: a pixel has 5 bits");
  EXPECT_EQ(message(runs.substr(0, runs.size() - 20)),
            "BMP image: the file is truncated");
  changed = runs;
  changed[46] = 3;  // fewer colours than the pixels use
  EXPECT_TRUE(absl::StrContains(message(changed), "; the palette has 3"));
  EXPECT_EQ(message("P2\n2 1\n7\n3 8\n"),
            "PNM image: pixel value 8; the header says at most 7");
  EXPECT_EQ(message("P5 2 2 255 abc"),
            "PNM image: 14 bytes are too few for 2 x 2 pixels");
  EXPECT_EQ(message("P6 1 1 70000 abc"),
            "PNM image: the largest value is 70000; expected 1 to 65535");
  EXPECT_EQ(message("P5 999999 999999 255\n"),
            "PNM image: 21 bytes are too few for 999999 x 999999 pixels");
  EXPECT_EQ(message("P5 0 1 255\n"), "PNM image: the image is 0 x 1 pixels");
  EXPECT_EQ(message("P5 7 x"), "PNM image: byte 5: expected a number");
}

TEST(ImageTest, BitmapsComeBackFromAnyDamage) {
  ImageOptions options;
  options.max_pixels = 1 << 16;
  const auto read = [&options](const std::string& bytes) {
    Image image;
    ParseImageHeader(bytes).status().IgnoreError();
    DecodeImage(bytes, options, &image).IgnoreError();
  };
  for (const std::string name : kBitmaps) {
    ForEachPrefix(FileOf(name), read);
    ForEachFlip(FileOf(name), read);
  }
  for (const std::string name : kTiffAndWebp) {
    ForEachPrefix(FileOf(name), read);
    ForEachFlip(FileOf(name), read);
  }
}

TEST(ImageTest, RefusesWhatItCannotShow) {
  Image image;
  const absl::Status cmyk = DecodeImage(FileOf("cmyk.jpg"), {}, &image);
  EXPECT_EQ(cmyk.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(cmyk.message().find("CMYK"), absl::string_view::npos);
  EXPECT_EQ(DecodeImage("GIF89a", {}, &image).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(DecodeImage("", {}, &image).code(), absl::StatusCode::kDataLoss);
  ImageOptions small;
  small.max_pixels = 100;
  for (const char* name : {"rgb.png", "rgb_420.jpg"}) {
    EXPECT_EQ(DecodeImage(FileOf(name), small, &image).code(),
              absl::StatusCode::kResourceExhausted);
  }
}

TEST(ImageTest, APngCannotPromiseMoreThanItHolds) {
  std::string png = FileOf("rgb.png");
  // Width and height stand at byte 16; libpng checks the chunk's CRC, so the
  // promise is refused by one or the other.
  png.replace(16, 8, std::string("\0\0\x40\0\0\0\x40\0", 8));
  Image image;
  EXPECT_FALSE(DecodeImage(png, {}, &image).ok());
  EXPECT_LT(image.pixels.capacity(), size_t{1} << 20);
}

TEST(ImageTest, SurvivesDamage) {
  Image image;
  ImageOptions options;
  options.max_pixels = 1 << 20;
  for (const std::string name : kFiles) {
    const std::string good = FileOf(name);
    ForEachPrefix(good, [&](const std::string& bad) {
      // Without its last chunk a PNG, without its end marker a JPEG, has all
      // its pixels; everything shorter is refused.
      const bool ok = DecodeImage(bad, options, &image).ok();
      if (bad.size() + 16 < good.size()) {
        EXPECT_FALSE(ok) << name << " " << bad.size();
      }
    });
    ForEachFlip(good, [&](const std::string& bad) {
      DecodeImage(bad, options, &image).IgnoreError();
    });
  }
}

}  // namespace test_image
}  // namespace pd
