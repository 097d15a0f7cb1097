// SPDX-License-Identifier: Apache-2.0
// Which algorithm a convolution is given, and halves with channels last, by the
// stand-in for cuDNN (fake_cudnn.cc): its fast algorithm wants 3 MiB and is not
// deterministic, its slow one wants 4 KiB.
#include "libcore/device/cudnn.h"

#include <gtest/gtest.h>

#include "libcore/base/half.h"
#include "libcore/kernels/cuda/place.h"
#include "tests/device/stand_in.h"

namespace pd {
namespace {

class CudnnTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(UseStandIn().ok());
    auto device = CudaDevice::Open(0, StandInImages());
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
  EXPECT_EQ(Bind().status().message(),
            "cuDNN knows no algorithm in 0 MiB (status 0)");
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

}  // namespace
}  // namespace pd
