// SPDX-License-Identifier: Apache-2.0
// Element-wise kernels in packs of 8, copies in vectors of 16 bytes, and
// reductions in parts: extents at and beside those sizes, in every float dtype,
// beside the CPU's references.
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "libcore/base/half.h"
#include "libcore/program/block_builder.h"
#include "tests/device/device_plan.h"
#include "tests/ops/compare.h"

namespace pd {
namespace test_device_elementwise {

// number(i) at each i, rounded to the dtype.
template <typename Number>
Array Filled(DType dtype, Shape shape, const Number& number) {
  std::byte* bytes = nullptr;
  Array array = *NewArray(dtype, std::move(shape), &bytes);
  for (int64_t i = 0; i < array.size(); ++i) {
    const double v = number(i);
    if (dtype == DType::kFloat64)
      reinterpret_cast<double*>(bytes)[i] = v;
    else if (dtype == DType::kFloat16)
      reinterpret_cast<Float16*>(bytes)[i] = Float16(static_cast<float>(v));
    else if (dtype == DType::kBFloat16)
      reinterpret_cast<BFloat16*>(bytes)[i] = BFloat16(static_cast<float>(v));
    else
      reinterpret_cast<float*>(bytes)[i] = static_cast<float>(v);
  }
  return array;
}

// Between -1.2 and 1.2, following no pattern.
double NumberAt(int64_t i) {
  return 1.2 * std::sin(static_cast<double>(i * i % 7919) * 0.37);
}
Array NumbersOf(DType dtype, Shape shape) {
  return Filled(dtype, std::move(shape), NumberAt);
}
// With zeros, NaN, infinities, and what is infinite when it is doubled.
Array UnusualNumbersOf(const Array& like, int64_t first) {
  return Filled(like.dtype, like.shape, [&](int64_t i) {
    const double unusual[] = {0, -0.0, NAN, HUGE_VAL, -HUGE_VAL, 6e4, -6e4};
    const int64_t k = first + i;
    return k % 3 == 0 ? unusual[k / 3 % 7] : NumberAt(k);
  });
}

class DeviceElementwise : public DevicePlan {
 protected:
  struct Result {
    std::string slot;
    Shape shape;
  };
  // One op, whose variables are called as its slots.
  OpDesc* One(const std::string& type, DType dtype,
              const std::vector<Result>& inputs,
              const std::vector<Result>& outputs) {
    program_.blocks[0] = {};
    feeds_.clear();
    fetches_.clear();
    OpDesc op;
    op.type = type;
    for (const auto& [slot, shape] : inputs) {
      Var(slot, dtype, shape);
      feeds_[slot] = NumbersOf(dtype, shape);
      op.SetInput(slot, {slot});
    }
    for (const auto& [slot, shape] : outputs) {
      Var(slot, dtype, shape);
      fetches_.push_back(slot);
      op.SetOutput(slot, {slot});
    }
    program_.global().ops.push_back(op);
    return &program_.global().ops.back();
  }

