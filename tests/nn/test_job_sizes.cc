// SPDX-License-Identifier: Apache-2.0
// Sizes that a job leaves to its data, and what evaluation inherits.
#include "libcore/nn/job_sizes.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.pb.h"

namespace pd {
namespace test_job_sizes {

constexpr char kJob[] = R"(model {
  input { name: "x" shape: [-1, @columns] }
  layer { name: "fc" linear { out_features: @classes(kind) } }
  layer { name: "net" block { use: "lenet" set: "num_classes=@classes" } }
}
metric { mean_iou { num_classes: @classes } }
)";

std::string ErrorOf(const std::string& text,
                    const std::vector<std::string>& overrides = {}) {
  const auto job = ParseJob(text, "job.pbtxt", overrides);
  return job.ok() ? "no error" : std::string(job.status().message());
}

std::string ErrorAfter(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kJob, {{from, to}});
  EXPECT_NE(text, kJob) << from;
  return ErrorOf(text);
}

TEST(JobSizes, AreFoundWithTheirPlaces) {
  const auto job = ParseJob(kJob, "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  std::vector<std::string> found;
  for (const OpenSize& size : OpenSizes(*job))
    found.push_back(absl::StrCat(size.place, " ", size.text, ": ", size.kind,
                                 " of '", size.field, "'"));
  EXPECT_EQ(found, (std::vector<std::string>{
                       "job.pbtxt:6:21 @classes: classes of ''",
                       "job.pbtxt:2:33 @columns: columns of ''",
                       "job.pbtxt:3:31 @classes(kind): classes of 'kind'",
                       "job.pbtxt:4:44 @classes: classes of ''"}));
}

TEST(JobSizes, AreFilled) {
  const auto job = ParseJob(kJob, "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const std::map<std::string, int64_t> numbers = {
      {"@columns", 7}, {"@classes", 3}, {"@classes(kind)", 5}};
  const auto filled = FillSizes(*job, [&](const OpenSize& size) {
    return absl::StatusOr<int64_t>(numbers.at(size.text));
  });
  ASSERT_TRUE(filled.ok()) << filled.status();
  EXPECT_TRUE(OpenSizes(*filled).empty());
  const job::Model& model = filled->proto().model();
  EXPECT_EQ(model.input(0).shape(0), -1);
  EXPECT_EQ(model.input(0).shape(1), 7);
  EXPECT_EQ(model.layer(0).linear().out_features(), 5);
  EXPECT_EQ(model.layer(1).block().set(0), "num_classes=3");
  EXPECT_EQ(filled->proto().metric(0).mean_iou().num_classes(), 3);
  // Places stay, and the text that is stored says the numbers.
  EXPECT_EQ(filled->Where(model.layer(0).linear(), "out_features"),
            "job.pbtxt:3:31");
  EXPECT_EQ(filled->EffectiveText().find('@'), std::string::npos);
  const auto again = ParseJob(filled->EffectiveText(), "again.pbtxt");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->proto().model().SerializeAsString(),
            model.SerializeAsString());
}

TEST(JobSizes, NumbersMustFit) {
  const auto job = ParseJob(kJob, "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto filled = FillSizes(
      *job, [](const OpenSize&) { return absl::StatusOr<int64_t>(70000); });
  EXPECT_EQ(filled.status().message(),
            "job.pbtxt:6:21: 'num_classes' is 70000; it must be in [1, 65536]");
}

