// SPDX-License-Identifier: Apache-2.0
#include "formats/idx.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "libcore/base/file.h"
#include "tests/formats/hostile.h"

namespace pd {
namespace test_idx {

class IdxTest : public ::testing::Test {
 protected:
  ~IdxTest() override { std::remove(path_.c_str()); }
  absl::StatusOr<Array> Read(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
    return ReadIdx(path_);
  }
  std::string path_ =
      ::testing::TempDir() + "pd_idx_" + std::to_string(::getpid());
};

std::string Bytes(const std::vector<int>& values) {
  return std::string(values.begin(), values.end());
}

TEST_F(IdxTest, ReadsBytesAndBigEndianNumbers) {
  const auto bytes =
      Read(Bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6}));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->shape, (Shape{2, 3}));
  EXPECT_EQ(bytes->data<uint8_t>()[5], 6);
  const auto ints =
      Read(Bytes({0, 0, 12, 1, 0, 0, 0, 2, 0, 0, 1, 2, -1, -1, -1, -2}));
  ASSERT_TRUE(ints.ok()) << ints.status();
  EXPECT_EQ(ints->dtype, DType::kInt32);
  EXPECT_EQ(ints->data<int32_t>()[0], 258);
  EXPECT_EQ(ints->data<int32_t>()[1], -2);
}

TEST_F(IdxTest, SaysWhatIsWrong) {
  const auto message = [this](const std::string& bytes) {
    const auto array = Read(bytes);
    EXPECT_FALSE(array.ok());
    const std::string text(array.status().message());
    const std::string prefix = "'" + path_ + "': ";
    EXPECT_EQ(text.rfind(prefix, 0), 0u) << text;
    return text.substr(std::min(prefix.size(), text.size()));
  };
  EXPECT_EQ(message(""), "the file is empty; expected an idx file");
  EXPECT_EQ(message("abc"), "3 bytes are too few for an idx file");
  EXPECT_EQ(message("%PDF-1.5"),
            "magic number 0x25504446 is not that of an idx file");
  EXPECT_EQ(message(Bytes({0, 0, 8, 1, 0, 0, 0, 9, 1, 2})),
            "10 bytes; the header says [9], 17 bytes");
  const std::string huge = Bytes({0, 0, 14, 3}) + std::string(12, '\xff');
  EXPECT_FALSE(Read(huge).ok());
}

TEST_F(IdxTest, RefusesDamage) {
  const auto file = ReadFile(PD_TESTDATA "/mnist/t10k-labels-idx1-ubyte.gz");
  ASSERT_TRUE(file.ok());
  // The first bytes of a real file: every step through gzip's and idx's header.
  ForEachPrefix(file->view().substr(0, 300), [this](const std::string& bad) {
    EXPECT_FALSE(Read(bad).ok());
  });
  const std::string good =
      Bytes({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6});
  ForEachPrefix(
      good, [this](const std::string& bad) { EXPECT_FALSE(Read(bad).ok()); });
  int refused = 0;
  ForEachFlip(good,
              [&](const std::string& bad) { refused += !Read(bad).ok(); });
  // Of 18 bytes, 12 are header; a type of the same size passes.
  EXPECT_GE(refused, 34);
}

}  // namespace test_idx
}  // namespace pd
