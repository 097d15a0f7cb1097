// SPDX-License-Identifier: Apache-2.0
// Which algorithm a convolution is given, and halves with channels last, by the
// fake cuDNN (fake_cudnn.cc): the algorithm that it rates as the
// fastest wants 3 MiB and is not deterministic, the other one wants 4 KiB and
// is the faster when they run, unless float32 may be rounded.
#include "libcore/device/cudnn.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "libcore/base/file.h"
#include "libcore/base/half.h"
#include "libcore/device/choice_cache.h"
#include "libcore/kernels/cuda/place.h"
#include "tests/device/fake_driver.h"

namespace pd {
namespace {

class CudnnTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(UseFakeDriver().ok());
    auto device = CudaDevice::Open(0, FakeDriverImages());
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
    c_.input = {1, 4, 1, 3};
    c_.filter = {2, 2, 1, 2};
    c_.output = {1, 2, 1, 2};
    c_.paddings = {0, 0};
    c_.strides = c_.dilations = {1, 1};
    c_.groups = 2;
    c_.most_workspace = size_t{512} << 20;
  }

  absl::StatusOr<std::shared_ptr<const BoundConvolution>> Bind() {
    return BindConvolution(device_.get(), c_, ConvolutionPart::kOutput);
  }
  // A tensor of halves on the device.
  std::shared_ptr<void> Put(const std::vector<float>& values) {
    std::vector<BFloat16> halves(values.begin(), values.end());
    const size_t bytes = halves.size() * sizeof(BFloat16);
    auto memory = device_->Allocate(bytes);
    EXPECT_TRUE(memory.ok());
    EXPECT_TRUE(device_->ToDevice(memory->get(), halves.data(), bytes).ok());
    return *memory;
  }

  std::shared_ptr<CudaDevice> device_;
  Convolution c_;
};

TEST_F(CudnnTest, TheFastestThatFitsIsTaken) {
  const size_t greedy = size_t{3} << 20;
  auto bound = Bind();
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ((*bound)->workspace(), greedy);
  c_.most_workspace = greedy - 1;
  bound = Bind();
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ((*bound)->workspace(), 4096u);
}

TEST_F(CudnnTest, TheSameBitsCostTime) {
  c_.deterministic = true;
  const auto bound = Bind();
  ASSERT_TRUE(bound.ok()) << bound.status();
  EXPECT_EQ((*bound)->workspace(), 4096u);
}

TEST_F(CudnnTest, WhatDoesNotFitIsRefused) {
  c_.most_workspace = 4095;
  EXPECT_EQ(Bind().status().message(), "cuDNN knows no algorithm in 0 MiB");
  c_.most_workspace = size_t{1} << 20;
  c_.output = {1, 2, 1, 3};
  EXPECT_EQ(Bind().status().code(), absl::StatusCode::kUnimplemented);
  c_.input = {1, int64_t{1} << 31, 1, 3};
  EXPECT_EQ(Bind().status().message(), "an extent of 2147483648");
  c_.dtype = DType::kFloat64;
  EXPECT_EQ(Bind().status().message(), "a convolution of float64");
}

