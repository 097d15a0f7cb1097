// SPDX-License-Identifier: Apache-2.0
// pd-convert --inspect in this process. Files were written by PaddlePaddle and
// numpy; expected values come from the npz files that say what is in them, or
// were computed with numpy.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/match.h"
#include "cmd/common/exit_status.h"
#include "cmd/convert_run.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "libcore/base/parallel.h"
#include "libcore/model/checkpoint.h"
#include "libcore/program/count_flops.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace test_cmd_convert {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::FilesOf;
using testing::MustRead;
using testing::TestData;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::string Scratch(const std::string& name) {
  const auto path = fs::path(PD_BINARY_DIR) / "test_scratch" / "convert" / name;
  fs::create_directories(path.parent_path());
  return path.string();
}

absl::Status Convert(const std::string& path, const std::string& format,
                     std::string* output, int verbose = 0) {
  ConvertOptions options;
  options.inspect = path;
  options.common.format = format;
  options.common.verbose = verbose;
  std::ostringstream out;
  const absl::Status status = RunConvert(options, out);
  *output = out.str();
  return status;
}

Json InspectJson(const std::string& path) {
  std::string output;
  const absl::Status status = Convert(path, "json", &output);
  EXPECT_TRUE(status.ok()) << path << ": " << status;
  return Json::parse(output, nullptr, false);
}

std::string InspectText(const std::string& path, int verbose = 0) {
  std::string output;
  const absl::Status status = Convert(path, "text", &output, verbose);
  EXPECT_TRUE(status.ok()) << path << ": " << status;
  return output;
}

Json TensorNamed(const Json& inspection, const std::string& name) {
  for (const Json& tensor : inspection["tensors"])
    if (tensor["name"] == name) return tensor;
  ADD_FAILURE() << "no tensor '" << name << "'";
  return Json::object();
}

// The same numbers by the shortest code for float32.
void ExpectFloats(const Json& tensor, const Array& want) {
  ASSERT_EQ(want.dtype, DType::kFloat32);
  EXPECT_EQ(tensor["dtype"], "float32");
  EXPECT_EQ(tensor["shape"], Json(want.shape));
  EXPECT_EQ(tensor["bytes"], want.size_bytes());
  double low = kInf, high = -kInf, sum = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double x = want.data<float>()[i];
    low = std::min(low, x);
    high = std::max(high, x);
    sum += x;
  }
  EXPECT_EQ(tensor["min"], low);
  EXPECT_EQ(tensor["max"], high);
  EXPECT_NEAR(tensor["mean"].get<double>(),
              sum / static_cast<double>(want.size()), 1e-12);
  EXPECT_EQ(tensor["nan"], 0);
  EXPECT_EQ(tensor["inf"], 0);
}

void ExpectContent(const Json& inspection, const std::string& npz) {
  const auto want = ReadNpz(TestData("numpy/" + npz));
  ASSERT_TRUE(want.ok()) << want.status();
  EXPECT_EQ(inspection["tensors"].size(), want->size());
  for (const auto& [name, array] : *want) {
    SCOPED_TRACE(name);
    ExpectFloats(TensorNamed(inspection, name), array);
  }
}

TEST(Inspect, ModelWithItsParameters) {
  for (const char* ending : {"", ".pdmodel"}) {
    const Json json =
        InspectJson(TestData(std::string("models/inference") + ending));
    EXPECT_EQ(json["kind"], "pdmodel");
    EXPECT_EQ(json["content"], "inference model");
    EXPECT_EQ(json["producer"], "PaddlePaddle 2.6.2");
    ExpectContent(json, "inference.npz");
    EXPECT_EQ(json["inputs"],
              Json::parse(
                  R"([{"name": "x", "shape": [-1, 5], "dtype": "float32"}])"));
    EXPECT_EQ(json["outputs"][0]["shape"], Json::parse("[-1, 3]"));
    EXPECT_EQ(json["ops"],
              Json::parse(R"({"feed": 1, "mul": 2, "elementwise_add": 2,
                              "batch_norm": 1, "relu": 1, "softmax": 1,
                              "scale": 1, "fetch": 1})"));
    EXPECT_EQ(json["flops"], 2 * (5 * 7 + 7 * 3));
  }
  // numpy: min(), max() and mean() in float64.
  const Json weight = TensorNamed(
      InspectJson(TestData("models/inference.pdmodel")), "fc_0.w_0");
  EXPECT_EQ(weight["min"], -0.6354019641876221);
  EXPECT_EQ(weight["max"], 0.6153524518013);
  EXPECT_NEAR(weight["mean"].get<double>(), 0.02700335734656879, 1e-15);
}

