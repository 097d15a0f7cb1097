// SPDX-License-Identifier: Apache-2.0
// CUPTI's records of the fake driver's work, which the test has started itself.
#include "libcore/device/gpu_recorder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <set>

#include "libcore/device/cublaslt.h"
#include "libcore/kernels/cuda/arguments.h"
#include "tests/device/fake_driver.h"

namespace pd {
namespace test_gpu_recorder {

// A clock whose every reading is another.
uint64_t ticks = 0;
uint64_t Tick() { return ++ticks; }

class GpuRecorderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(UseFakeDriver().ok());
    unsetenv("FAKE_CUDA");
    auto device = CudaDevice::Open(0, FakeDriverImages());
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    auto recorder = GpuRecorder::Get();
    ASSERT_TRUE(recorder.ok()) << recorder.status();
    recorder_ = *recorder;
    auto memory = device_->Allocate(1024);
    ASSERT_TRUE(memory.ok());
    memory_ = *memory;
  }

  // Everything the device knows, and a product by a library.
  void Work() {
    float values[3] = {1, 2, 3};
    const auto kernel = device_->Kernel("unary_scale");
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    cuda::UnaryArgs args{};
    args.v = static_cast<const float*>(memory_.get());
    args.out = static_cast<float*>(memory_.get());
    args.n = 3;
    args.a = 2;
    ASSERT_TRUE(recorder_->BeginRange(7).ok());
    ASSERT_TRUE(device_->ToDevice(memory_.get(), values, sizeof(values)).ok());
    ASSERT_TRUE(device_->Launch(*kernel, 2, 64, &args).ok());
    ASSERT_TRUE(recorder_->EndRange().ok());
    ASSERT_TRUE(recorder_->BeginRange(8).ok());
    MatrixProduct p;
    p.m = p.n = p.k = 1;
    const auto bound = BindProduct(device_.get(), p);
    ASSERT_TRUE(bound.ok()) << bound.status();
    auto* at = static_cast<std::byte*>(memory_.get());
    const auto workspace = device_->Allocate((*bound)->workspace());
    ASSERT_TRUE(workspace.ok());
    ASSERT_TRUE((*bound)->Run(at, at, at + 512, workspace->get()).ok());
    ASSERT_TRUE(recorder_->EndRange().ok());
    ASSERT_TRUE(device_->Clear(at + 768, 40).ok());
    ASSERT_TRUE(device_->Copy(at + 800, at + 768, 8).ok());
    ASSERT_TRUE(device_->ToHost(values, memory_.get(), sizeof(values)).ok());
    ASSERT_TRUE(device_->Synchronize().ok());
    EXPECT_EQ(values[2], 6);
  }

  std::shared_ptr<CudaDevice> device_;
  std::shared_ptr<void> memory_;
  GpuRecorder* recorder_ = nullptr;
};

TEST(GpuRecorderFlags, BuffersHaveASize) {
  ASSERT_TRUE(UseFakeDriver().ok());
  EXPECT_FALSE(SetFlag("multiple_of_cupti_buffer_size", "0").ok());
  ASSERT_TRUE(SetFlag("multiple_of_cupti_buffer_size", "1025").ok());
  EXPECT_EQ(GpuRecorder::Get().status().message(),
            "FLAGS_multiple_of_cupti_buffer_size is 1025; expected 1 to 1024");
  ASSERT_TRUE(SetFlag("multiple_of_cupti_buffer_size", "1").ok());
}

