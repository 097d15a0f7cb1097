// SPDX-License-Identifier: Apache-2.0
// Detectors read from ONNX files give ONNX Runtime's boxes, whether extents are
// known when a file is read or only when it runs: how many pictures there are,
// how many regions the first stage of Faster R-CNN finds, how many boxes are
// left, none included. Single nodes have what detectors seldom do: boxes
// without area, corners in any order, thresholds that are inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "formats/onnx_file.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/exec/session.h"
#include "tests/ops/compare.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_onnx_detection {

namespace fs = std::filesystem;

constexpr char kFolder[] = PD_TESTDATA "/onnx_detection";

struct DetectionCase {
  NamedArrays feeds, want;
};

absl::StatusOr<DetectionCase> ReadCase(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const NamedArrays arrays, ReadNpz(path));
  DetectionCase one;
  for (const auto& [name, array] : arrays) {
    const size_t colon = name.find(':');
    (name.substr(0, colon) == "feed" ? one.feeds
                                     : one.want)[name.substr(colon + 1)] =
        array;
  }
  return one;
}

void ExpectAnswers(const InferenceModel& model, const DetectionCase& one) {
  Session session(&Registry());
  for (const auto& [name, value] : model.params)
    ASSERT_TRUE(session.scope().Set(name, value).ok());
  const auto answers =
      session.Run(model.program, one.feeds, model.names.fetches);
  ASSERT_TRUE(answers.ok()) << answers.status();
  for (const auto& [name, want] : one.want) {
    ASSERT_EQ(answers->count(name), 1u) << name;
    EXPECT_EQ(Difference(answers->at(name), want, 1e-5, 1e-5), "") << name;
  }
}

// The cases of NAME.onnx are NAME.CASE.npz.
size_t ExpectFile(const std::string& name) {
  const auto bytes = ReadFile(absl::StrCat(kFolder, "/", name, ".onnx"));
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (!bytes.ok()) return 0;
  const auto file = ParseOnnx(bytes->view(), "");
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return 0;
  const auto open = FromOnnx(Registry(), *file);
  EXPECT_TRUE(open.ok()) << name << ": " << open.status();
  size_t cases = 0;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string path = entry.path().string();
    if (!absl::StartsWith(entry.path().filename().string(), name + ".") ||
        entry.path().extension() != ".npz")
      continue;
    SCOPED_TRACE(path);
    const auto one = ReadCase(path);
    EXPECT_TRUE(one.ok()) << one.status();
    if (!one.ok()) continue;
    ++cases;
    if (open.ok()) ExpectAnswers(*open, *one);
    OnnxKnownInputs known;
    for (const auto& [input, array] : one->feeds)
      known.shapes[input] = array.shape;
    const auto closed = FromOnnx(Registry(), *file, known);
    EXPECT_TRUE(closed.ok()) << closed.status();
    if (closed.ok()) ExpectAnswers(*closed, *one);
  }
  return cases;
}

TEST(OnnxDetection, Networks) {
  EXPECT_EQ(ExpectFile("yolov3"), 3u);
  EXPECT_EQ(ExpectFile("ssd"), 3u);
  EXPECT_EQ(ExpectFile("faster_rcnn"), 3u);
}

TEST(OnnxDetection, NonMaxSuppression) {
  EXPECT_EQ(ExpectFile("nms"), 6u);
  EXPECT_EQ(ExpectFile("nms_by_centre"), 4u);
  EXPECT_EQ(ExpectFile("nms_least_given"), 4u);
}

TEST(OnnxDetection, IndicesAndRegions) {
  EXPECT_EQ(ExpectFile("put"), 2u);
  EXPECT_EQ(ExpectFile("roi_align"), 2u);
}

}  // namespace test_onnx_detection
}  // namespace pd
