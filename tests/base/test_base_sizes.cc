// SPDX-License-Identifier: Apache-2.0
// Sizes of shapes, and the memory that may be had for them.
#include <gtest/gtest.h>

#include <stdexcept>

#include "libcore/base/memory_limit.h"
#include "libcore/base/parallel.h"
#include "libcore/base/shape.h"
#include "libcore/ir/array.h"
#include "libcore/tensor/tensor.h"

namespace pd {
namespace test_base_sizes {

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(CheckedBytes, RefusesWhatOverflows) {
  EXPECT_EQ(CheckedBytes({}, 4).value(), 4);
  EXPECT_EQ(CheckedBytes({3, 5}, 8).value(), 120);
  EXPECT_EQ(CheckedBytes({0, 5}, 8).value(), 0);
  // 2^62 + 4 floats are 16 bytes in 64 bits.
  for (const Shape& shape :
       {Shape{kHuge + 4}, Shape{int64_t{1} << 32, int64_t{1} << 32},
        Shape{kHuge, 4, 0}, Shape{0, kHuge, 4}, Shape{INT64_MAX}})
    EXPECT_EQ(CheckedBytes(shape, 4).status().code(),
              absl::StatusCode::kOutOfRange)
        << ToString(shape);
  EXPECT_EQ(CheckedBytes({2, -1}, 4).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckedBytes({kMostBytes}, 1).value(), kMostBytes);
  EXPECT_FALSE(CheckedBytes({kMostBytes + 1}, 1).ok());
}

TEST(BytesOfExtents, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(BytesOfExtents({-1, 3, 0}, 4).value(), 12);
  EXPECT_FALSE(BytesOfExtents({-1, kHuge}, 4).ok());
  EXPECT_FALSE(BytesOfExtents({kHuge, 0}, 4).ok());
}

TEST(NumElements, NeverLooksSmall) {
  EXPECT_GE(NumElements({int64_t{1} << 32, int64_t{1} << 32}), kMostBytes);
  EXPECT_GE(NumElements({kHuge, 4}), kMostBytes);
  EXPECT_GE(NumElements({INT64_MAX, INT64_MAX, INT64_MAX}), kMostBytes);
  EXPECT_GE(RowMajorStrides({2, int64_t{1} << 32, int64_t{1} << 32})[0],
            kMostBytes);
}

class WithLimit : public ::testing::Test {
 protected:
  void SetUp() override { SetMemoryLimit(int64_t{1} << 20); }
  void TearDown() override { SetMemoryLimit(before_); }

 private:
  const int64_t before_ = MemoryLimit();
};

TEST_F(WithLimit, CountsWhatIsThere) {
  const int64_t before = MemoryInUse();
  {
    Tensor a(DType::kUInt8, {600 << 10});
    ASSERT_TRUE(a.Allocate().ok());
    EXPECT_GE(MemoryInUse() - before, 600 << 10);
    Tensor b(DType::kUInt8, {600 << 10});
    const absl::Status status = b.Allocate();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(status.message().find("--memory-limit"), std::string::npos)
        << status;
    EXPECT_FALSE(b.has_value());
    a = Tensor();
    EXPECT_TRUE(b.Allocate().ok());
  }
  EXPECT_EQ(MemoryInUse(), before);
  std::byte* bytes = nullptr;
  EXPECT_FALSE(NewArray(DType::kFloat32, {1 << 20}, &bytes).ok());
  EXPECT_TRUE(NewArray(DType::kFloat32, {1 << 10}, &bytes).ok());
  EXPECT_FALSE(NewArray(DType::kFloat32, {kHuge + 4}, &bytes).ok());
  EXPECT_EQ(MemoryInUse(), before);
}

TEST_F(WithLimit, AnEmptyTensorHasExtentsToo) {
  Tensor t;
  EXPECT_FALSE(t.Resize(DType::kFloat32, {int64_t{1} << 40, 0}).ok());
  EXPECT_TRUE(t.Resize(DType::kFloat32, {1000, 0}).ok());
}

TEST(MachineMemory, IsThatOfAMachine) {
  EXPECT_GT(MachineMemory(), int64_t{1} << 24);
  EXPECT_LT(MachineMemory(), kMostBytes);
}

// One that left a parallel region would end the process.
TEST(ParallelFor, ThrowsWhatAPartThrows) {
  SetThreads(2);
  EXPECT_THROW(ParallelFor(1000, 1,
                           [](int64_t begin, int64_t) {
                             if (begin > 0) throw std::length_error("part");
                           }),
               std::length_error);
  EXPECT_THROW(ParallelParts([](int, int) { throw std::bad_alloc(); }),
               std::bad_alloc);
  SetThreads(0);
}

}  // namespace test_base_sizes
}  // namespace pd
