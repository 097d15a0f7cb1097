// SPDX-License-Identifier: Apache-2.0
// Gives every fuzz target its corpus: what fuzzing found, in
// testdata/fuzz/<target>, and the files of testdata that it starts from.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "formats/format_table.h"
#include "tests/formats/format_test.h"
#include "tests/fuzz/fuzz_target.h"

namespace pd {
namespace {

namespace fs = std::filesystem;
using testing::HeapBytes;
using testing::MustRead;

constexpr uint64_t kMostBytes = 1 << 20;

int Replay(const std::string& folder, const fuzz::Target& target) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.file_size() > kMostBytes) continue;
    SCOPED_TRACE(entry.path().string());
    // On the heap, so that a sanitizer sees reads behind the end.
    target(HeapBytes(MustRead(entry.path().string()).view()));
    ++files;
  }
  return files;
}

TEST(FuzzReplay, EveryTargetComesBackFromItsCorpus) {
  const std::string testdata = PD_TESTDATA;
  for (const auto& [name, target] : fuzz::Targets()) {
    SCOPED_TRACE(name);
    const std::string own = absl::StrCat(testdata, "/fuzz/", name);
    if (fs::exists(own)) EXPECT_GT(Replay(own, target), 0);
    for (const char* seeds : {"malformed", "models", "numpy", "onnx", "pickles",
                              "safetensors", "streams", "torch"})
      EXPECT_GT(Replay(absl::StrCat(testdata, "/formats/", seeds), target), 0);
    for (const char* networks :
         {"/caffe", "/keras", "/tflite", "/torch_export", "/torch_script",
          "/tensorflow", "/tensorflow/v1", "/tensorflow/v1/variables"})
      EXPECT_GT(Replay(testdata + networks, target), 0);
    EXPECT_GT(Replay(testdata + "/images", target), 0);
    EXPECT_GT(Replay(testdata + "/datasets/formats", target), 0);
  }
}

// A format's name is its target's. Of some the name is all that is read, and
// text has a target for each way to read it (csv, json_line, libsvm).
TEST(FuzzReplay, EveryFormatHasATarget) {
  const std::set<absl::string_view> not_read = {"zip", "json", "text"};
  for (const FileFormat& format : FileFormats()) {
    const std::string name = absl::StrReplaceAll(format.name, {{" ", "_"}});
    EXPECT_EQ(fuzz::Targets().count(name), 1 - not_read.count(format.name))
        << name;
  }
  EXPECT_GE(fuzz::Targets().size(), FileFormats().size());
}

}  // namespace
}  // namespace pd
