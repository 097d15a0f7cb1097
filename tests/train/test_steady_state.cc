// SPDX-License-Identifier: Apache-2.0
// A training step of the real LeNet job, after its first two, must allocate
// nothing. oneDNN allocates inside its own execute calls; what it allocates is
// told apart by the module that the call comes from and is not counted.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/nn/job.h"
#include "libcore/train/bench.h"
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

void* Allocate(size_t size, size_t alignment) {
  void* p = nullptr;
  if (posix_memalign(&p, alignment, size == 0 ? 1 : size) != 0)
    throw std::bad_alloc();
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
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace pd {
namespace {

class SteadyState : public testing::TestWithParam<const char*> {};

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
  const NamedArrays batch = SyntheticBatch(program->main, feeds, 1, 0);
  RunContext context;
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
                         testing::Values("lenet_mnist", "mlp_mnist",
                                         "resnet_cifar", "words_csv"),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

}  // namespace
}  // namespace pd
