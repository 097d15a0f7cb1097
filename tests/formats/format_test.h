// SPDX-License-Identifier: Apache-2.0
// Helpers of the tests of formats: test data, comparison of arrays, and damage
// done to a file byte by byte.
#ifndef PD_TESTS_FORMATS_FORMAT_TEST_H_
#define PD_TESTS_FORMATS_FORMAT_TEST_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd::testing {

inline std::string TestData(const std::string& name) {
  return absl::StrCat(PD_TESTDATA, "/formats/", name);
}

/// A path for a file that this test program writes.
inline std::string Scratch(const std::string& name) {
  const auto folder =
      std::filesystem::path(PD_BINARY_DIR) / "test_scratch" / "formats";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

inline FileBytes MustRead(const std::string& path) {
  auto file = ReadFile(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *file : FileBytes();
}

/// Bytes on the heap with nothing behind them, for a sanitizer to see.
inline FileBytes HeapBytes(absl::string_view bytes) {
  auto* copy = new std::byte[bytes.size()];
  std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(),
              copy);
  return {std::shared_ptr<const std::byte>(
              copy, [](const std::byte* p) { delete[] p; }),
          bytes.size()};
}

inline void ExpectSameArray(const Array& got, const Array& want,
                            const std::string& name) {
  ASSERT_EQ(got.dtype, want.dtype) << name;
  ASSERT_EQ(got.shape, want.shape) << name;
  if (want.size_bytes() > 0)
    EXPECT_EQ(std::memcmp(got.bytes.get(), want.bytes.get(), want.size_bytes()),
              0)
        << name;
}

inline void ExpectSameFiles(const std::string& got, const std::string& want) {
  const FileBytes a = MustRead(got), b = MustRead(want);
  EXPECT_TRUE(a.view() == b.view()) << got << " differs from " << want;
}

/// The files of a folder of the test data whose names start with `prefix`.
inline std::vector<std::string> FilesOf(const std::string& folder,
                                        const std::string& prefix) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(TestData(folder)))
    if (entry.path().filename().string().rfind(prefix, 0) == 0)
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  EXPECT_FALSE(files.empty()) << folder << "/" << prefix;
  return files;
}

/// Calls `read` with every prefix of the bytes and with every byte changed in
/// three ways: whatever it answers, it must come back.
template <typename Read>
void ForEveryDamage(absl::string_view bytes, const Read& read) {
  for (size_t size = 0; size < bytes.size(); ++size)
    read(HeapBytes(bytes.substr(0, size)));
  std::string damaged(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      damaged[i] = static_cast<char>(bytes[i] ^ flip);
      read(HeapBytes(damaged));
    }
    damaged[i] = bytes[i];
  }
}

}  // namespace pd::testing

#endif  // PD_TESTS_FORMATS_FORMAT_TEST_H_
