// SPDX-License-Identifier: Apache-2.0
// A run that is watched: its bits are those of one that is not; its files hold
// what log.jsonl holds, once, also when it goes on from a checkpoint; its page
// cannot be broken by what a job is called.
#include "libcore/report/run_watcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "absl/strings/str_join.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/tfevents.h"
#include "formats/visualdl.h"
#include "libcore/base/file.h"
#include "libcore/ops/registry.h"
#include "libcore/report/dry_run.h"
#include "libcore/train/observer_list.h"

namespace pd {
namespace test_run_watcher {

namespace fs = std::filesystem;

class WatcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pd_watcher_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    // Two classes: whether the first number is above a half.
    std::vector<float> x;
    std::vector<int64_t> label;
    for (int i = 0; i < 24; ++i) {
      for (int j = 0; j < 4; ++j)
        x.push_back(static_cast<float>((i * 7 + j * 5) % 24) / 24);
      label.push_back(x[x.size() - 4] > 0.5f ? 1 : 0);
    }
    NamedArrays arrays;
    arrays["x"] = MakeArray<float>({24, 4}, x);
    arrays["label"] = MakeArray<int64_t>({24, 1}, label);
    ASSERT_TRUE(WriteNpz(folder_ + "/data.npz", arrays).ok());
  }
  void TearDown() override { fs::remove_all(folder_); }

  LoadedJob Job(int steps) {
    const std::string text = R"(
      name: "</script><b>x"
      model {
        input { name: "x" shape: [-1, 4] }
        layer { name: "fc1" linear { out_features: 8 } }
        layer { tanh {} }
        layer { name: "fc2" linear { out_features: 2 } }
      }
      loss { cross_entropy {} }
      metric { accuracy {} }
      optimizer { adam { learning_rate: 0.05 } }
      data {
        train { npz { path: "data.npz" } batch_size: 6 shuffle: true }
        eval { npz { path: "data.npz" } batch_size: 10 }
      }
      train {
        epochs: 3
        checkpoint { every_steps: 5 keep_last: 0 }
        log { every_steps: 2 histogram_every_steps: 3 samples: 5 }
        steps: )";
    auto job =
        ParseJob(text + std::to_string(steps) + " }", folder_ + "/job.pbtxt");
    EXPECT_TRUE(job.ok()) << job.status();
    return *std::move(job);
  }

  absl::Status Train(const std::string& run, int steps, bool watch,
                     bool resume = false, SoundInput sound = {}) {
    WatchOptions options;
    options.sound = std::move(sound);
    if (watch) options.logs = {LogKind::kVisualDl, LogKind::kTensorBoard};
    options.report = watch;
    RunWatcher watcher(options);
    TrainObserver nobody;
    ObserverList all({&nobody});
    if (watch) all = ObserverList({&nobody, &watcher});
    TrainerOptions trainer_options;
    trainer_options.run = folder_ + "/" + run;
    trainer_options.resume = resume;
    auto trainer =
        Trainer::Create(&registry_, Job(steps), trainer_options, &all);
    if (!trainer.ok()) return trainer.status();
    const auto outcome = (*trainer)->Run();
    if (!outcome.ok()) return outcome.status();
    return watch ? watcher.Finish(&*outcome) : absl::OkStatus();
  }

  std::string Read(const std::string& path) {
    const auto bytes = ReadFile(folder_ + "/" + path);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? std::string(bytes->view()) : "";
  }
  // The only file of RUN whose name begins so.
  std::string Only(const std::string& run, const std::string& prefix) {
    std::string found;
    for (const auto& entry : fs::directory_iterator(folder_ + "/" + run))
      if (entry.path().filename().string().rfind(prefix, 0) == 0) {
        EXPECT_EQ(found, "");
        found = run + "/" + entry.path().filename().string();
      }
    return found;
  }
  // How often each tag and step is there.
  std::map<std::pair<std::string, int64_t>, int> Marks(const std::string& run,
                                                       LogKind kind) {
    const bool visual = kind == LogKind::kVisualDl;
    const std::string bytes =
        Read(Only(run, visual ? "vdlrecords." : "events.out.tfevents."));
    const auto marks = visual ? ScanVisualDl(bytes) : ScanTfEvents(bytes);
    EXPECT_TRUE(marks.ok()) << marks.status();
    std::map<std::pair<std::string, int64_t>, int> counts;
    if (!marks.ok()) return counts;
    EXPECT_EQ(marks->empty() ? 0 : marks->back().end, bytes.size());
    for (const LogMark& mark : *marks) ++counts[{mark.tag, mark.step}];
    return counts;
  }

  std::string folder_;
  OpRegistry registry_;
};

TEST_F(WatcherTest, ChangesNoBit) {
  ASSERT_TRUE(Train("plain", 12, false).ok());
  ASSERT_TRUE(Train("watched", 12, true).ok());
  for (const char* file : {"log.jsonl", "checkpoints/step-12/model.pdparams",
                           "checkpoints/step-12/model.pdopt"})
    EXPECT_EQ(Read(std::string("plain/") + file),
              Read(std::string("watched/") + file));
}

TEST_F(WatcherTest, HoldsWhatHappened) {
  ASSERT_TRUE(Train("run", 12, true).ok());
  for (const LogKind kind : {LogKind::kVisualDl, LogKind::kTensorBoard}) {
    const auto marks = Marks("run", kind);
    for (const auto& [mark, count] : marks) EXPECT_EQ(count, 1) << mark.first;
    for (int step : {2, 4, 6, 8, 10, 12})
      EXPECT_EQ(marks.count({"train/loss", step}), 1u) << step;
    EXPECT_EQ(marks.count({"train/loss", 3}), 0u);
    for (int step : {4, 8, 12}) {  // an epoch has four batches
      EXPECT_EQ(marks.count({"train/epoch_loss", step}), 1u);
      EXPECT_EQ(marks.count({"eval/acc", step}), 1u);
      EXPECT_EQ(marks.count({"pr/1", step}), 1u);
    }
    for (int step : {3, 6, 9, 12}) {
      EXPECT_EQ(marks.count({"gradients/fc1.weight", step}), 1u);
      EXPECT_EQ(marks.count({"weights/fc2.bias", step}), 1u);
    }
  }
}