TEST(Inspect, ParametersTakeNamesFromTheProgramBeside) {
  const Json named = InspectJson(TestData("models/inference.pdiparams"));
  EXPECT_EQ(named["kind"], "tensor stream");
  EXPECT_EQ(named["content"], "parameters");
  EXPECT_EQ(named["producer"], "PaddlePaddle 2.6.2");
  ExpectContent(named, "inference.npz");
  const std::string alone = Scratch("alone.pdiparams");
  fs::copy_file(TestData("models/inference.pdiparams"), alone,
                fs::copy_options::overwrite_existing);
  const Json unnamed = InspectJson(alone);
  ASSERT_EQ(unnamed["tensors"].size(), 8u);
  EXPECT_EQ(unnamed["producer"], "unknown");
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(unnamed["tensors"][i]["name"], "");
    EXPECT_EQ(unnamed["tensors"][i]["max"], named["tensors"][i]["max"]);
  }
}

TEST(Inspect, ModelFolder) {
  const std::string folder = Scratch("legacy");
  fs::create_directories(folder);
  fs::copy_file(TestData("models/legacy__model__"), folder + "/__model__",
                fs::copy_options::overwrite_existing);
  const Json bare = InspectJson(folder);
  EXPECT_EQ(bare["kind"], "model folder");
  EXPECT_TRUE(bare["tensors"][0]["mean"].is_null());
  EXPECT_TRUE(bare["tensors"][0]["nan"].is_null());
  EXPECT_EQ(bare["notes"].size(), 1u);
  fs::copy_file(TestData("streams/combined__params__"), folder + "/__params__",
                fs::copy_options::overwrite_existing);
  const Json whole = InspectJson(folder);
  EXPECT_EQ(whole["content"], "inference model");
  ExpectContent(whole, "inference.npz");
  fs::remove(folder + "/__params__");
}

TEST(Inspect, CountsTheArithmeticOfConvolutionsAndSubBlocks) {
  const Json jit = InspectJson(TestData("models/jit.pdmodel"));
  // 4 filters of 1 x 3 x 3 over 4 x 4 pixels; 64 x 6, 6 x 6, 6 x 3.
  EXPECT_EQ(jit["flops_by_op"]["conv2d"], 2 * 4 * 4 * 4 * 9);
  EXPECT_EQ(jit["flops_by_op"]["matmul_v2"], 2 * (64 * 6 + 6 * 6 + 6 * 3));
  EXPECT_EQ(jit["flops"], 1152 + 876);
  const Json flow = InspectJson(TestData("models/flow.pdmodel"));
  EXPECT_EQ(flow["ops"]["while"], 1);
  EXPECT_EQ(flow["ops"]["conditional_block"], 2);
  const Json training = InspectJson(TestData("models/training.pdmodel"));
  EXPECT_EQ(training["content"], "training program");
  EXPECT_EQ(training["ops"]["adam"], 6);
  // The first product makes no gradient of the input.
  EXPECT_EQ(training["flops"], 112 + 2 * (5 * 7 + 2 * 7 * 3));
}

