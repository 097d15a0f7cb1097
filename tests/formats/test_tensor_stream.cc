// SPDX-License-Identifier: Apache-2.0
#include "formats/tensor_stream.h"

#include "formats/npz.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_tensor_stream {

using testing::ExpectSameArray;
using testing::ExpectSameFiles;
using testing::FilesOf;
using testing::HeapBytes;
using testing::MustRead;
using testing::Scratch;
using testing::TestData;

std::string Stem(const std::string& path) {
  return std::filesystem::path(path).stem().string();
}

TEST(TensorStream, ReadsAndWritesPaddlePaddlesFiles) {
  auto want = ReadNpz(TestData("numpy/binary_dtypes.npz"));
  ASSERT_TRUE(want.ok()) << want.status();
  auto with_lod = ReadNpz(TestData("numpy/lod_streams.npz"));
  ASSERT_TRUE(with_lod.ok()) << with_lod.status();
  want->insert(with_lod->begin(), with_lod->end());
  size_t compared = 0;
  for (const std::string& path : FilesOf("streams", "")) {
    if (path.find(".pdtensor") == std::string::npos || Stem(path) == "rows")
      continue;
    auto array = ReadTensor(path);
    ASSERT_TRUE(array.ok()) << array.status();
    if (want->count(Stem(path)) > 0) {
      ExpectSameArray(*array, want->at(Stem(path)), path);
      ++compared;
    }
    ASSERT_TRUE(WriteTensor(Scratch("one.pdtensor"), *array).ok());
    ExpectSameFiles(Scratch("one.pdtensor"), path);
  }
  EXPECT_EQ(compared, want->size());
}

TEST(TensorStream, KeepsLevels) {
  auto array = ReadTensor(TestData("streams/lod2.pdtensor"));
  ASSERT_TRUE(array.ok());
  ASSERT_EQ(array->lod.size(), 2u);
  EXPECT_EQ(array->lod[1].back(), 7u);
  EXPECT_EQ(array->lod[0].back() + 1, array->lod[1].size());
}

TEST(TensorStream, ReadsAndWritesJointFiles) {
  auto want = ReadNpz(TestData("numpy/inference.npz"));
  ASSERT_TRUE(want.ok());
  std::vector<std::string> names;
  for (const auto& [name, array] : *want) names.push_back(name);
  const std::string path = TestData("models/inference.pdiparams");
  auto arrays = ReadTensors(path, names);
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  for (const auto& [name, array] : *want)
    ExpectSameArray(arrays->at(name), array, name);
  ASSERT_TRUE(WriteTensors(Scratch("joint"), *arrays).ok());
  ExpectSameFiles(Scratch("joint"), path);
  auto list = ParseTensorList(MustRead(path));
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->size(), want->size());

  names.push_back("one.more");
  EXPECT_EQ(ReadTensors(path, names).status().message(),
            absl::StrCat("'", path,
                         "': it holds 8 tensors; the names are 9, 'one.more' "
                         "the first without one"));
  names.resize(7);
  EXPECT_FALSE(ReadTensors(path, names).ok());
}

TEST(TensorStream, ReadsAndWritesSelectedRows) {
  const std::string path = TestData("streams/rows.pdtensor");
  auto rows = ReadSelectedRows(path);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->rows, (std::vector<int64_t>{0, 4, 9, 4}));
  EXPECT_EQ(rows->height, 12);
  ASSERT_TRUE(WriteSelectedRows(Scratch("rows"), *rows).ok());
  ExpectSameFiles(Scratch("rows"), path);
  EXPECT_FALSE(
      ReadSelectedRows(TestData("malformed/rows_count_huge.pdtensor")).ok());
}

TEST(TensorStream, RefusesMalformedFiles) {
  for (const std::string& path : FilesOf("malformed", "stream_"))
    EXPECT_FALSE(ReadTensor(path).ok()) << path;
  EXPECT_EQ(ReadTensor(TestData("malformed/stream_lod_not_monotonic.pdtensor"))
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ParseTensorList(
                   MustRead(TestData("malformed/params_cut_third.pdiparams")))
                   .ok());
}

TEST(TensorStream, ChecksLevels) {
  EXPECT_TRUE(CheckLoD({{0, 2}, {0, 1, 5}}, 5).ok());
  EXPECT_TRUE(CheckLoD({{0, 0, 3}}, 3).ok());
  EXPECT_FALSE(CheckLoD({{0, 3}, {0, 1, 5}}, 5).ok());
  EXPECT_FALSE(CheckLoD({{0, 2}}, 3).ok());
  EXPECT_FALSE(CheckLoD({{1, 3}}, 3).ok());
  EXPECT_FALSE(CheckLoD({{}}, 0).ok());
}

TEST(TensorStream, SurvivesDamage) {
  for (const char* name : {"streams/lod3.pdtensor", "streams/bool.pdtensor"})
    testing::ForEveryDamage(MustRead(TestData(name)).view(),
                            [](const FileBytes& file) {
                              ParseTensor(file).status().IgnoreError();
                              ParseTensorList(file).status().IgnoreError();
                            });
  testing::ForEveryDamage(MustRead(TestData("streams/rows.pdtensor")).view(),
                          [](const FileBytes& file) {
                            ParseSelectedRows(file).status().IgnoreError();
                          });
}

}  // namespace test_tensor_stream
}  // namespace pd
