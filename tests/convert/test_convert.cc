// SPDX-License-Identifier: Apache-2.0
// From every form to every other and back. The files were written by
// PaddlePaddle and numpy; what they hold is compared with them byte by byte.
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "formats/safetensors.h"
#include "libcore/base/status_macros.h"
#include "libcore/convert/write.h"
#include "libcore/model/tree.h"
#include "libcore/program/match_params.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_convert {

namespace fs = std::filesystem;
using testing::ExpectSameArray;
using testing::ExpectSameFiles;
using testing::FilesOf;
using testing::TestData;

std::string Scratch(const std::string& name) {
  const auto path = fs::path(PD_BINARY_DIR) / "test_scratch" / "any" / name;
  fs::create_directories(path.parent_path());
  return path.string();
}

absl::Status Convert(const std::string& in, const std::string& out,
                     const std::string& to = "",
                     const WriteOptions& options = WriteOptions(),
                     const std::string& names = "") {
  PD_ASSIGN_OR_RETURN(Content content, ReadContent(in, ReadOptions()));
  PD_ASSIGN_OR_RETURN(const Target target, to.empty()
                                               ? TargetFromPath(out, content)
                                               : TargetFromName(to));
  if (!names.empty())
    PD_RETURN_IF_ERROR(RenameTensors(names == "parameter", &content));
  return WriteContent(content, target, out, options).status();
}

void MustConvert(const std::string& in, const std::string& out,
                 const std::string& to = "",
                 const WriteOptions& options = WriteOptions()) {
  const absl::Status status = Convert(in, out, to, options);
  EXPECT_TRUE(status.ok()) << in << " -> " << out << ": " << status;
}

void ExpectError(const absl::Status& status, absl::string_view says) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), says)) << status;
}

WriteOptions Protocol(int protocol) {
  WriteOptions options;
  options.protocol = protocol;
  return options;
}

// npz and safetensors take along what they have no place for, so the pickle
// that comes back is the one that went in. An npz has neither order nor table
// of parameter names for plain state dicts.
TEST(Convert, PicklesComeBackByteForByte) {
  for (const int protocol : {2, 3, 4}) {
    for (const char* kind : {"model", "nested"}) {
      const std::string name =
          absl::StrCat(kind, ".p", protocol,
                       kind == std::string("model") ? ".pdparams" : ".pd");
      const std::string in = TestData("pickles/" + name);
      const std::string side = Scratch(name + ".safetensors");
      MustConvert(in, side);
      MustConvert(side, Scratch(name), "", Protocol(protocol));
      // Arrays in Fortran order or big endian are written as all others.
      MustConvert(in, Scratch("direct.pd"), "", Protocol(protocol));
      ExpectSameFiles(Scratch(name), Scratch("direct.pd"));
      if (kind == std::string("model")) ExpectSameFiles(Scratch(name), in);
    }
  }
  for (const char* name : {"adam.sched.pdopt", "nested.p4.pd"}) {
    const std::string in = TestData(std::string("pickles/") + name);
    MustConvert(in, Scratch("x.npz"));
    MustConvert(Scratch("x.npz"), Scratch(name));
    MustConvert(in, Scratch("direct.pd"));
    ExpectSameFiles(Scratch(name), Scratch("direct.pd"));
  }
  // Big parameters in slices are joined.
  MustConvert(TestData("pickles/sliced.p2.pdparams"), Scratch("whole.npz"));
  const auto want = ReadNpz(TestData("numpy/sliced.npz"));
  const auto got = ReadNpz(Scratch("whole.npz"));
  ASSERT_TRUE(want.ok() && got.ok()) << got.status();
  EXPECT_EQ(got->count("0.weight"), 1u);
  EXPECT_EQ(got->count("0.weight@@.0"), 0u);
}

TEST(Convert, StateDictsAsPlainNpz) {
  MustConvert(TestData("pickles/model.p4.pdparams"), Scratch("state.npz"));
  const auto got = ReadNpz(Scratch("state.npz"));
  const auto want = ReadNpz(TestData("numpy/state_dict.npz"));
  ASSERT_TRUE(got.ok() && want.ok());
  ASSERT_EQ(got->size(), want->size());  // nothing but the arrays
  for (const auto& [name, array] : *want)
    ExpectSameArray(got->at(name), array, name);
}

