// SPDX-License-Identifier: Apache-2.0
// Every kind of metric against PaddlePaddle, scikit-learn and sacreBLEU, its
// batches in both orders; numbers worked by hand where those have no such
// thing; and what is said about what does not fit.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "libcore/nn/job_metric.pb.h"
#include "libcore/train/metrics/confusion.h"
#include "libcore/train/metrics/exact_sum.h"
#include "libcore/train/metrics/kinds.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace test_metrics {

using Json = nlohmann::json;

// A tensor that owns its bytes.
struct Value {
  Tensor tensor;
  std::vector<int64_t> ints;
  std::vector<float> floats;

  void Set(Shape shape, std::vector<int64_t> values) {
    ints = std::move(values);
    tensor = Tensor(DType::kInt64, std::move(shape));
    tensor.Attach(ints.data());
  }
  void Set(Shape shape, std::vector<float> values) {
    floats = std::move(values);
    tensor = Tensor(DType::kFloat32, std::move(shape));
    tensor.Attach(floats.data());
  }
};
using Values = std::map<MetricSlot, Value>;

MetricBatch BatchOf(const Values& values) {
  MetricBatch batch;
  for (const auto& [slot, value] : values) batch[slot] = &value.tensor;
  return batch;
}

MetricPtr Make(const std::string& text) {
  job::Metric metric;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &metric))
      << text;
  return MakeMetric(metric);
}

Values FromJson(const Json& json) {
  const std::map<std::string, MetricSlot> slots = {
      {"input", MetricSlot::kInput},
      {"label", MetricSlot::kLabel},
      {"length", MetricSlot::kLength},
      {"input_length", MetricSlot::kInputLength},
      {"box", MetricSlot::kBox},
      {"difficult", MetricSlot::kDifficult}};
  Values values;
  for (const auto& [slot, tensor] : json.items()) {
    const Shape shape = tensor["shape"].get<Shape>();
    Value& value = values[slots.at(slot)];
    if (tensor["dtype"] == "float32")
      value.Set(shape, tensor["data"].get<std::vector<float>>());
    else
      value.Set(shape, tensor["data"].get<std::vector<int64_t>>());
  }
  return values;
}

// The cases of a file: metrics give what others give, whatever the order of the
// batches.
void RepeatCases(const std::string& path, size_t least) {
  std::ifstream file(path);
  const Json cases = Json::parse(file);
  ASSERT_GT(cases.size(), least);
  for (const Json& one : cases) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const MetricPtr metric = Make(one["metric"].get<std::string>());
    std::vector<Values> batches;
    for (const Json& batch : one["batches"]) batches.push_back(FromJson(batch));
    MetricResults before;
    for (int order : {0, 1}) {
      metric->Reset();
      for (size_t i = 0; i < batches.size(); ++i) {
        const size_t at = order == 0 ? i : batches.size() - 1 - i;
        const auto status = metric->Update(BatchOf(batches[at]));
        ASSERT_TRUE(status.ok()) << status;
      }
      const MetricResults results = metric->Results();
      ASSERT_EQ(results.size(), one["expected"].size());
      const std::string stem = metric->names()[0];
      for (const auto& [name, value] : results) {
        bool found = false;
        for (const auto& [suffix, expected] : one["expected"].items()) {
          if (name.size() < suffix.size() ||
              name.substr(name.size() - suffix.size()) != suffix ||
              (suffix.empty() && name != stem))
            continue;
          found = true;
          // PaddlePaddle gives some as float32.
          EXPECT_NEAR(value, expected.get<double>(), 2e-7) << name;
        }
        EXPECT_TRUE(found) << name;
      }
      if (order == 1) {
        EXPECT_EQ(results, before);  // bit for bit
      }
      before = results;
    }
  }
}

TEST(Metrics, GiveWhatOthersGive) {
  RepeatCases(PD_TESTDATA "/metrics/goldens.json", 40);
}

TEST(Metrics, GiveCocosAveragePrecision) {
  RepeatCases(PD_TESTDATA "/metrics/coco.json", 4);
}

