// SPDX-License-Identifier: Apache-2.0
// Tensors in memory: layouts, bytes that are kept and given away, frames of
// variables, and looks at all elements.
#include "libcore/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "libcore/base/half.h"
#include "libcore/tensor/frame.h"
#include "libcore/tensor/magnitude.h"
#include "libcore/tensor/tensor_stats.h"

namespace pd {
namespace {

Tensor Counting(const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(NumElements(shape)));
  std::iota(values.begin(), values.end(), 1.0f);
  return ToTensor(MakeArray<float>(shape, values));
}

TEST(Layout, PermutationsAndRowMajor) {
  const LayoutPtr chwn = PermutedLayout({2, 3, 4, 5}, {1, 2, 3, 0});
  ASSERT_NE(chwn, nullptr);
  EXPECT_EQ(chwn->strides, (std::vector<int64_t>{1, 40, 10, 2}));
  EXPECT_EQ(chwn->Elements(), 120);
  EXPECT_EQ(chwn->Offsets()[1][2], 80);
  EXPECT_FALSE(SameLayout(chwn, nullptr));
  Layout plain;
  plain.shape = plain.padded = {2, 3};
  plain.strides = {3, 1};
  EXPECT_TRUE(SameLayout(std::make_shared<const Layout>(plain), nullptr));
  EXPECT_EQ(Canonical(plain), nullptr);
}

// [2, 3] in blocks of two columns: one column of padding.
TEST(Layout, BlocksHavePadding) {
  Layout layout;
  layout.shape = {2, 3};
  layout.padded = {2, 4};
  layout.strides = {4, 2};
  layout.blocks = {{1, 2}};
  const Tensor from = Counting({2, 3});
  Tensor to(DType::kFloat32, {2, 3});
  to.set_layout(std::make_shared<const Layout>(layout));
  EXPECT_EQ(to.physical_size(), 8);
  ASSERT_TRUE(to.Allocate().ok());
  std::fill_n(to.data<float>(), 8, 9.0f);
  CopyElements(from, &to);
  EXPECT_EQ(std::vector<float>(to.data<float>(), to.data<float>() + 8),
            (std::vector<float>{1, 2, 3, 0, 4, 5, 6, 0}));
  const Array back = ToArray(to);
  EXPECT_EQ(std::vector<float>(back.data<float>(), back.data<float>() + 6),
            (std::vector<float>{1, 2, 3, 4, 5, 6}));
}

TEST(Tensor, KeepsBytesThatSuffice) {
  Tensor tensor;
  EXPECT_FALSE(tensor.has_value());
  ASSERT_TRUE(tensor.Resize(DType::kFloat32, {4, 4}).ok());
  void* const bytes = tensor.raw();
  tensor.set_lod({{0, 1, 2}});
  ASSERT_TRUE(tensor.Resize({2, 3}).ok());
  EXPECT_EQ(tensor.raw(), bytes);
  EXPECT_TRUE(tensor.lod().empty());
  const Tensor clone = CloneOf(Counting({2}));
  EXPECT_EQ(clone.data<float>()[1], 2.0f);
  EXPECT_FALSE(tensor.Resize({int64_t{1} << 60, 16}).ok());
  EXPECT_FALSE(tensor.has_value());
  float outside[2] = {7, 8};
  tensor.Reset(DType::kFloat32, {2});
  tensor.Attach(outside);
  EXPECT_EQ(tensor.data<float>()[1], 8.0f);
}

TEST(Frame, SeesTheFrameAroundIt) {
  Tensor lent;
  Frame outer, inner(&outer);
  outer.Lend("x", {&lent, true});
  ASSERT_NE(inner.Find("x"), nullptr);
  EXPECT_EQ(inner.Find("x")->tensor, &lent);
  EXPECT_TRUE(inner.Find("x")->fixed);
  EXPECT_EQ(inner.FindLocal("x"), nullptr);
  EXPECT_EQ(inner.Find("y"), nullptr);
  Tensor* const own = inner.Make("x").tensor;
  EXPECT_NE(own, &lent);
  EXPECT_EQ(inner.Find("x")->tensor, own);
  EXPECT_EQ(outer.Find("x")->tensor, &lent);
}

TEST(Frame, TellsThatANameGotAnotherVariable) {
  Tensor lent;
  Frame outer, inner(&outer);
  uint64_t last = inner.LastChange();
  const auto changed = [&] {
    const uint64_t before = last;
    last = inner.LastChange();
    return last > before;
  };
  inner.Make("x");
  EXPECT_TRUE(changed());
  inner.Make("x");
  EXPECT_FALSE(changed());
  outer.Lend("y", {&lent, true});
  EXPECT_TRUE(changed());
  EXPECT_FALSE(changed());
  Frame other(&outer);
  EXPECT_GT(other.LastChange(), last);
  inner.set_parent(nullptr);
  EXPECT_TRUE(changed());
}

TEST(Magnitude, PutsInfinitiesAndNanAboveNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> values(1000, -1.0f);
  const auto largest = [&] {
    return LargestMagnitude(DType::kFloat32, values.data(), 1000);
  };
  values[700] = -3.5f;
  EXPECT_EQ(largest(), 3.5);
  values[701] = -inf;
  EXPECT_EQ(largest(), inf);
  values[999] = NAN;
  EXPECT_TRUE(std::isnan(largest()));
  const Float16 half[] = {Float16(0.5f), Float16(-2.0f)};
  EXPECT_EQ(LargestMagnitude(DType::kFloat16, half, 2), 2.0);
  EXPECT_EQ(LargestMagnitude(DType::kFloat32, nullptr, 0), 0.0);
}

TEST(TensorStats, CountsWhatIsNotFinite) {
  const TensorStats stats =
      StatsOf(MakeArray<float>({5}, {1, NAN, -3, INFINITY, 5}));
  EXPECT_EQ(stats.nan, 1);
  EXPECT_EQ(stats.inf, 1);
  EXPECT_EQ(stats.finite, 3);
  EXPECT_EQ(std::get<double>(*stats.min), -3.0);
  EXPECT_EQ(std::get<double>(*stats.max), 5.0);
  EXPECT_EQ(stats.mean, 1.0);
  // Integers stay exact.
  const int64_t large = (int64_t{1} << 62) + 1;
  EXPECT_EQ(std::get<int64_t>(*StatsOf(MakeArray<int64_t>({1}, {large})).max),
            large);
}

}  // namespace
}  // namespace pd