// The numbers of a record as they come out of its WAV file.
TEST_F(WatcherTest, SamplesCanBeHeard) {
  ASSERT_TRUE(Train("run", 12, true, false, {"x", 8000}).ok());
  for (const LogKind kind : {LogKind::kVisualDl, LogKind::kTensorBoard}) {
    const auto marks = Marks("run", kind);
    for (int step : {4, 8, 12})
      EXPECT_EQ(marks.count({"samples/0/audio", step}), 1u) << step;
    const bool visual = kind == LogKind::kVisualDl;
    const std::string bytes =
        Read(Only("run", visual ? "vdlrecords." : "events.out.tfevents."));
    // Record 0 is 0, 5, 10, 15 of 24.
    WavSound sound{8000, 1, {}};
    for (float x : {0.0f, 5.0f, 10.0f, 15.0f})
      sound.samples.push_back(PcmOf(x / 24));
    EXPECT_NE(bytes.find(*EncodeWav(sound)), std::string::npos);
  }
}

TEST_F(WatcherTest, HearsNoOtherThings) {
  EXPECT_EQ(Train("run", 12, true, false, {"y", 8000}).message(),
            "the network has no input 'y' to hear; it has x");
}

// scripts/check_logs asks VisualDL to draw it.
TEST_F(WatcherTest, VisualDlHasTheNetworkBesideItsRecords) {
  ASSERT_TRUE(Train("run", 4, true).ok());
  const auto graph = ReadProgram(folder_ + "/run/vdlgraph.pdmodel");
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> scopes;
  for (const OpDesc& op : graph->global().ops)
    scopes.push_back(op.AttrOr<std::string>("op_namescope", ""));
  EXPECT_EQ(std::count(scopes.begin(), scopes.end(), "/fc1/"), 2)
      << absl::StrJoin(scopes, " ");
}

TEST_F(WatcherTest, GoesOnWithoutDoubles) {
  ASSERT_TRUE(Train("whole", 12, true).ok());
  // Stopped at 10; what came behind the checkpoint of step 5 is lost, and the
  // last record is torn.
  ASSERT_TRUE(Train("run", 10, true).ok());
  fs::remove_all(folder_ + "/run/checkpoints/step-10");
  std::ofstream(folder_ + "/run/latest") << "step-5\n";
  for (const char* prefix : {"vdlrecords.", "events.out.tfevents."})
    std::ofstream(folder_ + "/" + Only("run", prefix), std::ios::app)
        << std::string("\x30\0\0\0\0\0\0\0\x7f", 9);
  const absl::Status status = Train("run", 12, true, true);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(Read("run/log.jsonl"), Read("whole/log.jsonl"));
  for (const LogKind kind : {LogKind::kVisualDl, LogKind::kTensorBoard})
    EXPECT_EQ(Marks("run", kind), Marks("whole", kind));
}

TEST_F(WatcherTest, PageIsWholeAndSafe) {
  ASSERT_TRUE(Train("run", 12, true).ok());
  const std::string page = Read("run/report.html");
  EXPECT_EQ(page.find("<b>x"), std::string::npos);
  EXPECT_EQ(page.find("/*DATA*/"), std::string::npos);
  EXPECT_EQ(page.find("/*CHART*/"), std::string::npos);
  EXPECT_EQ(page.find("src=\"http"), std::string::npos);
  EXPECT_NE(page.find("Chart.js v3"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>"), std::string::npos);
  EXPECT_NE(page.find("\"eval/acc\":[[4,"), std::string::npos);
  EXPECT_NE(page.find("\"confusion\""), std::string::npos);
}

TEST_F(WatcherTest, SaysWhatItCannotWrite) {
  ASSERT_TRUE(Train("run", 4, true).ok());
  std::ofstream(folder_ + "/" + Only("run", "vdlrecords."), std::ios::trunc)
      << std::string("\x02\0\0\0\0\0\0\0\xff\xff", 10);
  const absl::Status status = Train("run", 12, true, true);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
}

TEST_F(WatcherTest, DryRun) {
  const auto dry = RunDry(registry_, Job(10));
  ASSERT_TRUE(dry.ok()) << dry.status();
  EXPECT_EQ(dry->parameters, 4 * 8 + 8 + 8 * 2 + 2);
  EXPECT_EQ(dry->trainable, dry->parameters);
  EXPECT_EQ(dry->train.records, 24);
  EXPECT_EQ(dry->train.batches, 4);
  ASSERT_TRUE(dry->eval.has_value());
  EXPECT_EQ(dry->eval->batches, 3);
  EXPECT_EQ(dry->steps, 10);
  EXPECT_GT(dry->train.activation_bytes, 0u);
  // Two moments, two powers of beta each parameter, and the learning rate.
  EXPECT_GE(dry->state_bytes, 2 * dry->parameter_bytes);
  // Forward twice fc1 and fc2; gradients of both weights and of fc2's input.
  EXPECT_EQ(dry->step_flops, 6 * 2 * (4 * 8 * 2 + 8 * 2 * 3));
  fs::remove(folder_ + "/data.npz");
  EXPECT_EQ(RunDry(registry_, Job(10)).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace test_run_watcher
}  // namespace pd