TEST(Convert, StreamsComeBackByteForByte) {
  for (const std::string& in : FilesOf("streams", "")) {
    const bool joint = absl::EndsWith(in, "__params__");
    const bool rows = absl::EndsWith(in, "rows.pdtensor");
    const bool complex = absl::EndsWith(in, "complex128.pdtensor");
    for (const char* side : {"x.npz", "x.safetensors"}) {
      if (complex && side[2] == 's') continue;  // which lacks complex128
      MustConvert(in, Scratch(side));
      MustConvert(Scratch(side), Scratch("x.pdtensor"),
                  joint  ? "pdiparams"
                  : rows ? "selected-rows"
                         : "tensor");
      ExpectSameFiles(Scratch("x.pdtensor"), in);
    }
  }
  ExpectError(Convert(TestData("streams/lod2.pdtensor"), Scratch("x.npy")),
              "npy cannot hold the LoD of 'lod2'");
  WriteOptions options;
  options.arrays_only = true;
  MustConvert(TestData("streams/lod2.pdtensor"), Scratch("x.npy"), "", options);
  EXPECT_TRUE(ReadNpy(Scratch("x.npy")).ok());
}

TEST(Convert, ModelsThroughEveryForm) {
  const std::string model = TestData("models/inference.pdmodel");
  MustConvert(model, Scratch("m/joint"), "paddle-legacy-joint");
  MustConvert(Scratch("m/joint"), Scratch("m/old"), "paddle-legacy");
  EXPECT_TRUE(fs::exists(Scratch("m/old/fc_0.w_0")));
  MustConvert(Scratch("m/old"), Scratch("m/static"), "paddle-static");
  EXPECT_TRUE(fs::exists(Scratch("m/static.pdparams")));
  MustConvert(Scratch("m/static"), Scratch("m/new.pdmodel"), "paddle");
  ExpectSameFiles(Scratch("m/new.pdmodel"), model);
  ExpectSameFiles(Scratch("m/new.pdiparams"),
                  TestData("models/inference.pdiparams"));
  // A folder of variables alone is a 1.x checkpoint.
  MustConvert(TestData("models/inference.pdiparams"), Scratch("m/vars"),
              "vars");
  MustConvert(Scratch("m/vars"), Scratch("m/vars.pdiparams"));
  ExpectSameFiles(Scratch("m/vars.pdiparams"),
                  TestData("models/inference.pdiparams"));
  MustConvert(model, Scratch("m/dump.txt"));
}

// save_inference_model marks no parameters, and static.load looks for those
// that are marked.
TEST(Convert, ParametersOfAnInferenceModelBecomeParameters) {
  const std::string model = TestData("models/inference.pdmodel");
  fs::remove(Scratch("p/static.pdopt"));
  MustConvert(model, Scratch("p/static"), "paddle-static");
  EXPECT_FALSE(fs::exists(Scratch("p/static.pdopt")));
  const auto state = ReadStateDict(Scratch("p/static.pdparams"));
  const auto want = ReadNpz(TestData("numpy/inference.npz"));
  const auto program = ReadProgram(Scratch("p/static.pdmodel"));
  ASSERT_TRUE(state.ok() && want.ok() && program.ok());
  ASSERT_EQ(state->tensors.size(), want->size());
  for (const auto& [name, array] : *want) {
    ASSERT_EQ(state->tensors.count(name), 1u) << name;
    ExpectSameArray(state->tensors.at(name), array, name);
    EXPECT_TRUE(program->global().FindVar(name)->is_parameter) << name;
  }
  for (const VarDesc& var : program->global().vars)
    EXPECT_EQ(var.is_parameter, want->count(var.name) == 1) << var.name;
}

// A bare tensor and a dict of one tensor are converted differently.
TEST(Convert, ABareTensorStaysBare) {
  const Array array = MakeArray<float>({2}, {1, 2});
  for (const bool bare : {true, false}) {
    PickleDict dict;
    dict.Add("w", PickleValue{array});
    const PickleValue value =
        bare ? PickleValue{array} : PickleValue{std::move(dict)};
    ASSERT_TRUE(WritePickle(Scratch("w.pd"), value, 4).ok());
    for (const char* side : {"w.npz", "w.safetensors"}) {
      MustConvert(Scratch("w.pd"), Scratch(side));
      MustConvert(Scratch(side), Scratch("back.pd"));
      ExpectSameFiles(Scratch("back.pd"), Scratch("w.pd"));
    }
  }
  MustConvert(TestData("streams/lod2.pdtensor"), Scratch("t.npz"));
  MustConvert(Scratch("t.npz"), Scratch("t.pdtensor"));
  ExpectSameFiles(Scratch("t.pdtensor"), TestData("streams/lod2.pdtensor"));
  // A reader of arrays sees arrays alone.
  const auto arrays = ReadNpz(Scratch("t.npz"));
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  EXPECT_EQ(arrays->size(), 1u);
}

