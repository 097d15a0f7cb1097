// SPDX-License-Identifier: Apache-2.0
// Which engine a convolution is given when all of them are tried, by the fake
// cuDNN (fake_cudnn.cc): the one that rounds wants 3 MiB and is the fastest, a
// plain one of 2 KiB is faster than the others.
#include "libcore/device/cudnn_convolution.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/device/choice_cache.h"
#include "libcore/kernels/cuda/place.h"
#include "tests/device/fake_driver.h"

namespace pd {
namespace test_cudnn {

// Each test has a folder of its own.
class CudnnSearch : public ::testing::Test {
 protected:
  static constexpr size_t kGreedy = size_t{3} << 20,
                          kCompiled = size_t{1} << 20, kModest = 2048;

  void SetUp() override {
    ASSERT_TRUE(UseFakeDriver().ok());
    c_.input = {1, 4, 1, 3};
    c_.filter = {2, 2, 1, 2};
    c_.output = {1, 2, 1, 2};
    c_.paddings = {0, 0};
    c_.strides = c_.dilations = {1, 1};
    c_.groups = 2;
    c_.most_workspace = size_t{512} << 20;
    unsetenv("FAKE_CUDA");
    c_.exhaustive = true;
    NewCache();
  }

  // A new cache, as seen by a process that starts now, with `text` in its file.
  void NewCache(const std::string& text = "") {
    static int number = 0;
    // XDG_CACHE_HOME counts only where it is absolute.
    auto device = CudaDevice::Open(0, FakeDriverImages());
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
    folder_ = absl::StrCat(std::filesystem::absolute(PD_BINARY_DIR).string(),
                           "/test_scratch/cudnn/", getpid(), "-", ++number);
    std::filesystem::create_directories(folder_ + "/pdkit");
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    if (!text.empty()) {
      ASSERT_TRUE(WriteFile(Path(), text).ok());
    }
  }
  std::string Path() const { return folder_ + "/pdkit/convolutions.txt"; }
  std::string Text() const {
    const auto file = ReadFile(Path());
    return file.ok() ? std::string(file->view()) : "";
  }

  // Bytes of the engine that is taken, what it has said, and how often engines
  // were run to find it.
  size_t Choose(ConvolutionPart part = ConvolutionPart::kOutput) {
    const int before = GraphRuns();
    ::testing::internal::CaptureStderr();
    const auto bound = BindConvolution(device_.get(), c_, part);
    said_ = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(bound.ok()) << bound.status();
    runs_ = GraphRuns() - before;
    return bound.ok() ? (*bound)->workspace() : 0;
  }

  // One run of each, then those that are timed.
  static constexpr int kRunsOfEach = 4;

