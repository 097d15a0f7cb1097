// SPDX-License-Identifier: Apache-2.0
// Learning rates against PaddlePaddle's (testdata/optim/lr_schedules.txt).
#include "libcore/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>

namespace pd {
namespace test_lr_schedule {

std::map<std::string, std::vector<double>> Goldens() {
  std::map<std::string, std::vector<double>> rates;
  std::ifstream file(PD_TESTDATA "/optim/lr_schedules.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (double rate; words >> rate;) rates[name].push_back(rate);
  }
  return rates;
}

std::shared_ptr<const Formula> Parsed(const std::string& text) {
  auto formula = Formula::Parse(text);
  EXPECT_TRUE(formula.ok()) << formula.status();
  return formula.ok() ? *formula : nullptr;
}

// The schedules of testdata/make/optim_goldens.py.
std::map<std::string, LrSchedule::Rule> Schedules() {
  using Mode = CyclicLR::Mode;
  const auto shared = [](LrSchedule::Rule rule) {
    return std::make_shared<const LrSchedule>(std::move(rule));
  };
  OneCycleLR linear{0.8, 30, 10, 0.001, 0.4, OneCycleLR::Anneal::kLinear, true};
  return {
      {"noam", NoamDecay{64, 10, 0.5}},
      {"exponential", ExponentialDecay{0.5, 0.9}},
      {"natural_exp", NaturalExpDecay{0.5, 0.1}},
      {"inverse_time", InverseTimeDecay{0.5, 0.1}},
      {"polynomial", PolynomialDecay{0.5, 10, 0.01, 2, false}},
      {"polynomial_cycle", PolynomialDecay{0.5, 10, 0.01, 1.5, true}},
      {"piecewise", PiecewiseDecay{{3, 6, 20}, {0.1, 0.2, 0.3, 0.4}}},
      {"cosine", CosineAnnealingDecay{0.5, 10, 0.02}},
      {"step", StepDecay{0.5, 4, 0.8}},
      {"multi_step", MultiStepDecay{0.5, {2, 4, 15}, 0.8}},
      {"warmup_constant", LinearWarmup{shared(ConstantLR{0.5}), 8, 0.01, 0.4}},
      {"warmup_cosine",
       LinearWarmup{shared(CosineAnnealingDecay{0.5, 12, 0}), 5, 0, 0.5}},
      {"one_cycle", OneCycleLR{1.0, 30}},
      {"one_cycle_linear", linear},
      {"cyclic", CyclicLR{0.1, 0.9, 4, 6}},
      {"cyclic_triangular2", CyclicLR{0.1, 0.9, 3, 0, Mode::kTriangular2}},
      {"linear", LinearLR{0.5, 12, 0.25, 0.75}},
      {"linear_default", LinearLR{0.5, 40}},
      {"warm_restarts", CosineAnnealingWarmRestarts{0.5, 7, 1, 0.02}},
      {"warm_restarts_longer", CosineAnnealingWarmRestarts{0.5, 3, 2}},
      {"lambda", LambdaDecay{0.5, Parsed("0.95 ^ t")}},
      {"multiplicative",
       MultiplicativeDecay{
           0.5, Parsed("t - 3 * floor(t / 3) == 0 ? 0.9 : 1 - 1 / (t + 10)")}},
      {"warmup_lambda",
       LinearWarmup{shared(LambdaDecay{0.5, Parsed("1 / (1 + t / 4)")}), 5, 0,
                    0.5}},
      {"cyclic_exp_range", CyclicLR{0.1, 0.9, 4, 2, Mode::kExpRange, 0.95}},
  };
}

TEST(LrSchedule, AgreesWithPaddlePaddle) {
  const auto goldens = Goldens();
  const auto schedules = Schedules();
  EXPECT_EQ(goldens.size(), schedules.size() + 3);  // three plateaus
  for (const auto& [name, rule] : schedules) {
    SCOPED_TRACE(name);
    const LrSchedule schedule(rule);
    ASSERT_TRUE(schedule.Check().ok()) << schedule.Check();
    const auto it = goldens.find(name);
    ASSERT_NE(it, goldens.end());
    ASSERT_EQ(it->second.size(), 30u);
    for (size_t i = 0; i < 30; ++i) {
      const double got = schedule.At(static_cast<int64_t>(i));
      EXPECT_TRUE(std::abs(got - it->second[i]) <= 1e-12)
          << "step " << i << ": got " << got << ", expected " << it->second[i];
    }
  }
}

TEST(LrSchedule, StaysAtItsEnds) {
  EXPECT_EQ(LrSchedule(PolynomialDecay{0.5, 10, 0.1}).At(1000), 0.1);
  EXPECT_EQ(LrSchedule(PiecewiseDecay{{}, {0.3}}).At(1000), 0.3);
  EXPECT_EQ(LrSchedule(LinearLR{0.5, 10, 0.5, 0.25}).At(1000), 0.125);
  // The lengths of the half cosines do not overflow.
  const LrSchedule restarts(CosineAnnealingWarmRestarts{
      0.5, 1, std::numeric_limits<int64_t>::max(), 0.1});
  EXPECT_EQ(restarts.At(0), 0.5);
  EXPECT_EQ(restarts.At(1), 0.5);
  const LrSchedule cycle(OneCycleLR{1.0, 30});
  EXPECT_EQ(cycle.At(31), cycle.At(30));
}

TEST(LrSchedule, RefusesArgumentsOutOfRange) {
  const auto refused = [](LrSchedule::Rule rule) {
    const absl::Status status = LrSchedule(std::move(rule)).Check();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(refused(StepDecay{0.1, 0, 0.5}),
            "'step_size' is 0; expected more than 0");
  EXPECT_EQ(refused(PiecewiseDecay{{3}, {0.1}}),
            "'values' holds 1 numbers and 'boundaries' 1; expected one value "
            "more");
  EXPECT_EQ(refused(MultiStepDecay{0.1, {4, 2}, 0.5}),
            "'milestones' holds 2 after 4; expected rising numbers");
  EXPECT_EQ(refused(ConstantLR{std::nan("")}),
            "'learning_rate' is nan; expected 0 or more");
  refused(LinearWarmup{nullptr, 5, 0, 0.1});
  refused(OneCycleLR{1.0, 3});
  refused(NoamDecay{0, 10});
  refused(CosineAnnealingDecay{0.1, 0});
  refused(PolynomialDecay{0.1, 0});
  refused(CyclicLR{0.1, 0.2, 0});
  refused(LinearLR{0.1, 0});
  refused(LinearLR{0.1, 5, 0});
  refused(LinearLR{0.1, 5, 0.5, 1.5});
  refused(CosineAnnealingWarmRestarts{0.1, 0});
  refused(CosineAnnealingWarmRestarts{0.1, 1, 0});
  refused(LambdaDecay{0.1, nullptr});
  EXPECT_EQ(refused(LambdaDecay{0.1, Parsed("1 / (t - 12)")}),
            "'lr_lambda' \"1 / (t - 12)\" is inf at t = 12; expected a finite "
            "number");
  // A factor before the first step is not taken.
  EXPECT_TRUE(
      LrSchedule(MultiplicativeDecay{0.1, Parsed("1 / t")}).Check().ok());
  refused(MultiplicativeDecay{0.1, Parsed("sqrt(500 - t)")});
}

TEST(Formula, RefusesWhatIsNoExpressionOfT) {
  for (const std::string& text :
       {std::string(""), std::string("0.9 ^"), std::string("(t"),
        std::string("x + t"), std::string("t, t"), std::string("t t"),
        std::string("\"t\""), std::string("min()"), std::string(1001, '1'),
        std::string("f(t)")}) {
    const auto formula = Formula::Parse(text);
    ASSERT_FALSE(formula.ok()) << text;
    EXPECT_EQ(formula.status().code(), absl::StatusCode::kInvalidArgument);
  }
  // Depth is no danger: the parser keeps a stack of its own.
  EXPECT_TRUE(
      Formula::Parse(std::string(400, '(') + "t" + std::string(400, ')')).ok());
}

TEST(Formula, ProductsGoOnAndBack) {
  const auto formula = Parsed("1 / t");
  ASSERT_NE(formula, nullptr);
  EXPECT_EQ(formula->Product(12, 0), 12);
  EXPECT_EQ(formula->Product(12, 3), 2);
  EXPECT_EQ(formula->Product(12, 4), 0.5);
  EXPECT_EQ(formula->Product(12, 2), 6);
  EXPECT_EQ(formula->Product(6, 3), 1);
}

TEST(ReduceOnPlateau, AgreesWithPaddlePaddle) {
  const std::vector<double> metrics = {5,    4,    4.1,  4.2,  4.3,  4.05, 3.9,
                                       3.95, 3.96, 3.97, 3.98, 3.99, 4,    4};
  ReduceOnPlateau plain;
  plain.learning_rate = 0.5;
  plain.patience = 1;
  plain.factor = 0.5;
  plain.threshold = 0.01;
  ReduceOnPlateau max = plain;
  max.max_mode = true;
  max.cooldown = 2;
  ReduceOnPlateau absolute = plain;
  absolute.absolute = true;
  const auto goldens = Goldens();
  for (auto [name, schedule] :
       std::map<std::string, ReduceOnPlateau>{{"plateau", plain},
                                              {"plateau_max", max},
                                              {"plateau_abs", absolute}}) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(schedule.Check().ok());
    const std::vector<double>& rates = goldens.at(name);
    ASSERT_EQ(rates.size(), metrics.size());
    for (size_t i = 0; i < metrics.size(); ++i)
      EXPECT_DOUBLE_EQ(schedule.Step(metrics[i]), rates[i]) << "step " << i;
  }
}

}  // namespace test_lr_schedule
}  // namespace pd
