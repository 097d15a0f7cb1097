// SPDX-License-Identifier: Apache-2.0
// Config, passes, the older interface, and flags.
#include <dirent.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "paddle/common/flags.h"
#include "paddle/fluid/inference/api/paddle_api.h"
#include "paddle/fluid/platform/enforce.h"
#include "tests/inference/predictor_case.h"

PD_DEFINE_int32(test_number, 3, "a number");
PD_DEFINE_bool(test_switch, true, "a switch");
PD_DEFINE_string(test_word, "none", "a word");

namespace pd {
namespace test_inference_config {

using paddle_infer::Config;
using paddle_infer::CreatePredictor;

std::vector<float> LenetAnswer(const Config& config) {
  auto predictor = CreatePredictor(config);
  Feed(ArraysOf(std::string(PD_TESTDATA) + "/deploy/lenet-feed.npz"),
       predictor.get());
  predictor->Run();
  return OutputOf(predictor.get());
}

Array LenetExpected() {
  return ArraysOf(std::string(PD_TESTDATA) + "/deploy/lenet-expect.npz")
      .begin()
      ->second;
}

TEST(ConfigTest, DefaultsAreThoseOfPaddlePaddle) {
  Config config;
  EXPECT_FALSE(config.use_gpu());
  EXPECT_EQ(config.memory_pool_init_size_mb(), 100);
  EXPECT_EQ(config.cpu_math_library_num_threads(), 1);
  EXPECT_TRUE(config.ir_optim());
  EXPECT_FALSE(config.enable_memory_optim());
  EXPECT_FALSE(config.mkldnn_enabled());
  EXPECT_TRUE(config.use_fc_padding());
  EXPECT_TRUE(config.is_valid());
  EXPECT_FALSE(config.tensorrt_engine_enabled());
}

TEST(ConfigTest, ADeletedPassStaysDeletedInACopy) {
  Config config;
  auto* passes = config.pass_builder();
  const std::vector<std::string> all = passes->AllPasses();
  EXPECT_EQ(std::count(all.begin(), all.end(), "fold_batch_norms"), 1);
  EXPECT_EQ(std::count(all.begin(), all.end(), "merge_updates"), 0);
  passes->DeletePass("skip_layernorm_fuse_pass");  // there is none: no error
  EXPECT_EQ(passes->AllPasses(), all);
  passes->DeletePass("conv_bn_fuse_pass");  // ours of another name
  const Config copy(config);
  const std::vector<std::string> left = copy.pass_builder()->AllPasses();
  EXPECT_EQ(left.size() + 1, all.size());
  EXPECT_EQ(std::count(left.begin(), left.end(), "fold_batch_norms"), 0);
  EXPECT_EQ(
      copy.pass_builder()->GetAllDeletedPasses().count("conv_bn_fuse_pass"),
      1u);
  ExpectError("InvalidArgumentError", "no pass 99",
              [&] { passes->DeletePass(size_t{99}); });
}

TEST(ConfigTest, EachWayToRunGivesTheAnswer) {
  const Array expected = LenetExpected();
  Config plain = LenetConfig();
  plain.SwitchIrOptim(false);
  ExpectValues(LenetAnswer(plain), expected);
  Config without = LenetConfig();
  without.DisableMKLDNN();
  ExpectValues(LenetAnswer(without), expected);
  Config threads = LenetConfig();
  threads.SetCpuMathLibraryNumThreads(2);
  threads.EnableMKLDNN();
  threads.EnableMemoryOptim();
  threads.EnableProfile();
  ExpectValues(LenetAnswer(threads), expected);
  Config anywhere = LenetConfig();
  anywhere.EnableUseGpu(100, 4096);  // there is no such GPU: the CPU computes
  EXPECT_FALSE(anywhere.use_gpu());
  anywhere.EnableTensorRtEngine();
  EXPECT_FALSE(anywhere.tensorrt_engine_enabled());
  anywhere.EnableONNXRuntime();
  EXPECT_FALSE(anywhere.use_onnxruntime());
  ExpectValues(LenetAnswer(anywhere), expected);
}

TEST(ConfigTest, ProgramsAreDumped) {
  const char* given = std::getenv("TMPDIR");
  std::string folder =
      std::string(given == nullptr ? "/tmp" : given) + "/pd_dump_XXXXXX";
  ASSERT_NE(mkdtemp(&folder[0]), nullptr);
  Config config = LenetConfig();
  config.SetOptimCacheDir(folder);
  config.SwitchIrDebug();
  LenetAnswer(config);
  std::vector<std::string> files;
  DIR* entries = opendir(folder.c_str());
  ASSERT_NE(entries, nullptr);
  while (const dirent* entry = readdir(entries))
    if (entry->d_name[0] != '.') files.push_back(entry->d_name);
  closedir(entries);
  EXPECT_EQ(std::count(files.begin(), files.end(), "00-original.txt"), 1);
  EXPECT_GT(files.size(), 5u);
  for (const std::string& file : files)
    std::remove((folder + "/" + file).c_str());
  std::remove(folder.c_str());
}

TEST(ConfigTest, MixedPrecisionOfSavedModels) {
  const char* given = std::getenv("TMPDIR");
  std::string folder =
      std::string(given == nullptr ? "/tmp" : given) + "/pd_mixed_XXXXXX";
  ASSERT_NE(mkdtemp(&folder[0]), nullptr);
  const std::string model = folder + "/m.pdmodel",
                    params = folder + "/m.params";
  const Config lenet = LenetConfig();
  const auto convert = [&](paddle_infer::PrecisionType precision, bool keep) {
    paddle_infer::ConvertToMixedPrecision(
        lenet.prog_file(), lenet.params_file(), model, params, precision,
        paddle_infer::PlaceType::kGPU, keep);
  };
  const auto size = [](const std::string& path) {
    return std::ifstream(path, std::ios::ate | std::ios::binary).tellg();
  };
  const Array expected = LenetExpected();
  for (const auto precision : {paddle_infer::PrecisionType::kHalf,
                               paddle_infer::PrecisionType::kBf16}) {
    convert(precision, true);
    EXPECT_LT(size(params), size(lenet.params_file()) * 6 / 10);
    const std::vector<float> got = LenetAnswer(Config(model, params));
    ASSERT_EQ(static_cast<int64_t>(got.size()), expected.size());
    // bfloat16 has 8 bits, float16 has 11.
    const float most =
        precision == paddle_infer::PrecisionType::kHalf ? 0.02f : 0.2f;
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], expected.data<float>()[i], most);
  }
  ExpectError("InvalidArgumentError", "kHalf or kBf16",
              [&] { convert(paddle_infer::PrecisionType::kInt8, true); });
  ExpectError("UnimplementedError", "keep_io_types",
              [&] { convert(paddle_infer::PrecisionType::kHalf, false); });
  for (const std::string& file : {model, params, folder})
    std::remove(file.c_str());
}

