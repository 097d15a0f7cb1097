// SPDX-License-Identifier: Apache-2.0
// Files of SciPy and a big-endian one that SciPy reads alike.
#include "formats/mat.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_mat {

FileBytes File(const std::string& name) {
  return testing::MustRead(PD_TESTDATA "/datasets/formats/" + name);
}

void Expect(const NamedArrays& arrays, const std::string& name,
            const Shape& shape, const std::vector<double>& values) {
  ASSERT_EQ(arrays.count(name), 1u) << name;
  testing::ExpectSameArray(arrays.at(name), MakeArray<double>(shape, values),
                           name);
}

TEST(Mat, NumbersOfEveryKind) {
  for (const char* name : {"plain.mat", "packed.mat"}) {
    const auto arrays = ParseMat(File(name));
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    EXPECT_EQ(arrays->size(), 5u);  // not the text, not the complex numbers
    Expect(*arrays, "bytes", {2, 3}, {0, 1, 2, 3, 4, 5});
    Expect(*arrays, "words", {1, 2}, {300, 7});
    Expect(*arrays, "doubles", {2, 1}, {1.5, -2e300});
    Expect(*arrays, "signed", {1, 2}, {-5, 5});
    std::vector<double> cube(24);
    for (size_t i = 0; i < cube.size(); ++i) cube[i] = static_cast<double>(i);
    Expect(*arrays, "cube", {2, 3, 4}, cube);
  }
  const auto arrays = ParseMat(File("big_endian.mat"));
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  Expect(*arrays, "x", {1, 3}, {1, 2, 500});
}

TEST(Mat, OtherFiles) {
  const auto message = [](const std::string& bytes) {
    return std::string(ParseMat(testing::HeapBytes(bytes)).status().message());
  };
  EXPECT_EQ(message("MATLAB"),
            "a .mat file's header takes 128 bytes; 6 are there");
  EXPECT_TRUE(absl::StrContains(message(std::string(200, 'x')),
                                "not a .mat file of version 5"));
  std::string bytes(File("plain.mat").view());
  bytes[125] = 2;
  bytes[124] = 0;
  EXPECT_TRUE(absl::StrContains(message(bytes), "HDF5"));
  bytes = std::string(File("packed.mat").view());
  EXPECT_TRUE(
      absl::StrContains(message(bytes.substr(0, 170)), "an element takes"));
  bytes[150] = static_cast<char>(bytes[150] ^ 0xff);
  EXPECT_TRUE(absl::StrContains(message(bytes), "damaged"));
}

TEST(Mat, ComesBackFromAnyDamage) {
  for (const char* name : {"plain.mat", "packed.mat", "big_endian.mat"}) {
    testing::ForEveryDamage(File(name).view(), [](const FileBytes& file) {
      ParseMat(file).status().IgnoreError();
    });
  }
}

}  // namespace test_mat
}  // namespace pd
