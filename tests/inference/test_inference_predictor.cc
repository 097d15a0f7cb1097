// SPDX-License-Identifier: Apache-2.0
// paddle_inference_api.h in its installed form: answers, handles, clones,
// threads, and wrong calls.
#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "paddle/extension.h"
#include "paddle_infer_contrib.h"
#include "tests/inference/predictor_case.h"

namespace pd {
namespace test_inference_predictor {

const std::string kDeploy = std::string(PD_TESTDATA) + "/deploy/";
const std::string kModels = std::string(PD_TESTDATA) + "/inference/";

using paddle_infer::Config;
using paddle_infer::CreatePredictor;

std::string BytesOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class LenetTest : public ::testing::Test {
 protected:
  LenetTest()
      : feed_(ArraysOf(kDeploy + "lenet-feed.npz")),
        expected_(ArraysOf(kDeploy + "lenet-expect.npz").begin()->second) {}
  std::string input() const { return feed_.begin()->first; }
  const Array& picture() const { return feed_.begin()->second; }

  NamedArrays feed_;
  Array expected_;
};

TEST(PredictorTest, AnswersAreThoseOfPaddlePaddle) {
  for (const char* name : {"lenet", "cifar_resnet", "open_extents"}) {
    SCOPED_TRACE(name);
    const std::string path = kDeploy + name;
    auto predictor =
        CreatePredictor(Config(path + ".pdmodel", path + ".pdiparams"));
    Feed(ArraysOf(path + "-feed.npz"), predictor.get());
    ASSERT_TRUE(predictor->Run());
    const NamedArrays expected = ArraysOf(path + "-expect.npz");
    ASSERT_EQ(predictor->GetOutputNames().size(), expected.size());
    // The names there sort as the outputs stand.
    size_t i = 0;
    for (const auto& [key, array] : expected)
      ExpectValues(OutputOf(predictor.get(), i++), array);
  }
}

TEST(PredictorTest, AFolderWithAFileAVariable) {
  auto predictor = CreatePredictor(Config(kModels + "word2vec"));
  const std::vector<std::string> names = {"firstw", "secondw", "thirdw",
                                          "forthw"};
  EXPECT_EQ(predictor->GetInputNames(), names);
  EXPECT_EQ(predictor->GetInputTypes()["firstw"], paddle_infer::INT64);
  Feed(ArraysOf(kModels + "word2vec-feed.npz"), predictor.get());
  predictor->Run();
  ExpectValues(OutputOf(predictor.get()),
               ArraysOf(kModels + "word2vec-expect.npz").begin()->second);
}

TEST(PredictorTest, SequencesCarryTheirLoD) {
  auto predictor = CreatePredictor(Config(kModels + "ner"));
  Feed(ArraysOf(kModels + "ner-feed.npz"), predictor.get());
  const std::vector<std::vector<size_t>> lod = {{0, 3, 5, 9}};
  for (const std::string& name : predictor->GetInputNames())
    predictor->GetInputHandle(name)->SetLoD(lod);
  predictor->Run();
  auto output = predictor->GetOutputHandle(predictor->GetOutputNames()[0]);
  EXPECT_EQ(output->lod(), lod);
  ExpectValues(OutputOf(predictor.get()),
               ArraysOf(kModels + "ner-expect.npz").begin()->second);
  // Other sequences give another answer.
  predictor->GetInputHandle("word")->SetLoD({{0, 9}});
  predictor->GetInputHandle("mention")->SetLoD({{0, 9}});
  const std::vector<float> before = OutputOf(predictor.get());
  predictor->Run();
  EXPECT_NE(OutputOf(predictor.get()), before);
  ExpectError("InvalidArgumentError", "does not begin with 0", [&] {
    predictor->GetInputHandle("word")->SetLoD({{1, 9}});
  });
  predictor->GetInputHandle("word")->SetLoD({{0, 7}});
  ExpectError("InvalidArgumentError", "ends at 7", [&] { predictor->Run(); });
}

TEST(PredictorTest, ShapesMayChangeFromRunToRun) {
  Config config(kModels + "image");
  config.SetMkldnnCacheCapacity(2);
  auto predictor = CreatePredictor(config);
  const NamedArrays feed = ArraysOf(kModels + "image-feed.npz");
  const Array expected = ArraysOf(kModels + "image-expect.npz").begin()->second;
  for (int round = 0; round < 2; ++round) {
    for (const int side : {9, 12, 20}) {
      auto input = predictor->GetInputHandle("data");
      input->Reshape({1, 3, side, side});
      input->CopyFromCpu(std::vector<float>(3 * side * side, 0.5f).data());
      predictor->Run();
      EXPECT_EQ(OutputOf(predictor.get()).size(), 1000u);
    }
    Feed(feed, predictor.get());
    predictor->Run();
    ExpectValues(OutputOf(predictor.get()), expected);
  }
  EXPECT_EQ(predictor->GetInputTensorShape()["data"][0], -1);
}

TEST_F(LenetTest, AModelInMemory) {
  Config config;
  config.SetModelBuffer(BytesOfFile(kDeploy + "lenet.pdmodel"),
                        BytesOfFile(kDeploy + "lenet.pdiparams"));
  EXPECT_TRUE(config.model_from_memory());
  auto predictor = CreatePredictor(config);
  Feed(feed_, predictor.get());
  predictor->Run();
  ExpectValues(OutputOf(predictor.get()), expected_);
}

TEST_F(LenetTest, HandlesShareOneVariable) {
  auto predictor = CreatePredictor(LenetConfig());
  // An output's handle may be taken before the first run.
  auto output = predictor->GetOutputHandle(predictor->GetOutputNames()[0]);
  EXPECT_EQ(output->shape(), std::vector<int>{0});
  predictor->GetInputHandle(input())->Reshape(IntShape(picture()));
  auto same = predictor->GetInputHandle(input());
  EXPECT_EQ(same->shape(), IntShape(picture()));
  EXPECT_EQ(same->name(), input());
  float* memory = same->mutable_data<float>(paddle_infer::PlaceType::kCPU);
  std::copy_n(picture().data<float>(), picture().size(), memory);
  predictor->Run();
  paddle_infer::PlaceType place = paddle_infer::PlaceType::kUNK;
  int size = 0;
  const float* values = output->data<float>(&place, &size);
  EXPECT_EQ(place, paddle_infer::PlaceType::kCPU);
  ExpectValues({values, values + size}, expected_);
  // Without a new input the old one counts.
  predictor->Run();
  ExpectValues(OutputOf(predictor.get()), expected_);
  // A handle that is left over has no value, and is no danger.
  predictor.reset();
  ExpectError("PreconditionNotMetError", "has no value",
              [&] { output->data<float>(&place, &size); });
}

TEST_F(LenetTest, MemoryOfTheCaller) {
  auto predictor = CreatePredictor(LenetConfig());
  std::vector<float> picture_memory(picture().data<float>(),
                                    picture().data<float>() + picture().size());
  std::vector<float> answer(expected_.size(), -1.f);
  predictor->GetInputHandle(input())->ShareExternalData(
      picture_memory.data(), IntShape(picture()),
      paddle_infer::PlaceType::kCPU);
  auto output = predictor->GetOutputHandle(predictor->GetOutputNames()[0]);
  output->ShareExternalData(answer.data(), IntShape(expected_),
                            paddle_infer::PlaceType::kCPU);
  predictor->Run();
  ExpectValues(answer, expected_);
  // The run after it reads the memory anew.
  std::fill(picture_memory.begin(), picture_memory.end(), 0.f);
  predictor->Run();
  EXPECT_GT(std::fabs(answer[0] - expected_.data<float>()[0]), 1e-3f);
}

TEST_F(LenetTest, ClonesInThreads) {
  auto main_predictor = CreatePredictor(LenetConfig());
  constexpr int kThreads = 5;
  std::vector<std::unique_ptr<paddle_infer::Predictor>> clones;
  for (int i = 0; i < kThreads; ++i) clones.push_back(main_predictor->Clone());
  main_predictor.reset();  // the parameters stay
  const size_t record = picture().size() / picture().shape[0];
  const size_t classes = expected_.size() / expected_.shape[0];
  std::vector<std::vector<float>> answers(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 8; ++round) {
        // Another batch size each, so that some compile while others run.
        const int batch = 1 + (i + round) % (picture().shape[0] - i);
        std::vector<int> shape = IntShape(picture());
        shape[0] = batch;
        auto handle = clones[i]->GetInputHandle(input());
        handle->Reshape(shape);
        handle->CopyFromCpu(picture().data<float>() + i * record);
        clones[i]->Run();
        answers[i] = OutputOf(clones[i].get());
        ASSERT_EQ(answers[i].size(), batch * classes);
        for (size_t k = 0; k < classes; ++k)
          ASSERT_NEAR(answers[i][k], expected_.data<float>()[i * classes + k],
                      1e-3f);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(LenetTest, APool) {
  paddle_infer::services::PredictorPool pool(LenetConfig(), 3);
  for (size_t i = 0; i < 3; ++i) {
    Feed(feed_, pool.Retrieve(i));
    pool.Retrieve(i)->Run();
    ExpectValues(OutputOf(pool.Retrieve(i)), expected_);
  }
  ExpectError("InvalidArgumentError", "no predictor 3",
              [&] { pool.Retrieve(3); });
  ExpectError("InvalidArgumentError", "size 0", [] {
    paddle_infer::services::PredictorPool none(LenetConfig(), 0);
  });
}

TEST_F(LenetTest, ShrinkingKeepsOutputs) {
  auto predictor = CreatePredictor(LenetConfig());
  Feed(feed_, predictor.get());
  predictor->Run();
  predictor->ClearIntermediateTensor();
  EXPECT_GT(predictor->TryShrinkMemory(), 0u);
  ExpectValues(OutputOf(predictor.get()), expected_);
  predictor->Run();
  ExpectValues(OutputOf(predictor.get()), expected_);
}

TEST_F(LenetTest, WrongCallsAreErrorsWithWords) {
  ExpectError("InvalidArgumentError", "Either model_dir or prog_file",
              [] { CreatePredictor(Config()); });
  ExpectError("NotFoundError", "nowhere.pdmodel",
              [] { CreatePredictor(Config("nowhere.pdmodel", "x")); });
  Config damaged;
  damaged.SetModelBuffer("no program", "");
  ExpectError("InvalidArgumentError", "program in memory",
              [&] { CreatePredictor(damaged); });
  damaged.SetModelBuffer(BytesOfFile(kDeploy + "lenet.pdmodel"), "abc");
  ExpectError("InvalidArgumentError", "parameters in memory",
              [&] { CreatePredictor(damaged); });
  ExpectError("InvalidArgumentError", "null pointer",
              [&] { damaged.SetModelBuffer(nullptr, 3, nullptr, 0); });
  Config spent = LenetConfig();
  auto predictor = CreatePredictor(spent);
  EXPECT_FALSE(spent.is_valid());
  ExpectError("InvalidArgumentError", "only be used for one predictor",
              [&] { CreatePredictor(spent); });
  EXPECT_TRUE(Config(spent).is_valid());
  ExpectError("PreconditionNotMetError", "no input 'picture'",
              [&] { predictor->GetInputHandle("picture"); });
  ExpectError("PreconditionNotMetError", "has no elements",
              [&] { predictor->Run(); });
  auto handle = predictor->GetInputHandle(input());
  auto output = predictor->GetOutputHandle(predictor->GetOutputNames()[0]);
  std::vector<float> values(28 * 28, 0.f);
  std::vector<int32_t> integers(28 * 28, 1);
  ExpectError("PreconditionNotMetError", "call Reshape",
              [&] { handle->CopyFromCpu(values.data()); });
  ExpectError("InvalidArgumentError", "negative extent", [&] {
    handle->Reshape({1, -1, 28, 28});
  });
  ExpectError("PermissionDeniedError", "Reshape is for inputs", [&] {
    output->Reshape({1, 10});
  });
  ExpectError("PermissionDeniedError", "CopyFromCpu is for inputs",
              [&] { output->CopyFromCpu(values.data()); });
  handle->Reshape({1, 1, 28, 28});
  ExpectError("InvalidArgumentError", "null",
              [&] { handle->CopyFromCpu(static_cast<const float*>(nullptr)); });
  handle->CopyFromCpu(integers.data());
  ExpectError("InvalidArgumentError", "declares float32",
              [&] { predictor->Run(); });
  handle->CopyFromCpu(values.data());
  ExpectError("PreconditionNotMetError", "run the predictor first",
              [&] { output->CopyToCpu(values.data()); });
  predictor->Run();
  ExpectError("InvalidArgumentError", "holds float32; it is read as int64",
              [&] {
                std::vector<int64_t> wrong(10);
                output->CopyToCpu(wrong.data());
              });
  ExpectError("UnavailableError", "kCPU", [&] {
    handle->mutable_data<float>(paddle_infer::PlaceType::kGPU);
  });
  // Three channels where the filter has one.
  handle->Reshape({1, 3, 28, 28});
  handle->CopyFromCpu(std::vector<float>(3 * 28 * 28).data());
  ExpectError("InvalidArgumentError", "float32[1, 3, 28, 28]",
              [&] { predictor->Run(); });
  ExpectError("PreconditionNotMetError", "run the predictor first",
              [&] { output->CopyToCpu(values.data()); });
  // And it works again.
  Feed(feed_, predictor.get());
  predictor->Run();
  ExpectValues(OutputOf(predictor.get()), expected_);
  ExpectError("InvalidArgumentError", "no SetExecStream",
              [&] { predictor->Clone(&spent); });
  ExpectError("UnimplementedError", "strings",
              [&] { handle->ReshapeStrings(2); });
}

TEST_F(LenetTest, TensorsByName) {
  auto predictor = CreatePredictor(LenetConfig());
  const std::vector<int64_t> shape = picture().shape;
  paddle::Tensor tensor = paddle::empty(shape);
  std::copy_n(picture().data<float>(), picture().size(), tensor.data<float>());
  tensor.set_name(input());
  std::vector<paddle::Tensor> outputs;
  ASSERT_TRUE(predictor->Run({tensor}, &outputs));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].name(), predictor->GetOutputNames()[0]);
  EXPECT_EQ(outputs[0].dtype(), paddle::DataType::FLOAT32);
  const paddle::Tensor copy = outputs[0].copy_to(paddle::CPUPlace(), true);
  ExpectValues({copy.data<float>(), copy.data<float>() + copy.numel()},
               expected_);
  // The memory of the call is not read afterwards.
  ExpectError("PreconditionNotMetError", "has no elements",
              [&] { predictor->Run(); });
  ExpectError("PreconditionNotMetError", "has no value",
              [&] { predictor->Run({paddle::Tensor()}, &outputs); });
  ExpectError("InvalidArgumentError", "2 inputs are given", [&] {
    predictor->Run({tensor, tensor}, &outputs);
  });
  tensor.set_name("nothing");
  ExpectError("PreconditionNotMetError", "no input 'nothing'",
              [&] { predictor->Run({tensor}, &outputs); });
  ExpectError("UnavailableError", "gpu:0", [&] {
    paddle::empty(shape, paddle::DataType::FLOAT32, paddle::GPUPlace());
  });
}

TEST_F(LenetTest, HooksSeeEachOp) {
  Config config = LenetConfig();
  config.SwitchIrOptim(false);
  auto predictor = CreatePredictor(config);
  Feed(feed_, predictor.get());
  std::vector<std::string> before, after;
  std::vector<float> last;
  predictor->RegisterInputHook([&](const std::string& type, const std::string&,
                                   const paddle::Tensor& value) {
    EXPECT_TRUE(value.initialized());
    before.push_back(type);
  });
  predictor->RegisterOutputHook([&](const std::string& type, const std::string&,
                                    const paddle::Tensor& value) {
    after.push_back(type);
    // The model's last op, a scale by 1, is no step.
    if (value.numel() == expected_.size())
      last.assign(value.data<float>(), value.data<float>() + value.numel());
  });
  predictor->Run();
  EXPECT_EQ(std::count(after.begin(), after.end(), "conv2d"), 2);
  // Input and filter of each.
  EXPECT_EQ(std::count(before.begin(), before.end(), "conv2d"), 4);
  ExpectValues(last, expected_);
  predictor->RegisterOutputHook(
      [](const std::string&, const std::string&, const paddle::Tensor&) {
        throw std::runtime_error("enough");
      });
  EXPECT_THROW(predictor->Run(), std::runtime_error);
  EXPECT_THROW(predictor->Run(), std::runtime_error);  // it is free again
}

TEST_F(LenetTest, Contrib) {
  using paddle_infer::contrib::get_status;
  using paddle_infer::contrib::Status;
  using paddle_infer::contrib::TensorUtils;
  auto first = CreatePredictor(LenetConfig());
  auto second = first->Clone();
  Feed(feed_, first.get());
  TensorUtils::CopyTensor(second->GetInputHandle(input()).get(),
                          *first->GetInputHandle(input()));
  second->Run();
  ExpectValues(OutputOf(second.get()), expected_);
  const Status status = get_status([&] { first->GetInputHandle("x y"); })();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.code(), 6);  // PreconditionNotMet
  EXPECT_NE(status.error_message().find("x y"), std::string::npos);
  EXPECT_TRUE(get_status([] {})() == Status::OK());
}

}  // namespace test_inference_predictor
}  // namespace pd