// Two groups of two channels, in the order of positions: by hand.
TEST_F(CudnnTest, HalvesWithChannelsLast) {
  c_.dtype = DType::kBFloat16;
  c_.channels_last = true;
  const auto bound = Bind();
  ASSERT_TRUE(bound.ok()) << bound.status();
  const auto x = Put({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto w = Put({1, -1, 2, 0.5f, 3, 0, 0, 1});
  const auto y = Put({0, 0, 0, 0});
  const auto workspace = device_->Allocate((*bound)->workspace());
  ASSERT_TRUE(workspace.ok());
  ASSERT_TRUE((*bound)->Run(x.get(), w.get(), y.get(), workspace->get()).ok());
  std::vector<BFloat16> got(4);
  ASSERT_TRUE(device_->ToHost(got.data(), y.get(), 8).ok());
  ASSERT_TRUE(device_->Synchronize().ok());
  // Position 0, channels 0 and 1, then position 1.
  EXPECT_EQ(static_cast<float>(got[0]), 1 - 5 + 2 * 2 + 0.5f * 6);
  EXPECT_EQ(static_cast<float>(got[1]), 3 * 3 + 8);
  EXPECT_EQ(static_cast<float>(got[2]), 5 - 9 + 2 * 6 + 0.5f * 10);
  EXPECT_EQ(static_cast<float>(got[3]), 3 * 7 + 12);
}

// Choices by trying, each test with a folder of its own.
class CudnnSearch : public CudnnTest {
 protected:
  static constexpr size_t kGreedy = size_t{3} << 20, kModest = 4096;

  void SetUp() override {
    CudnnTest::SetUp();
    unsetenv("FAKE_CUDA");
    c_.exhaustive = true;
    NewCache();
  }

  // A new cache, as seen by a process that starts now, with `text` in its file.
  void NewCache(const std::string& text = "") {
    static int number = 0;
    // XDG_CACHE_HOME counts only where it is absolute.
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

  // Bytes of the algorithm that is taken, what it has said, and how many
  // searches it took.
  size_t Choose(ConvolutionPart part = ConvolutionPart::kOutput) {
    const int before = ConvolutionSearches();
    ::testing::internal::CaptureStderr();
    const auto bound = BindConvolution(device_.get(), c_, part);
    said_ = ::testing::internal::GetCapturedStderr();
    EXPECT_TRUE(bound.ok()) << bound.status();
    searches_ = ConvolutionSearches() - before;
    return bound.ok() ? (*bound)->workspace() : 0;
  }

  std::string folder_, said_;
  int searches_ = 0;
};

TEST_F(CudnnSearch, TheOneThatRanFastestIsTakenAndKept) {
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(searches_, 1);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(searches_, 0);
  // The kernel module's release, where there is one, stands before 13.0.
  EXPECT_EQ(
      std::regex_replace(Text(), std::regex("driver [0-9.]+ 13"), "driver 13"),
      "pdkit choices 1\n"
      "Fake GPU 0; cuDNN 9.19.2; driver 13.0; output float32 "
      "x 1,4,1,3 w 2,2,1,2 y 1,2,1,2 pad 0,0 stride 1,1 dilation 1,1 "
      "groups 2 workspace 536870912\t2\t3\n"
      "end 1\n");
  // Each part, and whatever changes the times, is a choice of its own.
  for (const auto part : {ConvolutionPart::kInput, ConvolutionPart::kFilter}) {
    EXPECT_EQ(Choose(part), kModest);
    EXPECT_EQ(searches_, 1);
  }
  c_.tf32 = true;
  EXPECT_EQ(Choose(), kGreedy);
  EXPECT_EQ(searches_, 1);
  EXPECT_EQ(ChoiceCache::Parse(Text())->size(), 4u);
  // A process that starts now tries nothing.
  NewCache(Text());
  EXPECT_EQ(Choose(), kGreedy);
  c_.tf32 = false;
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(searches_, 0);
  c_.exhaustive = false;
  EXPECT_EQ(Choose(), kGreedy);
}

TEST_F(CudnnSearch, WhatIsTakenFitsAndIsDeterministic) {
  c_.tf32 = true;
  c_.deterministic = true;
  EXPECT_EQ(Choose(), kModest);
  c_.deterministic = false;
  c_.most_workspace = kGreedy - 1;
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(searches_, 1);
}

// A file that somebody has changed: what cuDNN knows better is not believed.
TEST_F(CudnnSearch, AFileIsNotTrusted) {
  Choose();
  const std::string good = Text();
  NewCache(absl::StrReplaceAll(good, {{"\t2\t3", "\t1\t3"}}));
  EXPECT_EQ(Choose(), kGreedy);
  EXPECT_EQ(searches_, 0);
  for (const char* bad : {"\t7\t3", "\t0\t3", "\t1\t1", "\t1\t9"}) {
    NewCache(absl::StrReplaceAll(good, {{"\t2\t3", bad}}));
    EXPECT_EQ(Choose(), kModest) << bad;
    EXPECT_EQ(searches_, 1);
    EXPECT_TRUE(absl::StrContains(said_, "which cuDNN does not take")) << said_;
    EXPECT_EQ(Text(), good);
  }
  c_.deterministic = true;
  Choose();
  NewCache(absl::StrReplaceAll(Text(), {{"\t2\t3", "\t1\t3"}}));
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(searches_, 1);
  NewCache("something else\n");
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(searches_, 1);
  EXPECT_TRUE(absl::StrContains(
      said_, absl::StrCat("warning: '", Path(),
                          "' is not used and will be written anew: it does "
                          "not begin with 'pdkit choices 1'")))
      << said_;
  EXPECT_EQ(ChoiceCache::Parse(Text())->size(), 1u);
}

TEST_F(CudnnSearch, WithoutAPlaceToKeepThemChoicesAreForTheProcess) {
  setenv("XDG_CACHE_HOME", "/dev/null/no", 1);
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(searches_, 1);
  EXPECT_TRUE(absl::StrContains(said_, "warning: a choice is not kept: "))
      << said_;
  EXPECT_EQ(Choose(), kModest);
  EXPECT_EQ(searches_, 0);
}

TEST_F(CudnnSearch, WithoutMemoryToTryTheExpectedOneIsTaken) {
  setenv("FAKE_CUDA", "memory=2", 1);
  EXPECT_EQ(Choose(), kGreedy);
  EXPECT_EQ(searches_, 0);
  EXPECT_TRUE(absl::StrContains(said_,
                                "what it expects to be the fastest is taken: "
                                "gpu:0 has "))
      << said_;
  EXPECT_EQ(Text(), "");
}

}  // namespace
}  // namespace pd
