// SPDX-License-Identifier: Apache-2.0
// Every tool that takes arrays holds them against what the model declares
// before it runs. The answers are PaddlePaddle's, of testdata/deploy.
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "absl/strings/match.h"
#include "cmd/check_naninf_run.h"
#include "cmd/eval_run.h"
#include "cmd/export_run.h"
#include "cmd/profile_run.h"
#include "cmd/quant_run.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"

namespace pd {
namespace test_cmd_feeds {

namespace fs = std::filesystem;

std::string Data(const std::string& name) {
  return std::string(PD_TESTDATA) + "/deploy/" + name;
}

std::string Scratch(const std::string& name) {
  const auto path = fs::path(PD_BINARY_DIR) / "test_scratch" / "feeds" / name;
  fs::create_directories(path.parent_path());
  return path.string();
}

NamedArrays LeNetFeed() {
  const auto feed = ReadNpz(Data("lenet-feed.npz"));
  EXPECT_TRUE(feed.ok()) << feed.status();
  return feed.ok() ? *feed : NamedArrays();
}

Array AsDoubles(const Array& array) {
  const std::vector<double> values(array.data<float>(),
                                   array.data<float>() + array.size());
  return MakeArray(array.shape, values);
}

// The path of an npz of these arrays.
std::string Written(const std::string& name, const NamedArrays& arrays) {
  const std::string path = Scratch(name);
  EXPECT_TRUE(WriteNpz(path, arrays).ok());
  return path;
}

struct Ended {
  absl::Status status;
  std::string log, out;
};

template <typename Run, typename Options>
Ended Captured(const Run& run, const Options& options) {
  Ended ended;
  std::ostringstream out;
  ::testing::internal::CaptureStderr();
  ended.status = run(options, out);
  ended.log = ::testing::internal::GetCapturedStderr();
  ended.out = out.str();
  return ended;
}

Ended Eval(const std::string& feed) {
  EvalOptions options;
  options.model = Data("lenet");
  options.feed = feed;
  options.out = Scratch("answers.npz");
  return Captured(RunEval, options);
}

Ended Profile(const std::string& feed) {
  ProfileOptions options;
  options.model = Data("lenet");
  options.feed = feed;
  options.roofline = 0;
  return Captured(RunProfile, options);
}

Ended CheckNaninf(const std::string& feed) {
  CheckNaninfOptions options;
  options.model = Data("lenet");
  options.feed = feed;
  return Captured(RunCheckNaninf, options);
}

Ended Quantize(const std::string& feed) {
  QuantOptions options;
  options.model = Data("lenet");
  options.calib = feed;
  options.algo = "abs_max";
  options.out = Scratch("quantized");
  return Captured(RunQuant, options);
}

Ended Export(const std::string& feed) {
  ExportOptions options;
  options.model = Data("lenet");
  options.out = Scratch("exported");
  options.verify = feed;
  return Captured(RunExport, options);
}

struct NamedTool {
  const char* name;
  Ended (*run)(const std::string& feed);
};

constexpr NamedTool kTools[] = {{"pd-eval", Eval},
                                {"pd-profile", Profile},
                                {"pd-check-naninf", CheckNaninf},
                                {"pd-quant", Quantize},
                                {"pd-export", Export}};

TEST(Feeds, DoublesOfNumPyAreConvertedWithANote) {
  NamedArrays feed = LeNetFeed();
  feed["x"] = AsDoubles(feed["x"]);
  const std::string path = Written("doubles.npz", feed);
  for (const NamedTool& tool : kTools) {
    SCOPED_TRACE(tool.name);
    const Ended ended = tool.run(path);
    EXPECT_TRUE(ended.status.ok()) << ended.status;
    EXPECT_TRUE(absl::StrContains(
        ended.log, "'" + path +
                       "': array 'x' is float64; converted to float32, which "
                       "the model declares"))
        << ended.log;
  }
  // The answers are those that PaddlePaddle gives for floats.
  const auto got = ReadNpz(Scratch("answers.npz"));
  const auto want = ReadNpz(Data("lenet-expect.npz"));
  ASSERT_TRUE(got.ok() && want.ok()) << got.status() << want.status();
  ASSERT_EQ(got->size(), 1u);
  const Array& answers = got->begin()->second;
  const Array& expected = want->at("out0");
  ASSERT_EQ(answers.shape, expected.shape);
  for (int64_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(answers.data<float>()[i], expected.data<float>()[i], 1e-3);
}

TEST(Feeds, AnotherShapeIsRefusedBeforeTheProgramRuns) {
  NamedArrays feed = LeNetFeed();
  feed["x"].shape = {5, 28, 28, 1};
  const std::string path = Written("shape.npz", feed);
  for (const NamedTool& tool : kTools) {
    const std::string message(tool.run(path).status.message());
    EXPECT_EQ(message,
              "'" + path +
                  "': array 'x' is float32[5, 28, 28, 1]; the model declares "
                  "float32[-1, 1, 28, 28]" +
                  (tool.run == Quantize ? "" : " (-1: any extent)"))
        << tool.name;
  }
}

TEST(Feeds, AnotherDtypeIsRefused) {
  NamedArrays feed = LeNetFeed();
  feed["x"] = MakeArray(feed["x"].shape, std::vector<int64_t>(5 * 28 * 28));
  const std::string path = Written("dtype.npz", feed);
  for (const NamedTool& tool : kTools) {
    const std::string message(tool.run(path).status.message());
    EXPECT_TRUE(absl::StrContains(
        message,
        "array 'x' is int64[5, 1, 28, 28]; the model declares float32"))
        << tool.name << ": " << message;
    EXPECT_TRUE(absl::StrContains(message, path)) << tool.name;
  }
}

TEST(Feeds, AMissingInputIsNamedWithWhatIsThere) {
  NamedArrays feed = LeNetFeed();
  auto x = feed.extract("x");
  x.key() = "image";
  feed.insert(std::move(x));
  const std::string path = Written("name.npz", feed);
  for (const NamedTool& tool : kTools) {
    if (tool.run == Quantize) continue;  // there the only array is the input
    const std::string message(tool.run(path).status.message());
    EXPECT_TRUE(absl::StrContains(
        message, "'" + path + "' has no array 'x', an input of '"))
        << tool.name << ": " << message;
    EXPECT_TRUE(absl::StrContains(message, "it holds 'image'")) << message;
  }
}

TEST(Feeds, WhatTheModelDoesNotKnowIsAWarning) {
  NamedArrays feed = LeNetFeed();
  feed["label"] = MakeArray<int64_t>({5}, {1, 2, 3, 4, 5});
  const Ended ended = Eval(Written("more.npz", feed));
  EXPECT_TRUE(ended.status.ok()) << ended.status;
  EXPECT_TRUE(absl::StrContains(ended.log, "holds 'label', which '"))
      << ended.log;
}

// A gradient by a value that is behind the one asked about.
TEST(Programs, AGradientThatIsNotThereNamesTheFile) {
  const auto program = ReadProgram(Data("lenet.pdmodel"));
  ASSERT_TRUE(program.ok()) << program.status();
  std::vector<std::string> made;
  for (const OpDesc& op : program->global().ops)
    if (op.type != "feed" && op.type != "fetch")
      made.push_back(op.outputs[0].second[0]);
  EvalOptions eval;
  eval.model = Data("lenet");
  eval.feed = Data("lenet-feed.npz");
  eval.grads = {made.front()};
  eval.wrt = {made.back()};
  const absl::Status status = Captured(RunEval, eval).status;
  EXPECT_TRUE(absl::StrContains(status.message(), "does not depend on"))
      << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "lenet.pdmodel'")) << status;
}

// Errors inside of a program name the program's file.
TEST(Programs, ErrorsNameTheFile) {
  const auto good = ReadProgram(Data("lenet.pdmodel"));
  ASSERT_TRUE(good.ok()) << good.status();
  const std::string feed = Written("good.npz", LeNetFeed());
  // How many of five runs fail; each that does names the file.
  const auto damaged = [&](const char* type, const auto& change) {
    int refused = 0;
    ProgramDesc program = *good;
    for (OpDesc& op : program.global().ops)
      if (op.type == type) {
        change(&op);
        break;
      }
    const std::string prefix = Scratch("damaged");
    EXPECT_TRUE(WriteProgram(prefix + ".pdmodel", program).ok());
    fs::copy_file(Data("lenet.pdiparams"), prefix + ".pdiparams",
                  fs::copy_options::overwrite_existing);
    EvalOptions eval;
    eval.model = prefix;
    eval.feed = feed;
    EvalOptions bench;
    bench.model = prefix;
    bench.bench = 0.01;
    ProfileOptions profile;
    profile.model = prefix;
    profile.feed = feed;
    profile.roofline = 0;
    CheckNaninfOptions nan;
    nan.model = prefix;
    nan.feed = feed;
    ExportOptions onnx;
    onnx.model = prefix;
    onnx.to = "onnx";
    onnx.out = Scratch("damaged.onnx");
    for (const absl::Status& status :
         {Captured(RunEval, eval).status, Captured(RunEval, bench).status,
          Captured(RunProfile, profile).status,
          Captured(RunCheckNaninf, nan).status,
          Captured(RunExport, onnx).status}) {
      if (status.ok()) continue;
      ++refused;
      EXPECT_TRUE(
          absl::StrContains(status.message(), "'" + prefix + ".pdmodel'"))
          << status;
    }
    return refused;
  };
  EXPECT_EQ(damaged("conv2d", [](OpDesc* op) { op->type = "conv2_d"; }), 5);
  EXPECT_EQ(damaged("conv2d", [](OpDesc* op) { op->SetInput("Filter", {}); }),
            5);
  // ONNX has no default to take in its place.
  EXPECT_GE(
      damaged("conv2d",
              [](OpDesc* op) { op->attrs["strides"] = std::string("2"); }),
      1);
  EXPECT_EQ(
      damaged("conv2d", [](OpDesc* op) { op->SetInput("Input", {"nobody"}); }),
      5);
  // Read before it is written.
  EXPECT_EQ(
      damaged("conv2d",
              [](OpDesc* op) { op->SetInput("Input", {op->Out("Output")}); }),
      5);
}

}  // namespace test_cmd_feeds
}  // namespace pd
