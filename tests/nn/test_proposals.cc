// SPDX-License-Identifier: Apache-2.0
// Faster R-CNN as jobs have it: the network of the zoo with its losses, images
// without true boxes, what is said about what does not fit. testdata/layers
// compares layers and losses with PaddlePaddle.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_proposals {

absl::StatusOr<BuiltModel> Build(const std::string& text) {
  const auto job = ParseJob(text, "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

std::string ErrorOf(const std::string& text) {
  const auto built = Build(text);
  return built.ok() ? "no error" : std::string(built.status().message());
}

std::map<std::string, Shape> ParametersOf(const BuiltModel& built) {
  std::map<std::string, Shape> shapes;
  for (const VarDesc& var : built.main.global().vars)
    if (var.persistable) shapes[var.name] = var.shape;
  return shapes;
}

constexpr char kInputs[] =
    "input { name: \"image\" shape: [-1, 3, 64, 64] }\n"
    "input { name: \"gt_box\" shape: [-1, -1, 4] }\n"
    "input { name: \"gt_label\" shape: [-1, -1] dtype: int64 }\n";

// All of resnet18 but its last stage and the classifier is there by its names;
// losses call the layers inside of the use.
TEST(FasterRcnn, OfTheZoo) {
  const auto detector = Build(absl::StrCat(
      "model {", kInputs,
      "layer { input: [\"image\", \"gt_box\", \"gt_label\"] block { use: "
      "\"faster_rcnn_resnet18\" set: \"num_classes=3\" } } }"
      "loss { input: \"rpn\" rpn_loss {} }"
      "loss { input: \"head\" rcnn_loss { samples: \"samples\" offsets: "
      "\"head:bbox:offsets\" } }"));
  ASSERT_TRUE(detector.ok()) << detector.status();
  const auto classifier = Build(
      "model { input { name: \"image\" shape: [-1, 3, 64, 64] } layer { block "
      "{ use: \"resnet18\" } } }");
  ASSERT_TRUE(classifier.ok()) << classifier.status();
  const auto ours = ParametersOf(*detector);
  int shared = 0;
  for (const auto& [name, shape] : ParametersOf(*classifier)) {
    if (absl::StartsWith(name, "layer4") || absl::StartsWith(name, "fc."))
      continue;
    ASSERT_EQ(ours.count(name), 1u) << name;
    EXPECT_EQ(ours.at(name), shape) << name;
    ++shared;
  }
  EXPECT_EQ(shared, 75);
  // Beside them a 3 x 3 convolution, two predictions, four linear layers.
  EXPECT_EQ(ours.size(), 75u + 6 + 8);
  EXPECT_EQ(ours.at("head.bbox.score.weight"), (Shape{1024, 4}));
  EXPECT_EQ(ours.at("head.bbox.delta.weight"), (Shape{1024, 16}));
  EXPECT_EQ(detector->labels.size(), 0u) << "a layer was taken for a field";
}

// Two stages on a map at 1/8 of images of 64 x 64.
std::string SmallJob(const std::string& samples = "num_classes: 2",
                     const std::string& rpn = "rpn_straddle_thresh: -1") {
  return absl::StrCat(
      "model {\n", kInputs,
      R"(layer { name: "map" input: "image" avg_pool2d { kernel_size: 8 } }
layer { name: "rpn" rpn_head { anchor_sizes: [8, 16] stride: [8, 8] } }
layer { name: "rois" input: ["rpn:probabilities", "rpn:offsets", "image", "rpn:anchors", "rpn:variances"]
  generate_proposals { post_nms_top_n: 10 pixel_offset: true } }
layer { name: "samples" input: ["rois", "gt_box", "gt_label", "image"] generate_proposal_labels { )",
      samples, R"( } }
layer { input: ["map", "samples", "samples:rois_num"] roi_align { output_size: 2 spatial_scale: 0.125 } }
layer { flatten {} }
layer { name: "head" rcnn_head { num_classes: 2 } }
}
loss { input: "rpn" rpn_loss { )",
      rpn,
      " } }\nloss { input: \"head\" rcnn_loss { samples: \"samples\" } }\n");
}

Array Waves(const Shape& shape, double size) {
  std::vector<float> values(static_cast<size_t>(NumElements(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] =
        static_cast<float>(size * std::sin(1.7 * static_cast<double>(i)));
  return MakeArray(shape, values);
}

// The losses of a batch with these true boxes and the gradients' sum of
// squares.
std::vector<double> LossesOf(const std::vector<float>& boxes) {
  auto built = Build(SmallJob());
  EXPECT_TRUE(built.ok()) << built.status();
  if (!built.ok()) return {};
  ProgramDesc program = built->main;
  BackwardOptions options;
  options.targets[built->loss] = "";
  const auto gradients = AppendBackward(ReferenceRegistry(), options, &program);
  EXPECT_TRUE(gradients.ok()) << gradients.status();
  if (!gradients.ok()) return {};
  Session session(&ReferenceRegistry());
  for (const auto& [name, shape] : ParametersOf(*built))
    EXPECT_TRUE(session.scope().Set(name, Waves(shape, 0.1)).ok());
  std::vector<std::string> fetches = {built->losses[0].second,
                                      built->losses[1].second};
  for (const auto& [name, gradient] : *gradients) fetches.push_back(gradient);
  const auto results = session.Run(
      program,
      {{"image", Waves({2, 3, 64, 64}, 1)},
       {"gt_box", MakeArray({2, 2, 4}, boxes)},
       {"gt_label", MakeArray({2, 2}, std::vector<int64_t>{1, 0, 0, 0})}},
      fetches);
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) return {};
  std::vector<double> numbers;
  double squares = 0;
  for (size_t i = 0; i < fetches.size(); ++i) {
    const Array& got = results->at(fetches[i]);
    const auto count = static_cast<size_t>(NumElements(got.shape));
    for (size_t k = 0; k < count; ++k) {
      if (i < 2) numbers.push_back(got.data<float>()[k]);
      if (i >= 2) squares += got.data<float>()[k] * got.data<float>()[k];
    }
  }
  numbers.push_back(squares);
  return numbers;
}

// Where nothing is, all that is chosen learns that: no difference counts.
TEST(FasterRcnn, ImagesWithoutBoxes) {
  const std::vector<float> one_has = {0.1f, 0.1f, 0.6f, 0.5f, 0, 0, 0, 0,
                                      0,    0,    0,    0,    0, 0, 0, 0};
  for (const auto& boxes : {one_has, std::vector<float>(16, 0)}) {
    const std::vector<double> numbers = LossesOf(boxes);
    ASSERT_EQ(numbers.size(), 3u);
    for (const double number : numbers) {
      EXPECT_TRUE(std::isfinite(number));
      EXPECT_GT(number, 0);
    }
  }
}

TEST(FasterRcnn, WhatDoesNotFit) {
  EXPECT_EQ(ErrorOf(SmallJob("num_classes: 3")),
            "job.pbtxt:15:1: 'samples:targets' is [-1, 16]; expected [-1, 12]");
  EXPECT_EQ(ErrorOf(SmallJob("num_classes: 2", "anchors: \"rois\"")),
            "job.pbtxt:14:1: 'rois' is [-1, 4]; expected [8, 8, 6, 4]");
  EXPECT_EQ(ErrorOf(SmallJob("num_classes: 2", "image: \"gt_box\"")),
            "job.pbtxt:14:1: the images are [-1, -1, 4]; expected [N, C, H, W] "
            "of a known size");
  const std::string job = SmallJob();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = job;
    changed.replace(changed.find(from), from.size(), to);
    return ErrorOf(changed);
  };
  EXPECT_EQ(with("samples: \"samples\"", ""),
            "job.pbtxt:15:22: 'rcnn_loss' needs 'samples'");
  EXPECT_EQ(with("samples: \"samples\"", "samples: \"rois\""),
            "job.pbtxt:15:1: layer 'rois' gives no 'labels'");
  EXPECT_EQ(with("loss { input: \"rpn\" rpn_loss", "loss { rpn_loss"),
            "job.pbtxt:14:1: the predictions are [-1, 3]; expected scores of "
            "anchors [N, A, H, W]");
  EXPECT_EQ(with("[\"rois\", \"gt_box\"", "[\"map\", \"gt_box\""),
            "job.pbtxt:9:1: layer 'samples' (generate_proposal_labels) expects "
            "boxes [rows, 4] of generate_proposals; layer 'map' gives [-1, 3, "
            "8, 8]");
}

}  // namespace test_proposals
}  // namespace pd
