// SPDX-License-Identifier: Apache-2.0
// Values that count as bad, bit by bit, and values that the rules accept. That
// the right op is named: tests/check/test_nan_injection.cc.
#include "libcore/exec/nan_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "libcore/exec/nan_witness.h"
#include "libcore/tensor/layout.h"
#include "libcore/tensor/magnitude.h"

namespace pd {
namespace test_nan_check {

// Every bit pattern of a half, beside an ordinary number.
template <typename T>
void CheckEveryPattern(DType dtype, uint32_t exponent_bits) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    T values[2];
    values[0].bits = static_cast<uint16_t>(bits);
    values[1] = T(1.0f);
    const bool finite = (bits & exponent_bits) != exponent_bits;
    ASSERT_EQ(std::isfinite(LargestMagnitude(dtype, values, 2)), finite)
        << bits;
    const bool nan = !finite && (bits & 0x7fff) != exponent_bits;
    ASSERT_EQ(std::isnan(LargestMagnitude(dtype, values, 2)), nan) << bits;
  }
}

TEST(LargestMagnitude, EveryPatternOfHalves) {
  CheckEveryPattern<Float16>(DType::kFloat16, 0x7c00);
  CheckEveryPattern<BFloat16>(DType::kBFloat16, 0x7f80);
}

float FromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Quiet and signalling NaN of both signs, one bit of payload at a time; both
// infinities; the largest number and the smallest denormal, which are good.
TEST(LargestMagnitude, PatternsOfFloats) {
  std::vector<std::pair<uint32_t, bool>> cases = {
      {0x7f800000, false}, {0xff800000, false}, {0x7f7fffff, true},
      {0xff7fffff, true},  {1, true},           {0x80000001, true},
      {0x007fffff, true},  {0, true},           {0x80000000, true}};
  for (int bit = 0; bit < 23; ++bit)
    for (uint32_t sign : {0u, 0x80000000u})
      cases.push_back({sign | 0x7f800000u | (1u << bit), false});
  for (const auto& [bits, finite] : cases) {
    const float values[1] = {FromBits(bits)};
    EXPECT_EQ(std::isfinite(LargestMagnitude(DType::kFloat32, values, 1)),
              finite)
        << bits;
  }
}

// One bad element at every place of arrays of every small size, at addresses
// that are no multiple of anything.
template <typename T>
void CheckEveryPlace(DType dtype, T bad) {
  constexpr int64_t kMost = 200;
  std::vector<char> memory((kMost + 2) * sizeof(T));
  for (int64_t n = 0; n <= kMost; n += n < 70 ? 1 : 13) {
    std::vector<T> values(static_cast<size_t>(n), T(2));
    char* at = memory.data() + n % 3;
    const auto set = [&] {
      if (n > 0) std::memcpy(at, values.data(), values.size() * sizeof(T));
    };
    set();
    EXPECT_EQ(LargestMagnitude(dtype, at, n), n == 0 ? 0 : 2);
    for (int64_t i = 0; i < n; ++i) {
      values[static_cast<size_t>(i)] = bad;
      set();
      ASSERT_FALSE(std::isfinite(LargestMagnitude(dtype, at, n)))
          << n << " " << i;
      values[static_cast<size_t>(i)] = T(2);
    }
  }
}

TEST(LargestMagnitude, EveryPlace) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  CheckEveryPlace<float>(DType::kFloat32, nan);
  CheckEveryPlace<float>(DType::kFloat32, -inf);
  CheckEveryPlace<double>(DType::kFloat64, static_cast<double>(-inf));
  CheckEveryPlace<Float16>(DType::kFloat16, Float16(inf));
  CheckEveryPlace<BFloat16>(DType::kBFloat16, BFloat16(nan));
  CheckEveryPlace<std::complex<float>>(DType::kComplex64, {0, nan});
  CheckEveryPlace<std::complex<double>>(DType::kComplex128,
                                        {static_cast<double>(inf), 0});
}

TEST(LargestMagnitude, IsTheLargestAndInParallelToo) {
  std::vector<float> values(3 << 20);
  std::mt19937 random(7);
  float most = 0;
  for (float& x : values) {
    x = static_cast<float>(static_cast<int32_t>(random())) * 1e-3f;
    most = std::max(most, std::fabs(x));
  }
  const auto n = static_cast<int64_t>(values.size());
  EXPECT_EQ(LargestMagnitude(DType::kFloat32, values.data(), n), most);
  values[values.size() - 1] = NAN;
  EXPECT_TRUE(std::isnan(LargestMagnitude(DType::kFloat32, values.data(), n)));
}

