// SPDX-License-Identifier: Apache-2.0
// Jobs with a saved training program: against PaddlePaddle's trainings of the
// same programs on the same batches, its form for evaluation, what it is fed,
// and what does not fit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/attach.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.h"
#include "libcore/train/open_networks.h"
#include "libcore/train/trainer.h"
#include "tests/train/golden_run.h"

namespace pd {
namespace test_saved_training {

namespace fs = std::filesystem;

constexpr char kData[] = "testdata/saved_training";
// Losses are logged in float32.
constexpr double kRounding = 6e-8;

// Keeps the steps and the last evaluation.
class Watcher : public TrainObserver {
 public:
  void OnStep(const StepReport& report) override {
    losses.push_back(report.loss);
    rates.push_back(report.learning_rate);
  }
  void OnEvaluation(int64_t, const EvaluationResult& result) override {
    evaluations.push_back(result);
  }
  std::vector<double> losses, rates;
  std::vector<EvaluationResult> evaluations;
};

absl::StatusOr<LoadedJob> Open(const std::string& text,
                               const std::string& path) {
  PD_ASSIGN_OR_RETURN(const LoadedJob job, ParseJob(text, path));
  return OpenNetworks(job, "");
}

class SavedTrainingTest : public ::testing::Test {
 protected:
  SavedTrainingTest() {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    EXPECT_TRUE(AttachAllKernels(&registry_).ok());
    const auto text = ReadFile(absl::StrCat(kData, "/job.pbtxt"));
    EXPECT_TRUE(text.ok()) << text.status();
    if (text.ok()) job_text_ = std::string(text->view());
  }

  // Trains the job to its end; the last checkpoint.
  Checkpoint Train(const LoadedJob& job, const std::string& run,
                   Watcher* watcher) {
    TrainerOptions options;
    options.run = run;
    auto trainer = Trainer::Create(&registry_, job, options, watcher);
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    if (!trainer.ok()) return {};
    const auto outcome = (*trainer)->Run();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    if (!outcome.ok()) return {};
    auto checkpoint = ReadCheckpoint(outcome->checkpoint);
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    return checkpoint.ok() ? *std::move(checkpoint) : Checkpoint();
  }

  // The error of opening and building the golden's job with these changes.
  std::string ErrorOf(
      const std::vector<std::pair<std::string, std::string>>& changes) {
    const std::string text = absl::StrReplaceAll(job_text_, changes);
    EXPECT_NE(text, job_text_);
    const auto job = Open(text, absl::StrCat(kData, "/job.pbtxt"));
    if (!job.ok()) return std::string(job.status().message());
    return std::string(BuildTrainProgram(registry_, *job).status().message());
  }

