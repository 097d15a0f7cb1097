// SPDX-License-Identifier: Apache-2.0
// Pictures and masks that rows name, and folders of both: their pixels are
// those of the files as test_image.cc proves them; here it is which file, how a
// record's pictures are moved together, and what is refused.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/image.h"
#include "gtest/gtest.h"
#include "libcore/base/file.h"
#include "libcore/data/loader.h"
#include "libcore/data/row_datasets.h"

namespace pd {
namespace test_picture_rows {

class PictureRowsTest : public ::testing::Test {
 protected:
  PictureRowsTest() {
    for (const char* sub : {"photos", "images/deep", "masks/deep"})
      std::filesystem::create_directories(folder_ + "/" + sub);
    Paint("photos/a.png", 4, 6, 1);
    Paint("photos/b.png", 4, 6, 90);
  }
  ~PictureRowsTest() override { std::filesystem::remove_all(folder_); }

  // Pixel (y, x) is base + 10 y + x.
  void Paint(const std::string& name, int64_t height, int64_t width, int base) {
    Image image;
    image.height = height;
    image.width = width;
    image.channels = 1;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x)
        image.pixels.push_back(static_cast<uint8_t>(base + 10 * y + x));
    const auto png = EncodePng(image);
    ASSERT_TRUE(png.ok()) << png.status();
    ASSERT_TRUE(WriteFile(folder_ + "/" + name, *png).ok());
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  static ValueOptions Picture(bool grey = false, bool mask = false) {
    ValueOptions value;
    value.picture = PictureFileOptions{"", grey, mask};
    return value;
  }
  CsvDatasetOptions Csv(const std::string& text) {
    CsvDatasetOptions options;
    options.paths = {Write("t.csv", text)};
    options.fields = {{"image", {"file"}, Picture()},
                      {"point", {"u", "v"}, {}}};
    return options;
  }

  std::string folder_ =
      ::testing::TempDir() + "pd_picture_rows_" + std::to_string(::getpid());
};

std::vector<int> Pixels(const Dataset& data, int64_t index, size_t field) {
  Record record;
  const absl::Status status = data.Read(index, &record);
  EXPECT_TRUE(status.ok()) << status;
  const FieldView& view = record.fields[field];
  const auto* bytes = reinterpret_cast<const uint8_t*>(view.data);
  return {bytes, bytes + view.height * view.width * view.channels};
}

TEST_F(PictureRowsTest, PathsStartAtTheRowsFile) {
  const auto data = OpenCsv(Csv(absl::StrCat("file,u,v\nphotos/b.png,1,2\n",
                                             folder_, "/photos/a.png,3,4\n")));
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_EQ((*data)->fields()[0].shape, (Shape{-1, -1, 3}));
  EXPECT_TRUE((*data)->fields()[0].is_image);
  EXPECT_EQ(Pixels(**data, 0, 0)[0], 90);
  EXPECT_EQ(Pixels(**data, 1, 0)[3 * 7], 1 + 10 + 1);
  Record record;
  ASSERT_TRUE((*data)->Read(1, &record).ok());
  EXPECT_EQ(reinterpret_cast<const float*>(record.fields[1].data)[1], 4.0f);
  EXPECT_FALSE((*data)->Lengths(0).ok());

  CsvDatasetOptions elsewhere = Csv("file,u,v\na.png,1,2\n");
  elsewhere.fields[0].value.picture->folder = folder_ + "/photos";
  elsewhere.fields[0].value.picture->grey = true;
  const auto grey = OpenCsv(elsewhere);
  ASSERT_TRUE(grey.ok()) << grey.status();
  EXPECT_EQ(Pixels(**grey, 0, 0).size(), 24u);
}

TEST_F(PictureRowsTest, APictureThatIsNotThereIsFoundBeforeTraining) {
  CsvDatasetOptions options =
      Csv("file,u,v\nphotos/a.png,1,2\nphotos/c.png,1,2\n,1,2\n-,1,2\n");
  const absl::Status lost = OpenCsv(options).status();
  EXPECT_EQ(lost.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(lost.message(),
                                "t.csv':3:1: field 'image': "
                                "cannot open"))
      << lost;
  options.skip_bad = true;
  const auto kept = OpenCsv(options);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ((*kept)->size(), 1);
  // No path names standard input.
  EXPECT_EQ((*kept)->left_out().count, 3);
  EXPECT_TRUE(absl::StrContains((*kept)->left_out().first[1],
                                "field 'image' names no picture"));
  Write("photos/text.png", "no picture");
  const auto damaged = OpenCsv(Csv("file,u,v\nphotos/text.png,1,2\n"));
  Record record;
  const absl::Status read = (*damaged)->Read(0, &record);
  EXPECT_TRUE(absl::StrContains(read.message(), "t.csv':2: '") &&
              absl::StrContains(read.message(), "text.png"))
      << read;
}

TEST_F(PictureRowsTest, MasksMoveWithTheirPictures) {
  Paint("m.png", 4, 6, 0);
  const std::string line =
      "{\"p\": {\"file\": \"photos/a.png\"}, \"m\": \"m.png\"}\n";
  JsonlDatasetOptions options;
  options.paths = {Write("t.jsonl", line)};
  options.fields = {{"image", "p.file", {}, Picture()},
                    {"label", "m", {}, Picture(false, true)}};
  const auto data = OpenJsonl(options);
  ASSERT_TRUE(data.ok()) << data.status();
  LoaderOptions loading;
  loading.transforms = {transforms::RandomCrop{{2, 3}},
                        transforms::RandomHorizontalFlip{0.5f}};
  const auto loader = Loader::Create(*data, loading);
  ASSERT_TRUE(loader.ok()) << loader.status();
  EXPECT_EQ((*loader)->fields()[1].dtype, DType::kInt64);
  EXPECT_EQ((*loader)->fields()[1].shape, (Shape{1, 2, 3}));
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    ASSERT_TRUE((*loader)->StartEpoch(epoch).ok());
    const auto batch = (*loader)->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    const auto* pixels =
        reinterpret_cast<const uint8_t*>((*batch)->fields[0].data);
    const auto* classes =
        reinterpret_cast<const int64_t*>((*batch)->fields[1].data);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(pixels[3 * i], classes[i] + 1);
  }
  // Classes beyond those of the job, a mask of another size, two masks.
  options.fields[1].value.classes = 20;
  Record record;
  absl::Status status = (*OpenJsonl(options))->Read(0, &record);
  EXPECT_TRUE(
      absl::StrContains(status.message(),
                        "holds class 20 at row 2, column 0; the classes are 0 "
                        "to 19, or 255"))
      << status;
  Paint("m.png", 5, 6, 0);
  status = (*data)->Read(0, &record);
  EXPECT_TRUE(absl::StrContains(status.message(),
                                "the picture is 6 x 4 pixels; its mask in "
                                "field 'label' is 6 x 5"))
      << status;
  options.fields.push_back({"more", "m", {}, Picture(false, true)});
  status = Loader::Create(*OpenJsonl(options), {}).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "are both masks")) << status;
}