  std::vector<Array> Run(Session session, bool on_gpu) {
    std::vector<FeedSpec> specs;
    for (const auto& [name, value] : feeds_)
      specs.push_back({name, value.dtype, value.shape});
    auto plan = session.Compile(program_, specs, fetches_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    types_.clear();
    for (const StepInfo& step : (*plan)->steps()) {
      EXPECT_EQ(step.on_device, on_gpu) << step.op_type;
      if (step.op_type == "copy") continue;
      absl::StrAppend(&types_, types_.empty() ? "" : " ", step.op_type);
    }
    size_t i = 0;
    for (const auto& [name, value] : feeds_)
      (*plan)->SetFeed(i++, value.bytes.get());
    const absl::Status ran = (*plan)->Run({});
    EXPECT_TRUE(ran.ok()) << ran;
    std::vector<Array> result;
    for (size_t f = 0; f < fetches_.size(); ++f)
      result.push_back(ToArray((*plan)->fetch(f)));
    return result;
  }
  // `tolerance`: of float32; other dtypes round more, or less.
  void ExpectTheCpus(DType dtype, double tolerance) {
    if (dtype == DType::kFloat16) tolerance = 2e-3;
    if (dtype == DType::kBFloat16) tolerance = 1.6e-2;
    const auto want = Run(OnCpu(), false), got = Run(OnGpu(), true);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(Difference(got[i], want[i], tolerance, tolerance), "")
          << program_.global().ops[0].type << " of " << Name(dtype) << " "
          << fetches_[i] << ToString(want[i].shape);
  }

  // The pass makes one op of the program, and the numbers are as without it.
  void ExpectTheNumbersWithout(const std::string& pass,
                               const std::string& fused) {
    const auto got = Run(OnGpu(), true);
    EXPECT_EQ(types_, fused);
    PassOptions options;
    options.disabled = {pass};
    Session session = OnGpu();
    session.set_pass_options(options);
    const auto want = Run(std::move(session), true);
    EXPECT_NE(types_, fused);
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(want.size(), 1u);
    EXPECT_EQ(Difference(got[0], want[0], 0, 0), "")
        << fused << " of " << Name(want[0].dtype) << ToString(want[0].shape);
  }

  std::map<std::string, Array> feeds_;
  std::vector<std::string> fetches_;
  std::string
      types_;  // of the ops that ran, but for copies from and to the host
};

constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                             DType::kFloat64};

TEST_F(DeviceElementwise, WholeAndBrokenPacks) {
  for (const DType dtype : kDTypes)
    for (const int64_t n : {1, 7, 8, 9, 31, 1000, 1001, 100003}) {
      One("relu", dtype, {{"X", {n}}}, {{"Out", {n}}});
      ExpectTheCpus(dtype, 0);
      One("elementwise_mul", dtype, {{"X", {n}}, {"Y", {n}}}, {{"Out", {n}}});
      ExpectTheCpus(dtype, 1e-6);
    }
}

TEST_F(DeviceElementwise, ReluOfASum) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64})
    for (const int64_t n : {1, 7, 8, 9, 1001, 100003}) {
      OpDesc* op = One("fused_elemwise_activation", dtype,
                       {{"X", {n}}, {"Y", {n}}}, {{"Out", {n}}});
      op->attrs["functor_list"] =
          std::vector<std::string>{"relu", "elementwise_add"};
      ExpectTheCpus(dtype, 0);
    }
}

TEST_F(DeviceElementwise, ReluGradOfASum) {
  for (const DType dtype : kDTypes)
    for (const int64_t n : {1, 7, 8, 9, 1001, 100003}) {
      OpDesc* op = One("sum_relu_grad", dtype, {{"A", {n}}, {"Out", {n}}},
                       {{"X@GRAD", {n}}});
      op->inputs.clear();
      op->SetInput("Out", {"Out"});
      op->SetInput("X", {"A", "B"});
      Var("B", dtype, {n});
      feeds_["B"] = UnusualNumbersOf(feeds_.at("A"), 24);
      ExpectTheCpus(dtype, 0);
    }
}

TEST_F(DeviceElementwise, ReluOfASumIsThatOfTwoOps) {
  for (const DType dtype : kDTypes)
    for (const int64_t n : {1, 8, 1001}) {
      One("elementwise_add", dtype, {{"X", {n}}, {"Y", {n}}}, {{"Out", {n}}});
      feeds_["X"] = UnusualNumbersOf(feeds_["X"], 0);
      feeds_["Y"] = UnusualNumbersOf(feeds_["Y"], 24);
      Var("Relu", dtype, {n});
      Op("relu", "Out", "Relu");
      fetches_ = {"Relu"};
      ExpectTheNumbersWithout("fuse_add_act", "fused_elemwise_activation");
    }
}

TEST_F(DeviceElementwise, ReluGradOfASumIsThatOfTwoOps) {
  for (const DType dtype : kDTypes)
    for (const int64_t n : {1, 8, 1001}) {
      OpDesc* op = One("sum", dtype, {{"A", {n}}, {"B", {n}}, {"R", {n}}},
                       {{"Out", {n}}});
      op->inputs.clear();
      op->SetInput("X", {"A", "B"});
      Var("G", dtype, {n});
      op = Op("relu_grad");
      op->SetInput("Out", {"R"});
      op->SetInput("Out@GRAD", {"Out"});
      op->SetOutput("X@GRAD", {"G"});
      fetches_ = {"G"};
      feeds_["B"] =
          Filled(dtype, {n}, [](int64_t i) { return NumberAt(i + 9); });
      feeds_["R"] =
          Filled(dtype, {n}, [](int64_t i) { return NumberAt(i + 99); });
      ExpectTheNumbersWithout("fuse_add_act", "sum_relu_grad");
    }
}

