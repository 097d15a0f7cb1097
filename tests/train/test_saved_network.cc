// SPDX-License-Identifier: Apache-2.0
// Jobs that go on from a saved network: its values where it is cut, and
// trainings of a new head on it, frozen and as a whole, against PaddlePaddle's
// (of a .pdmodel) and PyTorch's (of an .onnx file); networks that branch and
// loop, and those with parameters of 16 bits.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/attach.h"
#include "libcore/model/checkpoint.h"
#include "libcore/nn/job.h"
#include "libcore/train/open_networks.h"
#include "libcore/train/trainer.h"

namespace pd {
namespace test_saved_network {

constexpr char kData[] = PD_TESTDATA "/saved_network";

// The cut of each peer's file.
struct Peer {
  const char* name;
  const char* file;
  const char* cut;
};
constexpr Peer kPaddle = {"paddle", "mobile.pdmodel", "flatten_0.tmp_0"};
constexpr Peer kTorch = {"torch", "mobile.onnx",
                         "/features/features.6/Flatten_output_0"};
// As whole networks.
constexpr Peer kBranch = {"branch", "branch.pdmodel", ""};
constexpr Peer kLoop = {"loop", "loop.pdmodel", ""};
constexpr Peer kFlow = {"flow", "flow.onnx", ""};
constexpr Peer kBfloat16 = {"bf16", "bf16.pdmodel", ""};
constexpr Peer kFloat16 = {"fp16", "fp16.onnx", ""};

constexpr char kJob[] = R"(
model {
  input { name: "image" shape: [-1, 3, 12, 12] }
  layer { name: "trunk" model { file: "FILE" CUT MODE } }
  layer { name: "head" linear { out_features: 3 } }
  GROUP
}
init { from: "head.npz" }
loss { cross_entropy {} }
optimizer { sgd { learning_rate: 0.05 } }
data { train { npz { path: "data.npz" } batch_size: 4 shuffle: false } }
train { epochs: 1 log { every_steps: 1 } }
)";
constexpr char kFrozen[] =
    R"(parameter_group { match: "trunk[.].*" trainable: false })";

std::string JobText(const Peer& peer, const std::string& group,
                    const std::string& mode = "") {
  return absl::StrReplaceAll(
      kJob, {{"FILE", peer.file},
             {"CUT",
              *peer.cut == '\0' ? "" : absl::StrCat("cut: \"", peer.cut, "\"")},
             {"MODE", mode},
             {"GROUP", group}});
}

absl::StatusOr<LoadedJob> Open(const std::string& text) {
  auto job = ParseJob(text, absl::StrCat(kData, "/job.pbtxt"));
  if (!job.ok()) return job;
  return OpenNetworks(*job, "");
}

// Keeps the losses of the steps.
class Losses : public TrainObserver {
 public:
  void OnStep(const StepReport& report) override {
    values.push_back(report.loss);
  }
  std::vector<double> values;
};

class SavedNetworkTest : public ::testing::Test {
 protected:
  SavedNetworkTest() {
    EXPECT_TRUE(RegisterAllOps(&registry_).ok());
    EXPECT_TRUE(AttachAllKernels(&registry_).ok());
    for (const char* file : {"/expected.npz", "/flow_expected.npz"}) {
      auto expected = ReadNpz(absl::StrCat(kData, file));
      EXPECT_TRUE(expected.ok()) << expected.status();
      if (expected.ok()) expected_.insert(expected->begin(), expected->end());
    }
  }

  void ExpectNear(const std::string& name, const Array& got, double bound) {
    ASSERT_EQ(expected_.count(name), 1u) << name;
    const Array& want = expected_.at(name);
    ASSERT_EQ(got.shape, want.shape) << name;
    for (int64_t i = 0; i < want.size(); ++i) {
      const double value = want.data<float>()[i];
      ASSERT_NEAR(got.data<float>()[i], value,
                  bound * std::max(1.0, std::abs(value)))
          << name << ", element " << i;
    }
  }

