// SPDX-License-Identifier: Apache-2.0
// Weights in a form for kernels are in memory once, whatever the number of
// plans, and go with the last one.
#include "libcore/kernels/cpu/kept_weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "libcore/kernels/int8/packed.h"

namespace pd {
namespace test_kept_weights {

using cpu::KeepWeights;
using cpu::KeptWeights;

TEST(KeptWeightsTest, AreMadeOnceWhileSomebodyHoldsThem) {
  const Tensor weights(DType::kFloat32, {2}), others(DType::kFloat32, {2});
  int made = 0;
  const auto make = [&]() -> absl::StatusOr<KeptWeights> {
    ++made;
    return std::make_shared<const std::vector<float>>(3, 1.0f);
  };
  auto first = KeepWeights(&weights, 2, make);
  ASSERT_TRUE(first.ok());
  auto second = KeepWeights(&weights, 2, make);
  EXPECT_EQ(first->get(), second->get());
  EXPECT_EQ(made, 1);
  const auto form = KeepWeights(&weights, 4, make);
  const auto other = KeepWeights(&others, 2, make);
  EXPECT_NE(form->get(), first->get());
  EXPECT_NE(other->get(), first->get());
  EXPECT_EQ(made, 3);
  first->reset();
  second->reset();
  ASSERT_TRUE(KeepWeights(&weights, 2, make).ok());
  EXPECT_EQ(made, 4);
  const auto fails = [&]() -> absl::StatusOr<KeptWeights> {
    return absl::ResourceExhaustedError("no memory");
  };
  EXPECT_FALSE(KeepWeights(&weights, 9, fails).ok());
}

TEST(KeptWeightsTest, EqualBytesAreShared) {
  const auto filled = [](size_t bytes, int value) {
    auto weights = int8::ZeroedWeights(bytes);
    std::memset(weights.get(), value, bytes);
    return weights;
  };
  auto first = filled(100, 7), second = filled(100, 7), third = filled(100, 8);
  auto shorter = filled(99, 7);
  const int8_t* const held = first.get();
  int8::ShareWeights(100, &first);
  int8::ShareWeights(100, &second);
  int8::ShareWeights(100, &third);
  int8::ShareWeights(99, &shorter);
  EXPECT_EQ(first.get(), held);
  EXPECT_EQ(second.get(), held);
  EXPECT_NE(third.get(), held);
  EXPECT_NE(shorter.get(), held);
  first.reset();
  EXPECT_EQ(second[99], 7);
}

}  // namespace test_kept_weights
}  // namespace pd