// A whole picture by hand: of two boxes of class 1 the first is found with an
// overlap of 0.82, then a false one, then nothing; the crowd of class 2 takes
// two, which count for nothing, and its one box is found exactly.
TEST(Metrics, CocoByHand) {
  Values values;
  values[MetricSlot::kLabel].Set({1, 4}, std::vector<int64_t>{1, 1, 2, 2});
  values[MetricSlot::kBox].Set(
      {1, 4, 4}, std::vector<float>{0, 0, 10, 10, 50, 50, 60, 60, 20, 20, 30,
                                    30, 70, 70, 90, 90});
  values[MetricSlot::kDifficult].Set({1, 4}, std::vector<int64_t>{0, 0, 0, 1});
  values[MetricSlot::kInput].Set(
      {5, 6},
      std::vector<float>{1,  0.9f, 0,  0,    10, 8.2f, 1,  0.8f, 80, 0,
                         90, 10,   2,  0.9f, 70, 70,   75, 75,   2,  0.8f,
                         80, 80,   90, 90,   2,  0.7f, 20, 20,   30, 30});
  values[MetricSlot::kInputLength].Set({1}, std::vector<int64_t>{5});
  const std::string text =
      "mean_average_precision { ap_type: coco is_bbox_normalized: false "
      "difficult: 'd' }";
  const MetricPtr metric = Make(text);
  ASSERT_TRUE(metric->Update(BatchOf(values)).ok());
  const MetricResults results = metric->Results();
  ASSERT_EQ(results.size(), 4u);
  // Class 1: precision 1 at the 51 recalls up to 0.5, for the 7 overlaps from
  // 0.5 to 0.8; class 2: 1.
  EXPECT_NEAR(results[0].second, (0.7 * 51 / 101 + 1) / 2, 1e-12);
  EXPECT_NEAR(results[1].second, (51.0 / 101 + 1) / 2, 1e-12);
  EXPECT_NEAR(results[2].second, (51.0 / 101 + 1) / 2, 1e-12);
  EXPECT_NEAR(results[3].second, (0.7 * 0.5 + 1) / 2, 1e-12);
  EXPECT_EQ(results[1].first, "mean_average_precision_50");
}

std::string ErrorOf(const std::string& text, const Values& values) {
  const absl::Status status = Make(text)->Update(BatchOf(values));
  return status.ok() ? "no error" : std::string(status.message());
}

Values Pair(Shape shape, std::vector<float> input, Shape label_shape,
            std::vector<int64_t> label) {
  Values values;
  values[MetricSlot::kInput].Set(std::move(shape), std::move(input));
  values[MetricSlot::kLabel].Set(std::move(label_shape), std::move(label));
  return values;
}

double Result(const std::string& text, const Values& values) {
  const MetricPtr metric = Make(text);
  const absl::Status status = metric->Update(BatchOf(values));
  EXPECT_TRUE(status.ok()) << status;
  return metric->Results()[0].second;
}

TEST(Metrics, AccuracyLeavesOutPaddingAndIgnored) {
  // Right, ignored, padding; wrong, padding, padding.
  Values values = Pair({2, 3, 2}, {0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0}, {2, 3},
                       {1, -100, 7, 1, 7, 7});
  values[MetricSlot::kLength].Set({2}, std::vector<int64_t>{2, 1});
  EXPECT_EQ(Result("accuracy {}", values), 0.5);
  values[MetricSlot::kLength].Set({2}, std::vector<int64_t>{2, 4});
  EXPECT_EQ(ErrorOf("accuracy {}", values),
            "length 4 of record 1 is not in [0, 3]");
}

TEST(Metrics, AccuracyTakesAnyAxis) {
  // Pixels: classes on axis 1.
  const Values values = Pair({1, 2, 1, 3}, {0.1f, 0.9f, 0.5f, 0.9f, 0.1f, 0.5f},
                             {1, 1, 3}, {1, 0, 1});
  // Of equal scores the first wins: the third pixel is wrong.
  EXPECT_NEAR(Result("accuracy { axis: 1 }", values), 2.0 / 3, 1e-15);
}

TEST(Metrics, ConfusionCountsAndStopsAtManyClasses) {
  const MetricPtr metric = Make("confusion_matrix { ignore_index: 9 }");
  const Values values =
      Pair({4, 3}, {1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1}, {4}, {0, 1, 2, 9});
  ASSERT_TRUE(metric->Update(BatchOf(values)).ok());
  ASSERT_TRUE(metric->Update(BatchOf(values)).ok());
  const ConfusionMatrix& table = *metric->Table();
  EXPECT_EQ(table.classes(), 3);
  EXPECT_EQ(table.at(0, 0), 2);
  EXPECT_EQ(table.at(2, 1), 2);
  EXPECT_EQ(table.at(2, 2), 0);
  EXPECT_EQ(table.Truths(2), 2);
  EXPECT_EQ(table.Predictions(1), 4);
  metric->Reset();
  EXPECT_EQ(metric->Table()->classes(), 0);
  EXPECT_EQ(ErrorOf("confusion_matrix {}",
                    Pair({1, 5000}, std::vector<float>(5000), {1}, {0})),
            "there are 5000 classes; a confusion matrix takes 4096");
}

