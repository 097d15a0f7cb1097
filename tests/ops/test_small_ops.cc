// SPDX-License-Identifier: Apache-2.0
// Tests of the basic ops beyond PaddlePaddle's cases: tensors without
// elements and without axes, random numbers that do not depend on threads,
// errors about data, first versions of ops.
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/match.h"
#include "libcore/base/parallel.h"
#include "libcore/exec/session.h"
#include "libcore/ops/registry.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace test_small_ops {

using Slots = std::map<std::string, Array>;
using Attrs = std::map<std::string, Attribute>;
using Ints = std::vector<int32_t>;

class SmallOps : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  // Runs one op on one array a slot; gives output `number`, which is `name`.
  absl::StatusOr<Array> Run(const std::string& type, const Slots& inputs,
                            const Attrs& attrs = {}, uint64_t seed = 0,
                            const std::string& name = "out",
                            size_t number = 0) {
    ProgramDesc program;
    program.version = version_;
    program.blocks.emplace_back();
    BlockBuilder builder(&registry_, &program);
    OpDesc op;
    op.type = type;
    op.attrs = attrs;
    for (const auto& [slot, array] : inputs) {
      VarDesc var;
      var.name = slot;
      var.dtype = array.dtype;
      var.shape = array.shape;
      builder.AddVar(var);
      op.SetInput(slot, {slot});
    }
    const OpDef* def = registry_.Find(type);
    if (def == nullptr) return absl::NotFoundError(type);
    op.SetOutput(def->outputs()[number].name, {name});
    const absl::Status status = builder.Append(std::move(op));
    if (!status.ok()) return status;
    Session session(&registry_, seed);
    auto results = session.Run(program, inputs, {name});
    if (!results.ok()) return results.status();
    return results->at(name);
  }

  static Array Floats(Shape shape, const std::vector<float>& values) {
    return MakeArray(std::move(shape), values);
  }

  OpRegistry registry_;
  int64_t version_ = 2006000;  // of programs
};

