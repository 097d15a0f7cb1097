// SPDX-License-Identifier: Apache-2.0
#include "formats/detect.h"

#include "tests/formats/format_test.h"

namespace pd {
namespace {

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
  EXPECT_EQ(kind("\x89PNG\r\n\x1a\n...."), FileKind::kPng);
  EXPECT_EQ(kind("\xff\xd8\xff\xe0"), FileKind::kJpeg);
  EXPECT_EQ(kind(std::string("II*\0\x08\0\0\0", 8)), FileKind::kTiff);
  EXPECT_EQ(kind(std::string("MM\0*\0\0\0\x08", 8)), FileKind::kTiff);
  EXPECT_EQ(kind(std::string("RIFF\x20\0\0\0WEBPVP8 ", 16)), FileKind::kWebp);
  EXPECT_EQ(kind("P5\n2 2\n255\nabcd"), FileKind::kPnm);
  EXPECT_EQ(kind("P5 is a text"), FileKind::kText);
  EXPECT_EQ(DetectKind(MustRead(PD_TESTDATA "/images/os2.bmp").view(), ""),
            FileKind::kBmp);
  EXPECT_EQ(kind({"\x1f\x8b\x08\0", 4}), FileKind::kGzip);
  EXPECT_EQ(kind({"\x02\0\0\0\0\0\0\0{}", 10}), FileKind::kSafetensors);
  EXPECT_EQ(kind({"\x08\x08\x3a\x00", 4}), FileKind::kOnnx);
  EXPECT_EQ(kind(" {\"a\": 1}"), FileKind::kJson);
  EXPECT_EQ(kind("a,b\n1,2\n"), FileKind::kText);
  EXPECT_EQ(kind(""), FileKind::kUnknown);
  EXPECT_EQ(kind({"\0\1\2\3", 4}), FileKind::kUnknown);
}

TEST(Detect, AsksTheNameLast) {
  EXPECT_EQ(DetectKind("", "x/model.pdiparams"), FileKind::kTensorStream);
  EXPECT_EQ(DetectKind("\x89PNG\r\n\x1a\n", "x.pdmodel"), FileKind::kPng);
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

}  // namespace
}  // namespace pd