TEST(ConfigTest, TheSummaryIsATable) {
  Config config = LenetConfig();
  config.SetCpuMathLibraryNumThreads(7);
  const std::string text = config.Summary();
  EXPECT_NE(text.find("| Option"), std::string::npos) << text;
  EXPECT_NE(text.find("lenet.pdmodel"), std::string::npos) << text;
  EXPECT_NE(text.find("| cpu_math_thread"), std::string::npos) << text;
}

TEST(ConfigTest, ChipsThatAreNotHere) {
  Config config;
  ExpectError("PreconditionNotMetError", "XPU", [&] { config.EnableXpu(); });
  ExpectError("PreconditionNotMetError", "NPU", [&] { config.EnableNpu(); });
  ExpectError("PreconditionNotMetError", "IPU", [&] { config.EnableIpu(); });
  ExpectError("PreconditionNotMetError", "Lite",
              [&] { config.EnableLiteEngine(); });
  ExpectError("PreconditionNotMetError", "plug-in",
              [&] { config.EnableCustomDevice("custom_cpu"); });
  ExpectError("InvalidArgumentError", "path is empty",
              [&] { config.CollectShapeRangeInfo(""); });
}

TEST(OlderTest, NativeConfigAndTensorsByValue) {
  paddle::NativeConfig config;
  config.model_dir = std::string(PD_TESTDATA) + "/inference/word2vec";
  auto predictor = paddle::CreatePaddlePredictor<paddle::NativeConfig>(config);
  int64_t words[4] = {1, 2, 3, 4};
  paddle::PaddleTensor tensor;
  tensor.shape = {4, 1};
  tensor.dtype = paddle::PaddleDType::INT64;
  tensor.data = paddle::PaddleBuf(words, sizeof(words));
  std::vector<paddle::PaddleTensor> outputs;
  auto clone = predictor->Clone();
  ASSERT_TRUE(
      clone->Run(std::vector<paddle::PaddleTensor>(4, tensor), &outputs));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].shape, (std::vector<int>{4, 2073}));
  const float* values = static_cast<const float*>(outputs[0].data.data());
  ExpectValues(
      {values, values + outputs[0].data.length() / sizeof(float)},
      ArraysOf(std::string(PD_TESTDATA) + "/inference/word2vec-expect.npz")
          .begin()
          ->second);
  ExpectError("InvalidArgumentError", "1 inputs are given; the model has 4",
              [&] { predictor->Run({tensor}, &outputs); });
  tensor.data.Reset(nullptr, sizeof(words));
  ExpectError("InvalidArgumentError", "null pointer", [&] {
    predictor->Run(std::vector<paddle::PaddleTensor>(4, tensor), &outputs);
  });
  tensor.data.Reset(words, sizeof(words));
  tensor.shape = {5, 1};
  ExpectError("InvalidArgumentError", "holds 32 bytes", [&] {
    predictor->Run(std::vector<paddle::PaddleTensor>(4, tensor), &outputs);
  });
}

