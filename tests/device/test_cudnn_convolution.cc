// SPDX-License-Identifier: Apache-2.0
// The parts of a convolution, and a forward one with what follows it, by the
// fake cuDNN (fake_cudnn.cc) against sums in double; and which engine is taken.
#include "libcore/device/cudnn_convolution.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "libcore/base/half.h"
#include "libcore/kernels/cuda/place.h"
#include "tests/device/fake_driver.h"

namespace pd {
namespace test_cudnn_convolution {

constexpr size_t kGreedy = size_t{3} << 20, kCompiled = size_t{1} << 20,
                 kModest = 2048;

class CudnnConvolution : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(UseFakeDriver().ok());
    auto device = CudaDevice::Open(0, FakeDriverImages());
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *device;
    c_.input = {2, 3, 5, 4};
    c_.filter = {4, 3, 3, 2};
    c_.output = {2, 4, 3, 4};
    c_.paddings = {1, 1};
    c_.strides = {2, 1};
    c_.dilations = {1, 2};
    c_.output[2] = (5 + 2 - 3) / 2 + 1;
    c_.output[3] = 4 + 2 - 3 + 1;
    c_.most_workspace = size_t{512} << 20;
  }

  absl::StatusOr<std::shared_ptr<const BoundConvolution>> Bind(
      const ConvolutionTail& tail = {},
      ConvolutionPart part = ConvolutionPart::kOutput) {
    return BindConvolution(device_.get(), c_, part, tail);
  }

