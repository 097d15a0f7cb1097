// SPDX-License-Identifier: Apache-2.0
// CudaDevice on the fake driver: memory, copies, kernels, captured
// work, and that what is late on a GPU is late here.
#include "libcore/device/cuda_device.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <vector>

#include "libcore/device/cublaslt.h"
#include "libcore/device/device_pool.h"
#include "libcore/kernels/cuda/arguments.h"
#include "tests/device/fake_driver.h"

namespace pd {
namespace test_cuda_device {

class CudaDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(UseFakeDriver().ok());
    setenv("FAKE_CUDA", "memory=64", 1);
    auto device = CudaDevice::Open(0, FakeDriverImages());
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  void* Memory(size_t bytes) {
    auto memory = device_->Allocate(bytes);
    EXPECT_TRUE(memory.ok()) << memory.status();
    memory_.push_back(*memory);
    return memory_.back().get();
  }

  std::vector<float> Floats(const void* from, size_t n) {
    std::vector<float> values(n);
    EXPECT_TRUE(device_->ToHost(values.data(), from, n * sizeof(float)).ok());
    EXPECT_TRUE(device_->Synchronize().ok());
    return values;
  }

  std::shared_ptr<CudaDevice> device_;
  std::vector<std::shared_ptr<void>> memory_;
};

TEST_F(CudaDeviceTest, CopiesAndClears) {
  const float values[] = {1, 2, 3, 4};
  void* a = Memory(sizeof(values));
  void* b = Memory(sizeof(values));
  ASSERT_TRUE(device_->ToDevice(a, values, sizeof(values)).ok());
  ASSERT_TRUE(device_->Copy(b, a, sizeof(values)).ok());
  ASSERT_TRUE(device_->Clear(b, 2 * sizeof(float)).ok());
  EXPECT_EQ(Floats(a, 4), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(Floats(b, 4), (std::vector<float>{0, 0, 3, 4}));
}

TEST_F(CudaDeviceTest, SaysHowMuchMemoryIsLeft) {
  Memory(10 << 20);
  const auto memory = device_->Allocate(60 << 20);
  EXPECT_EQ(memory.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(memory.status().message(),
            "gpu:0 has 54 of 64 MiB free; 61 MiB are needed at once");
  memory_.clear();
  EXPECT_TRUE(device_->Allocate(60 << 20).ok());
}

TEST_F(CudaDeviceTest, PinnedBytesAreTakenWhenTheCopyRuns) {
  auto pinned = device_->AllocatePinned(sizeof(float));
  ASSERT_TRUE(pinned.ok());
  float* value = static_cast<float*>(pinned->get());
  void* a = Memory(sizeof(float));
  *value = 1;
  ASSERT_TRUE(device_->ToDevice(a, value, sizeof(float)).ok());
  *value = 2;  // too early: the fake driver shows what a GPU might
  EXPECT_EQ(Floats(a, 1), (std::vector<float>{2}));
}

TEST_F(CudaDeviceTest, BytesSentBesideAreThereWhenTheWorkWaits) {
  auto pinned = device_->AllocatePinned(sizeof(float));
  ASSERT_TRUE(pinned.ok());
  *static_cast<float*>(pinned->get()) = 3;
  void *a = Memory(sizeof(float)), *early = Memory(sizeof(float));
  ASSERT_TRUE(device_->Clear(a, sizeof(float)).ok());
  ASSERT_TRUE(device_->SendBeside(a, pinned->get(), sizeof(float)).ok());
  ASSERT_TRUE(device_->Copy(early, a, sizeof(float)).ok());
  ASSERT_TRUE(device_->AwaitSent().ok());
  EXPECT_EQ(Floats(early, 1), (std::vector<float>{0}));
  EXPECT_EQ(Floats(a, 1), (std::vector<float>{3}));
}

TEST_F(CudaDeviceTest, HostCodeCannotTouchDeviceMemory) {
  void* a = Memory(sizeof(float));
  EXPECT_DEATH(*static_cast<volatile float*>(a) = 1, "");
}

TEST_F(CudaDeviceTest, RunsKernelsAndCapturedWork) {
  const auto kernel = device_->Kernel("unary_scale");
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const float values[] = {1, 2, 3};
  void* a = Memory(sizeof(values));
  ASSERT_TRUE(device_->ToDevice(a, values, sizeof(values)).ok());
  cuda::UnaryArgs args{};
  args.v = static_cast<const float*>(a);
  args.out = static_cast<float*>(a);
  args.n = 3;
  args.a = 2;
  ASSERT_TRUE(device_->BeginCapture().ok());
  ASSERT_TRUE(device_->Launch(*kernel, 1, 32, &args).ok());
  // A wait has no place in what is captured.
  EXPECT_FALSE(device_->Synchronize().ok());
  const auto work = device_->EndCapture();
  ASSERT_TRUE(work.ok()) << work.status();
  EXPECT_EQ(Floats(a, 3), (std::vector<float>{1, 2, 3}));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(device_->Run(**work).ok());
  EXPECT_EQ(Floats(a, 3), (std::vector<float>{4, 8, 12}));
  EXPECT_EQ(device_->Kernel("no_such").status().message(),
            "no module has the kernel 'no_such'");
}

// Every form of a product against sums in double.
TEST_F(CudaDeviceTest, ProductsOfEveryForm) {
  for (int form = 0; form < 8; ++form) {
    MatrixProduct p;
    p.m = 3;
    p.n = 5;
    p.k = 4;
    p.trans_a = (form & 1) != 0;
    p.trans_b = (form & 2) != 0;
    p.batch = (form & 4) != 0 ? 2 : 1;
    p.alpha = 0.5f;
    std::vector<float> a(static_cast<size_t>(p.batch * p.m * p.k));
    std::vector<float> b(static_cast<size_t>(p.batch * p.k * p.n));
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7) - 3;
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5) - 1;
    std::vector<float> want;
    for (int64_t batch = 0; batch < p.batch; ++batch)
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) {
          float sum = 0;
          for (int64_t k = 0; k < p.k; ++k) {
            const int64_t x = p.trans_a ? k * p.m + i : i * p.k + k;
            const int64_t y = p.trans_b ? j * p.k + k : k * p.n + j;
            sum += a[static_cast<size_t>(batch * p.m * p.k + x)] *
                   b[static_cast<size_t>(batch * p.k * p.n + y)];
          }
          want.push_back(0.5f * sum);
        }
    const auto bound = BindProduct(device_.get(), p);
    ASSERT_TRUE(bound.ok()) << bound.status();
    void* x = Memory(a.size() * sizeof(float));
    void* y = Memory(b.size() * sizeof(float));
    void* z = Memory(want.size() * sizeof(float));
    void* workspace = Memory((*bound)->workspace());
    ASSERT_TRUE(device_->ToDevice(x, a.data(), a.size() * 4).ok());
    ASSERT_TRUE(device_->ToDevice(y, b.data(), b.size() * 4).ok());
    const absl::Status ran =
        (*bound)->Run(static_cast<float*>(x), static_cast<float*>(y),
                      static_cast<float*>(z), workspace);
    ASSERT_TRUE(ran.ok()) << ran;
    EXPECT_EQ(Floats(z, want.size()), want) << form;
  }
}