TEST(Inspect, StateDictsSayWhatTheyAre) {
  for (const char* protocol : {"p2", "p3", "p4"}) {
    const Json json = InspectJson(
        TestData(std::string("pickles/model.") + protocol + ".pdparams"));
    EXPECT_EQ(json["kind"], "pickle");
    EXPECT_EQ(json["content"], "parameters");
    EXPECT_EQ(json["producer"], "PaddlePaddle");
    ExpectContent(json, "state_dict.npz");
    EXPECT_EQ(TensorNamed(json, "conv.weight")["parameter_name"],
              "conv2d_0.w_0");
  }
  const Json adam = InspectJson(TestData("pickles/adam.sched.pdopt"));
  EXPECT_EQ(adam["content"], "optimizer state");
  EXPECT_EQ(adam["entries"][0]["name"], "LR_Scheduler");
  EXPECT_EQ(adam["entries"][0]["value"], "{'last_epoch': 3, 'last_lr': 0.001}");
  EXPECT_EQ(InspectJson(TestData("pickles/static.pdopt"))["content"],
            "optimizer state");
  const Json nested = InspectJson(TestData("pickles/nested.p4.pd"));
  EXPECT_EQ(nested["content"], "nested object");
  const auto want = ReadNpz(TestData("numpy/nested.npz"));
  ASSERT_TRUE(want.ok());
  ExpectFloats(TensorNamed(nested, "tlist/1"), want->at("tlist/1"));
  ExpectFloats(TensorNamed(nested, "state/head.weight"),
               want->at("state/head.weight"));
  EXPECT_EQ(InspectJson(TestData("pickles/tensor.pdtensor"))["content"],
            "tensor");
}

// numpy's min, max and mean of each type.
TEST(Inspect, ElementTypes) {
  const Json json = InspectJson(TestData("pickles/dtypes.pdparams"));
  EXPECT_EQ(TensorNamed(json, "k_int64")["min"], 1);
  EXPECT_EQ(TensorNamed(json, "k_int64")["max"], 82);
  EXPECT_EQ(TensorNamed(json, "k_int64")["mean"], 40.666666666666664);
  EXPECT_EQ(TensorNamed(json, "k_uint8")["mean"], 51.833333333333336);
  EXPECT_EQ(TensorNamed(json, "k_float16")["mean"], 0.056987762451171875);
  const Json brain = TensorNamed(json, "k_bfloat16");
  EXPECT_EQ(brain["dtype"], "bfloat16");
  EXPECT_EQ(brain["min"], -1.984375);
  EXPECT_EQ(brain["max"], 4.03125);
  EXPECT_EQ(brain["mean"], 1.63671875);
  EXPECT_TRUE(TensorNamed(json, "k_complex64")["min"].is_null());
  const Json empty = TensorNamed(json, "empty");
  EXPECT_EQ(empty["bytes"], 0);
  EXPECT_TRUE(empty["mean"].is_null());
  EXPECT_EQ(TensorNamed(json, "zero_d")["shape"], Json::array());
}