  // Values that halves hold exactly.
  static std::vector<float> Values(const std::vector<int64_t>& extents,
                                   int seed) {
    std::vector<float> values(static_cast<size_t>(NumElements(extents)));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] =
          static_cast<float>((static_cast<int>(i) * 7 + seed) % 11 - 5) * 0.25f;
    return values;
  }

  template <typename T>
  std::shared_ptr<void> Put(const std::vector<float>& values) {
    const std::vector<T> typed(values.begin(), values.end());
    const size_t bytes = typed.size() * sizeof(T);
    auto memory = device_->Allocate(bytes);
    EXPECT_TRUE(memory.ok());
    EXPECT_TRUE(device_->ToDevice(memory->get(), typed.data(), bytes).ok());
    EXPECT_TRUE(device_->Synchronize().ok());
    return *memory;
  }

  // Where element [n, c, h, w] lies.
  size_t Place(const std::vector<int64_t>& e, int64_t n, int64_t c, int64_t h,
               int64_t w) const {
    return static_cast<size_t>(c_.channels_last
                                   ? ((n * e[2] + h) * e[3] + w) * e[1] + c
                                   : ((n * e[1] + c) * e[2] + h) * e[3] + w);
  }

  // body(place in the input, in the filter, in the output) of each product.
  template <typename Body>
  void ForEachProduct(const Body& body) const {
    const auto &x = c_.input, &f = c_.filter, &y = c_.output;
    const int64_t group_outputs = y[1] / c_.groups;
    for (int64_t n = 0; n < y[0]; ++n)
      for (int64_t k = 0; k < y[1]; ++k)
        for (int64_t i = 0; i < y[2]; ++i)
          for (int64_t j = 0; j < y[3]; ++j)
            for (int64_t c = 0; c < f[1]; ++c)
              for (int64_t r = 0; r < f[2]; ++r)
                for (int64_t s = 0; s < f[3]; ++s) {
                  const int64_t h = i * c_.strides[0] - c_.paddings[0] +
                                    r * c_.dilations[0],
                                v = j * c_.strides[1] - c_.paddings[1] +
                                    s * c_.dilations[1];
                  if (h < 0 || h >= x[2] || v < 0 || v >= x[3]) continue;
                  body(Place(x, n, k / group_outputs * f[1] + c, h, v),
                       Place(f, k, c, r, s), Place(y, n, k, i, j));
                }
  }

  std::vector<double> Want(const ConvolutionTail& tail,
                           const std::vector<float>& x,
                           const std::vector<float>& w,
                           const std::vector<float>& residual,
                           const std::vector<float>& bias) const {
    const auto& e = c_.output;
    std::vector<double> want(static_cast<size_t>(NumElements(e)));
    ForEachProduct(
        [&](size_t i, size_t j, size_t k) { want[k] += double{x[i]} * w[j]; });
    for (int64_t n = 0; n < e[0]; ++n)
      for (int64_t k = 0; k < e[1]; ++k)
        for (int64_t h = 0; h < e[2]; ++h)
          for (int64_t v = 0; v < e[3]; ++v) {
            const size_t at = Place(e, n, k, h, v);
            double& sum = want[at];
            if (tail.residual) sum += residual[at];
            if (tail.bias) sum += bias[static_cast<size_t>(k)];
            if (tail.relu) sum = std::max(sum, 0.0);
            if (tail.top > 0) sum = std::min(sum, double{tail.top});
          }
    return want;
  }

  template <typename T>
  void Check(const ConvolutionTail& tail, double tolerance) {
    const auto bound = Bind(tail);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const auto x = Values(c_.input, 1), w = Values(c_.filter, 3),
               r = Values(c_.output, 5), b = Values({c_.output[1]}, 2);
    const auto dx = Put<T>(x), dw = Put<T>(w), dr = Put<T>(r), db = Put<T>(b),
               dy = Put<T>(r);
    const auto workspace = device_->Allocate((*bound)->workspace());
    ASSERT_TRUE(workspace.ok());
    const ConvolutionData data = {dx.get(), dw.get(), dy.get(),
                                  tail.residual ? dr.get() : nullptr,
                                  tail.bias ? db.get() : nullptr};
    ASSERT_TRUE((*bound)->Run(data, workspace->get()).ok());
    Compare<T>(dy.get(), Want(tail, x, w, r, b), tolerance);
  }

  // The gradient of a sum of products by one of their factors.
  template <typename T>
  void CheckGradient(ConvolutionPart part, double tolerance) {
    const auto bound = Bind({}, part);
    ASSERT_TRUE(bound.ok()) << bound.status();
    const bool input = part == ConvolutionPart::kInput;
    const auto first = Values(input ? c_.filter : c_.input, 1),
               dout = Values(c_.output, 3),
               none = Values(input ? c_.input : c_.filter, 5);
    std::vector<double> want(none.size());
    ForEachProduct([&](size_t i, size_t j, size_t k) {
      want[input ? i : j] += double{first[input ? j : i]} * dout[k];
    });
    const auto a = Put<T>(first), b = Put<T>(dout), result = Put<T>(none);
    const auto workspace = device_->Allocate((*bound)->workspace());
    ASSERT_TRUE(workspace.ok());
    ASSERT_TRUE(
        (*bound)->Run({a.get(), b.get(), result.get()}, workspace->get()).ok());
    Compare<T>(result.get(), want, tolerance);
  }

  template <typename T>
  void Compare(const void* at, const std::vector<double>& want,
               double tolerance) {
    std::vector<T> got(want.size());
    ASSERT_TRUE(device_->ToHost(got.data(), at, got.size() * sizeof(T)).ok());
    ASSERT_TRUE(device_->Synchronize().ok());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(static_cast<float>(got[i]), want[i],
                  tolerance * (1 + std::abs(want[i])))
          << i;
  }

  std::shared_ptr<CudaDevice> device_;
  Convolution c_;
};

TEST_F(CudnnConvolution, EveryTailInEveryOrderOfMemory) {
  for (const bool last : {false, true})
    for (const bool residual : {false, true})
      for (const bool bias : {false, true})
        for (const float top : {-1.0f, 0.0f, 1.5f}) {
          c_.channels_last = last;
          ConvolutionTail tail;
          tail.residual = residual;
          tail.bias = bias;
          tail.relu = top >= 0;
          tail.top = std::max(top, 0.0f);
          SCOPED_TRACE(::testing::Message() << last << residual << bias << top);
          c_.dtype = DType::kFloat32;
          Check<float>(tail, 1e-6);
          c_.dtype = DType::kBFloat16;
          Check<BFloat16>(tail, 1.0 / 128);
          c_.dtype = DType::kFloat16;
          Check<Float16>(tail, 1.0 / 1024);
        }
}

