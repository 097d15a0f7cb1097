// SPDX-License-Identifier: Apache-2.0
// Calibration of a network with what follows convolutions and products: bias,
// shortcut, ReLU. It is looked at in one pass where that can be, else variable
// by variable; both are held against the values themselves.
#include "libcore/quant/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "libcore/exec/session.h"
#include "tests/quant/quant_fixture.h"

namespace pd {
namespace test_calibrate {

class Calibrates : public ::testing::Test {
 protected:
  static constexpr int64_t kRecords = 48, kChannels = 16, kSide = 9;

  void SetUp() override {
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    ASSERT_TRUE(AttachAllKernels(&registry_).ok());
    model_.program.blocks.resize(1);
    Var("x", {-1, 3, kSide, kSide});
    model_.names.feeds = {"x"};
    Conv("x", 3, "first", "c1");
    Add("c1", "b1", 1, "a1");
    Op("relu", "a1", "r1");
    Conv("r1", kChannels, "second", "c2");
    Add("c2", "b2", 1, "a2");
    Add("a2", "r1", -1, "s2");  // the shortcut
    Op("relu", "s2", "r2");
    Op("tanh", "r1", "t1");  // another reader
    Var("m", {-1, kChannels});
    OpDesc& pool = AddOp("pool2d", "X", "r2", "m4");
    Var("m4", {-1, kChannels, 1, 1});
    pool.attrs = {{"pooling_type", std::string("avg")},
                  {"ksize", std::vector<int32_t>{1, 1}},
                  {"global_pooling", true}};
    OpDesc& flat = AddOp("reshape2", "X", "m4", "m");
    flat.attrs = {{"shape", std::vector<int32_t>{-1, kChannels}}};
    Param("w3", {kChannels, 5});
    Var("p3", {-1, 5});
    AddOp("matmul_v2", "X", "m", "p3").SetInput("Y", {"w3"});
    Param("b3", {5});
    Var("a3", {-1, 5});
    AddOp("elementwise_add", "X", "p3", "a3").SetInput("Y", {"b3"});
    model_.program.global().ops.back().attrs = {{"axis", int32_t{1}}};
    model_.names.fetches = {"a3"};  // nobody reads it
  }

  void Var(const std::string& name, Shape shape) {
    VarDesc var;
    var.name = name;
    var.dtype = DType::kFloat32;
    var.shape = std::move(shape);
    model_.program.global().vars.push_back(var);
  }
  void Param(const std::string& name, const Shape& shape) {
    Var(name, shape);
    model_.program.global().vars.back().persistable = true;
    model_.params[name] = Numbers(shape, name[0] == 'b' ? 0.4f : 0.3f);
  }
  static Array Numbers(const Shape& shape, float most) {
    std::vector<float> values;
    for (int64_t i = 0; i < NumElements(shape); ++i) {
      const auto v = static_cast<float>(i);
      values.push_back(std::sin(v * 1.7f + 1) * std::sin(v * 0.31f) * most);
    }
    return MakeArray<float>(shape, values);
  }
  OpDesc& AddOp(const std::string& type, const char* slot,
                const std::string& in, const std::string& out) {
    OpDesc op;
    op.type = type;
    op.SetInput(slot, {in});
    op.SetOutput(type == "conv2d" ? "Output" : "Out", {out});
    model_.program.global().ops.push_back(op);
    return model_.program.global().ops.back();
  }
  void Conv(const std::string& in, int64_t channels, const std::string& filter,
            const std::string& out) {
    Param(filter, {kChannels, channels, 3, 3});
    Var(out, {-1, kChannels, kSide, kSide});
    OpDesc& op = AddOp("conv2d", "Input", in, out);
    op.SetInput("Filter", {filter});
    op.attrs = {{"paddings", std::vector<int32_t>{1, 1}}};
    seen_.push_back(out);
  }
  void Op(const std::string& type, const std::string& in,
          const std::string& out) {
    Var(out, {-1, kChannels, kSide, kSide});
    AddOp(type, "X", in, out);
    seen_.push_back(out);
  }
  void Add(const std::string& in, const std::string& other, int32_t axis,
           const std::string& out) {
    if (axis == 1) Param(other, {kChannels});
    Op("elementwise_add", in, out);
    model_.program.global().ops.back().SetInput("Y", {other});
    model_.program.global().ops.back().attrs = {{"axis", axis}};
  }

  Calibration Calibrated(QuantAlgorithm algorithm, bool whole, const Array& x) {
    CalibrationOptions options;
    options.algorithm = algorithm;
    options.histograms = whole;
    const auto loader = LoaderOf(x, 16);
    const auto result =
        Calibrate(&registry_, model_, seen_, loader.get(), options);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *result : Calibration();
  }

  OpRegistry registry_;
  InferenceModel model_;
  std::vector<std::string> seen_ = {"x", "m4", "p3", "a3"};
};

TEST_F(Calibrates, SeesEveryVariableAsItIs) {
  const Array x = Numbers({kRecords, 3, kSide, kSide}, 2);
  Session session(&registry_);
  for (const auto& [name, value] : model_.params)
    ASSERT_TRUE(session.scope().Set(name, value).ok());
  const auto values = session.Run(model_.program, {{"x", x}}, seen_);
  ASSERT_TRUE(values.ok()) << values.status();
  for (const QuantAlgorithm algorithm :
       {QuantAlgorithm::kAbsMax, QuantAlgorithm::kHist, QuantAlgorithm::kKl})
    for (const bool whole : {false, true}) {
      const Calibration found = Calibrated(algorithm, whole, x);
      EXPECT_EQ(found.records, kRecords);
      for (const std::string& name : seen_) {
        SCOPED_TRACE(name + " " + Name(algorithm) + (whole ? " whole" : ""));
        ASSERT_EQ(found.variables.count(name), 1u);
        const ActivationStats& stats = found.variables.at(name);
        const Array& value = values->at(name);
        const ValueRange range = RangeOf(value.data<float>(), value.size());
        const double near = 1e-5 * range.abs_max;
        EXPECT_EQ(stats.range.count, range.count);
        EXPECT_NEAR(stats.range.min, range.min, near);
        EXPECT_NEAR(stats.range.max, range.max, near);
        EXPECT_NEAR(stats.range.abs_min, range.abs_min, near);
        EXPECT_NEAR(stats.range.abs_max, range.abs_max, near);
        if (algorithm == QuantAlgorithm::kAbsMax) {
          EXPECT_NEAR(stats.threshold, range.abs_max, near);
          continue;
        }
        Histogram histogram(range.abs_min, range.abs_max, kHistogramBins);
        histogram.Add(value.data<float>(), value.size());
        const double want =
            algorithm == QuantAlgorithm::kKl
                ? KlThreshold(histogram, 8)
                : PercentileThreshold(histogram, kHistogramPercentile);
        EXPECT_NEAR(stats.threshold, want, 1.01 * histogram.width());
      }
    }
}

TEST_F(Calibrates, NamesWhereABadNumberComesFrom) {
  model_.params["b2"] = MakeArray<float>(
      {kChannels},
      std::vector<float>(kChannels, std::numeric_limits<float>::infinity()));
  const auto loader = LoaderOf(Numbers({8, 3, kSide, kSide}, 2), 4);
  const auto result = Calibrate(&registry_, model_, seen_, loader.get(), {});
  EXPECT_EQ(result.status().message(),
            "batch 0 of the calibration set, records from 0 on: 'a2' holds 0 "
            "NaN and 5184 Inf among 5184 values");
}

}  // namespace test_calibrate
}  // namespace pd
