// SPDX-License-Identifier: Apache-2.0
// Tests of losses beyond tests/nn/test_layer_goldens.cc: fields of the
// data set, messages, random and sampled ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_losses {

absl::StatusOr<BuiltModel> Build(const std::string& shape,
                                 const std::string& loss) {
  const auto job = ParseJob(
      absl::StrCat("model {\n  input { name: \"x\" shape: ", shape,
                   " }\n  layer { name: \"l\" identity {} }\n}\nloss { ", loss,
                   " }\n"),
      "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

std::string ErrorOf(const std::string& shape, const std::string& loss) {
  const auto built = Build(shape, loss);
  return built.ok() ? "no error" : std::string(built.status().message());
}

// "label int64[-1, 1], steps int64[-1]"
std::string Labels(const std::string& shape, const std::string& loss) {
  const auto built = Build(shape, loss);
  if (!built.ok()) return std::string(built.status().message());
  std::string text;
  for (const VarDesc& var : built->labels)
    absl::StrAppend(&text, text.empty() ? "" : ", ", var.name, " ",
                    Name(var.dtype), ToString(var.shape));
  return text;
}

// A loss takes both sides from inside of a block: halves of (1, 2, 4, 8), of
// which the mean square is ((1 - 4)^2 + (2 - 8)^2) / 2. A layer that is called
// as a field of the data set, in a block without a name, does not hide it.
TEST(Losses, ReadResultsInsideOfBlocks) {
  const auto build = [](const std::string& net, const std::string& label) {
    const auto job = ParseJob(
        absl::StrCat("model { input { name: \"x\" shape: [-1, 4] } block { "
                     "name: \"b\" input: \"x\" layer { name: \"label\" "
                     "chunk { chunks: 2 axis: 1 } } } layer { ",
                     net, " block { use: \"b\" } } }\nloss { ", label,
                     " mse_loss {} }\n"),
        "job.pbtxt");
    EXPECT_TRUE(job.ok()) << job.status();
    return BuildModel(*job, ReferenceRegistry());
  };
  auto built =
      build("name: \"net\"", "input: \"net.label\" label: \"net.label:1\"");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_TRUE(built->labels.empty());
  NamedArrays feeds;
  feeds["x"] = MakeArray(Shape{1, 4}, std::vector<float>{1, 2, 4, 8});
  Session session(&ReferenceRegistry(), 0);
  const auto results = session.Run(built->main, feeds, {built->loss});
  ASSERT_TRUE(results.ok()) << results.status();
  float loss = 0;
  std::memcpy(&loss, results->at(built->loss).bytes.get(), sizeof(loss));
  EXPECT_EQ(loss, 22.5f);
  built = build("", "label: \"label\"");
  ASSERT_TRUE(built.ok()) << built.status();
  ASSERT_EQ(built->labels.size(), 1u);
  EXPECT_EQ(built->labels[0].name, "label");
}

TEST(Losses, DeclareFieldsOfTheDataSet) {
  EXPECT_EQ(Labels("[-1, 3]", "cross_entropy {}"), "label int64[-1, 1]");
  EXPECT_EQ(Labels("[-1, 3]", "cross_entropy { soft_label: true }"),
            "label float32[-1, 3]");
  EXPECT_EQ(Labels("[-1, 3, 8, 8]", "cross_entropy { axis: 1 }"),
            "label int64[-1, 1, 8, 8]");
  EXPECT_EQ(Labels("[-1, -1, 9]", "length: \"n\" cross_entropy {}"),
            "label int64[-1, -1, 1], n int64[-1]");
  EXPECT_EQ(Labels("[-1, 6, 9]", "mask: \"m\" cross_entropy {}"),
            "label int64[-1, 6, 1], m float32[-1, 6]");
  EXPECT_EQ(Labels("[-1, 6, 9]", "sample_weight: \"w\" cross_entropy {}"),
            "label int64[-1, 6, 1], w float32[-1]");
  EXPECT_EQ(Labels("[-1, 3]", "value {}"), "");
  EXPECT_EQ(Labels("[20, -1, 9]",
                   "ctc_loss { input_length: \"n\" "
                   "label_length: \"m\" }"),
            "label int64[-1, -1], n int64[-1], m int64[-1]");
  EXPECT_EQ(Labels("[-1, 4]",
                   "label: \"y\" cosine_embedding_loss { other: "
                   "\"z\" }"),
            "z float32[-1, 4], y float32[-1]");
  EXPECT_EQ(Labels("[-1, 4]",
                   "triplet_margin_loss { positive: \"x\" "
                   "negative: \"n\" }"),
            "n float32[-1, 4]");
  EXPECT_EQ(Labels("[-1, 14, 3, 3]",
                   "yolo_loss { anchors: [1, 2, 3, 4] anchor_mask: [0, 1] "
                   "class_num: 2 ignore_thresh: 0.5 downsample_ratio: 8 }"),
            "gt_box float32[-1, -1, 4], label int64[-1, -1]");
  EXPECT_EQ(Labels("[-1, 4]",
                   "hsigmoid_loss { num_classes: 6 path_table: "
                   "\"t\" path_code: \"c\" }"),
            "t int64[-1, -1], c int64[-1, -1], label int64[-1, 1]");
}

TEST(Losses, SayWhatDoesNotFit) {
  const std::string at = "job.pbtxt:5:1: ";
  EXPECT_EQ(ErrorOf("[-1, 3]", "cross_entropy { weight: [1, 2] }"),
            at + "'weight' holds 2 numbers; the predictions are [-1, 3], with "
                 "3 classes");
  EXPECT_EQ(ErrorOf("[-1, 3]", "bce_loss { weight: [1, 2] }"),
            at + "'weight' holds 2 numbers; the predictions are [-1, 3], so it "
                 "takes 1 or 3");
  EXPECT_EQ(ErrorOf("[-1, 3]",
                    "label: \"y\" triplet_margin_loss { positive: "
                    "\"x\" negative: \"x\" }"),
            at + "triplet_margin_loss has no use for a 'label'");
  EXPECT_EQ(ErrorOf("[-1, 3]", "mask: \"m\" npair_loss { positive: \"p\" }"),
            at + "npair_loss has no use for 'mask'");
  EXPECT_EQ(
      ErrorOf("[-1, 3]", "sample_weight: \"w\" npair_loss { positive: \"p\" }"),
      at + "npair_loss has no use for a 'sample_weight'");
  EXPECT_EQ(ErrorOf("[-1, 3]", "label: \"y\" value {}"),
            at + "value has no use for a 'label'");
  EXPECT_EQ(ErrorOf("[-1, 3] dtype: int64", "input: \"l\" value {}"),
            at + "a loss is a floating-point number; 'l' is int64");
  EXPECT_EQ(ErrorOf("[-1, 3]",
                    "ctc_loss { input_length: \"n\" label_length: "
                    "\"m\" }"),
            at + "the predictions are [-1, 3]; expected logits [T, N, classes "
                 "+ 1]");
  EXPECT_EQ(ErrorOf("[-1, 3]",
                    "nce { num_total_classes: 4 sampler: "
                    "custom_dist custom_dist: [0.5, 0.5] }"),
            at + "'custom_dist' holds 2 numbers; sampler custom_dist takes 4");
  EXPECT_EQ(ErrorOf("[-1, 3]",
                    "hsigmoid_loss { num_classes: 4 path_table: "
                    "\"t\" }"),
            at + "'path_table' and 'path_code' go together");
  EXPECT_EQ(ErrorOf("[-1, 12, 3, 3]",
                    "yolo_loss { anchors: [1, 2, 3, 4] anchor_mask: [0, 1] "
                    "class_num: 2 ignore_thresh: 0.5 downsample_ratio: 8 }"),
            at +
                "the predictions are [-1, 12, 3, 3]; 2 boxes of 2 classes need "
                "14 channels");
}

// Weights 0: every sigmoid is 1/2, whatever is drawn. A label costs
// -log(o / (o + k/C)), a drawn class -log((k/C) / (o + k/C)), o = 1/2.
TEST(Losses, ALayerIsNotItsOwnLabel) {
  EXPECT_NE(ErrorOf("[-1, 3]", "label: \"l\" mse_loss {}")
                .find("its label 'l' is the layer that the loss judges"),
            std::string::npos);
  EXPECT_EQ(ErrorOf("[-1, 3]", "label: \"y\" mse_loss {}"), "no error");
}

TEST(Losses, NoiseContrastiveEstimation) {
  for (const char* sampler :
       {"uniform", "custom_dist custom_dist: [0.25, 0.25, 0.25, 0.25]"}) {
    auto built = Build("[-1, 3]",
                       absl::StrCat("name: \"n\" nce { num_total_classes: 4 "
                                    "num_neg_samples: 6 sampler: ",
                                    sampler,
                                    " weight_attr { initializer { constant {} "
                                    "} } }"));
    ASSERT_TRUE(built.ok()) << built.status();
    ASSERT_EQ(built->parameters.size(), 2u);
    EXPECT_EQ(built->parameters[0].name, "n.weight");
    Session session(&ReferenceRegistry(), 1);
    ASSERT_TRUE(session.RunOnce(built->startup).ok());
    const NamedArrays feeds = {
        {"x", MakeArray({2, 3}, std::vector<float>(6, 0.5f))},
        {"label", MakeArray({2, 1}, std::vector<int64_t>{3, 0})}};
    const auto results = session.Run(built->main, feeds, {built->loss});
    ASSERT_TRUE(results.ok()) << results.status();
    const double b = 6.0 / 4, o = 0.5;
    const double want =
        (-std::log(o / (o + b)) - 6 * std::log(b / (o + b))) / 7;
    EXPECT_NEAR(results->at(built->loss).data<float>()[0], want, 1e-5);
  }
}

// With weights 0 each turn costs log 2; so do, in PaddlePaddle's op, the places
// behind the end of a shorter way.
TEST(Losses, HierarchicalSigmoidOfATreeOfOnesOwn) {
  const auto built = Build("[-1, 3]",
                           "hsigmoid_loss { num_classes: 4 path_table: \"t\" "
                           "path_code: \"c\" weight_attr { initializer { "
                           "constant {} } } }");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->parameters[0].name, "hsigmoid_loss_0.w_0");
  EXPECT_EQ(
      ToString(built->main.global().FindVar("hsigmoid_loss_0.w_0")->shape),
      "[4, 3]");
  Session session(&ReferenceRegistry(), 1);
  ASSERT_TRUE(session.RunOnce(built->startup).ok());
  const NamedArrays feeds = {
      {"x", MakeArray({2, 3}, std::vector<float>(6, 0.5f))},
      {"t", MakeArray({2, 2}, std::vector<int64_t>{0, 2, 0, -1})},
      {"c", MakeArray({2, 2}, std::vector<int64_t>{0, 1, 1, -1})},
      {"label", MakeArray({2, 1}, std::vector<int64_t>{3, 0})}};
  const auto results = session.Run(built->main, feeds, {built->loss});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_NEAR(results->at(built->loss).data<float>()[0], 2 * std::log(2.0),
              1e-5);
}

// The number of positions is known only when a batch comes.
TEST(Losses, LengthOverPositionsOfAnyNumber) {
  const auto built = Build("[-1, -1, 2]", "length: \"n\" cross_entropy {}");
  ASSERT_TRUE(built.ok()) << built.status();
  Session session(&ReferenceRegistry(), 1);
  const NamedArrays feeds = {
      {"x", MakeArray({2, 2, 2}, std::vector<float>{0, 0, 9, -9, 0, 0, 0, 0})},
      {"n", MakeArray({2}, std::vector<int64_t>{1, 2})},
      {"label", MakeArray({2, 2, 1}, std::vector<int64_t>{0, 1, 1, 0})}};
  const auto results = session.Run(built->main, feeds, {built->loss});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_NEAR(results->at(built->loss).data<float>()[0], std::log(2.0), 1e-6);
}

// The loss of a job and its gradient by x, for these feeds.
std::vector<float> LossAndGradient(const std::string& shape,
                                   const std::string& loss,
                                   const NamedArrays& feeds) {
  auto built = Build(shape, loss);
  EXPECT_TRUE(built.ok()) << built.status();
  BackwardOptions options;
  options.targets[built->loss] = "";
  options.wrt = {"x"};
  const auto gradients =
      AppendBackward(ReferenceRegistry(), options, &built->main);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  Session session(&ReferenceRegistry(), 1);
  const std::string dx = gradients->at("x");
  const auto results = session.Run(built->main, feeds, {built->loss, dx});
  EXPECT_TRUE(results.ok()) << results.status();
  std::vector<float> values = {results->at(built->loss).data<float>()[0]};
  const Array& gradient = results->at(dx);
  values.insert(values.end(), gradient.data<float>(),
                gradient.data<float>() + NumElements(gradient.shape));
  return values;
}

// The layer's result is the loss; a negative weight maximizes it.
TEST(Losses, ValueOfALayer) {
  const NamedArrays feeds = {
      {"x", MakeArray({2, 2}, std::vector<float>{1, 2, 3, 6})}};
  EXPECT_EQ(LossAndGradient("[-1, 2]", "value {}", feeds),
            (std::vector<float>{3, 0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(LossAndGradient("[-1, 2]", "weight: -0.5 value { reduction: sum }",
                            feeds),
            (std::vector<float>{-6, -0.5, -0.5, -0.5, -0.5}));
}

// Factors of either sign; the mean is over all records.
TEST(Losses, SampleWeight) {
  const NamedArrays feeds = {
      {"x", MakeArray({2, 2}, std::vector<float>{1, 2, 3, 6})},
      {"label", MakeArray({2, 2}, std::vector<float>{0, 0, 0, 0})},
      {"w", MakeArray({2}, std::vector<float>{2, -1})}};
  EXPECT_EQ(
      LossAndGradient("[-1, 2]", "sample_weight: \"w\" l1_loss {}", feeds),
      (std::vector<float>{-0.75, 0.5, 0.5, -0.25, -0.25}));
  NamedArrays masked = feeds;
  masked["m"] = MakeArray({2, 2}, std::vector<float>{1, 0, 0, 1});
  EXPECT_EQ(
      LossAndGradient("[-1, 2]", "sample_weight: \"w\" mask: \"m\" l1_loss {}",
                      masked),
      (std::vector<float>{-2, 1, 0, 0, -0.5}));
}

}  // namespace test_losses
}  // namespace pd