TEST(Metrics, ConfusionOfProbabilities) {
  const MetricPtr metric = Make("confusion_matrix {}");
  ASSERT_TRUE(
      metric
          ->Update(BatchOf(Pair({3, 1}, {0.5f, 0.4f, 0.9f}, {3, 1}, {1, 1, 0})))
          .ok());
  EXPECT_EQ(metric->Table()->at(1, 1), 1);
  EXPECT_EQ(metric->Table()->at(1, 0), 1);
  EXPECT_EQ(metric->Table()->at(0, 1), 1);
}

TEST(Metrics, DetectionsInPixelsAndRows) {
  // One box found, one missed, one false: precision 1, then 1/2.
  Values values;
  values[MetricSlot::kLabel].Set({1, 2}, std::vector<int64_t>{5, 5});
  values[MetricSlot::kBox].Set(
      {1, 2, 4}, std::vector<float>{20, 20, 20, 20, 60, 60, 10, 10});
  values[MetricSlot::kInput].Set(
      {2, 6}, std::vector<float>{5, 0.9f, 10, 10, 30, 30, 5, 0.8f, 0, 0, 5, 5});
  values[MetricSlot::kInputLength].Set({1}, std::vector<int64_t>{2});
  const std::string text =
      "mean_average_precision { is_bbox_normalized: false box_format: cxcywh ";
  EXPECT_NEAR(Result(text + "}", values), 0.5, 1e-12);
  // Recall 0 to 0.5 is 6 of 11 points.
  EXPECT_NEAR(Result(text + "ap_type: eleven_point }", values), 6.0 / 11,
              1e-12);
  EXPECT_TRUE(std::isnan(Result(text + "background_label: 5 }", values)));
  values[MetricSlot::kInputLength].Set({1}, std::vector<int64_t>{3});
  EXPECT_EQ(ErrorOf(text + "}", values),
            "record 0 has 3 predictions; there are 2 rows");
}

TEST(Metrics, SayWhatDoesNotFit) {
  EXPECT_EQ(
      ErrorOf("accuracy {}", Pair({2, 3}, {1, 2, 3, 4, 5, 6}, {2}, {1, 3})),
      "label 3 at position 1 is not in [0, 3)");
  EXPECT_EQ(ErrorOf("accuracy {}", Pair({2, 1}, {1, 2}, {2}, {0, 0})),
            "the predictions have 1 class, which is always right; for one "
            "probability there are precision, recall, f1 and confusion_matrix");
  EXPECT_EQ(ErrorOf("accuracy { topk: 4 }", Pair({1, 3}, {1, 2, 3}, {1}, {0})),
            "'topk' is 4; there are 3 classes");
  EXPECT_EQ(
      ErrorOf("accuracy {}", Pair({2, 3}, {1, 2, 3, 4, 5, 6}, {3}, {1, 2, 0})),
      "the labels are int64[3]; predictions float32[2, 3] need integers "
      "[2]");
  EXPECT_EQ(
      ErrorOf("precision {}", Pair({2}, {0.5f, 1.5f}, {2}, {1, 0})),
      "the prediction at position 1 is 1.5; expected a probability, which "
      "a sigmoid layer gives");
  EXPECT_EQ(ErrorOf("precision {}", Pair({2}, {0.5f, 0.5f}, {2}, {1, 2})),
            "label 2 at position 1 is neither 0 nor 1");
  EXPECT_EQ(
      ErrorOf("auc {}", Pair({1, 2}, {0.5f, NAN}, {1}, {1})),
      "the prediction of record 0 is nan; expected a probability, which a "
      "softmax or sigmoid layer gives");
  EXPECT_EQ(ErrorOf("f1 { average: macro }", Pair({1, 2}, {0, NAN}, {1}, {1})),
            "the score of class 1 at position 0 is nan");
  EXPECT_EQ(ErrorOf("mae {}", Pair({2, 2}, {0, 0, 0, 0}, {2}, {1, 2})),
            "the labels are int64[2]; predictions float32[2, 2] need the same "
            "shape");
  EXPECT_EQ(
      ErrorOf("mean_iou {}", Pair({1, 2, 2}, {0, 0, 0, 0}, {1, 2}, {0, 2})),
      "label 2 at position 1 is not in [0, 2)");
  EXPECT_EQ(
      ErrorOf("chunk_f1 { num_chunk_types: 1 }",
              Pair({1, 1, 4}, {0, 0, 0, 1}, {1, 1}, {0})),
      "the predictions are scores [1, 1, 4]; 1 chunk types in this scheme "
      "have 3 tags");
  EXPECT_EQ(ErrorOf("cer {}", Pair({1, 4}, {0, 0, 0, 1}, {1, 1}, {0})),
            "the predictions are float32[1, 4]; expected scores [N, T, "
            "classes]");
}

