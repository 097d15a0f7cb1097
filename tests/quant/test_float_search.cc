// SPDX-License-Identifier: Apache-2.0
// The fewest operators in float: against trying every number of them.
#include "libcore/quant/float_search.h"

#include <cmath>

#include "libcore/quant/calibration_data.h"
#include "tests/quant/quant_fixture.h"

namespace pd {
namespace test_float_search {

TEST(FewestWithin, IsWhatTryingAllOfThemGives) {
  for (size_t count = 0; count <= 20; ++count) {
    for (double most = -1.5; most <= 21; most += 0.5) {
      int64_t want = -1;
      for (size_t left = count + 1; left-- > 0;)
        if (static_cast<double>(count - left) <= most)
          want = static_cast<int64_t>(left);
      size_t asked = 0;
      const auto got =
          FewestWithin(count, most, [&](size_t left) -> absl::StatusOr<double> {
            EXPECT_LE(left, count);
            ++asked;
            return static_cast<double>(count - left);
          });
      ASSERT_TRUE(got.ok());
      EXPECT_EQ(*got, want) << count << " " << most;
      EXPECT_LE(static_cast<double>(asked),
                3 + 2 * std::log2(static_cast<double>(count + 1)));
    }
  }
}

TEST(FewestWithin, PassesErrorsOn) {
  const auto got = FewestWithin(3, 0, [](size_t) -> absl::StatusOr<double> {
    return absl::CancelledError("stopped");
  });
  EXPECT_TRUE(absl::IsCancelled(got.status()));
}

// With k operators in float the answers' noise is that of the others; each k
// is tried by hand.
TEST_F(QuantizeLeNet, TheSearchLeavesTheFewestOperators) {
  const Array x = Pictures("train", 32);
  const auto result = Quantize(x, {});
  ASSERT_TRUE(result.ok()) << result.status();
  const auto loader = LoaderOf(x);
  const auto sqnr = [&](const Quantization& q) {
    return LeastAnswerSqnr(&registry_, model_, WithQuantizeLinear(model_, q),
                           loader.get(), 1);
  };
  const auto order = MeasureSensitivity(
      &registry_, model_, result->quantization, loader.get(), 1, {});
  ASSERT_TRUE(order.ok()) << order.status();
  ASSERT_EQ(order->size(), 5u);
  std::vector<double> of_left;
  Quantization q = result->quantization;
  for (size_t left = 0; left < order->size(); ++left) {
    if (left > 0) LeaveInFloat(model_, (*order)[left - 1].output, "x", &q.plan);
    const auto value = sqnr(q);
    ASSERT_TRUE(value.ok()) << value.status();
    of_left.push_back(*value);
  }
  FloatSearch search;
  search.registry = &registry_;
  search.model = &model_;
  search.loader = loader.get();
  search.why = "sensitive";
  for (const size_t left : {size_t{1}, size_t{3}}) {
    ASSERT_GT(of_left[left], of_left[left - 1]);
    search.most = -of_left[left];
    Quantization found = result->quantization;
    std::vector<Sensitivity> measured;
    const auto cost = [&](const Quantization& tried,
                          size_t) -> absl::StatusOr<double> {
      const auto value = sqnr(tried);
      if (!value.ok()) return value.status();
      return -*value;
    };
    const auto some = SearchFloatOps(search, cost, &found, &measured);
    ASSERT_TRUE(some.ok()) << some.status();
    EXPECT_TRUE(*some);
    EXPECT_EQ(found.plan.ops.size(), order->size() - left);
    ASSERT_EQ(measured.size(), order->size());
    const auto why = [&](const std::string& output) -> std::string {
      for (const FloatOp& op : found.plan.left)
        if (op.output == output) return op.why;
      return "";
    };
    for (size_t i = 0; i < order->size(); ++i)
      EXPECT_EQ(why((*order)[i].output), i < left ? "sensitive" : "");
  }
  // No noise at all takes all of them, and leaves the plan as it was.
  Quantization all = result->quantization;
  std::vector<Sensitivity> measured;
  const auto never = SearchFloatOps(
      search,
      [](const Quantization&, size_t) -> absl::StatusOr<double> { return 1e9; },
      &all, &measured);
  ASSERT_TRUE(never.ok()) << never.status();
  EXPECT_FALSE(*never);
  EXPECT_EQ(all.plan.ops.size(), order->size());
  EXPECT_EQ(measured.size(), order->size());
}

}  // namespace test_float_search
}  // namespace pd