TEST_F(SmallOps, TensorsWithoutElements) {
  const Array none = Floats({0, 3}, {});
  for (const char* type : {"relu", "exp", "scale", "assign", "square"}) {
    const auto out = Run(type, {{"X", none}});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ(out->shape, (Shape{0, 3}));
  }
  auto out =
      Run("elementwise_add", {{"X", none}, {"Y", Floats({3}, {1, 2, 3})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->shape, (Shape{0, 3}));
  out = Run("reduce_sum", {{"X", none}}, {{"dim", Ints{0}}});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->shape, (Shape{3}));
  EXPECT_EQ(out->data<float>()[2], 0.0f);
  out = Run("mean", {{"X", none}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(std::isnan(out->data<float>()[0]));
  out = Run("matmul_v2", {{"X", Floats({2, 0}, {})}, {"Y", none}});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->shape, (Shape{2, 3}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out->data<float>()[i], 0.0f);
  EXPECT_FALSE(Run("reduce_max", {{"X", none}}, {{"dim", Ints{0}}}).ok());
}

TEST_F(SmallOps, TensorsWithoutAxes) {
  const Array one = Floats({}, {3});
  auto out = Run("elementwise_mul", {{"X", one}, {"Y", one}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->shape, Shape{});
  EXPECT_EQ(out->data<float>()[0], 9.0f);
  out = Run("reduce_sum", {{"X", one}}, {{"reduce_all", true}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->shape, Shape{});
  out = Run("flatten_contiguous_range", {{"X", one}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->shape, Shape{1});
}

// Programs of before 2.5 have [1] where later ones have [].
TEST_F(SmallOps, OldProgramsKnowNoRankZero) {
  version_ = 2003000;
  const auto out = Run("reduce_sum", {{"X", Floats({2, 2}, {1, 2, 3, 4})}},
                       {{"reduce_all", true}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ(out->shape, Shape{1});
  EXPECT_EQ(out->data<float>()[0], 10.0f);
}

TEST_F(SmallOps, RandomNumbersDependOnSeedAndNameOnly) {
  const Attrs shape = {{"shape", std::vector<int64_t>{100, 1000}}};
  SetThreads(1);
  const auto first = Run("gaussian_random", {}, shape, 1);
  SetThreads(2);
  const auto again = Run("gaussian_random", {}, shape, 1);
  const auto seed = Run("gaussian_random", {}, shape, 2);
  const auto name = Run("gaussian_random", {}, shape, 1, "other");
  SetThreads(0);
  ASSERT_TRUE(first.ok() && again.ok() && seed.ok() && name.ok());
  double mean = 0, square = 0;
  int same_seed = 0, same_name = 0;
  for (int i = 0; i < 100000; ++i) {
    const float v = first->data<float>()[i];
    EXPECT_EQ(v, again->data<float>()[i]);
    same_seed += v == seed->data<float>()[i];
    same_name += v == name->data<float>()[i];
    mean += v / 100000.0;
    square += v * v / 100000.0;
  }
  EXPECT_LT(same_seed, 10);
  EXPECT_LT(same_name, 10);
  EXPECT_NEAR(mean, 0.0, 0.02);
  EXPECT_NEAR(square, 1.0, 0.03);
}

TEST_F(SmallOps, RandomNumbersStayInTheirRange) {
  const std::vector<int64_t> shape = {10000};
  auto out = Run("uniform_random", {},
                 {{"shape", shape}, {"min", 2.0f}, {"max", 3.0f}});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int i = 0; i < 10000; ++i) {
    EXPECT_GE(out->data<float>()[i], 2.0f);
    EXPECT_LT(out->data<float>()[i], 3.0f);
  }
  out = Run("truncated_gaussian_random", {},
            {{"shape", Ints{10000}}, {"mean", 1.0f}, {"std", 0.5f}});
  ASSERT_TRUE(out.ok()) << out.status();
  double mean = 0, square = 0;
  for (int i = 0; i < 10000; ++i) {
    const double v = out->data<float>()[i] - 1.0;
    EXPECT_LE(std::fabs(v), 1.0 + 1e-6);
    mean += v / 10000;
    square += v * v / 10000;
  }
  EXPECT_NEAR(mean, 0.0, 0.02);
  // The variance of a normal cut at two deviations is 0.7737.
  EXPECT_NEAR(square, 0.25 * 0.7737, 0.01);
  out = Run("randint", {}, {{"shape", shape}, {"low", -2}, {"high", 3}});
  ASSERT_TRUE(out.ok()) << out.status();
  int counts[5] = {};
  for (int i = 0; i < 10000; ++i) {
    const int64_t v = out->data<int64_t>()[i];
    ASSERT_TRUE(v >= -2 && v < 3) << v;
    ++counts[v + 2];
  }
  for (int count : counts) EXPECT_NEAR(count, 2000, 250);
  out = Run("randperm", {}, {{"n", 1000}});
  ASSERT_TRUE(out.ok()) << out.status();
  std::vector<bool> seen(1000, false);
  for (int i = 0; i < 1000; ++i)
    seen[static_cast<size_t>(out->data<int64_t>()[i])] = true;
  for (bool found : seen) EXPECT_TRUE(found);
}

TEST_F(SmallOps, LongSumsOfFloatsAreExact) {
  // 16 million ones: float alone would stop at 2^24.
  const int64_t n = 20'000'000;
  const auto ones = Run("fill_constant", {},
                        {{"shape", std::vector<int64_t>{n}}, {"value", 1.0f}});
  ASSERT_TRUE(ones.ok()) << ones.status();
  const auto sum = Run("reduce_sum", {{"X", *ones}}, {{"reduce_all", true}});
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(sum->data<float>()[0], static_cast<float>(n));
}

TEST_F(SmallOps, ErrorsAboutData) {
  const Array x = MakeArray<int64_t>({2}, {7, 8});
  const Array zero = MakeArray<int64_t>({2}, {1, 0});
  const auto quotient = Run("elementwise_div", {{"X", x}, {"Y", zero}});
  EXPECT_EQ(quotient.status().code(), absl::StatusCode::kInvalidArgument);
  const auto hot = Run("one_hot_v2", {{"X", x}}, {{"depth", 8}});
  EXPECT_EQ(hot.status().code(), absl::StatusCode::kOutOfRange);
  const auto rows =
      Run("gather", {{"X", Floats({3}, {1, 2, 3})}, {"Index", x}});
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kOutOfRange);
  const auto shapes = Run("elementwise_add", {{"X", Floats({2}, {1, 2})},
                                              {"Y", Floats({3}, {1, 2, 3})}});
  EXPECT_EQ(shapes.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SmallOps, FirstVersions) {
  const Array classes = MakeArray<int64_t>({2, 1}, {2, 0});
  auto out = Run("one_hot", {{"X", classes}}, {{"depth", 3}});
  ASSERT_TRUE(out.ok()) << out.status();
  ASSERT_EQ(out->shape, (Shape{2, 3}));
  const float want[] = {0, 0, 1, 1, 0, 0};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(out->data<float>()[i], want[i]);
  out = Run("isfinite", {{"X", Floats({2}, {1, INFINITY})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_FALSE(out->data<bool>()[0]);
  out = Run("isfinite", {{"X", Floats({2}, {1, 2})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(out->data<bool>()[0]);
}

// Lists of an attribute multiply: their product is held against a limit before
// anything is made of it.
TEST_F(SmallOps, BoxesOfACellAreCountedFirst) {
  ProgramDesc program;
  program.blocks.emplace_back();
  BlockBuilder builder(&registry_, &program);
  VarDesc image;
  image.name = "image";
  image.shape = {1, 1, 2, 2};
  builder.AddVar(image);
  const auto infer = [&](const std::string& type, const Attrs& attrs) {
    OpDesc op;
    op.type = type;
    op.attrs = attrs;
    op.attrs["variances"] = std::vector<float>(4, 0.1f);
    op.SetInput("Input", {"image"});
    op.SetInput("Image", {"image"});
    op.SetOutput("Boxes", {"boxes"});
    op.SetOutput("Variances", {"variances"});
    return builder.Append(std::move(op));
  };
  const std::vector<float> many(100000, 2.0f);
  const absl::Status prior =
      infer("prior_box", {{"min_sizes", many}, {"aspect_ratios", many}});
  EXPECT_EQ(prior.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(
      absl::StrContains(prior.message(), "have 100000 and 100000 numbers"))
      << prior;
  const absl::Status dense = infer(
      "density_prior_box", {{"fixed_sizes", std::vector<float>{1}},
                            {"fixed_ratios", std::vector<float>{1}},
                            {"densities", std::vector<int32_t>{1 << 20}}});
  EXPECT_EQ(dense.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(dense.message(), "a cell has")) << dense;
}

// Rows are reduced in parts of vectors and a rest, wherever a NaN is.
TEST_F(SmallOps, ExtremaOfLongRows) {
  const Attrs attrs = {{"dim", Ints{1}}};
  std::vector<float> row(1037);
  for (size_t i = 0; i < row.size(); ++i)
    row[i] = static_cast<float>(i * 37 % 1037) - 500.0f;
  for (const size_t at : {0, 127, 128, 300, 511, 512, 640, 900, 1035, 1036}) {
    std::vector<float> high = row, low = row, nan = row;
    high[at] = 1000.0f;
    low[at] = -1000.0f;
    nan[at] = std::nanf("");
    const auto most =
        Run("reduce_max", {{"X", Floats({1, 1037}, high)}}, attrs);
    const auto least =
        Run("reduce_min", {{"X", Floats({1, 1037}, low)}}, attrs);
    ASSERT_TRUE(most.ok() && least.ok());
    EXPECT_EQ(most->data<float>()[0], 1000.0f) << at;
    EXPECT_EQ(least->data<float>()[0], -1000.0f) << at;
    for (const char* type : {"reduce_max", "reduce_min"}) {
      const auto none = Run(type, {{"X", Floats({1, 1037}, nan)}}, attrs);
      ASSERT_TRUE(none.ok());
      EXPECT_TRUE(std::isnan(none->data<float>()[0])) << type << at;
    }
  }
}

// Rows of a few KB go in pieces, forwards or backwards.
TEST_F(SmallOps, LongRowsThatMove) {
  constexpr int64_t kRows = 3, kColumns = 1027;
  std::vector<float> x(kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const Slots in = {{"X", Floats({kRows, kColumns}, x)}};
  for (const int64_t shift : {3, -3, 500, 1026, 0}) {
    const auto out = Run("roll", in,
                         {{"axis", std::vector<int64_t>{1}},
                          {"shifts", std::vector<int64_t>{shift}}});
    ASSERT_TRUE(out.ok());
    for (int64_t r = 0; r < kRows; ++r)
      for (int64_t i = 0; i < kColumns; ++i)
        ASSERT_EQ(out->data<float>()[r * kColumns +
                                     (i + shift + kColumns) % kColumns],
                  static_cast<float>(r * kColumns + i));
  }
  const auto flipped = Run("flip", in, {{"axis", Ints{1}}});
  ASSERT_TRUE(flipped.ok());
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t i = 0; i < kColumns; ++i)
      ASSERT_EQ(flipped->data<float>()[r * kColumns + kColumns - 1 - i],
                static_cast<float>(r * kColumns + i));
}

// An image is 0 outside, whatever stands at its first pixel.
TEST_F(SmallOps, PlacesOutsideReadNothing) {
  const auto out = Run(
      "grid_sampler",
      {{"X", Floats({1, 1, 2, 2}, {std::nanf(""), 1.f, 2.f, 3.f})},
       {"Grid",
        Floats({1, 1, 4, 2}, {5.f, 5.f, 1.f, 1.f, 1.5f, 1.f, -1.f, -1.f})}});
  ASSERT_TRUE(out.ok());
  EXPECT_EQ(out->data<float>()[0], 0.0f);
  EXPECT_EQ(out->data<float>()[1], 3.0f);
  EXPECT_EQ(out->data<float>()[2], 2.25f);  // a quarter is outside
  EXPECT_TRUE(std::isnan(out->data<float>()[3]));
}

// A place without neighbours has no slope, whatever its weights.
TEST_F(SmallOps, PlacesThatAreNoNumbersHaveNoSlope) {
  const auto dgrid =
      Run("grid_sampler_grad",
          {{"X", Floats({1, 1, 2, 2}, {0.f, 1.f, 2.f, 4.f})},
           {"Grid", Floats({1, 1, 2, 2}, {std::nanf(""), HUGE_VALF, 0.f, 0.f})},
           {"Output@GRAD", Floats({1, 1, 1, 2}, {1.f, 1.f})}},
          {}, 0, "dgrid", 1);
  ASSERT_TRUE(dgrid.ok()) << dgrid.status();
  const float* slopes = dgrid->data<float>();
  EXPECT_EQ(slopes[0], 0.0f);
  EXPECT_EQ(slopes[1], 0.0f);
  EXPECT_EQ(slopes[2], 0.75f);
  EXPECT_EQ(slopes[3], 1.25f);
}

TEST_F(SmallOps, IntegersOnceInOrder) {
  const std::vector<int64_t> x = {
      5, -1, int64_t{1} << 40, 5, -(int64_t{1} << 40), -1, 0, 256, 1};
  const auto out =
      Run("unique", {{"X", MakeArray<int64_t>({9}, x)}}, {{"is_sorted", true}});
  ASSERT_TRUE(out.ok());
  const std::vector<int64_t> expected = {-(int64_t{1} << 40), -1, 0, 1, 5, 256,
                                         int64_t{1} << 40};
  ASSERT_EQ(out->size(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(out->data<int64_t>()[i], expected[i]);
}

}  // namespace test_small_ops
}  // namespace pd