TEST_F(CudnnConvolution, GradientsInEveryOrderOfMemory) {
  for (const bool last : {false, true})
    for (const int64_t groups : {1, 2})
      for (const auto part :
           {ConvolutionPart::kInput, ConvolutionPart::kFilter}) {
        SCOPED_TRACE(::testing::Message()
                     << last << groups << static_cast<int>(part));
        c_.channels_last = last;
        c_.groups = groups;
        c_.input[1] = 3 * groups;
        c_.dtype = DType::kFloat32;
        CheckGradient<float>(part, 1e-6);
        c_.dtype = DType::kBFloat16;
        CheckGradient<BFloat16>(part, 1.0 / 128);
        c_.dtype = DType::kFloat16;
        CheckGradient<Float16>(part, 1.0 / 1024);
      }
}

// The fake cuDNN recommends one that has to be compiled, one that rounds, one
// that is not deterministic, one that makes no plan, and at last a modest one.
TEST_F(CudnnConvolution, TakesTheFirstThatComputesAsItShould) {
  const auto workspace = [&] {
    const auto bound = Bind();
    EXPECT_TRUE(bound.ok()) << bound.status();
    return bound.ok() ? (*bound)->workspace() : 0;
  };
  EXPECT_EQ(workspace(), kGreedy);
  c_.deterministic = true;
  EXPECT_EQ(workspace(), kCompiled);
  c_.tf32 = true;
  EXPECT_EQ(workspace(), kGreedy);
  c_.tf32 = false;
  c_.deterministic = false;
  c_.most_workspace = kGreedy - 1;
  EXPECT_EQ(workspace(), kCompiled);
  c_.most_workspace = kCompiled - 1;
  EXPECT_EQ(workspace(), kModest);
  c_.most_workspace = 1;
  EXPECT_EQ(Bind().status().message(),
            "cuDNN has no engine for a convolution: an engine that wants 2048 "
            "bytes; 1 are allowed");
}

TEST_F(CudnnConvolution, OnesThatAreDescribedAlikeShareAPlan) {
  const auto one = Bind();
  ASSERT_TRUE(one.ok()) << one.status();
  const int plans = GraphPlans();
  EXPECT_EQ(one->get(), Bind()->get());
  EXPECT_EQ(GraphPlans(), plans);
  ConvolutionTail tail;
  tail.bias = true;
  const auto biased = Bind(tail);
  ASSERT_TRUE(biased.ok()) << biased.status();
  EXPECT_NE(one->get(), biased->get());
  EXPECT_GT(GraphPlans(), plans);
  // A plan stays with its device.
  device_ = *CudaDevice::Open(0, FakeDriverImages());
  EXPECT_NE(one->get(), Bind()->get());
}

TEST_F(CudnnConvolution, WhatHasNoEngineIsRefused) {
  c_.groups = 3;
  c_.filter = {3, 1, 3, 2};
  c_.output[1] = 3;
  EXPECT_TRUE(Bind().ok());
  ConvolutionTail tail;
  tail.bias = true;
  const absl::Status refused = Bind(tail).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(refused.message(),
            "cuDNN has no engine for a convolution: cuDNN's recommendations: "
            "cuDNN status 3000");
  c_.output[2] += 1;
  for (const auto part : {ConvolutionPart::kOutput, ConvolutionPart::kInput,
                          ConvolutionPart::kFilter})
    EXPECT_EQ(Bind({}, part).status().message(),
              "a convolution's tensors: cuDNN status 2000");
  c_.dtype = DType::kFloat64;
  EXPECT_EQ(Bind().status().message(), "a convolution of float64");
}

}  // namespace test_cudnn_convolution
}  // namespace pd