  OpRegistry registry_;
  std::string job_text_;
};

TEST_F(SavedTrainingTest, TrainsAsPaddlePaddle) {
  const auto read = ReadNpz(absl::StrCat(kData, "/expected.npz"));
  ASSERT_TRUE(read.ok()) << read.status();
  const NamedArrays& expected = *read;
  const auto job = Open(job_text_, absl::StrCat(kData, "/job.pbtxt"));
  ASSERT_TRUE(job.ok()) << job.status();
  const std::string run = absl::StrCat(::testing::TempDir(), "/saved_training");
  fs::remove_all(run);
  Watcher watcher;
  const Checkpoint checkpoint = Train(*job, run, &watcher);
  const auto number = [&](const std::string& name) {
    return NumberAt(expected.at(name), 0);
  };
  const double bound = number("tolerance/losses");
  ASSERT_EQ(watcher.losses.size(), 20u);
  for (size_t i = 0; i < watcher.losses.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    EXPECT_NEAR(watcher.losses[i], NumberAt(expected.at("losses"), at), bound)
        << "step " << i;
    EXPECT_NEAR(watcher.rates[i], NumberAt(expected.at("rates"), at), 1e-8)
        << "step " << i;
  }
  // The last of two epochs' evaluations, batch normalizations as in the end.
  ASSERT_EQ(watcher.evaluations.size(), 2u);
  const EvaluationResult& last = watcher.evaluations.back();
  EXPECT_EQ(last.records, 36);
  EXPECT_NEAR(last.Find("loss").value_or(-1), number("eval_loss"),
              number("tolerance/answers"));
  EXPECT_DOUBLE_EQ(last.Find("acc").value_or(-1), number("eval_acc"));
  size_t compared = 0;
  for (const auto& [name, want] : expected) {
    if (!absl::StartsWith(name, "final/")) continue;
    const std::string own = name.substr(6);
    ASSERT_EQ(checkpoint.params.count(own), 1u) << own;
    EXPECT_LE(WorstDifference(want, checkpoint.params.at(own)),
              number("tolerance/final"))
        << own;
    ++compared;
  }
  EXPECT_EQ(compared, 9u);
  // Moments, powers of beta and the counter of the schedule.
  std::set<std::string> kinds;
  for (const auto& [name, value] : checkpoint.opt)
    for (const char* kind :
         {"_moment1_", "_moment2_", "_beta1_pow_acc_", "@LR_DECAY_COUNTER@"})
      if (absl::StrContains(name, kind)) kinds.insert(kind);
  EXPECT_EQ(kinds.size(), 4u);
  fs::remove_all(run);
}

TEST_F(SavedTrainingTest, EvaluatesTheFormForEvaluation) {
  const auto job = Open(job_text_, absl::StrCat(kData, "/job.pbtxt"));
  ASSERT_TRUE(job.ok()) << job.status();
  const auto program = BuildTestProgram(registry_, *job);
  ASSERT_TRUE(program.ok()) << program.status();
  int norms = 0;
  for (const OpDesc& op : program->test.global().ops) {
    EXPECT_FALSE(absl::EndsWith(op.type, "_grad")) << op.type;
    EXPECT_NE(op.type, "adam");
    EXPECT_NE(op.type, "increment");
    if (op.type != "batch_norm") continue;
    ++norms;
    EXPECT_TRUE(op.AttrOr<bool>("is_test", false));
  }
  EXPECT_EQ(norms, 1);
  EXPECT_EQ(program->inputs, std::vector<std::string>{"image"});
  ASSERT_EQ(program->feeds.size(), 2u);
  EXPECT_EQ(program->feeds[1].name, "label");
}

TEST_F(SavedTrainingTest, Errors) {
  const std::string at = absl::StrCat(kData, "/job.pbtxt:");
  const auto says = [&](const std::string& error, const std::string& place,
                        const std::string& text) {
    EXPECT_TRUE(absl::StartsWith(error, at + place) &&
                absl::StrContains(error, text))
        << error;
  };
  says(ErrorOf({{"\"img\"", "\"imgs\""}}), "7:10",
       "the program is not fed 'imgs'; it is fed 'img', 'lbl'");
  says(ErrorOf({{"\"label\"", "\"image\""}}), "8:22",
       "field 'image' feeds another variable already");
  says(ErrorOf({{"\"lbl\"", "\"img\""}}), "8:10", "'img' is fed twice");
  says(ErrorOf({{"\"image\"", "\"conv2d_0.w_0\""}}), "7:22",
       "the program has a variable 'conv2d_0.w_0' that this field does not "
       "feed");
  says(ErrorOf({{"loss: \"", "loss: \"x"}}), "5:3", "the nearest is '");
  says(ErrorOf({{"fetch: \"", "fetch: \"x"}}), "6:3",
       "is not a variable of the program; the nearest is '");
  says(ErrorOf({{"fetch:", "fetch: \"conv2d_0.w_0@GRAD\" fetch:"}}), "6:3",
       "'conv2d_0.w_0@GRAD' is not a variable of the program");
  says(ErrorOf({{"fetch:", "fetch: \"lbl\" fetch: \"lbl\" fetch:"}}), "6:16",
       "'lbl' is fetched twice");
  says(ErrorOf({{"main: \"main", "main: \"startup"}}), "7:10",
       "the program is not fed 'img'; it is fed nothing");
  says(ErrorOf({{"metric { ", "metric { input: \"softmax\" "}}), "12:10",
       "'softmax' is not a variable of the program");
  says(ErrorOf({{"fetch: \"", "# "}}), "12:1",
       "'program' fetches 0 variables; say with 'input' which one the metric "
       "takes");
  // The loss of each record is no number.
  says(ErrorOf({{"loss: \"mean_0.tmp_0", "loss: \"fc_1.tmp_1"}}), "5:3",
       "float32[-1, 5]; expected one floating-point number");
  for (const char* other :
       {"optimizer { sgd {} }", "loss { cross_entropy {} }", "quant {}",
        "copy { from: \"a\" to: \"b\" }",
        "model { input { name: \"x\" shape: [-1, 2] } layer { relu {} } }",
        "phase { name: \"p\" loss: \"l\" optimizer { sgd {} } }"}) {
    const std::string error =
        ErrorOf({{"metric {", absl::StrCat(other, "\nmetric {")}});
    const std::string name(other, std::string(other).find(' '));
    says(error, "12:1",
         absl::StrCat("'", name, "' cannot stand beside 'program' (", at,
                      "2:1)"));
  }
  for (const char* rate :
       {"learning_rate: 0.1", "lr { step_decay { step_size: 2 } }"})
    EXPECT_TRUE(absl::StrContains(
        ErrorOf({{"program {", absl::StrCat("program { ", rate)}}),
        "the program's operators make its learning rate"))
        << ErrorOf({{"program {", absl::StrCat("program { ", rate)}});
}

TEST_F(SavedTrainingTest, MixedPrecisionOfTheProgramsOwnGradientsAlone) {
  const auto error = [&](const std::string& name, const std::string& loss) {
    const std::string source =
        absl::StrCat(fs::absolute(TrainFolder()).string(), "/", name);
    const auto job = Open(absl::StrCat("program { main: \"", source,
                                       "/main.pdmodel\" startup: \"", source,
                                       "/startup.pdmodel\" loss: \"", loss,
                                       "\" }\namp { dtype: bfloat16 }"),
                          "job.pbtxt");
    EXPECT_TRUE(job.ok()) << job.status();
    return std::string(BuildTrainProgram(registry_, *job).status().message());
  };
  const auto loss = [](const std::string& name) {
    return LoadTrainCase(name).losses_of[0];
  };
  EXPECT_EQ(error("opt_clip_global_norm", loss("opt_clip_global_norm")), "");
  EXPECT_EQ(error("cond_branch", loss("cond_branch")),
            "job.pbtxt:2:1: the saved program runs blocks (while, cond)");
  EXPECT_EQ(error("amp_o1_dynamic_scaling", loss("amp_o1_dynamic_scaling")),
            "job.pbtxt:2:1: the saved program has mixed precision already");
}

// Fields that are missing, or of another type or shape.
TEST_F(SavedTrainingTest, DataThatDoNotFit) {
  const auto error = [&](const std::string& old_text,
                         const std::string& new_text) {
    const std::string text =
        absl::StrReplaceAll(job_text_, {{old_text, new_text}});
    EXPECT_NE(text, job_text_);
    const auto job = Open(text, absl::StrCat(kData, "/job.pbtxt"));
    if (!job.ok()) return std::string(job.status().message());
    TrainerOptions options;
    options.read_only = true;
    Watcher watcher;
    return std::string(Trainer::Create(&registry_, *job, options, &watcher)
                           .status()
                           .message());
  };
  EXPECT_EQ(error("field: \"image\"", "field: \"picture\""),
            absl::StrCat(kData,
                         "/job.pbtxt:7:22: data.train: the network is fed "
                         "'picture'; the data set has 'image', 'label'"));
  EXPECT_EQ(error("  feed { name: \"lbl\" field: \"label\" }\n", ""),
            absl::StrCat(kData,
                         "/job.pbtxt:12:1: data.train: the network is fed "
                         "'lbl'; the data set has 'image', 'label'"));
  // Of another shape and type.
  const std::string wrong = error("npz { path: \"train.npz\" }",
                                  "npz { path: \"train.npz\" field { name: "
                                  "\"image\" array: \"label\" } field { name: "
                                  "\"label\" array: \"label\" } }");
  EXPECT_TRUE(absl::StrContains(
      wrong,
      "7:22: data.train: the network is fed 'image' as float32[8, 1, "
      "12, 12]; the data set gives int64[8, 1]"))
      << wrong;
}

TEST_F(SavedTrainingTest, DamagedProgramsAreRefusedByName) {
  const fs::path folder = fs::path(::testing::TempDir()) / "saved_training_bad";
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const char* file : {"main.pdmodel", "startup.pdmodel"}) {
    for (const uintmax_t bytes : {0u, 1u, 100u, 3000u}) {
      for (const char* each : {"main.pdmodel", "startup.pdmodel"})
        fs::copy_file(fs::path(kData) / each, folder / each,
                      fs::copy_options::overwrite_existing);
      fs::resize_file(folder / file, bytes);
      const auto job = Open(job_text_, (folder / "job.pbtxt").string());
      std::string error(job.status().message());
      if (job.ok())
        error =
            std::string(BuildTrainProgram(registry_, *job).status().message());
      EXPECT_TRUE(absl::StrContains(error, file) ||
                  absl::StrContains(error, "job.pbtxt:"))
          << file << " of " << bytes << " bytes: " << error;
    }
  }
  fs::remove_all(folder);
}

// Changes that somebody made in a program are found before anything runs.
TEST_F(SavedTrainingTest, HostileProgramsAreRefused) {
  const auto job = Open(job_text_, absl::StrCat(kData, "/job.pbtxt"));
  ASSERT_TRUE(job.ok()) << job.status();
  const ProgramDesc good = LoadProgram(fs::path(kData) / "main.pdmodel");
  const fs::path folder = fs::path(::testing::TempDir()) / "saved_training_odd";
  const auto error = [&](const auto& change, const std::string& more = "") {
    fs::remove_all(folder);
    fs::create_directories(folder);
    ProgramDesc program = good;
    change(&program.global());
    const std::string main = (folder / "main.pdmodel").string();
    EXPECT_TRUE(WriteProgram(main, program).ok());
    const std::string text = absl::StrReplaceAll(
        job_text_, {{"\"main.pdmodel\"", absl::StrCat("\"", main, "\"")},
                    {"\"startup.pdmodel\"",
                     absl::StrCat("\"", fs::absolute(kData).string(),
                                  "/startup.pdmodel\"")}});
    const auto opened = Open(text + more, "/job.pbtxt");
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (!opened.ok()) return std::string();
    return std::string(
        BuildTrainProgram(registry_, *opened).status().message());
  };
  const auto says = [](const std::string& got, const std::string& text) {
    EXPECT_TRUE(absl::StrContains(got, text)) << got;
  };
  says(error([](BlockDesc* b) { b->ops[0].type = "no_such_op"; }),
       "block 0, op 0 'no_such_op'");
  says(error([](BlockDesc* b) {
         for (OpDesc& op : b->ops)
           if (op.type == "conv2d") op.attrs["strides"] = std::string("x");
       }),
       "'conv2d'");
  says(error([](BlockDesc* b) {
         for (OpDesc& op : b->ops)
           if (op.type == "conv2d") op.SetInput("Filter", {});
       }),
       "'conv2d'");
  says(error([](BlockDesc* b) { b->FindVar("img")->lod_level = 2; }),
       "the program is fed sequences of sequences, 'image' of LoD level 2");
  says(error([](BlockDesc* b) {
         b->FindVar("conv2d_0.w_0")->kind = VarKind::kLodTensorArray;
       }),
       "checkpoints cannot hold it");
  says(error([](BlockDesc* b) {
         b->FindVar("mean_0.tmp_0")->dtype = DType::kInt64;
       }),
       "expected one floating-point number");
  says(error(
           [](BlockDesc* b) {
             b->ops.erase(std::find_if(b->ops.begin(), b->ops.end(),
                                       [](const OpDesc& op) {
                                         return op.type == "reduce_mean_grad";
                                       }));
           },
           "amp { dtype: bfloat16 }"),
       "the gradients of the saved program are not those of its loss alone");
  // A program before minimize().
  says(error([](BlockDesc* b) {
         b->ops.erase(
             std::remove_if(b->ops.begin(), b->ops.end(),
                            [](const OpDesc& op) { return op.type == "adam"; }),
             b->ops.end());
       }),
       "updates no parameter; expected a training program");
  fs::remove_all(folder);
}

// The job's words for a learning rate that Python set before each step, or
// may set.
std::string RateText(const std::string& name) {
  static const std::map<std::string, std::string> texts = {
      {"opt_sched_step", "lr { step_decay { step_size: 4 gamma: 0.5 } }"},
      {"opt_sched_cyclic",
       "lr { cyclic { base_learning_rate: 0.05 max_learning_rate: 0.2 "
       "step_size_up: 3 mode: triangular2 } }"},
      {"opt_sched_noam_obj",
       "learning_rate: 1 lr { noam_decay { d_model: 16 warmup_steps: 4 } }"},
      {"resnet_basic_cosine", "lr { cosine_annealing_decay { T_max: 12 } }"},
      {"bert_encoder_adamw",
       "lr { linear_warmup { warmup_steps: 4 start_lr: 0 end_lr: 0.004 after { "
       "polynomial_decay { learning_rate: 0.004 decay_steps: 12 end_lr: 0.0001 "
       "} } } }"},
      // Each of its parameters has a factor of the rate.
      {"distill_frozen", "learning_rate: 0.05"}};
  const auto text = texts.find(name);
  return text == texts.end() ? "" : text->second;
}

// A job that trains a recorded case, in a folder of its own, from steps
// [begin, end) of its batches.
class RecordedJob {
 public:
  explicit RecordedJob(const std::string& name)
      : c(LoadTrainCase(name)),
        folder_(fs::path(::testing::TempDir()) /
                absl::StrCat("recorded_", name)) {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    EXPECT_TRUE(AttachAllKernels(&registry_).ok());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~RecordedJob() { fs::remove_all(folder_); }

  std::string source() const { return fs::absolute(c.folder).string(); }

  // Trains from the values in `inits`; the checkpoint's folder.
  std::string Train(const std::string& inits, const std::string& more,
                    int64_t begin, int64_t end, Watcher* watcher) {
    NamedArrays records;
    int64_t batch = 0;
    for (const auto& [name, array] : c.batches) {
      EXPECT_GE(array.shape.size(), 2u) << name;
      batch = array.shape[1];
      Array part = array;
      const size_t step =
          array.size_bytes() / static_cast<size_t>(array.shape[0]);
      part.bytes = std::shared_ptr<const std::byte>(
          array.bytes, array.bytes.get() + static_cast<size_t>(begin) * step);
      part.shape.erase(part.shape.begin());
      part.shape[0] *= end - begin;
      records[name] = part;
    }
    EXPECT_TRUE(WriteNpz((folder_ / "data.npz").string(), records).ok());
    const std::string text = absl::StrCat(
        "program { main: \"", source(), "/main.pdmodel\" startup: \"", source(),
        "/startup.pdmodel\" loss: \"", c.losses_of[0], "\" ", more, " }\n",
        inits, "\ndata { train { npz { path: \"data.npz\" } ",
        "batch_size: ", batch, " } }\n");
    const auto job = Open(text, (folder_ / "job.pbtxt").string());
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return "";
    TrainerOptions options;
    options.run = (folder_ / absl::StrCat("run", runs_++)).string();
    auto trainer = Trainer::Create(&registry_, *job, options, watcher);
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    if (!trainer.ok()) return "";
    const auto outcome = (*trainer)->Run();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    if (!outcome.ok()) return "";
    EXPECT_EQ(outcome->steps, end - begin);
    return outcome->checkpoint;
  }

  void ExpectLosses(int64_t begin, const std::vector<double>& losses) const {
    const double rtol = c.info.at("rtol"), atol = c.info.at("atol");
    for (size_t i = 0; i < losses.size(); ++i) {
      const double want = NumberAt(c.losses, begin + static_cast<int64_t>(i));
      EXPECT_LE(std::fabs(losses[i] - want),
                atol + (rtol + kRounding) * std::fabs(want))
          << "step " << begin + static_cast<int64_t>(i);
    }
  }

  const TrainCase c;

 private:
  OpRegistry registry_;
  fs::path folder_;
  int runs_ = 0;
};

std::string InitText(const std::string& file) {
  return absl::StrCat("init { from: \"", file, "\" }\n");
}

// Recorded trainings of one program on batches of records, whole: each over the
// data set that its batches make.
class RecordedTraining : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedTraining, AsAJob) {
  RecordedJob job(GetParam());
  Watcher watcher;
  const auto steps = job.c.info.at("steps").get<int64_t>();
  job.Train(InitText(job.source() + "/init.pdparams"), RateText(GetParam()), 0,
            steps, &watcher);
  ASSERT_EQ(watcher.losses.size(), static_cast<size_t>(steps));
  job.ExpectLosses(0, watcher.losses);
  if (job.c.rates.size() <= 1) return;
  for (size_t i = 0; i < watcher.rates.size(); ++i)
    EXPECT_NEAR(watcher.rates[i],
                NumberAt(job.c.rates, static_cast<int64_t>(i)), 1e-7)
        << "step " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Cases, RecordedTraining,
    ::testing::Values("mlp_float64", "opt_gradient_merge",
                      "opt_lr_warmup_piecewise", "opt_ema", "lenet_adam",
                      "amp_o1_dynamic_scaling", "lstm_text_classifier",
                      "cond_branch", "opt_sched_step", "opt_sched_cyclic",
                      "opt_sched_noam_obj", "resnet_basic_cosine",
                      "bert_encoder_adamw", "distill_frozen"),
    [](const auto& info) { return info.param; });

// Moments and powers of beta that a checkpoint holds are where another run
// begins, so that it goes on as PaddlePaddle did.
TEST(StatesAtStart, OfThePdoptFile) {
  RecordedJob job("opt_adam");
  Watcher first, second, without;
  const std::string checkpoint =
      job.Train(InitText(job.source() + "/init.pdparams"), "", 0, 8, &first);
  ASSERT_EQ(first.losses.size(), 8u);
  std::string parameters, states;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    if (entry.path().extension() == ".pdparams")
      parameters = entry.path().string();
    if (entry.path().extension() == ".pdopt") states = entry.path().string();
  }
  job.Train(InitText(parameters) + InitText(states), "", 8, 15, &second);
  ASSERT_EQ(second.losses.size(), 7u);
  job.ExpectLosses(8, second.losses);
  job.Train(InitText(parameters), "", 8, 15, &without);
  ASSERT_EQ(without.losses.size(), 7u);
  EXPECT_GT(std::fabs(without.losses.back() - second.losses.back()), 1e-4);
}

