// SPDX-License-Identifier: Apache-2.0
// A training step of a real job, after its first two, must allocate nothing:
// batch, plan and step. Neither where batches differ in their shapes, once each
// shape was seen. oneDNN allocates inside its own execute calls; what it
// allocates is told apart by the module that the call comes from and is not
// counted.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>

#include "libcore/base/file.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/nn/job.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/step_runner.h"
#include "libcore/train/synthetic_batch.h"
#include "libcore/train/train_program.h"

namespace {

std::atomic<bool> g_counting{false};
std::atomic<int> g_ours{0}, g_onednn{0};

void Count(const void* caller) {
  if (!g_counting) return;
  Dl_info info;
  const bool onednn = dladdr(caller, &info) != 0 && info.dli_fname != nullptr &&
                      std::strstr(info.dli_fname, "libdnnl") != nullptr;
  ++(onednn ? g_onednn : g_ours);
}

// Null where memory ends.
void* TryToAllocate(size_t size, size_t alignment) {
  void* p = nullptr;
  return posix_memalign(&p, alignment, size == 0 ? 1 : size) == 0 ? p : nullptr;
}

void* Allocate(size_t size, size_t alignment) {
  void* const p = TryToAllocate(size, alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(size_t size) {
  Count(__builtin_return_address(0));
  return Allocate(size, alignof(std::max_align_t));
}
void* operator new(size_t size, std::align_val_t alignment) {
  Count(__builtin_return_address(0));
  return Allocate(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  Count(__builtin_return_address(0));
  return TryToAllocate(size, alignof(std::max_align_t));
}
void* operator new(size_t size, std::align_val_t alignment,
                   const std::nothrow_t&) noexcept {
  Count(__builtin_return_address(0));
  return TryToAllocate(size, static_cast<size_t>(alignment));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace pd {
namespace {

class SteadyState : public ::testing::TestWithParam<const char*> {};

TEST_P(SteadyState, TrainingStepAllocatesNothing) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  ASSERT_TRUE(AttachAllKernels(&registry).ok());
  const auto job =
      ReadJob(std::string(PD_TESTDATA "/jobs/") + GetParam() + ".pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto program = BuildTrainProgram(registry, *job);
  ASSERT_TRUE(program.ok()) << program.status();
  Session session(&registry);
  ASSERT_TRUE(session.RunOnce(program->startup).ok());
  const std::vector<FeedSpec> feeds = FeedsFor(program->feeds, 64);
  const auto plan = session.Compile(program->main, feeds, {program->loss});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const NamedArrays batch = *SyntheticBatch(program->main, feeds, 1, 0);
  RunContext context;
  g_ours = 0;
  for (; context.step < 12; ++context.step) {
    g_counting = context.step >= 2;
    for (size_t i = 0; i < feeds.size(); ++i)
      (*plan)->SetFeed(i, batch.at(feeds[i].name).bytes.get());
    const absl::Status status = (*plan)->Run(context);
    g_counting = false;
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(g_ours, 0);
  RecordProperty("onednn_allocations", g_onednn);
}

INSTANTIATE_TEST_SUITE_P(Jobs, SteadyState,
                         ::testing::Values("lenet_mnist", "mlp_mnist",
                                           "resnet_cifar", "words_csv",
                                           "clicks_fm"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

// Texts of 1 to 12 words, in batches of similar lengths.
std::string VaryingJob(const std::string& name) {
  const auto folder = std::filesystem::path(PD_BINARY_DIR) / "test_scratch" /
                      "steady_state" / name;
  std::filesystem::create_directories(folder);
  std::string rows;
  for (int i = 0; i < 90; ++i) {
    rows += i % 2 == 0 ? "yes\t" : "no\t";
    for (int word = 0; word < 1 + i * 5 % 12; ++word)
      rows += (word > 0 ? " w" : "w") + std::to_string(i * word % 7);
    rows += "\n";
  }
  const std::string path = (folder / "rows.tsv").string();
  EXPECT_TRUE(WriteFile(path, rows).ok());
  return path;
}

class VaryingShapes : public ::testing::TestWithParam<const char*> {};

TEST_P(VaryingShapes, SeenOnesAllocateNothing) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  ASSERT_TRUE(AttachAllKernels(&registry).ok());
  const std::string workers(1, GetParam()[0]);
  const std::string path = VaryingJob(workers);
  const auto job = ParseJob(
      R"(model {
  input { name: "words" shape: [-1, -1] dtype: int64 }
  layer { name: "e" embedding { num_embeddings: 16 embedding_dim: 8 } }
  layer { name: "h" linear { out_features: 8 } }
  layer { name: "r" relu {} }
  layer { name: "m" mean { axis: 1 } }
  layer { name: "f" linear { out_features: 2 } }
}
loss { cross_entropy {} }
optimizer { adam { learning_rate: 0.05 } }
data { train {
  tsv {
    path: ")" +
          path + R"("
    header: false
    field { name: "words" column: "1" text {} }
    field { name: "label" column: "0" categories {} }
  }
  batch_size: 8
  shuffle: true
  bucket { field: "words" boundaries: [4, 8] }
  pad { field: "words" multiple_of: 4 }
  num_workers: )" +
          workers + " } }",
      "job.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto program = BuildTrainProgram(registry, *job);
  ASSERT_TRUE(program.ok()) << program.status();
  RunVocabularies vocabularies;
  const auto loader =
      OpenLoader(*job, job->proto().data().train(), 1, &vocabularies);
  ASSERT_TRUE(loader.ok()) << loader.status();
  Session session(&registry);
  ASSERT_TRUE(session.RunOnce(program->startup).ok());
  size_t plans = 0;
  StepRunnerOptions options;
  options.session = &session;
  options.program = &*program;
  options.loader = loader->get();
  options.rate = [](StepPosition) { return 0.05; };
  options.on_step = [](const StepReport&) { return absl::OkStatus(); };
  options.on_plan = [&plans](int64_t, const Plan&) { ++plans; };
  StepRunner runner(std::move(options));
  ASSERT_TRUE(runner.Prepare(1).ok());
  int64_t steps = 0;
  int in_a_row = 0;
  // The same order again and again: whatever comes was seen before. Only which
  // worker makes a batch is chance, and each has to grow once.
  constexpr int kMostEpochs = 200, kWanted = 3;
  for (int epoch = 0; epoch < kMostEpochs && in_a_row < kWanted; ++epoch) {
    ASSERT_TRUE((*loader)->StartEpoch(0).ok());
    const size_t seen = plans;
    g_ours = 0;
    for (bool more = true; more;) {
      g_counting = true;
      const auto batch = (*loader)->Next();
      absl::Status status = batch.status();
      more = batch.ok() && *batch != nullptr;
      if (more) status = runner.Run(**batch, {steps, 0}, false);
      g_counting = false;
      ASSERT_TRUE(status.ok()) << status;
      steps += more;
    }
    if (epoch > 0) {
      EXPECT_EQ(plans, seen);
    }
    in_a_row = g_ours == 0 ? in_a_row + 1 : 0;
  }
  EXPECT_GE(plans, 3u);  // 4, 8 and 12 words; last batches
  EXPECT_GE(steps, (kWanted + 1) * 12);
  EXPECT_EQ(in_a_row, kWanted);
}

INSTANTIATE_TEST_SUITE_P(Workers, VaryingShapes, ::testing::Values("0", "2"),
                         [](const auto& info) {
                           return std::string(info.param) + "_workers";
                         });

}  // namespace
}  // namespace pd