TEST_F(PictureRowsTest, PicturesOfARecordMoveTogether) {
  CsvDatasetOptions options;
  options.paths = {Write("pairs.csv", "from,to\nphotos/a.png,photos/b.png\n")};
  options.fields = {{"from", {"from"}, Picture(true)},
                    {"to", {"to"}, Picture(true)}};
  LoaderOptions loading;
  loading.transforms = {transforms::RandomCrop{{2, 2}},
                        transforms::RandomVerticalFlip{0.5f}};
  const auto loader = Loader::Create(*OpenCsv(options), loading);
  ASSERT_TRUE(loader.ok()) << loader.status();
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    ASSERT_TRUE((*loader)->StartEpoch(epoch).ok());
    const auto batch = (*loader)->Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    const auto* from =
        reinterpret_cast<const uint8_t*>((*batch)->fields[0].data);
    const auto* to = reinterpret_cast<const uint8_t*>((*batch)->fields[1].data);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(to[i] - from[i], 89);
  }
}

TEST_F(PictureRowsTest, WhatDoesNotGoTogether) {
  CsvDatasetOptions two = Csv("file,u,v\nphotos/a.png,1,2\n");
  two.fields[0].columns = {"file", "u"};
  EXPECT_TRUE(absl::StrContains(OpenCsv(two).status().message(),
                                "field 'image' has 2 columns; a picture has "
                                "one"));
  CsvDatasetOptions counted = Csv("file,u,v\nphotos/a.png,1,2\n");
  counted.fields[0].value.classes = 3;
  EXPECT_EQ(OpenCsv(counted).status().code(),
            absl::StatusCode::kInvalidArgument);
  CsvDatasetOptions hashed = Csv("file,u,v\nphotos/a.png,1,2\n");
  hashed.fields[0].value.hash_buckets = 3;
  EXPECT_EQ(OpenCsv(hashed).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(PictureRowsTest, FoldersOfPicturesAndMasks) {
  Paint("images/a.png", 4, 6, 100);
  Paint("images/deep/b.c.png", 3, 3, 0);
  Paint("masks/a.png", 4, 6, 0);
  Paint("masks/deep/b.c.png", 3, 3, 7);
  ImageMaskFolderOptions options;
  options.images = folder_ + "/images";
  options.masks = folder_ + "/masks";
  const auto data = OpenImageMaskFolder(options);
  ASSERT_TRUE(data.ok()) << data.status();
  ASSERT_EQ((*data)->size(), 2);
  EXPECT_EQ(Pixels(**data, 0, 0)[0], 100);
  EXPECT_EQ(Pixels(**data, 0, 1)[7], 11);
  EXPECT_EQ(Pixels(**data, 1, 1)[0], 7);

  Paint("images/lone.png", 3, 3, 0);
  const absl::Status bare = OpenImageMaskFolder(options).status();
  EXPECT_TRUE(absl::StrContains(bare.message(), "1 of 3 pictures") &&
              absl::StrContains(bare.message(), "'lone'"))
      << bare;
  Paint("masks/orphan.png", 3, 3, 0);
  options.skip_bad = true;
  const auto skipped = OpenImageMaskFolder(options);
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_EQ((*skipped)->size(), 2);
  EXPECT_EQ((*skipped)->left_out().count, 2);
  options.skip_bad = false;
  std::filesystem::remove(folder_ + "/images/lone.png");
  const absl::Status lone = OpenImageMaskFolder(options).status();
  EXPECT_TRUE(absl::StrContains(lone.message(), "1 of 3 masks") &&
              absl::StrContains(lone.message(), "'orphan'"))
      << lone;
  Write("images/a.jpg", "twice");
  EXPECT_EQ(OpenImageMaskFolder(options).status().code(),
            absl::StatusCode::kAlreadyExists);
}

}  // namespace test_picture_rows
}  // namespace pd
