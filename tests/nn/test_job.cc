// SPDX-License-Identifier: Apache-2.0
// The job file: what is read, what is said about what is wrong, overrides.
#include "libcore/nn/job.h"

#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "formats/format_table.h"
#include "gtest/gtest.h"
#include "libcore/base/file.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_changes.h"

namespace pd {
namespace test_job {

// A job of seven lines; tests change one place of it.
constexpr char kJob[] = R"(model {
  input { name: "image" shape: [-1, 1, 28, 28] }
  layer { name: "conv1" conv2d { out_channels: 6 kernel_size: 3 } }
  layer { relu {} }
  layer { linear { out_features: 10 } }
}
loss { cross_entropy {} }
optimizer { adam { learning_rate: 0.01 } }
)";

std::string ErrorOf(const std::string& text,
                    const std::vector<std::string>& overrides = {}) {
  const auto job = ParseJob(text, "job.pbtxt", overrides);
  return job.ok() ? "no error" : std::string(job.status().message());
}

// The error after `from` has been replaced in kJob.
std::string ErrorAfter(const std::string& from, const std::string& to) {
  const std::string text = absl::StrReplaceAll(kJob, {{from, to}});
  EXPECT_NE(text, kJob) << from;
  return ErrorOf(text);
}

std::string OverrideError(const std::string& override_text) {
  return ErrorOf(kJob, {override_text});
}

job::Job Overridden(const std::vector<std::string>& overrides) {
  const auto job = ParseJob(kJob, "job.pbtxt", overrides);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? job->proto() : job::Job();
}

