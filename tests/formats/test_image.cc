// SPDX-License-Identifier: Apache-2.0
// PNG and JPEG against what Pillow decodes (testdata/images), and damaged.
#include "formats/image.h"

#include <cstring>
#include <string>
#include <vector>

#include "formats/npz.h"
#include "gtest/gtest.h"
#include "libcore/base/file.h"
#include "tests/formats/hostile.h"

namespace pd {
namespace {

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

std::string FileOf(const std::string& name) {
  const auto file = ReadFile(PD_TESTDATA "/images/" + name);
  EXPECT_TRUE(file.ok()) << file.status();
  return std::string(file->view());
}

TEST(ImageTest, DecodesAsPillowDoes) {
  const auto pixels = ReadNpz(PD_TESTDATA "/images/pixels.npz");
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  Image image;  // reused, as the loader does
  for (const std::string name : kFiles) {
    for (int channels : {3, 1}) {
      const std::string key = name + (channels == 3 ? ".rgb" : ".grey");
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
    }
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

}  // namespace
}  // namespace pd
