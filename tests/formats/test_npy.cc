// SPDX-License-Identifier: Apache-2.0
#include "formats/npy.h"

#include "formats/npz.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_npy {

using testing::ExpectSameArray;
using testing::ExpectSameFiles;
using testing::HeapBytes;
using testing::MustRead;
using testing::Scratch;
using testing::TestData;

Array MustParse(const std::string& name) {
  auto array = ReadNpy(TestData("numpy/" + name));
  EXPECT_TRUE(array.ok()) << array.status();
  return array.ok() ? *array : Array();
}

TEST(Npy, WritesNumpysBytesBack) {
  for (const char* name : {"lf4C.npy", "boolC.npy"}) {
    ASSERT_TRUE(WriteNpy(Scratch(name), MustParse(name)).ok());
    ExpectSameFiles(Scratch(name), TestData(std::string("numpy/") + name));
  }
}

TEST(Npy, ReadsVersions2And3) {
  const Array want = MakeArray<float>({2, 3}, {0, 1, 2, 3, 4, 5});
  ExpectSameArray(MustParse("v2.npy"), want, "version 2");
  ExpectSameArray(MustParse("v3.npy"), want, "version 3");
}

TEST(Npy, ReadsTwoRawBytesAsBFloat16) {
  const Array array = MustParse("V2.npy");
  ASSERT_EQ(array.dtype, DType::kBFloat16);
  EXPECT_EQ(static_cast<float>(array.data<BFloat16>()[0]), 1.0f);
}

// A [2, 3] array in Fortran order and big endian, written out by hand.
TEST(Npy, TurnsOrderAndEndianness) {
  const std::string dict =
      "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
  std::string bytes = absl::StrCat(
      kNpyMagic, std::string("\x01\x00", 2),
      std::string(1, static_cast<char>(dict.size())), std::string(1, '\0'),
      dict, std::string("\0\1\0\4\0\2\0\5\0\3\0\6", 12));
  auto array = ParseNpy(HeapBytes(bytes));
  ASSERT_TRUE(array.ok()) << array.status();
  ExpectSameArray(*array, MakeArray<int16_t>({2, 3}, {1, 2, 3, 4, 5, 6}), "");
}

TEST(Npy, IsAViewWhereItCan) {
  const FileBytes file = MustRead(TestData("numpy/lf4C.npy"));
  auto array = ParseNpy(file);
  ASSERT_TRUE(array.ok());
  EXPECT_GE(array->bytes.get(), file.data.get());
  EXPECT_LT(array->bytes.get(), file.data.get() + file.size);
}

TEST(Npy, RefusesWhatIsNoArrayOfNumbers) {
  using absl::StatusCode;
  const auto code = [](const std::string& name) {
    return ReadNpy(TestData(name)).status().code();
  };
  EXPECT_EQ(code("numpy/obj.npy"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("numpy/str.npy"), StatusCode::kUnimplemented);
  EXPECT_EQ(code("numpy/rec.npy"), StatusCode::kUnimplemented);
  EXPECT_EQ(code("numpy/u4.npy"), StatusCode::kUnimplemented);
  EXPECT_EQ(code("malformed/npy_object.npy"), StatusCode::kInvalidArgument);
  EXPECT_EQ(code("malformed/npy_header_beyond.npy"), StatusCode::kDataLoss);
  EXPECT_EQ(code("malformed/npy_shape_huge.npy"), StatusCode::kOutOfRange);
}

TEST(Npy, SurvivesDamage) {
  for (const char* name : {"lf4F.npy", "boolC.npy", "v2.npy"})
    testing::ForEveryDamage(
        MustRead(TestData(std::string("numpy/") + name)).view(),
        [](const FileBytes& file) { ParseNpy(file).status().IgnoreError(); });
}

TEST(Npz, ReadsEveryElementTypeStoredAndDeflated) {
  auto stored = ReadNpz(TestData("numpy/all.npz"));
  auto deflated = ReadNpz(TestData("numpy/allz.npz"));
  ASSERT_TRUE(stored.ok()) << stored.status();
  ASSERT_TRUE(deflated.ok()) << deflated.status();
  ASSERT_EQ(stored->size(), 39u);
  ASSERT_EQ(deflated->size(), 39u);
  for (const auto& [name, array] : *stored)
    ExpectSameArray(deflated->at(name), array, name);
  // "lf4C" and "lf4F" are little-endian float32 in C and Fortran order.
  for (const char* name : {"lf4", "lf8", "bf4", "li2", "bi4", "lc16", "bc8"}) {
    const Array& c = stored->at(absl::StrCat(name, "C"));
    ASSERT_EQ(c.shape, (Shape{2, 3, 4}));
    EXPECT_EQ(stored->at(absl::StrCat(name, "F")).shape, c.shape);
  }
  ExpectSameArray(stored->at("lf4F"), MustParse("lf4F.npy"), "lf4F");
  ExpectSameArray(stored->at("bc8C"), MustParse("bc8C.npy"), "bc8C");
  EXPECT_EQ(stored->at("bf").dtype, DType::kBFloat16);
  EXPECT_EQ(stored->count("\xe5\x90\x8d"), 1u);
}

TEST(Npz, GivesBackWhatItWrote) {
  auto arrays = ReadNpz(TestData("numpy/all.npz"));
  ASSERT_TRUE(arrays.ok());
  const std::string path = Scratch("all.npz");
  ASSERT_TRUE(WriteNpz(path, *arrays).ok());
  auto again = ReadNpz(path);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->size(), arrays->size());
  for (const auto& [name, array] : *arrays)
    ExpectSameArray(again->at(name), array, name);
  const std::string twin = Scratch("twin.npz");
  ASSERT_TRUE(WriteNpz(twin, *arrays).ok());
  ExpectSameFiles(twin, path);
}

TEST(Npz, TakesAnEmptyOne) {
  auto arrays = ReadNpz(TestData("numpy/empty.npz"));
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  EXPECT_TRUE(arrays->empty());
  ASSERT_TRUE(WriteNpz(Scratch("empty.npz"), {}).ok());
  ASSERT_TRUE(ReadNpz(Scratch("empty.npz")).ok());
}

TEST(Npz, SaysWhichEntryIsDamaged) {
  EXPECT_EQ(ReadNpz(TestData("malformed/npz_cut.npz")).status().code(),
            absl::StatusCode::kDataLoss);
  std::string bytes(MustRead(TestData("numpy/foreign.npz")).view());
  bytes[100] = static_cast<char>(bytes[100] ^ 1);
  const auto status = ParseNpz(HeapBytes(bytes)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("entry 'w.npy'"), std::string::npos)
      << status;
}

// Sizes in the zip's directory that the packed bytes cannot hold.
TEST(Npz, RefusesClaimsBeyondDeflate) {
  std::string bytes(MustRead(TestData("numpy/bomb.npz")).view());
  const size_t entry = bytes.rfind("PK\x01\x02");
  ASSERT_NE(entry, std::string::npos);
  const uint32_t claim = 0xf0000000;
  std::memcpy(&bytes[entry + 24], &claim, sizeof(claim));
  EXPECT_FALSE(ParseNpz(HeapBytes(bytes)).ok());
}

TEST(Npz, SurvivesDamage) {
  testing::ForEveryDamage(
      MustRead(TestData("numpy/foreign.npz")).view(),
      [](const FileBytes& file) { ParseNpz(file).status().IgnoreError(); });
}

}  // namespace test_npy
}  // namespace pd