TEST(Metrics, NothingCountedIsNoNumber) {
  for (const char* text :
       {"accuracy {}", "mae {}", "perplexity {}", "mean_iou {}", "cer {}",
        "bleu {}", "edit_distance {}", "mean_average_precision {}"})
    EXPECT_TRUE(std::isnan(Make(text)->Results()[0].second)) << text;
  // PaddlePaddle's are 0.
  for (const char* text : {"precision {}", "auc {}"})
    EXPECT_EQ(Make(text)->Results()[0].second, 0) << text;
}

TEST(Metrics, NamesFollowTheKind) {
  EXPECT_EQ(Make("accuracy {}")->names(), ResultNames{"acc"});
  EXPECT_EQ(Make("accuracy { topk: 1 }")->names(), ResultNames{"acc"});
  EXPECT_EQ(Make("accuracy { topk: 5 }")->names(), ResultNames{"acc_top5"});
  EXPECT_EQ(Make("accuracy { topk: [1, 5] } name: 'a'")->names(),
            (ResultNames{"a_top1", "a_top5"}));
  EXPECT_EQ(Make("chunk_f1 { num_chunk_types: 1 } name: 'ner'")->names(),
            (ResultNames{"ner", "ner_precision", "ner_recall"}));
  EXPECT_EQ(Make("mean_iou { num_classes: 2 per_class: true }")->names(),
            (ResultNames{"mean_iou", "mean_iou_0", "mean_iou_1"}));
}

// The error on loading a job whose metric does not fit, with its place.
std::string LoadError(const std::string& metric) {
  static const OpRegistry* const registry = [] {
    auto* made = new OpRegistry;
    EXPECT_TRUE(RegisterAllOps(made).ok());
    return made;
  }();
  const auto job =
      ParseJob(absl::StrCat("model {\n  input { name: 'x' shape: [-1, 2] }\n"
                            "  layer { linear { out_features: 3 } }\n}\n"
                            "loss { mse_loss {} }\n",
                            metric),
               "job.pbtxt");
  EXPECT_TRUE(job.ok()) << job.status();
  const auto built = BuildTestProgram(*registry, *job);
  return built.ok() ? "no error" : std::string(built.status().message());
}

TEST(Metrics, FitTheNetworkWhenTheJobIsLoaded) {
  EXPECT_EQ(LoadError("metric { label: 'y' accuracy { topk: 4 } }"),
            "job.pbtxt:6:1: metric 'acc': 'topk' is 4; there are 3 classes");
  EXPECT_EQ(LoadError("metric { label: 'y' auc {} }"),
            "job.pbtxt:6:1: metric 'auc': the predictions have shape [-1, 3]; "
            "expected probabilities of two classes, [N, 2] or [N, 1]");
  EXPECT_EQ(LoadError("metric { label: 'y' cer {} }"),
            "job.pbtxt:6:1: metric 'cer': the predictions are float32[-1, 3]; "
            "expected scores [N, T, classes]");
  EXPECT_EQ(LoadError("metric { label: 'y' mean_average_precision {} }"),
            "job.pbtxt:6:1: metric 'mean_average_precision': the predictions "
            "have shape [-1, 3]; expected rows of class, score and box, [N, M, "
            "6] or [rows, 6]");
  // The label of the loss is known too.
  EXPECT_EQ(LoadError("metric { mae {} }"), "no error");
  EXPECT_EQ(
      LoadError("metric { perplexity {} }"),
      "job.pbtxt:6:1: metric 'perplexity': the labels are float32[-1, 3]; "
      "predictions float32[-1, 3] need integers [-1]");
}

TEST(ExactSum, LosesNothing) {
  ExactSum sum;
  for (double x : {1e16, 1.0, 1.0, -1e16, 1e-30}) sum.Add(x);
  EXPECT_EQ(sum.Value(), 2.0);
  ExactSum tenths;
  for (int i = 0; i < 10; ++i) tenths.Add(0.1);
  EXPECT_EQ(tenths.Value(), 1.0);  // plain addition gives 0.9999999999999999
  ExactSum half;  // half-way between two doubles, and a little more
  for (double x : {1.0, 0x1p-53, 0x1p-106}) half.Add(x);
  EXPECT_EQ(half.Value(), 1 + 0x1p-52);
  sum.Add(std::numeric_limits<double>::infinity());
  EXPECT_EQ(sum.Value(), std::numeric_limits<double>::infinity());
}

}  // namespace test_metrics
}  // namespace pd