  std::shared_ptr<CudaDevice> device_;
  Convolution c_;
  std::string folder_, said_;
  int runs_ = 0;
};

TEST_F(CudnnSearch, TheOneThatRanFastestIsTakenAndKept) {
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(runs_, 3 * kRunsOfEach);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(runs_, 0);
  // The kernel module's release, where there is one, stands before 13.0. The
  // fallback's recommendations begin at 64.
  EXPECT_EQ(
      std::regex_replace(Text(), std::regex("driver [0-9.]+ 13"), "driver 13"),
      "pdkit choices 2\n"
      "Fake GPU 0; cuDNN 9.19.2; driver 13.0; output float32 "
      "x 1,4,1,3 w 2,2,1,2 y 1,2,1,2 pad 0,0 stride 1,1 dilation 1,1 "
      "groups 2 workspace 536870912\t64\t14\n"
      "end 1\n");
  // Each part, and whatever changes the times, is a choice of its own.
  for (const auto part : {ConvolutionPart::kInput, ConvolutionPart::kFilter}) {
    EXPECT_EQ(Choose(part), kModest);
    EXPECT_EQ(runs_, 3 * kRunsOfEach);
  }
  c_.tf32 = true;
  EXPECT_EQ(Choose(), kGreedy);
  EXPECT_EQ(runs_, 4 * kRunsOfEach);
  EXPECT_EQ(ChoiceCache::Parse(Text())->size(), 4u);
  // A process that starts now tries nothing.
  NewCache(Text());
  EXPECT_EQ(Choose(), kGreedy);
  c_.tf32 = false;
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(runs_, 0);
  c_.exhaustive = false;
  EXPECT_EQ(Choose(), kGreedy);
}

TEST_F(CudnnSearch, SaysWhichOneItTakes) {
  SetLogLevel(LogLevel::kDebug);
  Choose();
  SetLogLevel(LogLevel::kInfo);
  EXPECT_TRUE(absl::StartsWith(
      said_,
      "engine 14, number 64 of those that cuDNN recommends, for Fake GPU 0; "))
      << said_;
}

TEST_F(CudnnSearch, WhatIsTakenFitsAndIsDeterministic) {
  c_.deterministic = true;
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(runs_, 2 * kRunsOfEach);
  c_.deterministic = false;
  c_.tf32 = true;
  c_.most_workspace = kGreedy - 1;
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(runs_, 2 * kRunsOfEach);
}

// A file that somebody has changed: what cuDNN knows better is not believed.
TEST_F(CudnnSearch, AFileIsNotTrusted) {
  Choose();
  const std::string good = Text();
  // One that computes as it should is taken at its word.
  NewCache(absl::StrReplaceAll(good, {{"\t64\t14", "\t0\t13"}}));
  EXPECT_EQ(Choose(), kCompiled);
  EXPECT_EQ(runs_, 0);
  // No such position, another engine there, one that rounds, one without plan.
  for (const char* bad :
       {"\t99\t14", "\t5\t14", "\t64\t13", "\t1\t10", "\t3\t12"}) {
    NewCache(absl::StrReplaceAll(good, {{"\t64\t14", bad}}));
    EXPECT_EQ(Choose(), kModest) << bad;
    EXPECT_GT(runs_, 0);
    EXPECT_TRUE(absl::StrContains(said_, "which cuDNN does not take")) << said_;
    EXPECT_EQ(Text(), good);
  }
  c_.deterministic = true;
  Choose();
  NewCache(absl::StrReplaceAll(Text(), {{"\t64\t14", "\t2\t11"}}));
  EXPECT_EQ(Choose(), kModest);
  EXPECT_GT(runs_, 0);
  NewCache("something else\n");
  EXPECT_EQ(Choose(), kModest);
  EXPECT_GT(runs_, 0);
  EXPECT_TRUE(absl::StrContains(
      said_, absl::StrCat("warning: '", Path(),
                          "' is not used and will be written anew: it does "
                          "not begin with 'pdkit choices 2'")))
      << said_;
  EXPECT_EQ(ChoiceCache::Parse(Text())->size(), 1u);
}

TEST_F(CudnnSearch, WithoutAPlaceToKeepThemChoicesAreForTheProcess) {
  setenv("XDG_CACHE_HOME", "/dev/null/no", 1);
  EXPECT_EQ(Choose(), kModest);
  EXPECT_GT(runs_, 0);
  EXPECT_TRUE(absl::StrContains(said_, "warning: a choice is not kept: "))
      << said_;
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(runs_, 0);
}

TEST_F(CudnnSearch, WithoutMemoryToTryTheExpectedOneIsTaken) {
  setenv("FAKE_CUDA", "memory=2", 1);
  EXPECT_EQ(Choose(), kGreedy);
  EXPECT_EQ(runs_, 0);
  EXPECT_TRUE(absl::StrContains(said_,
                                "what it expects to be the fastest is taken: "
                                "gpu:0 has "))
      << said_;
  EXPECT_EQ(Text(), "");
}

}  // namespace test_cudnn
}  // namespace pd