TEST(Inspect, OtherFiles) {
  const Json idx = InspectJson(std::string(PD_TESTDATA) +
                               "/mnist/t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(idx["kind"], "idx");
  EXPECT_EQ(idx["tensors"][0]["shape"], Json::parse("[10000, 28, 28]"));
  EXPECT_NEAR(idx["tensors"][0]["mean"].get<double>(), 33.791224489795916,
              1e-12);
  const Json rows = InspectJson(TestData("streams/rows.pdtensor"));
  EXPECT_EQ(rows["kind"], "selected rows");
  EXPECT_EQ(rows["details"]["height"], 12);
  EXPECT_EQ(rows["details"]["rows"], 4);
  EXPECT_EQ(InspectJson(
                TestData("streams/lod2.pdtensor"))["tensors"][0]["lod_levels"],
            2);
  EXPECT_EQ(InspectJson(TestData("numpy/lod_streams.npz"))["tensors"].size(),
            5u);
  EXPECT_EQ(InspectJson(TestData("numpy/boolC.npy"))["kind"], "npy");
}

TEST(Inspect, Images) {
  const std::string folder = std::string(PD_TESTDATA) + "/images/";
  const auto details = [&folder](const char* name) {
    return InspectJson(folder + name)["details"];
  };
  EXPECT_EQ(details("rgba.png")["channels"], 4);
  EXPECT_EQ(details("palette.png")["colour"], "palette");
  EXPECT_EQ(details("one_bit.png")["bits"], 1);
  EXPECT_EQ(details("progressive.jpg")["channels"], 3);
  EXPECT_EQ(details("cmyk.jpg")["colour"], "CMYK");
  const Json rgb = InspectJson(folder + "rgb.png");
  EXPECT_EQ(rgb["details"]["width"], 31);
  EXPECT_EQ(rgb["details"]["height"], 23);
  // Pillow's pixels.
  EXPECT_EQ(rgb["tensors"][0]["shape"], Json::parse("[23, 31, 3]"));
  EXPECT_NEAR(rgb["tensors"][0]["mean"].get<double>(), 130.59233286582514,
              1e-12);
  const Json grey = InspectJson(folder + "grey_alpha.png");
  EXPECT_EQ(grey["tensors"][0]["shape"], Json::parse("[17, 16, 1]"));
  EXPECT_NEAR(grey["tensors"][0]["mean"].get<double>(), 110.27573529411765,
              1e-12);
}

template <typename T>
Json StatsOfValues(const std::vector<T>& values) {
  const std::string path = Scratch("values.npy");
  EXPECT_TRUE(
      WriteNpy(path, MakeArray({static_cast<int64_t>(values.size())}, values))
          .ok());
  return InspectJson(path)["tensors"][0];
}

TEST(Inspect, NaNAndInfinitiesAreCountedAndLeftOut) {
  const Json mixed = StatsOfValues<double>({kNaN, 1, -3, kInf, -kInf, kNaN});
  EXPECT_EQ(mixed["nan"], 2);
  EXPECT_EQ(mixed["inf"], 2);
  EXPECT_EQ(mixed["min"], -3.0);
  EXPECT_EQ(mixed["max"], 1.0);
  EXPECT_EQ(mixed["mean"], -1.0);
  const Json none = StatsOfValues<float>({NAN, NAN});
  EXPECT_EQ(none["nan"], 2);
  EXPECT_TRUE(none["min"].is_null());
  EXPECT_TRUE(none["mean"].is_null());
  const Json half =
      StatsOfValues<Float16>({Float16(NAN), Float16(2.0f), Float16(INFINITY)});
  EXPECT_EQ(half["nan"], 1);
  EXPECT_EQ(half["inf"], 1);
  EXPECT_EQ(half["mean"], 2.0);
  const Json complex = StatsOfValues<std::complex<float>>(
      {{NAN, 0}, {1, INFINITY}, {INFINITY, NAN}, {1, 2}});
  EXPECT_EQ(complex["nan"], 2);
  EXPECT_EQ(complex["inf"], 1);
  EXPECT_TRUE(absl::StrContains(InspectText(Scratch("values.npy")),
                                "2 NaN, 1 infinite"));
}

TEST(Inspect, ExtremesStayExact) {
  const int64_t low = std::numeric_limits<int64_t>::min();
  const Json wide = StatsOfValues<int64_t>({low, 3, (int64_t{1} << 53) + 1});
  EXPECT_EQ(wide["min"], low);
  EXPECT_EQ(wide["max"], (int64_t{1} << 53) + 1);
  // Their sum is beyond a double; their mean is not.
  const double huge = 1.5e308;
  EXPECT_NEAR(
      StatsOfValues<double>({huge, huge, huge})["mean"].get<double>() / huge,
      1.0, 1e-15);
}

TEST(Inspect, ThreadsDoNotShow) {
  const size_t n = (1 << 20) + 17;
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i)
    values[i] = std::sin(static_cast<float>(i)) * 1e3f;
  values[n - 1] = 5000.0f;
  values[n / 2] = NAN;
  const int before = Threads();
  SetThreads(1);
  const Json one = StatsOfValues(values);
  SetThreads(4);
  const Json four = StatsOfValues(values);
  SetThreads(before);
  EXPECT_EQ(one, four);
  EXPECT_EQ(one["max"], 5000.0);
  EXPECT_EQ(one["nan"], 1);
  double sum = 0;
  for (const float x : values) sum += std::isnan(x) ? 0.0 : x;
  EXPECT_NEAR(one["mean"].get<double>(), sum / static_cast<double>(n - 1),
              1e-10);
}

// A network with one product, whose ops carry no marks of PaddlePaddle.
ProgramDesc OurProgram() {
  ProgramDesc program;
  program.version = 2003000;
  program.blocks.resize(1);
  const auto var = [&program](const char* name, Shape shape, bool parameter) {
    VarDesc desc;
    desc.name = name;
    desc.shape = std::move(shape);
    desc.persistable = desc.is_parameter = parameter;
    program.global().vars.push_back(desc);
  };
  var("x", {-1, 3}, false);
  var("w", {3, 2}, true);
  var("y", {-1, 2}, false);
  OpDesc op;
  op.type = "matmul_v2";
  op.SetInput("X", {"x"});
  op.SetInput("Y", {"w"});
  op.SetOutput("Out", {"y"});
  op.attrs = {{"trans_x", false}, {"trans_y", false}};
  program.global().ops.push_back(op);
  return program;
}