  // Five steps against the peer's; tolerances are of single values.
  void ExpectTrains(const Peer& peer, const std::string& kind,
                    const std::string& group, double bound, size_t least = 20) {
    const auto job = Open(JobText(peer, group));
    ASSERT_TRUE(job.ok()) << job.status();
    TrainerOptions options;
    options.run =
        absl::StrCat(::testing::TempDir(), "/saved_", peer.name, kind);
    std::filesystem::remove_all(options.run);
    Losses losses;
    auto trainer = Trainer::Create(&registry_, *job, options, &losses);
    ASSERT_TRUE(trainer.ok()) << trainer.status();
    const auto outcome = (*trainer)->Run();
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    const std::string about = absl::StrCat(peer.name, "/", kind, "/");
    const Array& want = expected_.at(about + "losses");
    ASSERT_EQ(static_cast<int64_t>(losses.values.size()), want.size());
    for (int64_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(losses.values[static_cast<size_t>(i)], want.data<double>()[i],
                  bound)
          << about << ", step " << i;
    const auto checkpoint = ReadCheckpoint(outcome->checkpoint);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    size_t compared = 0;
    for (const auto& [name, value] : expected_) {
      if (!absl::StartsWith(name, about) || absl::EndsWith(name, "losses"))
        continue;
      const std::string own = name.substr(about.size());
      ASSERT_EQ(checkpoint->params.count(own), 1u) << own;
      ExpectNear(name, checkpoint->params.at(own), bound);
      ++compared;
    }
    EXPECT_GT(compared, least);
    std::filesystem::remove_all(options.run);
  }

  void ExpectCut(const Peer& peer) {
    const auto job = Open(JobText(peer, kFrozen));
    ASSERT_TRUE(job.ok()) << job.status();
    const auto program = BuildTestProgram(registry_, *job);
    ASSERT_TRUE(program.ok()) << program.status();
    Session session(&registry_);
    const absl::Status first = SetFirstValues(*program, &session);
    ASSERT_TRUE(first.ok()) << first;
    const auto data = ReadNpz(absl::StrCat(kData, "/data.npz"));
    ASSERT_TRUE(data.ok()) << data.status();
    const std::string& cut = program->layers[0].output;
    auto plan = session.Compile(program->test,
                                {{"image", DType::kFloat32, {4, 3, 12, 12}}},
                                {cut}, "test");
    ASSERT_TRUE(plan.ok()) << plan.status();
    (*plan)->SetFeed(0, data->at("image").bytes.get());
    const absl::Status ran = (*plan)->Run({});
    ASSERT_TRUE(ran.ok()) << ran;
    ExpectNear(absl::StrCat(peer.name, "/cut"), ToArray((*plan)->fetch(0)),
               1e-5);
  }

  std::string ErrorOf(const std::string& text) {
    const auto job = Open(text);
    if (!job.ok()) return std::string(job.status().message());
    return std::string(BuildTrainProgram(registry_, *job).status().message());
  }

  // The number of batch normalizations of the training program that use the
  // batch's statistics.
  int Normalizing(const std::string& group, const std::string& mode) {
    const auto job = Open(JobText(kPaddle, group, mode));
    EXPECT_TRUE(job.ok()) << job.status();
    const auto program = BuildTrainProgram(registry_, *job);
    EXPECT_TRUE(program.ok()) << program.status();
    int count = 0;
    for (const OpDesc& op : program->main.global().ops)
      count += op.type == "batch_norm" && !op.Attr<bool>("is_test") &&
               !op.Attr<bool>("use_global_stats");
    for (const OpDesc& op : program->test.global().ops)
      EXPECT_TRUE(op.type != "batch_norm" || op.Attr<bool>("is_test"));
    return count;
  }

  OpRegistry registry_;
  NamedArrays expected_;
};

TEST_F(SavedNetworkTest, CutOfPaddlePaddle) { ExpectCut(kPaddle); }
TEST_F(SavedNetworkTest, CutOfOnnx) { ExpectCut(kTorch); }

TEST_F(SavedNetworkTest, HeadOnFrozenPaddlePaddle) {
  ExpectTrains(kPaddle, "frozen", kFrozen, 1e-5);
}
TEST_F(SavedNetworkTest, AllOfPaddlePaddle) {
  ExpectTrains(kPaddle, "full", "", 1e-4);
}
TEST_F(SavedNetworkTest, HeadOnFrozenOnnx) {
  ExpectTrains(kTorch, "frozen", kFrozen, 1e-5);
}
TEST_F(SavedNetworkTest, AllOfOnnx) { ExpectTrains(kTorch, "full", "", 1e-4); }

// Both branches are taken, and the loop runs four and five times.
TEST_F(SavedNetworkTest, BranchesOfPaddlePaddle) {
  ExpectCut(kBranch);
  ExpectTrains(kBranch, "frozen", kFrozen, 1e-5, 14);
  ExpectTrains(kBranch, "full", "", 1e-5, 14);
}
TEST_F(SavedNetworkTest, LoopOfPaddlePaddle) {
  ExpectCut(kLoop);
  ExpectTrains(kLoop, "frozen", kFrozen, 1e-5, 8);
  ExpectTrains(kLoop, "full", "", 1e-5, 8);
}
TEST_F(SavedNetworkTest, LoopAndBranchesOfOnnx) {
  ExpectCut(kFlow);
  ExpectTrains(kFlow, "frozen", kFrozen, 1e-5, 7);
  ExpectTrains(kFlow, "full", "", 1e-5, 7);
}

// The loop overwrites the network's input, which another layer reads behind it,
// another variable is twice as wide after each run, and an array is filled.
TEST_F(SavedNetworkTest, LoopThatGrows) {
  const auto job = Open(R"(
model {
  input { name: "x" shape: [-1, 2] }
  layer { name: "trunk" model { file: "growing.pdmodel" } }
  layer {
    input: "trunk" input: "trunk:save_infer_model/scale_1.tmp_0" input: "x"
    input: "trunk:save_infer_model/scale_2.tmp_0"
    concat { axis: 1 }
  }
})");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto program = BuildTestProgram(registry_, *job);
  ASSERT_TRUE(program.ok()) << program.status();
  Session session(&registry_);
  ASSERT_TRUE(SetFirstValues(*program, &session).ok());
  const Array& x = expected_.at("growing/x");
  auto plan = session.Compile(program->test, {{"x", x.dtype, x.shape}},
                              program->outputs, "test");
  ASSERT_TRUE(plan.ok()) << plan.status();
  (*plan)->SetFeed(0, x.bytes.get());
  const absl::Status ran = (*plan)->Run({});
  ASSERT_TRUE(ran.ok()) << ran;
  const Array got = ToArray((*plan)->fetch(0));
  ASSERT_EQ(got.shape, (Shape{2, 7}));
  const Array& loop = expected_.at("growing/loop");
  const Array& total = expected_.at("growing/total");
  const Array& last = expected_.at("growing/last");
  for (int64_t row = 0; row < 2; ++row) {
    const float* values = got.data<float>() + 7 * row;
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(values[i], loop.data<float>()[2 * row + i]);
      EXPECT_EQ(values[3 + i], x.data<float>()[2 * row + i]);
      EXPECT_EQ(values[5 + i], last.data<float>()[2 * row + i]);
    }
    EXPECT_EQ(values[2], total.data<float>()[row]);
  }
}

TEST_F(SavedNetworkTest, DamagedBlocksAreRefused) {
  namespace fs = std::filesystem;
  const std::string folder =
      absl::StrCat(::testing::TempDir(), "/saved_network_blocks");
  fs::remove_all(folder);
  fs::create_directories(folder);
  fs::copy_file(absl::StrCat(kData, "/loop.pdiparams"),
                folder + "/loop.pdiparams");
  const auto error = [&](const std::function<void(ProgramDesc*)>& damage) {
    auto program = ReadProgram(absl::StrCat(kData, "/loop.pdmodel"));
    EXPECT_TRUE(program.ok()) << program.status();
    damage(&*program);
    EXPECT_TRUE(WriteProgram(folder + "/loop.pdmodel", *program).ok());
    auto job = ParseJob(JobText(kLoop, ""), folder + "/job.pbtxt");
    EXPECT_TRUE(job.ok()) << job.status();
    job = OpenNetworks(*job, "");
    if (!job.ok()) return std::string(job.status().message());
    return std::string(BuildTrainProgram(registry_, *job).status().message());
  };
  const auto loop = [](ProgramDesc* program) -> OpDesc& {
    for (OpDesc& op : program->global().ops)
      if (op.type == "while") return op;
    return program->global().ops.front();
  };
  const auto says = [](const std::string& got, const char* text) {
    EXPECT_TRUE(absl::StrContains(got, text)) << got << "\nlacks " << text;
  };
  says(error([&](ProgramDesc* p) {
         p->global().ops.insert(p->global().ops.begin() + 1, loop(p));
       }),
       "loop.pdmodel': two operators run block 1");
  says(error([&](ProgramDesc* p) { loop(p).type = "recurrent"; }),
       "operator 'recurrent' runs blocks, and a job goes on from while and ");
  says(error([](ProgramDesc* p) {
         p->blocks[1].ops[0].SetInput("X", {"no_such"});
       }),
       "'no_such'");
  says(error([](ProgramDesc* p) {
         // A condition of another type.
         p->blocks[1].ops.back().SetInput("X", {"tmp_7"});
       }),
       "it keeps its element type and rank");
  says(error([](ProgramDesc* p) {
         for (VarDesc& var : p->global().vars)
           if (var.name == "flatten_0.tmp_0") var.kind = VarKind::kSelectedRows;
       }),
       "which is no tensor");
  // An attribute of the loop's name and another type, of another operator.
  EXPECT_NO_THROW(error([](ProgramDesc* p) {
    for (OpDesc& op : p->global().ops)
      if (op.type != "while") op.attrs["sub_block"] = int32_t{1};
  }));
  // Forty loops, each within the one before.
  says(error([](ProgramDesc* p) {
         for (int32_t i = 2; i < 40; ++i) {
           BlockDesc inner = p->blocks[1];
           inner.idx = i;
           inner.parent_idx = i - 1;
           p->blocks.push_back(inner);
         }
         for (size_t i = 1; i + 1 < p->blocks.size(); ++i) {
           OpDesc again = p->global().ops[0];
           for (const OpDesc& op : p->global().ops)
             if (op.type == "while") again = op;
           again.attrs["sub_block"] = BlockRef{static_cast<int32_t>(i + 1)};
           p->blocks[i].ops.push_back(again);
         }
       }),
       "its blocks are more than 32 deep");
  fs::remove_all(folder);
}

// Against the peer's network of float32 with the rounded parameters.
TEST_F(SavedNetworkTest, ParametersOf16Bits) {
  for (const Peer& peer : {kBfloat16, kFloat16}) {
    ExpectCut(peer);
    ExpectTrains(peer, "frozen", kFrozen, 1e-5, 5);
    ExpectTrains(peer, "full", "", 1e-5, 5);
  }
}

TEST_F(SavedNetworkTest, FrozenBatchNormalizationsStayAsInEvaluation) {
  EXPECT_EQ(Normalizing("", ""), 7);
  EXPECT_EQ(Normalizing(kFrozen, ""), 0);
  EXPECT_EQ(Normalizing("parameter_group { match: "
                        "\"trunk[.]batch_norm2d_0.*\" trainable: false }",
                        ""),
            6);
  EXPECT_EQ(Normalizing(kFrozen, "train_mode: true"), 7);
  EXPECT_EQ(Normalizing("", "train_mode: false"), 0);
}

// The file is there when the run begins and gone from then on.
TEST_F(SavedNetworkTest, RunNeedsNoFile) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(::testing::TempDir()) / "saved_network_files";
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const char* file :
       {"mobile.pdmodel", "mobile.pdiparams", "data.npz", "head.npz"})
    fs::copy_file(fs::path(kData) / file, folder / file);
  const auto at = [&](const std::string& file, const std::string& text,
                      const std::string& run) -> absl::StatusOr<LoadedJob> {
    PD_ASSIGN_OR_RETURN(const LoadedJob job, ParseJob(text, file));
    return OpenNetworks(job, run);
  };
  const std::string path = (folder / "job.pbtxt").string();
  const std::string text = JobText(kPaddle, "");
  const auto train = [&](const LoadedJob& job, const std::string& run) {
    TrainerOptions options;
    options.run = run;
    options.resume = true;
    TrainObserver nobody;
    auto trainer = Trainer::Create(&registry_, job, options, &nobody);
    EXPECT_TRUE(trainer.ok()) << trainer.status();
    if (!trainer.ok()) return std::string();
    const auto outcome = (*trainer)->Run();
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? outcome->checkpoint : std::string();
  };
  const auto steps = [&](const char* count) {
    return absl::StrReplaceAll(text, {{"epochs: 1", count}});
  };
  const std::string whole = (folder / "whole").string(),
                    run = (folder / "run").string();
  auto job = at(path, steps("epochs: 2"), "");
  ASSERT_TRUE(job.ok()) << job.status();
  const std::string want = train(*job, whole);
  job = at(path, steps("epochs: 2 steps: 3"), "");
  ASSERT_TRUE(job.ok()) << job.status();
  train(*job, run);
  fs::remove(folder / "mobile.pdmodel");
  fs::remove(folder / "mobile.pdiparams");
  EXPECT_FALSE(at(path, text, "").ok());
  job = at(path, steps("epochs: 2"), run);
  ASSERT_TRUE(job.ok()) << job.status();
  const std::string got = train(*job, run);
  const auto first = ReadCheckpoint(want), second = ReadCheckpoint(got);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  ASSERT_EQ(first->params.size(), second->params.size());
  for (const auto& [name, value] : first->params) {
    const Array& other = second->params.at(name);
    ASSERT_EQ(value.size_bytes(), other.size_bytes()) << name;
    EXPECT_EQ(0, std::memcmp(value.bytes.get(), other.bytes.get(),
                             value.size_bytes()))
        << name;
  }
  // Evaluation and export take the run's own job.
  const auto own = ReadJob(run + "/job.pbtxt");
  ASSERT_TRUE(own.ok()) << own.status();
  const auto opened = OpenNetworks(*own, "");
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE(BuildTestProgram(registry_, *opened).ok());
  fs::remove_all(folder);
}