TEST(OlderTest, BuffersOwnOrBorrow) {
  paddle::PaddleBuf owned(4);
  owned.Resize(2);
  EXPECT_EQ(owned.length(), 4u);
  std::memcpy(owned.data(), "abc", 4);
  paddle::PaddleBuf copy(owned);
  EXPECT_NE(copy.data(), owned.data());
  EXPECT_STREQ(static_cast<const char*>(copy.data()), "abc");
  char memory[8] = "x";
  paddle::PaddleBuf borrowed(memory, sizeof(memory));
  paddle::PaddleBuf same(borrowed);
  EXPECT_EQ(same.data(), memory);
  ExpectError("PreconditionNotMetError", "cannot grow",
              [&] { same.Resize(9); });
  paddle::PaddleBuf moved(std::move(owned));
  EXPECT_TRUE(owned.empty());
  EXPECT_EQ(moved.length(), 4u);
}

TEST(OlderTest, ZeroCopyTensors) {
  auto predictor = paddle::CreatePaddlePredictor(LenetConfig());
  const NamedArrays feed =
      ArraysOf(std::string(PD_TESTDATA) + "/deploy/lenet-feed.npz");
  auto input = predictor->GetInputTensor(predictor->GetInputNames()[0]);
  input->Reshape(IntShape(feed.begin()->second));
  input->copy_from_cpu(feed.begin()->second.data<float>());
  ASSERT_TRUE(predictor->ZeroCopyRun());
  auto output = predictor->GetOutputTensor(predictor->GetOutputNames()[0]);
  const Array expected = LenetExpected();
  std::vector<float> values(expected.size());
  output->copy_to_cpu(values.data());
  ExpectValues(values, expected);
  EXPECT_EQ(paddle::PaddleDtypeSize(paddle::PaddleDType::FLOAT16), 2);
  EXPECT_EQ(paddle::get_version().find("version: "), 0u);
  EXPECT_FALSE(predictor->GetSerializedProgram().empty());
}

TEST(HalfTest, RoundsToNearest) {
  EXPECT_EQ(phi::dtype::float16(1.f).x, 0x3c00);
  EXPECT_EQ(phi::dtype::float16(65520.f).x, 0x7c00);
  EXPECT_EQ(static_cast<float>(phi::dtype::float16(6e-8f)), 0x1p-24f);
  EXPECT_EQ(phi::dtype::bfloat16(1.f).x, 0x3f80);
  // All of them come back from float.
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    phi::dtype::float16 half;
    half.x = static_cast<uint16_t>(bits);
    const float wide = half;
    if (!std::isnan(wide)) {
      ASSERT_EQ(phi::dtype::float16(wide).x, bits);
    }
  }
}

TEST(EnforceTest, KindsAndMessages) {
  namespace errors = paddle::platform::errors;
  const int three = 3;
  PADDLE_ENFORCE_EQ(three, 3, errors::Fatal("never"));
  PADDLE_ENFORCE_NOT_NULL(&three, errors::Fatal("never"));
  ExpectError("OutOfRangeError", "3 of 2 wheels", [&] {
    PADDLE_ENFORCE_LE(
        three, 2,
        errors::OutOfRange("%d of %s wheels", three, std::string("2")));
  });
  ExpectError("UnavailableError", "100% gone",
              [] { PADDLE_THROW(phi::errors::Unavailable("100% gone")); });
}

TEST(FlagsTest, ArgumentsAndValues) {
  std::string words[] = {
      "program",         "--test_number=5", "file", "--other",
      "--notest_switch", "--test_word",     "here", "--",
      "--test_number=9"};
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(&word[0]);
  pointers.push_back(nullptr);
  int count = 9;
  char** values = pointers.data();
  paddle::flags::ParseCommandLineFlags(&count, &values);
  EXPECT_EQ(FLAGS_test_number, 5);
  EXPECT_FALSE(FLAGS_test_switch);
  EXPECT_EQ(FLAGS_test_word, "here");
  ASSERT_EQ(count, 5);
  EXPECT_STREQ(values[1], "file");
  EXPECT_STREQ(values[2], "--other");
  EXPECT_TRUE(paddle::flags::SetFlagValue("test_number", "-8"));
  EXPECT_EQ(FLAGS_test_number, -8);
  EXPECT_FALSE(paddle::flags::SetFlagValue("test_number", "many"));
  EXPECT_FALSE(paddle::flags::SetFlagValue("no_such_flag", "1"));
  EXPECT_TRUE(paddle::flags::FindFlag("check_nan_inf"));
  EXPECT_FALSE(paddle::flags::FindFlag("no_such_flag"));
  paddle_infer::UpdateDllFlag("paddle_num_threads", "10");
  ExpectError("NotFoundError", "paddle_num_threads2",
              [] { paddle_infer::UpdateDllFlag("paddle_num_threads2", "10"); });
}

}  // namespace test_inference_config
}  // namespace pd