// The feeds of a program follow from its operators, in every recorded case.
TEST(FedVariables, OfAllRecordedTrainings) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  int compared = 0;
  for (const std::string& name : TrainCaseNames()) {
    const TrainCase c = LoadTrainCase(name);
    if (c.programs.size() > 1) continue;
    const std::string source = fs::absolute(c.folder).string();
    const auto job =
        Open(absl::StrCat(
                 "program { main: \"", source, "/main.pdmodel\" startup: \"",
                 source, "/startup.pdmodel\" loss: \"", c.losses_of[0], "\" }"),
             "job.pbtxt");
    ASSERT_TRUE(job.ok()) << job.status();
    const auto program = BuildTrainProgram(registry, *job);
    const bool deep =
        std::any_of(c.lods.begin(), c.lods.end(),
                    [](const auto& steps) { return steps[0].size() > 1; });
    if (deep) {
      EXPECT_TRUE(absl::StrContains(program.status().message(),
                                    "the program is fed sequences of"))
          << name << ": " << program.status();
      continue;
    }
    ASSERT_TRUE(program.ok()) << name << ": " << program.status();
    std::set<std::string> fed, want;
    for (const FeedSpec& feed : program->feeds) fed.insert(feed.name);
    for (const std::string& feed : Strings(c.info.at("program_feeds").at(0)))
      want.insert(feed);
    EXPECT_EQ(fed, want) << name;
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

}  // namespace test_saved_training
}  // namespace pd