TEST_F(CudaDeviceTest, APoolGivesOutWhatCameBack) {
  DevicePool pool(device_);
  void* first = nullptr;
  {
    auto one = pool.Take(1000);
    ASSERT_TRUE(one.ok());
    first = one->get();
    EXPECT_TRUE(pool.Holds(first));
    EXPECT_TRUE(pool.Holds(static_cast<char*>(first) + 999));
    EXPECT_TRUE(device_->Holds(first));
    EXPECT_GE(pool.bytes_taken(), 1000u);
  }
  EXPECT_FALSE(pool.Holds(first));
  EXPECT_TRUE(device_->Holds(first));
  EXPECT_EQ(pool.bytes_taken(), 0u);
  const size_t bytes = pool.bytes();
  auto again = pool.Take(1001), other = pool.Take(1000);
  ASSERT_TRUE(again.ok() && other.ok());
  EXPECT_EQ(again->get(), first);
  EXPECT_NE(other->get(), first);
  EXPECT_EQ(pool.bytes(), 2 * bytes);
  EXPECT_FALSE(pool.Holds(&pool));
  EXPECT_FALSE(device_->Holds(&pool));
  EXPECT_TRUE(pool.Take(0).ok());
}

// Idle memory is freed for blocks of another size; then it is an error.
TEST_F(CudaDeviceTest, APoolsMemoryEnds) {
  constexpr size_t kMiB = size_t{1} << 20;
  DevicePool pool(device_);
  for (const size_t size : {20 * kMiB, 30 * kMiB, 40 * kMiB})
    EXPECT_TRUE(pool.Take(size).ok()) << size;
  EXPECT_LE(pool.bytes(), 64 * kMiB);
  auto held = pool.Take(40 * kMiB);
  const auto more = pool.Take(40 * kMiB);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(more.status().code(), absl::StatusCode::kResourceExhausted);
  const std::string said(more.status().message());
  EXPECT_NE(said.find("MiB are needed at once"), std::string::npos) << said;
  EXPECT_NE(said.find("beside 40 MiB of values"), std::string::npos) << said;
  EXPECT_NE(said.find("a smaller batch needs less"), std::string::npos) << said;
}

}  // namespace test_cuda_device
}  // namespace pd