TEST_F(SavedNetworkTest, DamagedFilesAreRefusedByName) {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(::testing::TempDir()) / "saved_network_damage";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const std::string text = JobText(kPaddle, "");
  const auto error = [&](const char* cut, uintmax_t bytes) {
    for (const char* file : {"mobile.pdmodel", "mobile.pdiparams"}) {
      fs::copy_file(fs::path(kData) / file, folder / file,
                    fs::copy_options::overwrite_existing);
      if (std::string(cut) == file) fs::resize_file(folder / file, bytes);
    }
    const auto job = ParseJob(text, (folder / "job.pbtxt").string());
    EXPECT_TRUE(job.ok()) << job.status();
    return std::string(OpenNetworks(*job, "").status().message());
  };
  for (const uintmax_t bytes : {0u, 1u, 100u, 3000u, 20000u})
    EXPECT_TRUE(absl::StrContains(error("mobile.pdmodel", bytes),
                                  (folder / "mobile.pd").string()))
        << bytes << ": " << error("mobile.pdmodel", bytes);
  for (const uintmax_t bytes : {0u, 2000u, 4900u})
    EXPECT_TRUE(absl::StrContains(error("mobile.pdiparams", bytes),
                                  (folder / "mobile.pdiparams").string()))
        << bytes << ": " << error("mobile.pdiparams", bytes);
  fs::remove_all(folder);
}