TEST_F(GpuRecorderTest, TellsWhatWasDoneAndByWhichCall) {
  ASSERT_TRUE(recorder_->Start(Tick).ok());
  const uint64_t begin = ticks;
  Work();
  const auto activity = recorder_->Stop();
  ASSERT_TRUE(activity.ok()) << activity.status();
  EXPECT_EQ(activity->lost, 0u);
  std::map<uint32_t, const GpuCall*> calls;
  for (const GpuCall& call : activity->calls) {
    EXPECT_LT(call.start, call.end);
    EXPECT_TRUE(calls.emplace(call.correlation, &call).second);
  }
  struct Want {
    GpuWork::Kind kind;
    const char *name, *call;
    bool runtime;
    int64_t bytes;
    uint64_t range;  // 0: none
  };
  using Kind = GpuWork::Kind;
  const Want wants[] = {
      {Kind::kMemcpy, "MEMCPY_HtoD", "cuMemcpyHtoDAsync", false, 12, 7},
      {Kind::kKernel, "unary_scale", "cuLaunchKernel", false, 0, 7},
      {Kind::kKernel, "library(float const*)", "cudaLaunchKernelExC", true, 0,
       8},
      {Kind::kMemset, "MEMSET", "cuMemsetD8Async", false, 40, 0},
      {Kind::kMemcpy, "MEMCPY_DtoD", "cuMemcpyDtoDAsync", false, 8, 0},
      {Kind::kMemcpy, "MEMCPY_DtoH", "cuMemcpyDtoHAsync", false, 12, 0}};
  ASSERT_EQ(activity->work.size(), std::size(wants));
  uint64_t last = begin;
  for (size_t i = 0; i < std::size(wants); ++i) {
    const GpuWork& work = activity->work[i];
    SCOPED_TRACE(wants[i].name);
    EXPECT_EQ(work.kind, wants[i].kind);
    EXPECT_EQ(work.name, wants[i].name);
    EXPECT_EQ(work.bytes, wants[i].bytes);
    EXPECT_EQ(work.device, 0u);
    EXPECT_EQ(work.stream, 13u);
    EXPECT_LT(last, work.start);
    EXPECT_LT(work.start, work.end);
    last = work.end;
    ASSERT_EQ(calls.count(work.correlation), 1u);
    const GpuCall& call = *calls.at(work.correlation);
    EXPECT_EQ(call.name, wants[i].call);
    EXPECT_EQ(call.runtime, wants[i].runtime);
    EXPECT_LT(call.start, work.start);
    const auto range = activity->ranges.find(work.correlation);
    EXPECT_EQ(range == activity->ranges.end() ? 0 : range->second,
              wants[i].range);
  }
  const GpuWork& kernel = activity->work[1];
  EXPECT_EQ(kernel.grid[0], 2);
  EXPECT_EQ(kernel.grid[2], 1);
  EXPECT_EQ(kernel.block[0], 64);
  EXPECT_EQ(kernel.block[1], 1);
  EXPECT_EQ(kernel.registers, 40);
  EXPECT_EQ(kernel.shared_bytes, 1024 + 16);
}

// More than a buffer holds, in order and once each.
TEST_F(GpuRecorderTest, ManyBuffersAreOneList) {
  constexpr int kTimes = 20000;
  ASSERT_TRUE(recorder_->Start(Tick).ok());
  for (int i = 0; i < kTimes; ++i)
    ASSERT_TRUE(device_->Clear(memory_.get(), 8).ok());
  ASSERT_TRUE(device_->Synchronize().ok());
  const auto activity = recorder_->Stop();
  ASSERT_TRUE(activity.ok()) << activity.status();
  std::set<uint32_t> seen;
  for (const GpuWork& work : activity->work) seen.insert(work.correlation);
  EXPECT_EQ(activity->work.size(), size_t{kTimes});
  EXPECT_EQ(seen.size(), size_t{kTimes});
  EXPECT_EQ(activity->calls.size(), size_t{kTimes} + 1);  // and the wait
}

TEST_F(GpuRecorderTest, RecordsNothingOutside) {
  Work();
  ASSERT_TRUE(recorder_->Start(Tick).ok());
  const auto activity = recorder_->Stop();
  ASSERT_TRUE(activity.ok()) << activity.status();
  EXPECT_TRUE(activity->work.empty());
  EXPECT_TRUE(activity->calls.empty());
}

TEST_F(GpuRecorderTest, ARefusalIsToldInNvidiasWords) {
  setenv("FAKE_CUDA", "cupti=35", 1);
  const absl::Status refused = recorder_->Start(Tick);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(refused.message(), "cuptiActivityEnable of CUPTI in '" +
                                   recorder_->library().path +
                                   "': it is a fake (35)");
  Work();
  unsetenv("FAKE_CUDA");
  ASSERT_TRUE(recorder_->Start(Tick).ok());
  const auto activity = recorder_->Stop();
  ASSERT_TRUE(activity.ok()) << activity.status();
  EXPECT_TRUE(activity->calls.empty());
}

}  // namespace test_gpu_recorder
}  // namespace pd