TEST_F(DeviceElementwise, RepeatedOperands) {
  const std::pair<Shape, Shape> kShapes[] = {
      {{4, 3, 16}, {16}},          {{4, 3, 15}, {15}},
      {{4, 3, 16}, {4, 1, 16}},    {{4, 3, 16}, {4, 3, 1}},
      {{5, 24}, {5, 1}},           {{2, 3, 8, 8}, {1, 3, 1, 1}},
      {{2, 3, 5, 5}, {1, 3, 1, 1}}};
  for (const DType dtype : kDTypes)
    for (const auto& [x, y] : kShapes) {
      One("elementwise_sub", dtype, {{"X", x}, {"Y", y}}, {{"Out", x}});
      ExpectTheCpus(dtype, 1e-6);
    }
}

// Biases: few sums of many elements, in parts, by columns and by blocks.
TEST_F(DeviceElementwise, GradientsOfRepeatedOperands) {
  const std::pair<Shape, Shape> kShapes[] = {{{3000, 5}, {5}},
                                             {{3000, 40}, {40}},
                                             {{70, 33}, {33}},
                                             {{9, 64}, {64}},
                                             {{3, 6, 60, 60}, {1, 6, 1, 1}},
                                             {{2, 3, 5, 5}, {1, 3, 1, 1}},
                                             {{6, 5000}, {6, 1}}};
  for (const DType dtype : kDTypes)
    for (const auto& [x, y] : kShapes) {
      One("elementwise_add_grad", dtype, {{"X", x}, {"Y", y}, {"Out@GRAD", x}},
          {{"Y@GRAD", y}});
      ExpectTheCpus(dtype, 2e-5);
    }
}

TEST_F(DeviceElementwise, ReductionsInParts) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64})
    for (const char* type :
         {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"})
      for (const bool rows : {false, true}) {
        const int64_t n = rows ? 3 : 30, m = 20000;
        OpDesc* op = One(type, dtype, {{"X", rows ? Shape{n, m} : Shape{m, n}}},
                         {{"Out", {n}}});
        op->attrs["dim"] = std::vector<int32_t>{rows ? 1 : 0};
        ExpectTheCpus(dtype, 2e-5);
      }
}

TEST_F(DeviceElementwise, CopiesOfVectors) {
  for (const DType dtype : kDTypes)
    for (const int64_t width : {1, 3, 4, 8, 12, 64}) {
      OpDesc* op = One("transpose2", dtype, {{"X", {3, 5, 4, width}}},
                       {{"Out", {3, 4, 5, width}}});
      op->attrs["axis"] = std::vector<int32_t>{0, 2, 1, 3};
      ExpectTheCpus(dtype, 0);
      op = One("transpose2", dtype, {{"X", {3, 5, 4, width}}},
               {{"Out", {3, 5, width, 4}}});
      op->attrs["axis"] = std::vector<int32_t>{0, 1, 3, 2};
      ExpectTheCpus(dtype, 0);
    }
}

// A product whose bias and ReLU cuBLASLt adds, and that of float64, for which
// it has no such algorithm.
TEST_F(DeviceElementwise, ProductsWithBiases) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64})
    for (const char* activation : {"none", "relu"}) {
      OpDesc* op = One("fused_gemm_epilogue", dtype,
                       {{"X", {2, 9, 12}}, {"Y", {12, 20}}, {"Bias", {20}}},
                       {{"Out", {2, 9, 20}}});
      op->attrs["activation"] = std::string(activation);
      ExpectTheCpus(dtype, 1e-5);
      for (const bool trans_y : {false, true}) {
        op = One("fused_gemm_epilogue_grad", dtype,
                 {{"X", {2, 9, 12}},
                  {"Y", trans_y ? Shape{20, 12} : Shape{12, 20}},
                  {"DOut", {2, 9, 20}}},
                 {{"DX", {2, 9, 12}},
                  {"DY", trans_y ? Shape{20, 12} : Shape{12, 20}},
                  {"DBias", {20}}});
        op->attrs["trans_y"] = trans_y;
        ExpectTheCpus(dtype, 1e-5);
      }
    }
}

}  // namespace test_device_elementwise
}  // namespace pd
