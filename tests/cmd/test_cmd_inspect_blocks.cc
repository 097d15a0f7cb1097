// SPDX-License-Identifier: Apache-2.0
// pd-convert --inspect of arrays that are read block by block: the numbers are
// those of the whole array, and a file of 400 kB takes no 400 MB of memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <complex>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "cmd/convert_run.h"
#include "formats/gzip.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "libcore/base/file.h"
#include "libcore/tensor/tensor_stats.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_cmd_inspect_blocks {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::TestData;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::string Scratch(const std::string& name) {
  const auto path = fs::path(PD_BINARY_DIR) / "test_scratch" / "blocks" / name;
  fs::create_directories(path.parent_path());
  return path.string();
}

absl::Status Inspected(const std::string& path, const std::string& format,
                       std::string* output) {
  ConvertOptions options;
  options.inspect = path;
  options.common.format = format;
  std::ostringstream out;
  const absl::Status status = RunConvert(options, out);
  *output = out.str();
  return status;
}

Json InspectJson(const std::string& path) {
  std::string output;
  const absl::Status status = Inspected(path, "json", &output);
  EXPECT_TRUE(status.ok()) << path << ": " << status;
  return Json::parse(output, nullptr, false);
}

// The same values as .npy, which is one array, and as .npz, which is read block
// by block.
template <typename T>
void ExpectSameStats(const std::vector<T>& values) {
  const auto n = static_cast<int64_t>(values.size());
  const std::string npy = Scratch("values.npy"), path = Scratch("values.npz");
  ASSERT_TRUE(WriteNpy(npy, MakeArray({n}, values)).ok());
  Json whole = InspectJson(npy)["tensors"][0];
  ASSERT_TRUE(WriteNpz(path, {{"b", MakeArray({n}, values)},
                              {"a", MakeArray<float>({0}, {})}})
                  .ok());
  const Json blocks = InspectJson(path)["tensors"];
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_EQ(blocks[0]["name"], "a");
  EXPECT_EQ(blocks[0]["bytes"], 0);
  EXPECT_TRUE(blocks[0]["min"].is_null());
  whole["name"] = "b";
  EXPECT_EQ(blocks[1], whole);
}

TEST(Inspect, BlocksDoNotShow) {
  std::vector<float> floats(2 * kStatsBlock + 17);
  for (size_t i = 0; i < floats.size(); ++i)
    floats[i] = std::sin(static_cast<float>(i)) * 1e3f;
  floats.back() = NAN;
  floats[7] = -INFINITY;
  ExpectSameStats(floats);
  ExpectSameStats(std::vector<double>(floats.begin(), floats.end()));
  ExpectSameStats(std::vector<std::complex<float>>(kStatsBlock + 1, {NAN, 1}));
  const double huge = 1.5e308;
  ASSERT_TRUE(
      WriteNpz(Scratch("huge.npz"),
               {{"x", MakeArray<double>({4}, {huge, huge, kInf, huge})}})
          .ok());
  const Json x = InspectJson(Scratch("huge.npz"))["tensors"][0];
  EXPECT_NEAR(x["mean"].get<double>() / huge, 1.0, 1e-15);
}

long PeakKilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// 400 MB of zeros, which zip and gzip pack into 400 kB.
TEST(Inspect, ZerosThatAreFarLargerThanTheirFileTakeNoMemory) {
  struct Packed {
    const char *file, *dtype;
    Shape shape;
  };
  for (const Packed& packed :
       {Packed{"zeros.npz", "float32", {100, 1000, 1000}},
        Packed{"zeros-idx3-ubyte.gz", "uint8", {1000, 400, 1000}}}) {
    const auto unpacked =
        ReadFileGunzip(TestData(std::string("packed/") + packed.file + ".gz"));
    ASSERT_TRUE(unpacked.ok()) << unpacked.status();
    const std::string path = Scratch(packed.file);
    ASSERT_TRUE(WriteFile(path, unpacked->view()).ok());
    const long before = PeakKilobytes();
    const Json tensor = InspectJson(path)["tensors"][0];
    EXPECT_LT(PeakKilobytes() - before, 128 * 1024) << path;
    EXPECT_EQ(tensor["dtype"], packed.dtype);
    EXPECT_EQ(tensor["shape"], Json(packed.shape));
    EXPECT_EQ(tensor["bytes"], 400000000);
    EXPECT_EQ(tensor["min"], 0);
    EXPECT_EQ(tensor["max"], 0);
    EXPECT_EQ(tensor["mean"], 0);
  }
}

TEST(Inspect, DamageInsideOfABlockIsFound) {
  const auto unpacked = ReadFileGunzip(TestData("packed/zeros.npz.gz"));
  ASSERT_TRUE(unpacked.ok()) << unpacked.status();
  std::string bytes(unpacked->view());
  bytes[bytes.size() / 2] ^= 0x10;
  ASSERT_TRUE(WriteFile(Scratch("damaged.npz"), bytes).ok());
  std::string output;
  const absl::Status status =
      Inspected(Scratch("damaged.npz"), "json", &output);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(absl::StrContains(status.message(), "damaged.npz")) << status;
}

TEST(Inspect, NamesThatCommandATerminalAreEscaped) {
  const std::string path = Scratch("names.npz");
  ASSERT_TRUE(WriteNpz(path, {{"a\xc2\x9b"
                               "2Jb",
                               MakeArray<float>({1}, {1})}})
                  .ok());
  std::string text;
  ASSERT_TRUE(Inspected(path, "text", &text).ok());
  EXPECT_TRUE(absl::StrContains(text, "a\\xc2\\x9b2Jb")) << text;
}

}  // namespace test_cmd_inspect_blocks
}  // namespace pd