// Nobody builds a network with a number that stands in.
TEST(JobSizes, MustBeFilledBeforeBuilding) {
  const auto job = ParseJob(kJob, "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const OpRegistry registry;
  const auto built = BuildModel(*job, registry);
  EXPECT_EQ(built.status().message(),
            "job.pbtxt:6:21: '@classes' is not known before data have been "
            "read");
}

TEST(JobSizes, Overrides) {
  const std::vector<std::string> given = {
      "model.layer[fc].linear.out_features=4", "model.input.shape=[-1, 3]",
      "metric.mean_iou.num_classes=2"};
  const auto job = ParseJob(kJob, "job.pbtxt", given);
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ(OpenSizes(*job).size(), 1u);  // the argument's
  const auto other =
      ParseJob(kJob, "job.pbtxt",
               {"model.input.shape[1]=@columns(y)",
                "model.layer[fc].linear.out_features=@vocabulary"});
  ASSERT_TRUE(other.ok()) << other.status();
  std::vector<std::string> texts;
  for (const OpenSize& size : OpenSizes(*other))
    texts.push_back(absl::StrCat(size.place, " ", size.text));
  EXPECT_EQ(texts[1], "-o model.input.shape[1] @columns(y)");
  EXPECT_EQ(texts[2], "-o model.layer[fc].linear.out_features @vocabulary");
}

TEST(JobSizes, Errors) {
  EXPECT_EQ(ErrorAfter("@columns", "@colums"),
            "job.pbtxt:2:33: '@colums' is no size that data say; there are "
            "@classes, @columns and @vocabulary, and @classes(FIELD) of a "
            "certain field");
  EXPECT_NE(ErrorAfter("@columns", "@classes(").find("no size that data say"),
            std::string::npos);
  EXPECT_NE(ErrorAfter("\"x\"", "@classes").find("a string in quotes"),
            std::string::npos);
  EXPECT_EQ(
      ErrorOf("data { train { csv { path: \"a\" field { name: \"y\" column: "
              "\"0\" num_classes: @classes } } } }"),
      "job.pbtxt:1:75: '@classes' is what the data say; it cannot stand among "
      "what says how they are read");
}

TEST(JobInherit, EvaluationReadsAsTraining) {
  const std::string model =
      "model { input { name: \"x\" shape: [-1, 2] } layer { relu {} } } ";
  const std::string train =
      "data { train { csv { path: \"t.csv\" header: false delimiter: \";\" "
      "field { name: \"x\" column: \"0:1\" std: 2 } field { name: \"y\" "
      "column: \"2\" } } batch_size: 4 pad { field: \"y\" value: -1 } } ";
  const auto job =
      ParseJob(model + train + "eval { csv { path: \"e.csv\" } } }", "d/j");
  ASSERT_TRUE(job.ok()) << job.status();
  const job::DataSet& eval = job->proto().data().eval();
  ASSERT_EQ(eval.csv().path_size(), 1);
  EXPECT_EQ(eval.csv().path(0), "d/e.csv");
  EXPECT_FALSE(eval.csv().header());
  EXPECT_EQ(eval.csv().delimiter(), ";");
  ASSERT_EQ(eval.csv().field_size(), 2);
  EXPECT_EQ(eval.csv().field(0).std(0), 2);
  EXPECT_EQ(eval.pad(0).value(), -1);
  EXPECT_EQ(eval.batch_size(), 1);
  // Columns of its own take the place of all; lines look alike all the same.
  const auto own = ParseJob(
      model + train +
          "eval { csv { path: \"e.csv\" field { name: \"x\" column: \"*\" } } "
          "} }",
      "d/j");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_FALSE(own->proto().data().eval().csv().header());
  EXPECT_EQ(own->proto().data().eval().csv().field_size(), 1);
  EXPECT_EQ(own->proto().data().eval().pad_size(), 0);
  // So do sizes alone: the text is still read by words.
  const auto text = ParseJob(
      model +
          "data { train { language_model { path: \"t.txt\" seq_len: 8 text { "
          "tokenizer: whitespace lower: true } } } eval { language_model { "
          "path: \"e.txt\" seq_len: 4 } } }",
      "d/j");
  ASSERT_TRUE(text.ok()) << text.status();
  const job::LanguageModel& by_words =
      text->proto().data().eval().language_model();
  EXPECT_EQ(by_words.seq_len(), 4);
  EXPECT_TRUE(by_words.text().lower());
  // Another kind is read as it says.
  EXPECT_EQ(ErrorOf(model + train + "eval { tsv { path: \"e.tsv\" } } }"),
            absl::StrCat("job.pbtxt:1:", model.size() + train.size() + 8,
                         ": 'tsv' needs 'field'"));
}

TEST(JobInherit, EvaluationHasBoxesAsTraining) {
  const std::string text =
      "model { input { name: \"x\" shape: [-1, 2] } layer { relu {} } } data { "
      "train { voc_detection { root: \"v\" class: \"a\" max_boxes: 9 } boxes { "
      "normalized: false } } eval { ";
  const auto voc = ParseJob(text + "voc_detection { root: \"w\" } } }", "d/j");
  ASSERT_TRUE(voc.ok()) << voc.status();
  const job::DataSet& eval = voc->proto().data().eval();
  EXPECT_EQ(eval.voc_detection().root(), "d/w");
  EXPECT_EQ(eval.voc_detection().max_boxes(), 9);
  ASSERT_EQ(eval.voc_detection().class__size(), 1);
  EXPECT_FALSE(eval.boxes().normalized());
  const auto npz =
      ParseJob(text + "npz { path: \"e.npz\" } boxes {} } }", "d/j");
  ASSERT_TRUE(npz.ok()) << npz.status();
  EXPECT_TRUE(npz->proto().data().eval().boxes().normalized());
}

}  // namespace test_job_sizes
}  // namespace pd