TEST(Inspect, ProducersByVersion) {
  const auto producer = [](int64_t version, bool marked) {
    ProgramDesc program = OurProgram();
    program.version = version;
    if (marked) program.global().ops[0].attrs["op_device"] = std::string();
    const std::string path = Scratch("version.pdmodel");
    EXPECT_TRUE(WriteProgram(path, program).ok());
    return InspectJson(path)["producer"];
  };
  EXPECT_EQ(producer(2003000, true), "PaddlePaddle 2.3.0");
  EXPECT_EQ(producer(2003000, false), "pdkit");
  EXPECT_EQ(producer(1008005, false), "PaddlePaddle 1.8.5");
  EXPECT_EQ(producer(2006002, false), "PaddlePaddle 2.6.2");
  EXPECT_EQ(producer(0, false), "unknown");
}

TEST(Inspect, OnnxAndSafetensors) {
  const Json onnx = InspectJson(TestData("onnx/small.onnx"));
  EXPECT_EQ(onnx["kind"], "onnx");
  EXPECT_EQ(onnx["producer"], "by hand 1");
  EXPECT_EQ(onnx["details"]["opset"], 13);
  EXPECT_EQ(onnx["ops"], Json::parse(R"({"Gemm": 1})"));
  EXPECT_EQ(
      onnx["inputs"],
      Json::parse(R"([{"name": "x", "shape": [-1, 3], "dtype": "float32"}])"));
  EXPECT_EQ(TensorNamed(onnx, "w")["mean"], 3.5);
  EXPECT_EQ(onnx["flops"], 2 * 3 * 2);
  const Json safe = InspectJson(TestData("safetensors/small.safetensors"));
  EXPECT_EQ(safe["kind"], "safetensors");
  EXPECT_EQ(safe["content"], "parameters");
  EXPECT_EQ(TensorNamed(safe, "fc.weight")["nan"], 1);
  EXPECT_EQ(TensorNamed(safe, "fc.bias")["min"], -2.0);
  EXPECT_EQ(TensorNamed(safe, "steps")["shape"], Json::array());
}

TEST(Inspect, WithoutStatistics) {
  ConvertOptions options;
  options.inspect = TestData("safetensors/small.safetensors");
  options.no_stats = true;
  options.common.format = "json";
  std::ostringstream out;
  ASSERT_TRUE(RunConvert(options, out).ok());
  const Json json = Json::parse(out.str());
  EXPECT_EQ(TensorNamed(json, "steps")["bytes"], 8);
  EXPECT_TRUE(TensorNamed(json, "steps")["max"].is_null());
}

TEST(Convert, ReportsWhatWasWritten) {
  ConvertOptions options;
  options.in = {TestData("pickles/adam.sched.pdopt")};
  options.out = {Scratch("adam.npz")};
  options.arrays_only = true;
  options.common.format = "json";
  std::ostringstream out;
  ASSERT_TRUE(RunConvert(options, out).ok());
  const Json json = Json::parse(out.str());
  EXPECT_EQ(json["files"], Json::array({options.out[0]}));
  EXPECT_GT(json["tensors"], 10);
  EXPECT_EQ(json["left_out"][0], "'LR_Scheduler/last_epoch' (int)");
  options.to = "tensor";
  EXPECT_EQ(ExitCode(RunConvert(options, out)), kExitFailed);
  options.to = "";
  options.out = {Scratch("adam.unknown")};
  EXPECT_EQ(ExitCode(RunConvert(options, out)), kExitUsage);
}