TEST(LargestMagnitude, IntegersAreGood) {
  const int32_t ones[2] = {-1, -1};  // the bits of NaN
  for (DType dtype : {DType::kInt32, DType::kInt64, DType::kUInt8, DType::kInt8,
                      DType::kInt16, DType::kBool})
    EXPECT_EQ(LargestMagnitude(dtype, ones, 1), 0);
}

// nChw8c of three channels: five of eight are padding.
TEST(AllFinite, PaddingIsNotLookedAt) {
  Layout layout;
  layout.shape = {1, 3, 2, 1};
  layout.padded = {1, 8, 2, 1};
  layout.strides = {16, 16, 8, 8};
  layout.blocks = {{1, 8}};
  Tensor tensor(DType::kFloat32, {1, 3, 2, 1});
  tensor.set_layout(std::make_shared<const Layout>(layout));
  ASSERT_TRUE(tensor.Allocate().ok());
  ASSERT_EQ(tensor.physical_size(), 16);
  tensor.data<float>()[5] = NAN;
  EXPECT_TRUE(AllFinite(tensor));
  tensor.data<float>()[10] = NAN;  // channel 2, row 1
  EXPECT_FALSE(AllFinite(tensor));
  EXPECT_EQ(CountNonFinite(ToArray(tensor)).nan, 1);
}

TEST(AllFinite, ArraysAndSelectedRows) {
  Tensor array;
  array.set_kind(VarKind::kLodTensorArray);
  array.elements().resize(3);  // the first was never written
  for (size_t i = 1; i < 3; ++i) {
    array.elements()[i] = Tensor(DType::kFloat32, {2});
    ASSERT_TRUE(array.elements()[i].Allocate().ok());
  }
  EXPECT_TRUE(AllFinite(array));
  array.elements()[2].data<float>()[1] = INFINITY;
  EXPECT_FALSE(AllFinite(array));
  Tensor rows(DType::kFloat32, {1, 2});
  rows.set_kind(VarKind::kSelectedRows);
  rows.rows() = {4};
  rows.set_height(10);
  ASSERT_TRUE(rows.Allocate().ok());
  EXPECT_TRUE(AllFinite(rows));
  rows.data<float>()[0] = NAN;
  EXPECT_FALSE(AllFinite(rows));
}

TEST(CountNonFinite, CountsByKind) {
  const Array real = MakeArray<float>({4}, {NAN, -INFINITY, 1, -INFINITY});
  EXPECT_EQ(CountNonFinite(real).nan, 1);
  EXPECT_EQ(CountNonFinite(real).inf, 2);
  EXPECT_FALSE(CountNonFinite(real).minus_only);
  EXPECT_TRUE(CountNonFinite(MakeArray<float>({2}, {-INFINITY, 1})).minus_only);
  const Array complex = MakeArray<std::complex<float>>(
      {3}, {{NAN, INFINITY}, {1, INFINITY}, {1, 1}});
  EXPECT_EQ(CountNonFinite(complex).nan, 1);
  EXPECT_EQ(CountNonFinite(complex).inf, 1);
}

OpDesc Op(const std::string& type, int32_t role = kRoleForward) {
  OpDesc op;
  op.type = type;
  op.attrs[std::string(kOpRoleAttr)] = role;
  return op;
}

