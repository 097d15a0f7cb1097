// SPDX-License-Identifier: Apache-2.0
#include "formats/detect.h"

#include <filesystem>
#include <set>

#include "tests/formats/format_test.h"

namespace pd {
namespace test_detect {

using testing::MustRead;
using testing::TestData;

// By content alone: the name is not given.
TEST(Detect, TellsByContent) {
  const std::pair<const char*, FileKind> files[] = {
      {"models/inference.pdmodel", FileKind::kPdModel},
      {"models/flow.pdmodel", FileKind::kPdModel},
      {"models/legacy__model__", FileKind::kPdModel},
      {"models/inference.pdiparams", FileKind::kTensorStream},
      {"streams/lod2.pdtensor", FileKind::kTensorStream},
      {"streams/bfloat16.pdtensor", FileKind::kTensorStream},
      {"streams/rows.pdtensor", FileKind::kSelectedRows},
      {"pickles/model.p2.pdparams", FileKind::kPickle},
      {"pickles/model.p4.pdparams", FileKind::kPickle},
      {"pickles/proto0.pdparams", FileKind::kPickle},
      {"pickles/proto1.pdparams", FileKind::kPickle},
      {"numpy/v3.npy", FileKind::kNpy},
      {"numpy/all.npz", FileKind::kNpz},
      {"README", FileKind::kText}};
  for (const auto& [name, kind] : files)
    EXPECT_EQ(DetectKind(MustRead(TestData(name)).view(), ""), kind) << name;
}

TEST(Detect, TellsOthersBySmallSamples) {
  const auto kind = [](absl::string_view bytes) {
    return DetectKind(bytes, "");
  };
  EXPECT_EQ(kind({"\0\0\x08\x03\0\0\xea\x60", 8}), FileKind::kIdx);
  EXPECT_EQ(kind("P5 is a text"), FileKind::kText);
  EXPECT_EQ(kind({"\x1f\x8b\x08\0", 4}), FileKind::kGzip);
  EXPECT_EQ(kind({"\x02\0\0\0\0\0\0\0{}", 10}), FileKind::kSafetensors);
  EXPECT_EQ(kind({"\x08\x08\x3a\x00", 4}), FileKind::kOnnx);
  EXPECT_EQ(kind(" {\"a\": 1}"), FileKind::kJson);
  EXPECT_EQ(kind("a,b\n1,2\n"), FileKind::kText);
  EXPECT_EQ(kind(""), FileKind::kUnknown);
  EXPECT_EQ(kind({"\0\1\2\3", 4}), FileKind::kUnknown);
}

TEST(Detect, TellsPicturesByTheirRows) {
  const auto format = [](absl::string_view bytes) {
    return DetectFormat(bytes, "").name;
  };
  EXPECT_EQ(format("\x89PNG\r\n\x1a\n...."), "png");
  EXPECT_EQ(format("\xff\xd8\xff\xe0"), "jpeg");
  EXPECT_EQ(format(std::string("II*\0\x08\0\0\0", 8)), "tiff");
  EXPECT_EQ(format(std::string("MM\0*\0\0\0\x08", 8)), "tiff");
  EXPECT_EQ(format(std::string("RIFF\x20\0\0\0WEBPVP8 ", 16)), "webp");
  EXPECT_EQ(format("P5\n2 2\n255\nabcd"), "pnm");
  EXPECT_EQ(format(MustRead(PD_TESTDATA "/images/os2.bmp").view()), "bmp");
}

// Every picture of testdata/images is told by its bytes and by its name alike.
TEST(Detect, BytesAndNamesOfPicturesAgree) {
  std::set<absl::string_view> seen;
  for (const auto& entry :
       std::filesystem::directory_iterator(PD_TESTDATA "/images")) {
    const std::string path = entry.path().string();
    const FileFormat& by_name = DetectFormat("", path);
    if (by_name.kind != FileKind::kImage) continue;
    EXPECT_EQ(DetectFormat(MustRead(path).view(), "").name, by_name.name)
        << path;
    seen.insert(by_name.name);
  }
  for (const FileFormat& format : FileFormats())
    if (format.kind == FileKind::kImage)
      EXPECT_EQ(seen.count(format.name), 1u) << format.name;
}

// Names, endings and kinds are those of one row, except that pictures share
// their kind.
TEST(Detect, RowsAreDistinct) {
  std::set<absl::string_view> names, endings;
  std::set<FileKind> kinds;
  for (const FileFormat& format : FileFormats()) {
    EXPECT_TRUE(names.insert(format.name).second) << format.name;
    for (const absl::string_view ending : format.endings)
      EXPECT_TRUE(endings.insert(ending).second) << ending;
    const bool image = format.kind == FileKind::kImage;
    EXPECT_TRUE(kinds.insert(format.kind).second || image) << format.name;
    EXPECT_EQ(format.image.decode != nullptr, image) << format.name;
    EXPECT_EQ(format.image.header != nullptr, image) << format.name;
  }
}

TEST(Detect, AsksTheNameLast) {
  EXPECT_EQ(DetectKind("", "x/model.pdiparams"), FileKind::kTensorStream);
  EXPECT_EQ(DetectFormat("\x89PNG\r\n\x1a\n", "x.pdmodel").name, "png");
  EXPECT_EQ(DetectFormat("cut", "x.PNG").name, "png");
  const absl::string_view empty_zip("PK\x05\x06", 4);
  EXPECT_EQ(DetectKind(empty_zip, "x.zip"), FileKind::kZip);
  EXPECT_EQ(DetectKind(empty_zip, "x.npz"), FileKind::kNpz);
  EXPECT_EQ(DetectKind({"\0\1", 2}, "x.pdmodel"), FileKind::kPdModel);
  EXPECT_EQ(Name(FileKind::kSafetensors), "safetensors");
  EXPECT_EQ(Name(FileKind::kText), "text");
}

TEST(Detect, SurvivesDamage) {
  for (const char* name : {"streams/lod2.pdtensor", "streams/rows.pdtensor",
                           "pickles/proto1.pdparams", "numpy/foreign.npz"})
    testing::ForEveryDamage(
        MustRead(TestData(name)).view(),
        [](const FileBytes& file) { DetectKind(file.view(), ""); });
}

}  // namespace test_detect
}  // namespace pd
