// SPDX-License-Identifier: Apache-2.0
#include "formats/cifar.h"

#include <unistd.h>

#include <cstdio>
#include <string>

#include "gtest/gtest.h"
#include "libcore/base/file.h"

namespace pd {
namespace test_cifar {

class CifarTest : public ::testing::Test {
 protected:
  ~CifarTest() override { std::remove(path_.c_str()); }
  absl::StatusOr<CifarFile> Read(const std::string& bytes,
                                 int64_t label_bytes) const {
    EXPECT_TRUE(WriteFile(path_, bytes).ok());
    return ReadCifar(path_, label_bytes);
  }
  std::string path_ =
      ::testing::TempDir() + "pd_cifar_" + std::to_string(::getpid());
};

TEST_F(CifarTest, ReadsRecords) {
  std::string bytes;
  for (int record = 0; record < 3; ++record)
    bytes += static_cast<char>(record + 4) +
             std::string(3072, static_cast<char>('a' + record));
  const auto file = Read(bytes, 1);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->records, 3);
  EXPECT_EQ(file->labels(2)[0], 6);
  EXPECT_EQ(file->planes(2)[3071], 'c');
}

TEST_F(CifarTest, RefusesPartsOfRecords) {
  EXPECT_FALSE(Read("", 1).ok());
  EXPECT_FALSE(Read(std::string(3072, 'a'), 1).ok());
  EXPECT_TRUE(Read(std::string(3073, 'a'), 1).ok());
  EXPECT_FALSE(Read(std::string(3073, 'a'), 2).ok());
  EXPECT_TRUE(Read(std::string(3074, 'a'), 2).ok());
  EXPECT_FALSE(Read("\x1f\x8b broken", 1).ok());
}

}  // namespace test_cifar
}  // namespace pd