// The examples of PaddlePaddle's manual.
TEST(NanRules, SkipsAsTheManualSays) {
  NanRules rules;
  rules.SkipOps("mul,softmax_with_cross_entropy");
  EXPECT_TRUE(rules.Skips(Op("mul")));
  EXPECT_TRUE(rules.Skips(Op("softmax_with_cross_entropy")));
  rules.SkipOps("softmax_with");
  EXPECT_FALSE(rules.Skips(Op("softmax_with_cross_entropy")));
  EXPECT_FALSE(rules.Skips(Op("mul")));
  ASSERT_TRUE(rules.SkipRoles("backward,optimize").ok());
  EXPECT_TRUE(rules.Skips(Op("mul_grad", kRoleBackward)));
  EXPECT_TRUE(rules.Skips(Op("mul_grad", kRoleBackward | kRoleLoss)));
  EXPECT_TRUE(rules.Skips(Op("sgd", kRoleOptimize)));
  EXPECT_FALSE(rules.Skips(Op("mul")));
  ASSERT_TRUE(rules.SkipRoles("forward").ok());
  EXPECT_TRUE(rules.Skips(Op("mul")));
  EXPECT_FALSE(rules.Skips(Op("mul_grad", kRoleBackward)));
  EXPECT_FALSE(rules.Skips(Op("mean", kRoleLoss)));
  ASSERT_TRUE(
      rules.SkipVariables("mul:fc_0.tmp_0,mul:fc_0.tmp_1,dropout:new_relative")
          .ok());
  EXPECT_TRUE(rules.Skips(Op("mul"), "fc_0.tmp_1"));
  EXPECT_FALSE(rules.Skips(Op("mul"), "fc_1.tmp_1"));
  EXPECT_FALSE(rules.Skips(Op("add"), "fc_0.tmp_1"));
  ASSERT_TRUE(rules.SkipVariables("mul:c_0.tmp").ok());
  EXPECT_TRUE(rules.Skips(Op("mul"), "fc_0.tmp_0"));
  EXPECT_TRUE(rules.Skips(Op("mul"), "fc_0.tmp_1"));
}

TEST(NanRules, MistakesAreNamed) {
  NanRules rules;
  EXPECT_EQ(rules.SkipRoles("backwards").message(),
            "there is no role 'backwards'; expected forward, backward, "
            "optimize, rpc, dist, lrsched, loss or default");
  EXPECT_EQ(rules.SkipVariables("mul").message(),
            "'mul' is not of the form OP:VAR");
  setenv("PADDLE_INF_NAN_SKIP_VAR", "x", 1);
  EXPECT_EQ(NanRules::FromEnvironment().status().message(),
            "PADDLE_INF_NAN_SKIP_VAR: 'x' is not of the form OP:VAR");
  setenv("PADDLE_INF_NAN_SKIP_VAR", "mul:x", 1);
  ASSERT_TRUE(NanRules::FromEnvironment().ok());
  EXPECT_TRUE(NanRules::FromEnvironment()->Skips(Op("mul"), "x"));
  unsetenv("PADDLE_INF_NAN_SKIP_VAR");
}

TEST(NanRules, InfinitiesThatAreMeant) {
  NanRules rules;
  rules.AllowInfinities("where,*:mask");
  EXPECT_TRUE(rules.AllowsInfinities(Op("where"), "x"));
  EXPECT_TRUE(rules.AllowsInfinities(Op("add"), "the_mask_0"));
  EXPECT_FALSE(rules.AllowsInfinities(Op("add"), "x"));
}

TEST(MaskVariables, FollowMinusInfinity) {
  OpDesc fill = Op("fill_constant");
  fill.attrs["value"] = -INFINITY;
  fill.SetOutput("Out", {"m"});
  OpDesc add = Op("elementwise_add");
  add.SetInput("X", {"scores"});
  add.SetInput("Y", {"m"});
  add.SetOutput("Out", {"masked"});
  OpDesc softmax = Op("softmax");
  softmax.SetInput("X", {"masked"});
  softmax.SetOutput("Out", {"weights"});
  EXPECT_EQ(MaskVariables({fill, add, softmax}),
            (std::set<std::string>{"m", "masked"}));
  fill.attrs["value"] = INFINITY;
  EXPECT_TRUE(MaskVariables({fill, add}).empty());
}

// Whether an input shows in an output, by the attributes and outputs of the op.
TEST(NanWitness, RulesOfTheOp) {
  OpDesc op = Op("conv2d");
  op.attrs["strides"] = std::vector<int32_t>{1, 1};
  op.attrs["dilations"] = std::vector<int32_t>{1, 1};
  op.SetOutput("Output", {"y"});
  const Tensor floats(DType::kFloat32, {2}), halves(DType::kFloat16, {2});
  EXPECT_EQ(WitnessSlot(op, "Input", floats), "Output");
  EXPECT_EQ(WitnessSlot(op, "Input", halves), "");
  EXPECT_EQ(WitnessSlot(op, "Filter", floats), "");
  op.SetOutput("Output", {std::string(kEmptyVar)});
  EXPECT_EQ(WitnessSlot(op, "Input", floats), "");
  op.SetOutput("Output", {"y"});
  op.attrs["strides"] = std::vector<int32_t>{1, 2};
  EXPECT_EQ(WitnessSlot(op, "Input", floats), "");
  EXPECT_EQ(WitnessSlot(Op("softmax"), "X", floats), "");
}

}  // namespace test_nan_check
}  // namespace pd