TEST_F(SavedNetworkTest, Errors) {
  const auto with = [](const char* cut) {
    return JobText({"", "mobile.pdmodel", cut}, "");
  };
  for (const auto& [text, part] :
       std::vector<std::pair<std::string, const char*>>{
           {with("flaten_0.tmp_0"),
            "there is no variable or layer 'flaten_0.tmp_0', did you mean "
            "'flatten_0.tmp_0'?; it has ..., "},
           {with("flaten_0.tmp_0"), "'flatten_0.tmp_0' [-1, 6]"},
           {with("flaten_0.tmp_0"), "job.pbtxt:4:"},
           {with("flaten_0.tmp_0"), "mobile.pdmodel': "},
           {with("conv2d_0.w_0"), "'conv2d_0.w_0' is a parameter, which no "},
           {with("x"), "'x' is an input, which no operator computes"},
           {JobText({"", "head.npz", "x"}, ""), "there are parameters only"},
           {JobText({"", "none.pdmodel", "x"}, ""), "none.pdmodel"},
           {JobText(kPaddle, "", "feed: \"y\""),
            "'feed' names 'y'; 'testdata/saved_network/mobile.pdmodel' needs "
            "'x' float32[-1, 3, 12, 12]"},
           {absl::StrReplaceAll(JobText(kPaddle, ""),
                                {{"[-1, 3, 12, 12]", "[-1, 12, 12]"}}),
            "expects float32[-1, 3, 12, 12] for 'x' of"},
           {absl::StrReplaceAll(JobText(kPaddle, ""),
                                {{"[-1, 3, 12, 12]", "[-1, 4, 12, 12]"}}),
            "mobile.pdmodel': op 'conv2d' that makes 'trunk.conv2d_0.tmp_0'"},
           {absl::StrReplaceAll(JobText(kPaddle, ""),
                                {{"layer { name: \"trunk\"",
                                  "layer { name: \"trunk\" input: \"image\" "
                                  "input: \"image\""}}),
            "layer 'trunk' names 2 inputs; "}}) {
    const std::string error = ErrorOf(text);
    EXPECT_TRUE(absl::StrContains(error, part)) << error << "\nlacks " << part;
  }
}

}  // namespace test_saved_network
}  // namespace pd
