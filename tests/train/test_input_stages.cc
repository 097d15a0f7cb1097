// SPDX-License-Identifier: Apache-2.0
// A model that does its data's arithmetic itself: its answers to raw records
// against what the data pipeline makes of them, which is PaddlePaddle's.
#include "libcore/train/input_stages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/pipeline.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"

namespace pd {
namespace test_input_stages {

constexpr int64_t kRecords = 2, kHeight = 3, kWidth = 2;

absl::StatusOr<LoadedJob> JobOf(const std::string& data) {
  return ParseJob(
      absl::StrCat("model { input { name: \"x\" shape: [-1, 1] } layer { "
                   "linear { out_features: 1 } } }\n"
                   "data { train { ",
                   data, " } }\n"),
      "job.pbtxt");
}

// A model that gives out what it is fed, float32 of `shape` with -1 records.
InferenceModel Echo(Shape shape) {
  InferenceModel model;
  model.program.blocks.emplace_back();
  model.program.version = 2003000;
  shape.insert(shape.begin(), -1);
  for (const char* name : {"x", "out"}) {
    VarDesc var;
    var.name = name;
    var.dtype = DType::kFloat32;
    var.shape = shape;
    model.program.global().vars.push_back(std::move(var));
  }
  OpDesc op;
  op.type = "assign";
  op.SetInput("X", {"x"});
  op.SetOutput("Out", {"out"});
  model.program.global().ops.push_back(std::move(op));
  model.names = {{"x"}, {"out"}};
  return model;
}

absl::StatusOr<Array> Answer(const OpRegistry& registry,
                             const InferenceModel& model, const Array& fed) {
  Session session(&registry);
  for (const auto& [name, value] : model.params)
    PD_RETURN_IF_ERROR(session.scope().Set(name, value));
  PD_ASSIGN_OR_RETURN(NamedArrays got,
                      session.Run(model.program, {{"x", fed}}, {"out"}));
  return got.at("out");
}

std::vector<uint8_t> Pixels(int64_t channels) {
  std::vector<uint8_t> pixels(
      static_cast<size_t>(kRecords * kHeight * kWidth * channels));
  for (size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<uint8_t>((i * 37 + 11) % 256);
  return pixels;
}

struct PictureCase {
  std::string transforms;
  bool grey = false;
};

class InputStagesTest : public ::testing::TestWithParam<PictureCase> {};

TEST_P(InputStagesTest, PixelsGiveWhatThePipelineGives) {
  const PictureCase& test = GetParam();
  const auto job = JobOf(absl::StrCat(test.grey ? "mnist { folder: \"none\" } "
                                                : "dataset_folder { root: "
                                                  "\"none\" } ",
                                      test.transforms));
  ASSERT_TRUE(job.ok()) << job.status();
  const job::DataSet& set = job->proto().data().train();
  const int64_t channels = test.grey ? 1 : 3;
  const auto pipeline =
      Pipeline::Create({kHeight, kWidth, channels}, TransformsOf(set));
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const Shape shape = pipeline->ArrayShape(kHeight, kWidth);
  const auto numbers = static_cast<size_t>(NumElements(shape));

  const std::vector<uint8_t> pixels = Pixels(channels);
  std::vector<float> want(kRecords * numbers);
  for (size_t r = 0; r < kRecords; ++r) {
    const Picture picture = {&pixels[r * numbers], kHeight, kWidth, channels};
    pipeline->Write(picture, reinterpret_cast<std::byte*>(&want[r * numbers]));
  }

  const auto registry = MakeRegistry();
  ASSERT_TRUE(registry.ok());
  // In its own shape, and as a row of numbers.
  const FeedSpec input = {
      "x", DType::kFloat32, {-1, shape[0], shape[1], shape[2]}};
  const FeedSpec row = {
      "x", DType::kFloat32, {-1, static_cast<int64_t>(numbers)}};
  for (const FeedSpec& feed : {input, row}) {
    const auto stages = InputStagesOf(*job, set, {feed});
    ASSERT_TRUE(stages.ok()) << stages.status();
    EXPECT_TRUE(stages->outside.empty())
        << absl::StrJoin(stages->outside, "\n");
    ASSERT_EQ(stages->stages.size(), 1);
    InferenceModel model = Echo({feed.shape.begin() + 1, feed.shape.end()});
    const auto status = PrependSteps(**registry, stages->stages[0], &model);
    ASSERT_TRUE(status.ok()) << status;
    const VarDesc* fed = model.program.global().FindVar("x");
    EXPECT_EQ(fed->dtype, DType::kUInt8);
    if (feed.shape.size() == 4) {
      EXPECT_EQ(fed->shape, (Shape{-1, kHeight, kWidth, channels}));
    }
    const auto got = Answer(
        **registry, model,
        MakeArray<uint8_t>({kRecords, kHeight, kWidth, channels}, pixels));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(static_cast<size_t>(got->size()), want.size());
    Shape expected = feed.shape;
    expected[0] = kRecords;
    EXPECT_EQ(got->shape, expected);
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(got->data<float>()[i], want[i]) << "number " << i;
  }
}

const char kTensor[] = "transform { to_tensor {} } ";
const char kThree[] = "mean: [0.1, 0.2, 0.3] std: [0.5, 0.25, 2]";

INSTANTIATE_TEST_SUITE_P(
    Transforms, InputStagesTest,
    ::testing::Values(
        PictureCase{kTensor}, PictureCase{kTensor, true},
        PictureCase{"transform { to_tensor { data_format: HWC } }"},
        PictureCase{
            absl::StrCat(kTensor, "transform { normalize { ", kThree, " } }")},
        PictureCase{absl::StrCat(kTensor,
                                 "transform { normalize { mean: 0.5 std: 0.5 "
                                 "} }"),
                    true},
        PictureCase{absl::StrCat("transform { normalize { ", kThree,
                                 " data_format: HWC to_rgb: true } } "
                                 "transform { transpose {} }")},
        PictureCase{absl::StrCat("transform { transpose {} } transform { "
                                 "normalize { ",
                                 kThree, " } }")},
        PictureCase{"transform { normalize { mean: 127.5 std: 127.5 } }", true},
        PictureCase{"transform { to_tensor {} } transform { transpose { order: "
                    "[1, 2, 0] } } transform { normalize { mean: 0.5 "
                    "data_format: HWC } }"}));

// Resize and CenterCrop inside of the model against the data pipeline, which is
// Pillow's bit for bit (tests/data), over pictures of several sizes.
class PictureFitTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PictureFitTest, PicturesGiveWhatThePipelineGives) {
  const auto job =
      JobOf(absl::StrCat("dataset_folder { root: \"none\" } ", GetParam(),
                         "transform { to_tensor { data_format: "
                         "HWC } }"));
  ASSERT_TRUE(job.ok()) << job.status();
  const job::DataSet& set = job->proto().data().train();
  const auto registry = MakeRegistry();
  ASSERT_TRUE(registry.ok());
  const auto stages =
      InputStagesOf(*job, set, {{"x", DType::kFloat32, {-1, 6, 4, 3}}});
  ASSERT_TRUE(stages.ok()) << stages.status();
  EXPECT_TRUE(stages->outside.empty()) << absl::StrJoin(stages->outside, "\n");
  ASSERT_EQ(stages->stages.size(), 1);
  InferenceModel model = Echo({6, 4, 3});
  const auto status = PrependSteps(**registry, stages->stages[0], &model);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(model.program.global().FindVar("x")->shape, (Shape{-1, -1, -1, 3}));
  for (const auto& [height, width] : std::vector<std::pair<int64_t, int64_t>>{
           {6, 4}, {4, 6}, {7, 9}, {31, 23}, {23, 57}, {40, 40}, {3, 2}}) {
    const Shape shape = {height, width, 3};
    std::vector<uint8_t> pixels(static_cast<size_t>(NumElements(shape)));
    for (size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = static_cast<uint8_t>((i * i * 7 + i * 31 + 11) % 256);
    const auto pipeline = Pipeline::Create(shape, TransformsOf(set));
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    Picture picture = {pixels.data(), height, width, 3};
    TransformScratch scratch;
    RandomStream random = TransformStream(0, 0, 0);
    ASSERT_TRUE(pipeline->Apply(&random, &scratch, &picture).ok());
    std::vector<float> want(6 * 4 * 3);
    pipeline->Write(picture, reinterpret_cast<std::byte*>(want.data()));
    const auto got = Answer(**registry, model,
                            MakeArray<uint8_t>({1, height, width, 3}, pixels));
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->shape, (Shape{1, 6, 4, 3}));
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(got->data<float>()[i], want[i])
          << height << " x " << width << ", " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Transforms, PictureFitTest,
    ::testing::Values(
        "transform { resize { size: [6, 4] } } ",
        "transform { center_crop { size: [6, 4] } } ",
        "transform { resize { size: 8 } } transform { center_crop "
        "{ size: [6, 4] } } ",
        "transform { resize { size: 5 } } transform { center_crop "
        "{ size: [6, 4] } } ",
        "transform { resize { size: [9, 7] } } transform { "
        "center_crop { size: [6, 4] } } "));

TEST(InputStages, OtherTransformsStayOutsideWithTheReason) {
  const auto outside = [](const std::string& transforms) -> std::string {
    const auto job =
        JobOf(absl::StrCat("dataset_folder { root: \"none\" } ", transforms,
                           "transform { to_tensor {} }"));
    EXPECT_TRUE(job.ok()) << job.status();
    const auto stages = InputStagesOf(*job, job->proto().data().train(),
                                      {{"x", DType::kFloat32, {-1, 3, 6, 4}}});
    EXPECT_TRUE(stages.ok()) << stages.status();
    EXPECT_EQ(stages->stages.size(), 1);
    return absl::StrJoin(stages->outside, "\n");
  };
  EXPECT_EQ(outside("transform { resize { size: [6, 4] interpolation: nearest "
                    "} } "),
            "input 'x' takes pictures as Resize leaves them; of Resize: no "
            "operator computes Pillow's 'nearest' as the data pipeline does "
            "(only 'bilinear' is put into the model)");
  EXPECT_EQ(outside("transform { resize { size: 6 } } "),
            "input 'x' takes pictures as Resize leaves them; of Resize: it "
            "leaves the longer edge open (size: [height, width], or a "
            "CenterCrop behind it, says what the model gets)");
  EXPECT_EQ(outside("transform { resize { size: 9 } } transform { pad { padding"
                    ": 1 } } transform { center_crop { size: [6, 4] } } "),
            "input 'x' takes pictures as Resize, Pad leave them; of Pad: no "
            "operator computes it as the data pipeline does");

  const auto random = JobOf(
      "dataset_folder { root: \"none\" } transform { random_horizontal_flip {} "
      "}");
  ASSERT_TRUE(random.ok()) << random.status();
  EXPECT_FALSE(InputStagesOf(*random, random->proto().data().train(),
                             {{"x", DType::kFloat32, {-1, 3, 6, 4}}})
                   .ok());
}

TEST(InputStages, ColumnsAreScaledAsTheirFieldSays) {
  const auto job = JobOf(
      "csv { path: \"none.csv\" field { name: \"x\" column: [\"a\", \"b\"] "
      "log1p: true mean: [1, 2] std: [0.5, 4] } }");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto stages = InputStagesOf(*job, job->proto().data().train(),
                                    {{"x", DType::kFloat32, {-1, 2}}});
  ASSERT_TRUE(stages.ok()) << stages.status();
  ASSERT_EQ(stages->stages.size(), 1);
  InferenceModel model = Echo({2});
  const auto registry = MakeRegistry();
  ASSERT_TRUE(registry.ok());
  const auto status = PrependSteps(**registry, stages->stages[0], &model);
  ASSERT_TRUE(status.ok()) << status;
  const auto got =
      Answer(**registry, model, MakeArray<float>({2, 2}, {-3, 7, 100, 0.5f}));
  ASSERT_TRUE(got.ok()) << got.status();
  const double want[] = {(0 - 1) / 0.5, (std::log(8.0) - 2) / 4,
                         (std::log(101.0) - 1) / 0.5, (std::log(1.5) - 2) / 4};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(got->data<float>()[i], want[i], 1e-5) << i;
}

TEST(InputStages, TextsStayOutsideWithTheReason) {
  for (const auto& [what, reason] :
       {std::make_pair("hash_buckets: 10", "hashes of texts"),
        std::make_pair("categories {}", "stand for names"),
        std::make_pair("text {}", "tokens of texts")}) {
    const auto job = JobOf(
        absl::StrCat("csv { path: \"none.csv\" field { name: \"x\" column: "
                     "\"a\" ",
                     what, " } }"));
    ASSERT_TRUE(job.ok()) << job.status();
    const auto stages = InputStagesOf(*job, job->proto().data().train(),
                                      {{"x", DType::kInt64, {-1, 1}}});
    ASSERT_TRUE(stages.ok()) << stages.status();
    EXPECT_TRUE(stages->stages.empty());
    ASSERT_EQ(stages->outside.size(), 1);
    EXPECT_NE(stages->outside[0].find(reason), std::string::npos)
        << stages->outside[0];
  }
}

TEST(ModelEnds, OutputsAreRenamed) {
  InferenceModel model = Echo({2});
  model.names.classes["out"] = {"no", "yes"};
  EXPECT_EQ(RenameOutputs({"a", "b"}, &model).message(),
            "2 names are given for 1 outputs, 'out'");
  EXPECT_EQ(RenameOutputs({"x"}, &model).message(),
            "output 'out' cannot be named 'x': another variable of the model "
            "has this name");
  ASSERT_TRUE(RenameOutputs({"score"}, &model).ok());
  EXPECT_EQ(model.names.fetches, std::vector<std::string>{"score"});
  EXPECT_EQ(model.names.classes.at("score")[1], "yes");
  EXPECT_EQ(model.program.global().ops[0].Out("Out"), "score");
  EXPECT_EQ(model.program.global().FindVar("out"), nullptr);

  InferenceModel same = Echo({2});
  same.names.fetches = {"x"};
  EXPECT_EQ(RenameOutputs({"y"}, &same).message(),
            "output 'x' cannot be renamed: it is an input or a parameter too");
}

TEST(ModelEnds, ClassesGoWithTheProgram) {
  InferenceModel model = Echo({2});
  model.names.classes["out"] = {"no", "ja, \"ja\"", "\xC3\xA9"};
  ProgramDesc program = model.program;
  ASSERT_TRUE(AddFeedFetch(model.names, &program).ok());
  const auto names = StripFeedFetch(&program);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(names->classes, model.names.classes);
}

}  // namespace test_input_stages
}  // namespace pd