TEST(Inspect, RunDirectory) {
  Checkpoint checkpoint;
  checkpoint.state.step = 40;
  checkpoint.state.epoch = 2;
  checkpoint.state.best_metric = "acc";
  checkpoint.state.best_value = 0.5;
  checkpoint.state.best_step = 30;
  checkpoint.program = OurProgram();
  checkpoint.params["w"] = MakeArray<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const std::string run = Scratch("RUN");
  ASSERT_TRUE(WriteCheckpoint(run, checkpoint, 0).ok());
  const Json json = InspectJson(run);
  EXPECT_EQ(json["kind"], "run directory");
  EXPECT_EQ(json["producer"], "pdkit");
  EXPECT_EQ(json["details"]["step"], 40);
  EXPECT_EQ(json["details"]["epoch"], 2);
  EXPECT_EQ(json["details"]["best_value"], 0.5);
  EXPECT_EQ(json["details"]["best_step"], 30);
  EXPECT_EQ(TensorNamed(json, "w")["mean"], 3.5);
  EXPECT_EQ(json["inputs"][0]["name"], "x");
  EXPECT_EQ(json["flops"], 2 * 3 * 2);
  EXPECT_EQ(InspectJson(run + "/checkpoints/step-40")["kind"], "checkpoint");
}

TEST(Inspect, TextAlignsAndDumps) {
  const std::string text = InspectText(TestData("models/inference.pdmodel"), 1);
  EXPECT_TRUE(
      absl::StrContains(text, "  fc_0.w_0          [5, 7]  float32  140 B"))
      << text;
  EXPECT_TRUE(absl::StrContains(text, "tensors: 8, 94 elements, 376 B"));
  EXPECT_TRUE(absl::StrContains(text, "FLOPs: 112 (2 for each multiply-add"));
  EXPECT_TRUE(absl::StrContains(text, "program version 2006002")) << text;
}

TEST(Inspect, KindsThatAreNotRead) {
  const std::string zip = Scratch("x.zip");
  ASSERT_TRUE(
      WriteFile(zip, std::string("PK\5\6", 4) + std::string(18, '\0')).ok());
  const Json json = InspectJson(zip);
  EXPECT_EQ(json["kind"], "zip");
  EXPECT_EQ(json["notes"][0], "its contents are not read");
  const std::string garbage = Scratch("garbage");
  ASSERT_TRUE(WriteFile(garbage, {"\0\1\2\3", 4}).ok());
  std::string output;
  EXPECT_EQ(ExitCode(Convert(garbage, "json", &output)), kExitFailed);
}

// A file may hold anything: the tool answers or says in one line why not.
TEST(Inspect, HostileFilesEndInOneMessage) {
  std::string output;
  for (const std::string& path : FilesOf("malformed", "")) {
    const absl::Status status = Convert(path, "json", &output);
    if (status.ok()) {
      EXPECT_FALSE(Json::parse(output, nullptr, false).is_discarded()) << path;
      continue;
    }
    EXPECT_EQ(ExitCode(status), kExitFailed) << path;
    EXPECT_TRUE(absl::StrContains(status.message(), path)) << status;
    EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
    // A whole program with an op that nobody knows is shown all the same.
    if (!absl::IsUnimplemented(status)) EXPECT_EQ(output, "") << path;
  }
  for (const char* name :
       {"npz_cut.npz", "stream_dims_huge.pdtensor", "pickle_os_system.pdparams",
        "program_cut_middle.pdmodel"})
    EXPECT_FALSE(
        Convert(TestData(std::string("malformed/") + name), "text", &output)
            .ok())
        << name;
  EXPECT_TRUE(absl::IsNotFound(Convert(Scratch("absent"), "text", &output)));
}

TEST(Inspect, HostileNamesStayOnTheirLine) {
  StateDict state;
  state.tensors["a\n\x1b[31m"] = MakeArray<float>({1}, {1});
  const std::string path = Scratch("names.pdparams");
  ASSERT_TRUE(WriteStateDict(path, state).ok());
  EXPECT_TRUE(absl::StrContains(InspectText(path), "  a\\n\\x1b[31m  [1]"))
      << InspectText(path);
}

TEST(Inspect, DamagedProgramsAreCountedWithoutHarm) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  int read = 0;
  for (const char* name : {"models/jit.pdmodel", "models/training.pdmodel"}) {
    std::string bytes(MustRead(TestData(name)).view());
    for (size_t i = 0; i < bytes.size(); i += 17) {
      const char was = bytes[i];
      bytes[i] = static_cast<char>(was ^ (i % 2 == 0 ? 0x01 : 0xff));
      const auto program = ParseProgram(bytes);
      if (program.ok()) {
        CountFlops(registry, *program);
        ++read;
      }
      bytes[i] = was;
    }
  }
  EXPECT_GT(read, 500);
}

}  // namespace test_cmd_convert
}  // namespace pd