TEST(Job, ReadsFieldsAndDefaults) {
  const auto job = ParseJob(kJob, "dir/job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const job::Job& proto = job->proto();
  EXPECT_EQ(proto.model().layer(0).conv2d().kernel_size(0), 3);
  EXPECT_EQ(proto.model().layer(0).conv2d().groups(), 1);
  EXPECT_EQ(proto.model().input(0).dtype(), job::Element::float32);
  EXPECT_DOUBLE_EQ(proto.optimizer().adam().beta2(), 0.999);
  EXPECT_EQ(job->Where(proto.model().layer(1)), "dir/job.pbtxt:4:3");
  EXPECT_EQ(job->Where(proto.model().layer(0).conv2d(), "kernel_size"),
            "dir/job.pbtxt:3:50");
  // Not written: the place of what would hold it.
  EXPECT_EQ(job->Where(proto.model().layer(2).linear(), "in_features"),
            "dir/job.pbtxt:5:11");
}

TEST(Job, NamesUnknownFields) {
  EXPECT_EQ(ErrorAfter("learning_rate", "learning_rat"),
            "job.pbtxt:8:20: unknown field 'learning_rat', did you mean "
            "'learning_rate'?");
  EXPECT_EQ(ErrorAfter("relu", "zzzzzzzzzz"),
            "job.pbtxt:4:11: unknown field 'zzzzzzzzzz'; 'layer' has name, "
            "input, when, linear, conv2d, max_pool2d, avg_pool2d, "
            "adaptive_avg_pool2d, batch_norm1d, batch_norm2d, layer_norm, "
            "embedding, ...");
  EXPECT_EQ(ErrorAfter("cross_entropy {}", "cross_entropy {} nll_loss {}"),
            "job.pbtxt:7:25: 'nll_loss' cannot stand beside 'cross_entropy' "
            "(job.pbtxt:7:8): only one of them may be given");
}

TEST(Job, SaysWhatWasLeftOut) {
  EXPECT_EQ(
      ErrorAfter("adam { learning_rate: 0.01 }", "learning_rate: 0.01"),
      "job.pbtxt:8:13: unknown field 'learning_rate'; it stands inside "
      "'sgd', 'momentum', 'adam', 'adamw', 'lars_momentum', 'adamax', "
      "'adagrad', 'adadelta', 'rmsprop', 'ftrl', 'lamb', 'decayed_adagrad', "
      "'proximal_gd', 'proximal_adagrad', 'dpsgd', 'dgc_momentum', 'lbfgs'");
  EXPECT_EQ(ErrorAfter("conv2d { out_channels: 6 kernel_size: 3 }",
                       "out_channels: 6"),
            "job.pbtxt:3:25: unknown field 'out_channels'; it stands inside "
            "'conv2d', 'conv1d', 'conv3d', 'conv1d_transpose', "
            "'conv2d_transpose', 'conv3d_transpose', 'conv_norm_activation', "
            "'deform_conv2d'");
}

TEST(Job, ExplainsGrammar) {
  EXPECT_EQ(ErrorAfter("0.01", "fast"),
            "job.pbtxt:8:35: 'learning_rate' takes a number; got 'fast'");
  EXPECT_EQ(ErrorAfter("0.01", "\"fast\""),
            "job.pbtxt:8:35: 'learning_rate' takes a number; got \"fast\"");
  EXPECT_EQ(ErrorAfter("0.01", "1e999"),
            "job.pbtxt:8:35: 'learning_rate' takes a finite number; got "
            "'1e999'");
  EXPECT_EQ(ErrorAfter("0.01", "-inf"),
            "job.pbtxt:8:35: 'learning_rate' takes a number; got '-inf'");
  EXPECT_EQ(ErrorAfter("0.01", "nan"),
            "job.pbtxt:8:35: 'learning_rate' takes a number; got 'nan'");
  EXPECT_EQ(ErrorAfter("size: 3", "size: 3.5"),
            "job.pbtxt:3:63: 'kernel_size' takes an integer; got '3.5'");
  EXPECT_EQ(ErrorAfter("size: 3", "size: 3000000000"),
            "job.pbtxt:3:63: 'kernel_size' takes an integer in "
            "[-2147483648, 2147483647]; got '3000000000'");
  EXPECT_EQ(ErrorAfter("\"conv1\"", "conv1"),
            "job.pbtxt:3:17: 'name' takes a string in quotes; got 'conv1'");
  EXPECT_EQ(ErrorAfter("\"conv1\"", "\"conv1"),
            "job.pbtxt:3:67: this string has no closing quote on its line");
  EXPECT_EQ(ErrorAfter("size: 3", "size 3"),
            "job.pbtxt:3:62: expected ':' after 'kernel_size'; got '3'");
  EXPECT_EQ(ErrorAfter("relu {}", "relu: 3"),
            "job.pbtxt:4:17: expected '{' after 'relu', which holds fields; "
            "got '3'");
  EXPECT_EQ(ErrorAfter("28] }", "28 }"),
            "job.pbtxt:2:47: expected ',' or ']' in the list 'shape'; got '}'");
  EXPECT_EQ(ErrorAfter("  layer { linear { out_features: 10 } }\n}", ""),
            "job.pbtxt:6:1: unknown field 'loss'; 'model' has input, "
            "block, layer, output, parameter_group, initializer");
  EXPECT_EQ(ErrorAfter("0.01 } }", "0.01 }"),
            "job.pbtxt:9:1: 'optimizer' (job.pbtxt:8:11) is not closed: '}' is "
            "missing");
  EXPECT_EQ(ErrorAfter("0.01 } }", "0.01 } } }"),
            "job.pbtxt:8:44: expected a field's name; got '}'");
  EXPECT_EQ(ErrorAfter("out_channels: 6", "out_channels: 6 out_channels: 7"),
            "job.pbtxt:3:50: field 'out_channels' is given twice "
            "(job.pbtxt:3:34)");
  EXPECT_EQ(ErrorAfter("28] }", "28] dtype: flaot32 }"),
            "job.pbtxt:2:55: unknown value 'flaot32' of 'dtype', did you mean "
            "'float32'?");
  EXPECT_EQ(ErrorAfter("28] }", "28] dtype: \"float32\" }"),
            "job.pbtxt:2:55: 'dtype' takes a word without quotes (float32, "
            "float64, int32, int64, uint8, bool, float16); got \"float32\"");
  EXPECT_EQ(ErrorAfter("10 } }", "010 } }"),
            "job.pbtxt:5:34: 'out_features' takes an integer that does not "
            "start with 0; got '010'");
}

TEST(Job, RefusesWhatIsNotText) {
  EXPECT_EQ(ErrorOf(""), "job.pbtxt: the job is empty; pd-job(5) shows one");
  EXPECT_EQ(ErrorOf("# nothing\n"),
            "job.pbtxt: the job is empty; pd-job(5) shows one");
  EXPECT_EQ(ErrorOf(std::string("model {\n a\0}", 11)),
            "job.pbtxt:2:3: byte 0x00 is not text (UTF-8)");
  EXPECT_EQ(ErrorOf("name: \"\xff\""),
            "job.pbtxt:1:8: byte 0xff is not text (UTF-8)");
  EXPECT_EQ(ErrorOf("name: \"\\377\""),
            "job.pbtxt:1:7: 'name' holds a byte that is not text (UTF-8)");
  EXPECT_EQ(ErrorOf("name: \"\\000\""),
            "job.pbtxt:1:7: 'name' holds a byte that is not text (UTF-8)");
  EXPECT_NE(ErrorAfter("\"conv1\"", "\"größe\""), "");
  EXPECT_EQ(ErrorOf(std::string(17 << 20, ' ')),
            "job.pbtxt: 17825792 bytes are too many for a job (at most "
            "16777216)");
  std::string deep = "optimizer { lr { ";
  for (int i = 0; i < 100000; ++i) deep += "linear_warmup { after { ";
  EXPECT_EQ(ErrorOf(deep),
            "job.pbtxt:1:778: messages are nested more than 64 deep");
  EXPECT_EQ(ReadJob("/").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadJob("/no/such").status().code(), absl::StatusCode::kNotFound);
}

TEST(Job, ChecksRules) {
  EXPECT_EQ(ErrorAfter("0.01", "-0.01"),
            "job.pbtxt:8:20: 'learning_rate' is -0.01; it must be at least 0");
  EXPECT_EQ(ErrorAfter("0.01", "0.01 beta1: 1"),
            "job.pbtxt:8:40: 'beta1' is 1; it must be in [0, 1)");
  EXPECT_EQ(ErrorAfter("size: 3", "size: [3, 0]"),
            "job.pbtxt:3:67: 'kernel_size' is 0; it must be at least 1");
  EXPECT_EQ(ErrorAfter("size: 3", "size: [3, 3, 3]"),
            "job.pbtxt:3:50: 'kernel_size' has 3 values; it takes 1 or 2");
  EXPECT_EQ(ErrorAfter(" kernel_size: 3", ""),
            "job.pbtxt:3:25: 'conv2d' needs 'kernel_size'");
  EXPECT_EQ(ErrorAfter("{ relu {} }", "{ name: \"a\" }"),
            "job.pbtxt:4:3: layer 'a' does not say which kind it is; there are "
            "linear, conv2d, max_pool2d, avg_pool2d, adaptive_avg_pool2d, "
            "batch_norm1d, batch_norm2d, layer_norm, embedding, dropout, "
            "flatten, reshape, ...");
  EXPECT_EQ(ErrorAfter("{ relu", "{ name: \"conv1\" relu"),
            "job.pbtxt:4:11: there are two layers or inputs with the name "
            "'conv1'");
  EXPECT_EQ(ErrorAfter("3 }", "3 padding: [1, 2, 3] }"),
            "job.pbtxt:3:65: 'padding' has 3 values; it takes 1, 2 or 4");
  EXPECT_EQ(ErrorOf("name: \"x\""),
            "job.pbtxt: a job needs 'model' or 'program'");
}

TEST(Job, ChecksSchedules) {
  const std::string lr = "0.01 } lr { ";
  EXPECT_EQ(ErrorAfter("0.01 }", lr + "piecewise_decay { boundaries: [5, 3] "
                                      "values: [1, 2, 3] } }"),
            "job.pbtxt:8:81: 'boundaries' must rise; 3 follows 5");
  EXPECT_EQ(ErrorAfter("0.01 }", lr + "piecewise_decay { boundaries: [3, 5] "
                                      "values: [1, 2] } }"),
            "job.pbtxt:8:84: 'boundaries' has 2 values and 'values' 2; it must "
            "have one more");
  EXPECT_EQ(ErrorAfter("{ adam { learning_rate: 0.01 } }",
                       "{ adamw {} weight_decay { l2_decay {} } }"),
            "job.pbtxt:8:22: adamw has its own 'weight_decay', inside 'adamw'; "
            "this one cannot stand beside it");
}

TEST(Job, OverridesFields) {
  EXPECT_DOUBLE_EQ(Overridden({"optimizer.adam.learning_rate=0.5"})
                       .optimizer()
                       .adam()
                       .learning_rate(),
                   0.5);
  const job::Job sgd = Overridden({"optimizer.sgd.learning_rate=1"});
  EXPECT_TRUE(sgd.optimizer().has_sgd());
  EXPECT_EQ(Overridden({"model.layer[conv1].conv2d.out_channels=8"})
                .model()
                .layer(0)
                .conv2d()
                .out_channels(),
            8);
  EXPECT_EQ(Overridden({"model.layer[linear_0].linear.out_features=7"})
                .model()
                .layer(2)
                .linear()
                .out_features(),
            7);
  EXPECT_TRUE(
      Overridden({"model.layer[1]={tanh {}}"}).model().layer(1).has_tanh());
  EXPECT_EQ(Overridden({"loss.cross_entropy.label_smoothing=0.1"}).loss_size(),
            1);
  EXPECT_EQ(Overridden({"metric.accuracy.topk=[1, 5]"})
                .metric(0)
                .accuracy()
                .topk_size(),
            2);
  EXPECT_EQ(
      Overridden({"metric.accuracy.topk=1,5,7"}).metric(0).accuracy().topk(2),
      7);
  EXPECT_EQ(Overridden({"name=some thing"}).name(), "some thing");
  EXPECT_FALSE(Overridden({"loss="}).loss_size());
  EXPECT_EQ(Overridden({"model.layer[0].conv2d.kernel_size=5",
                        "model.layer[0].conv2d.kernel_size[0]=7"})
                .model()
                .layer(0)
                .conv2d()
                .kernel_size(0),
            7);
}

TEST(Job, ExplainsOverrides) {
  EXPECT_EQ(OverrideError("optimizer.adm.learning_rate=1"),
            "-o optimizer.adm.learning_rate: unknown field 'adm', did you mean "
            "'adam'?");
  EXPECT_EQ(OverrideError("optimizer"), "-o optimizer: expected PATH=VALUE");
  EXPECT_EQ(OverrideError("optimizer.adam.learning_rate=x"),
            "-o optimizer.adam.learning_rate: 'learning_rate' takes a number; "
            "got 'x'");
  EXPECT_EQ(OverrideError("optimizer.adam.learning_rate=-1"),
            "-o optimizer.adam.learning_rate: 'learning_rate' is -1; it must "
            "be at least 0");
  EXPECT_EQ(OverrideError("model.layer.relu={}"),
            "-o model.layer.relu: there are 3 'layer': say which with layer[0] "
            "or layer[NAME]");
  EXPECT_EQ(OverrideError("model.layer[conv].relu={}"),
            "-o model.layer[conv].relu: no 'layer' has the name 'conv', did "
            "you mean 'conv1'?");
  EXPECT_EQ(OverrideError("model.layer[9].relu={}"),
            "-o model.layer[9].relu: there is no 'layer[9]': there are 3");
  EXPECT_EQ(OverrideError("optimizer.adam.learning_rate.x=1"),
            "-o optimizer.adam.learning_rate.x: 'learning_rate' is a value: it "
            "has no fields");
  EXPECT_EQ(OverrideError("optimizer.adam.learning_rate=1 2"),
            "-o optimizer.adam.learning_rate: unexpected '2' after the value");
  EXPECT_EQ(OverrideError("loss.cross_entropy={axes: 1}"),
            "-o loss.cross_entropy: unknown field 'axes', did you mean "
            "'axis'?");
  EXPECT_EQ(OverrideError("optimizer.adam=5"),
            "-o optimizer.adam: expected '{' after 'adam', which holds fields; "
            "got '5'");
  EXPECT_EQ(OverrideError("model..x=1"),
            "-o model..x: a field's name is missing in the path");
}

TEST(Job, NamesLeadToTheRightKind) {
  const auto asked = [](const std::string& name) {
    return ErrorAfter("adam {", name + " {");
  };
  for (const auto& [name, kind] :
       std::vector<std::pair<std::string, std::string>>{{"AdamW", "adamw"},
                                                        {"Adam_W", "adamw"},
                                                        {"SGD", "sgd"},
                                                        {"RMSProp", "rmsprop"},
                                                        {"rms_prop", "rmsprop"},
                                                        {"Adam", "adam"},
                                                        {"adma", "adam"},
                                                        {"Adagrad", "adagrad"},
                                                        {"AdaMax", "adamax"},
                                                        {"rmsprpo", "rmsprop"}})
    EXPECT_NE(asked(name).find("did you mean '" + kind + "'?"),
              std::string::npos)
        << asked(name);
  // Other optimizers than those that there are.
  for (const char* name :
       {"NAdam", "RAdam", "AdamP", "SGDW", "adabound", "Rprop", "ASGD"})
    EXPECT_NE(asked(name).find("'; 'optimizer' has sgd, momentum, adam,"),
              std::string::npos)
        << asked(name);
  EXPECT_NE(ErrorAfter("relu {}", "ReLU {}").find("did you mean 'relu'?"),
            std::string::npos);
  EXPECT_NE(ErrorAfter("relu {}", "ReLU6 {}").find("did you mean 'relu6'?"),
            std::string::npos);
  EXPECT_NE(ErrorAfter("{ cross_entropy {}", "{ CrossEntropyLoss {}")
                .find("did you mean 'cross_entropy'?"),
            std::string::npos);
  EXPECT_NE(OverrideError("optimizer.AdamW.learning_rate=1")
                .find("did you mean 'adamw'?"),
            std::string::npos);
}

TEST(Job, EmptyValuesTakeElementsAway) {
  const std::string text = absl::StrCat(
      kJob,
      "metric { accuracy {} }\nmetric { precision { } }\n"
      "data { train { csv { path: [\"a.csv\", \"b.csv\", \"c.csv\"] "
      "field { name: \"x\" column: \"0\" } } } }");
  const auto job = ParseJob(
      text, "job.pbtxt",
      {"metric[0]=", "model.layer[relu_0]=", "data.train.csv.path[1]="});
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ(job->proto().metric_size(), 1);
  EXPECT_TRUE(job->proto().metric(0).has_precision());
  ASSERT_EQ(job->proto().model().layer_size(), 2);
  EXPECT_TRUE(job->proto().model().layer(1).has_linear());
  const auto& path = job->proto().data().train().csv().path();
  ASSERT_EQ(path.size(), 2);
  EXPECT_EQ(path[1], "c.csv");
  // Elements that moved up keep the places where they were written.
  EXPECT_EQ(job->Where(job->proto().metric(0)), "job.pbtxt:10:1");
  EXPECT_EQ(job->Where(job->proto().model().layer(1)), "job.pbtxt:5:3");
  EXPECT_EQ(OverrideError("metric[0]="),
            "-o metric[0]: there is no 'metric[0]': there are 0");
}

TEST(Job, ComparesWithAnother) {
  const auto before = ParseJob(kJob, "run/job.pbtxt");
  ASSERT_TRUE(before.ok());
  const auto changes = [&](const std::string& from, const std::string& to) {
    const auto after =
        ParseJob(absl::StrReplaceAll(kJob, {{from, to}}), "job.pbtxt");
    EXPECT_TRUE(after.ok()) << after.status();
    std::string text;
    for (const JobChange& change : CompareJobs(*before, *after))
      if (change.field != "name")
        absl::StrAppend(&text, change.field, ": ", change.ToString(), "\n");
    return text;
  };
  EXPECT_EQ(changes("none", "none"), "");
  // Comments, order and defaults that are spelled out are no difference.
  EXPECT_EQ(changes("relu {}", "relu {}  # the same\n"), "");
  EXPECT_EQ(changes("learning_rate: 0.01", "beta1: 0.9 learning_rate: 0.01"),
            "");
  EXPECT_EQ(changes("relu {}", "gelu {}"),
            "model.layer.gelu: 'model.layer[gelu_0]' is gelu {}, was relu {} "
            "(job.pbtxt:4:11)\n");
  EXPECT_EQ(changes("adam { learning_rate: 0.01 }", "sgd {}"),
            "optimizer.sgd: 'optimizer' is sgd {}, was adam { learning_rate: "
            "0.01 } (job.pbtxt:8:13)\n");
  EXPECT_EQ(changes("out_features: 10", "out_features: 12"),
            "model.layer.linear.out_features: "
            "'model.layer[linear_0].linear.out_features' is 12, was 10 "
            "(job.pbtxt:5:20)\n");
  EXPECT_EQ(changes("  layer { relu {} }\n", ""),
            "model.layer: 'model.layer[relu_0]' is not given, was { relu { } } "
            "(job.pbtxt:3:3)\n");
  EXPECT_EQ(changes("28, 28]", "28, 32]"),
            "model.input.shape: 'model.input[image].shape[3]' is 32, was 28 "
            "(job.pbtxt:2:44)\n");
}

TEST(Job, PlacesOverriddenFields) {
  const auto job =
      ParseJob(kJob, "job.pbtxt", {"optimizer.sgd.learning_rate=1"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->Where(job->proto().optimizer().sgd(), "learning_rate"),
            "-o optimizer.sgd.learning_rate");
  EXPECT_EQ(job->Where(job->proto().loss(0)), "job.pbtxt:7:1");
  // An element of a list, with its brackets and without.
  for (const char* metric :
       {"metric={ accuracy {} }", "metric=[{ accuracy {} }]"}) {
    const auto other = ParseJob(kJob, "job.pbtxt", {metric});
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_EQ(other->Where(other->proto().metric(0)), "-o metric");
  }
}

TEST(Job, RequiresWhatAToolNeeds) {
  const auto job = ParseJob(kJob, "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->Require({"model", "loss", "optimizer"}, "pd-train").ok());
  EXPECT_EQ(job->Require({"data.train"}, "pd-train").message(),
            "job.pbtxt: the job has no 'data.train'; pd-train needs it");
}

TEST(Job, EffectiveTextMeansTheSame) {
  // The paths of an effective job are absolute.
  const auto folder = std::filesystem::absolute(PD_TESTDATA "/jobs");
  int jobs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".pbtxt") continue;
    ++jobs;
    const auto job = ReadJob(entry.path().string(), {"train.seed=7"});
    ASSERT_TRUE(job.ok()) << job.status();
    const std::string text = job->EffectiveText();
    const auto again = ParseJob(text, "/elsewhere/job.pbtxt");
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
    EXPECT_EQ(again->proto().SerializeAsString(), [&] {
      job::Job named = job->proto();
      return named.SerializeAsString();
    }());
  }
  EXPECT_GE(jobs, 5);
}

TEST(Job, PathsStartAtTheJobsFolder) {
  const std::string text = absl::StrCat(
      kJob,
      "data { train { csv { path: [\"a.csv\", \"../b.csv\", \"/c.csv\"] "
      "field { name: \"x\" column: \"0\" } } } }");
  const auto job =
      ParseJob(text, "some/job.pbtxt", {"data.train.csv.path[0]=mine.csv"});
  ASSERT_TRUE(job.ok()) << job.status();
  const auto& path = job->proto().data().train().csv().path();
  EXPECT_EQ(path[0], "mine.csv");
  EXPECT_EQ(path[1], "b.csv");
  EXPECT_EQ(path[2], "/c.csv");
}

// Any prefix and any changed byte of a job is a job or a clear error.
TEST(Job, SurvivesDamage) {
  const std::string text(kJob);
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string cut = ErrorOf(text.substr(0, i));
    EXPECT_TRUE(cut == "no error" || cut.rfind("job.pbtxt", 0) == 0) << cut;
    for (const char c : {'\0', '{', '}', '"', '-', '\n', '[', '\xff', '9'}) {
      std::string damaged = text;
      damaged[i] = c;
      const std::string error = ErrorOf(damaged);
      EXPECT_TRUE(error == "no error" || error.rfind("job.pbtxt", 0) == 0)
          << error;
    }
  }
}

// The manual page names the endings that the table of formats has.
TEST(Job, FoldersOfPicturesNameTheEndingsThatAreRead) {
  for (const auto* folder :
       {job::DatasetFolder::descriptor(), job::ImageFolder::descriptor()}) {
    const std::string text = folder->FindFieldByName("extensions")
                                 ->options()
                                 .GetExtension(job::rule)
                                 .otherwise();
    const std::set<absl::string_view> named = absl::StrSplit(text, ", ");
    const std::vector<absl::string_view> read = ImageEndings();
    EXPECT_EQ(named, std::set<absl::string_view>(read.begin(), read.end()));
  }
}

}  // namespace test_job
}  // namespace pd