TEST(Convert, ValuesMustFitTheProgram) {
  const std::string parameters = TestData("models/inference.pdiparams");
  auto content = ReadContent(parameters, ReadOptions());
  ASSERT_TRUE(content.ok()) << content.status();
  WriteOptions options;
  const auto program = ReadProgram(TestData("models/inference.pdmodel"));
  ASSERT_TRUE(program.ok());
  options.program = *program;
  auto& items = std::get<PickleDict>(content->object.value).items;
  ASSERT_EQ(items[7].first.As<std::string>()->substr(), "fc_1.w_0");
  items[7].first.value = std::string("fc_1.weight");
  items[4].second.value = MakeArray<float>({2, 3}, std::vector<float>(6));
  const absl::Status status =
      WriteContent(*content, Target::kPaddle, Scratch("bad"), options).status();
  ExpectError(status, "no value for 'fc_1.w_0'");
  ExpectError(status, "'fc_0.b_0' has shape [2, 3], the program declares [7]");
  ExpectError(status, "nothing takes 'fc_1.weight'");
  EXPECT_FALSE(fs::exists(Scratch("bad.pdmodel")));
}

TEST(Convert, NamesOfBothWorlds) {
  const std::string in = TestData("pickles/model.p4.pdparams");
  ASSERT_TRUE(Convert(in, Scratch("names.npz"), "", {}, "parameter").ok());
  const auto got = ReadNpz(Scratch("names.npz"));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->count("conv2d_0.w_0"), 1u);
  EXPECT_EQ(got->count("conv.weight"), 0u);
  ExpectError(
      Convert(TestData("numpy/all.npz"), Scratch("y.npz"), "", {}, "parameter"),
      "no table of parameter names");
}

TEST(Convert, SaysWhatATargetCannotHold) {
  const std::string nested = TestData("pickles/nested.p4.pd");
  ExpectError(Convert(nested, Scratch("x.pdiparams")),
              "a joint file cannot hold 'none' (None), 'yes' (bool)");
  ExpectError(
      Convert(TestData("pickles/adam.sched.pdopt"), Scratch("v"), "vars"),
      "'LR_Scheduler/last_epoch' (int)");
  ExpectError(Convert(TestData("streams/complex128.pdtensor"),
                      Scratch("c.safetensors")),
              "'complex128' is complex128, for which safetensors has no type");
  ExpectError(Convert(TestData("pickles/model.p4.pdparams"), Scratch("x.npy")),
              "npy holds one");
  ExpectError(Convert(TestData("pickles/model.p4.pdparams"), Scratch("x.txt")),
              "holds no program");
  ExpectError(
      Convert(TestData("pickles/model.p4.pdparams"), Scratch("x"), "paddle"),
      "--program names one");
  ExpectError(Convert(TestData("pickles/model.p4.pdparams"), Scratch("x.onnx")),
              "pd-export --to onnx");
  ExpectError(Convert(TestData("pickles/model.p4.pdparams"), Scratch("x.y")),
              "--to does");
  const absl::Status table =
      ReadContent(TestData("malformed/pickle_name_table_not_dict.pdparams"),
                  ReadOptions())
          .status();
  ExpectError(table, "not_dict.pdparams': 'StructuredToParameterName@@' is");
  StateDict state;
  state.tensors["../escape"] = MakeArray<float>({1}, {1});
  ASSERT_TRUE(WriteStateDict(Scratch("e.pdparams"), state).ok());
  ExpectError(Convert(Scratch("e.pdparams"), Scratch("folder"), "vars"),
              "no name of a file");
}

TEST(Convert, OnnxWeights) {
  MustConvert(TestData("onnx/small.onnx"), Scratch("onnx.npz"));
  const auto got = ReadNpz(Scratch("onnx.npz"));
  ASSERT_TRUE(got.ok());
  ExpectSameArray(got->at("w"), MakeArray<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                  "w");
  ExpectSameArray(got->at("b"), MakeArray<float>({2}, {-1, 1}), "b");
}

TEST(MatchParams, OnesAndUnknownExtentsDoNotCount) {
  ProgramDesc program;
  program.blocks.resize(1);
  for (const Shape& shape : {Shape{1}, Shape{-1, 4}, Shape{3, 1}}) {
    VarDesc var;
    var.name = ToString(shape);
    var.shape = shape;
    var.persistable = true;
    program.global().vars.push_back(var);
  }
  NamedArrays values;
  values["[1]"] = MakeArray<float>({}, {0});
  values["[-1, 4]"] = MakeArray<float>({2, 4}, std::vector<float>(8));
  values["[3, 1]"] = MakeArray<float>({1, 3}, std::vector<float>(3));
  EXPECT_TRUE(MatchParams(program, values).Error().ok());
  values["[3, 1]"] = MakeArray<float>({4}, std::vector<float>(4));
  ExpectError(MatchParams(program, values).Error(),
              "'[3, 1]' has shape [4], the program declares [3, 1]");
}

}  // namespace test_convert
}  // namespace pd
