// SPDX-License-Identifier: Apache-2.0
// Ops of bfloat16 and float16 against the same ops of float32 over the same
// (rounded) numbers: what differs is one rounding of each result. Forward and
// gradients, odd sizes, kernels of halves and those between two casts; the
// references alone as well.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/half.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/passes/amp.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace test_halves {

const OpRegistry& Registry(bool fast) {
  static const OpRegistry* const kRegistries[] = {
      [] {
        auto* r = new OpRegistry;
        EXPECT_TRUE(RegisterAllOps(r).ok());
        return r;
      }(),
      [] {
        auto* r = new OpRegistry;
        EXPECT_TRUE(RegisterAllOps(r).ok());
        EXPECT_TRUE(AttachAllKernels(r).ok());
        return r;
      }()};
  return *kRegistries[fast ? 1 : 0];
}

struct Input {
  std::string slot;
  Shape shape;
  bool full = false;  // float32 in any case: scales and statistics of norms
};

struct Case {
  std::string name, type;
  std::vector<Input> inputs;
  std::vector<std::string> outputs;  // slots; the first is differentiated
  std::map<std::string, Attribute> attrs;
};

std::vector<Case> Cases() {
  using Ints = std::vector<int32_t>;
  const std::string pool_max = "max", pool_mean = "avg";
  return {
      {"matrix", "matmul_v2", {{"X", {5, 7}}, {"Y", {7, 19}}}, {"Out"}, {}},
      {"rows", "matmul_v2", {{"X", {3, 5, 33}}, {"Y", {33, 17}}}, {"Out"}, {}},
      {"transposed",
       "matmul_v2",
       {{"X", {2, 3, 9, 5}}, {"Y", {2, 3, 11, 5}}},
       {"Out"},
       {{"trans_y", true}}},
      {"mul", "mul", {{"X", {4, 3, 5}}, {"Y", {15, 6}}}, {"Out"}, {}},
      {"conv",
       "conv2d",
       {{"Input", {2, 5, 9, 7}}, {"Filter", {11, 5, 3, 3}}},
       {"Output"},
       {{"strides", Ints{2, 1}}, {"paddings", Ints{1, 1}}}},
      {"wide_conv",
       "conv2d",
       {{"Input", {3, 32, 8, 8}}, {"Filter", {64, 32, 1, 1}}},
       {"Output"},
       {}},
      {"depthwise",
       "depthwise_conv2d",
       {{"Input", {2, 16, 9, 9}}, {"Filter", {16, 1, 3, 3}}},
       {"Output"},
       {{"groups", int32_t{16}}, {"paddings", Ints{1, 1}}}},
      {"max",
       "pool2d",
       {{"X", {2, 6, 9, 8}}},
       {"Out"},
       {{"ksize", Ints{3, 3}},
        {"strides", Ints{2, 2}},
        {"pooling_type", pool_max}}},
      {"mean",
       "pool2d",
       {{"X", {2, 6, 9, 8}}},
       {"Out"},
       {{"ksize", Ints{2, 2}}, {"pooling_type", pool_mean}}},
      {"add", "elementwise_add", {{"X", {3, 37}}, {"Y", {3, 37}}}, {"Out"}, {}},
      {"bias", "elementwise_add", {{"X", {3, 5, 7}}, {"Y", {7}}}, {"Out"}, {}},
      {"times", "elementwise_mul", {{"X", {5, 9}}, {"Y", {5, 9}}}, {"Out"}, {}},
      {"relu", "relu", {{"X", {3, 41}}}, {"Out"}, {}},
      {"tanh", "tanh", {{"X", {3, 41}}}, {"Out"}, {}},
      {"sigmoid", "sigmoid", {{"X", {3, 41}}}, {"Out"}, {}},
      {"gelu", "gelu", {{"X", {3, 41}}}, {"Out"}, {}},
      {"softmax", "softmax", {{"X", {5, 23}}}, {"Out"}, {}},
      {"scale", "scale", {{"X", {5, 7}}}, {"Out"}, {{"scale", 0.3f}}},
      {"concat", "concat", {{"X", {2, 3, 5}}}, {"Out"}, {{"axis", int32_t{1}}}},
      {"transpose",
       "transpose2",
       {{"X", {3, 5, 7}}},
       {"Out", "XShape"},
       {{"axis", Ints{2, 0, 1}}}},
      {"layer_norm",
       "layer_norm",
       {{"X", {5, 37}}, {"Scale", {37}, true}, {"Bias", {37}, true}},
       {"Y", "Mean", "Variance"},
       {}},
      {"group_norm",
       "group_norm",
       {{"X", {3, 6, 5, 3}}, {"Scale", {6}}, {"Bias", {6}}},
       {"Y", "Mean", "Variance"},
       {{"groups", int32_t{2}}}},
      {"instance_norm",
       "instance_norm",
       {{"X", {3, 6, 5, 3}}, {"Scale", {6}, true}, {"Bias", {6}, true}},
       {"Y", "SavedMean", "SavedVariance"},
       {}},
      {"batch_norm",
       "batch_norm",
       {{"X", {4, 19, 5, 3}},
        {"Scale", {19}, true},
        {"Bias", {19}, true},
        {"Mean", {19}, true},
        {"Variance", {19}, true}},
       {"Y", "MeanOut", "VarianceOut", "SavedMean", "SavedVariance"},
       {}},
  };
}

float Number(size_t i, size_t which) {
  const float x =
      std::sin(0.7f * static_cast<float>(i) + static_cast<float>(which));
  return which == 4 ? 1.5f + x : x;  // the fifth is a variance
}

Array Numbers(const Shape& shape, size_t which, DType rounded, DType dtype) {
  std::vector<float> values(static_cast<size_t>(NumElements(shape)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = Number(i, which);
    if (rounded == DType::kBFloat16)
      values[i] = static_cast<float>(BFloat16(values[i]));
    if (rounded == DType::kFloat16)
      values[i] = static_cast<float>(Float16(values[i]));
  }
  Array array = MakeArray<float>(shape, values);
  return dtype == DType::kFloat32 ? array : RoundedTo(dtype, array);
}

// The case in `dtype`: its output, and the gradients of its inputs.
absl::StatusOr<NamedArrays> Compute(const Case& c, DType rounded, DType dtype,
                                    bool fast) {
  ProgramDesc program;
  program.blocks.resize(1);
  OpDesc op;
  op.type = c.type;
  op.attrs = c.attrs;
  op.attrs["use_mkldnn"] = true;  // to nearest
  NamedArrays feeds;
  std::vector<std::string> wrt;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const Input& input = c.inputs[i];
    VarDesc var;
    var.name = input.slot;
    var.shape = input.shape;
    var.dtype = input.full ? DType::kFloat32 : dtype;
    feeds[var.name] = Numbers(
        input.shape, i, input.full ? DType::kFloat32 : rounded, var.dtype);
    if (i < 3) wrt.push_back(var.name);
    op.SetInput(input.slot, {input.slot});
    program.global().vars.push_back(std::move(var));
  }
  for (const std::string& slot : c.outputs)
    op.SetOutput(slot, {absl::StrCat("out.", slot)});
  BlockBuilder builder(&Registry(fast), &program);
  PD_RETURN_IF_ERROR(builder.Append(std::move(op)));
  const std::string out = absl::StrCat("out.", c.outputs[0]);
  const VarDesc* made = program.global().FindVar(out);
  EXPECT_EQ(made->dtype, dtype);
  VarDesc cotangent = *made;
  cotangent.name = "cotangent";
  feeds["cotangent"] = Numbers(made->shape, 7, rounded, dtype);
  program.global().vars.push_back(std::move(cotangent));
  BackwardOptions backward;
  backward.targets[out] = "cotangent";
  backward.wrt = wrt;
  PD_ASSIGN_OR_RETURN(auto gradients,
                      AppendBackward(Registry(fast), backward, &program));
  std::vector<std::string> fetches = {out};
  for (const std::string& name : wrt) fetches.push_back(gradients[name]);
  Session session(&Registry(fast));
  return session.Run(program, feeds, fetches);
}

float At(const Array& array, int64_t i) {
  switch (array.dtype) {
    case DType::kBFloat16:
      return array.data<BFloat16>()[i];
    case DType::kFloat16:
      return array.data<Float16>()[i];
    default:
      return array.data<float>()[i];
  }
}

class Halves : public ::testing::TestWithParam<std::tuple<Case, DType, bool>> {
};

TEST_P(Halves, AreFloatsRoundedOnce) {
  const auto& [c, dtype, fast] = GetParam();
  const auto want = Compute(c, dtype, DType::kFloat32, fast);
  const auto got = Compute(c, dtype, dtype, fast);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  // Half a unit of the last of 8 or 11 bits. A gradient may have read a
  // rounded output or product.
  const float unit = dtype == DType::kBFloat16 ? 0x1p-8f : 0x1p-11f;
  for (const auto& [name, expected] : *want) {
    const Array& found = got->at(name);
    ASSERT_EQ(found.shape, expected.shape) << name;
    const bool gradient = name.find("@GRAD") != std::string::npos;
    float most = 0;
    for (int64_t i = 0; i < expected.size(); ++i)
      most = std::max(most, std::fabs(At(expected, i)));
    for (int64_t i = 0; i < expected.size(); ++i) {
      const float bound = unit * std::fabs(At(expected, i)) +
                          (gradient ? 2 * unit : unit / 16) * most;
      ASSERT_NEAR(At(found, i), At(expected, i), bound) << name << " at " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Halves,
    ::testing::Combine(::testing::ValuesIn(Cases()),
                       ::testing::Values(DType::kBFloat16, DType::kFloat16),
                       ::testing::Bool()),
    [](const auto& info) {
      return absl::StrCat(std::get<0>(info.param).name, "_",
                          std::string(Name(std::get<1>(info.param))),
                          std::get<2>(info.param) ? "_Fast" : "_Reference");
    });

// Kernels of their own take bfloat16 where the CPU has it: no step widens.
TEST(HalfKernels, TakeBrainFloats) {
  if (!__builtin_cpu_supports("avx512bf16") ||
      std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr)
    GTEST_SKIP() << "this CPU has no avx512_bf16, or is held to less";
  for (const char* type : {"relu", "elementwise_add", "matmul_v2"}) {
    ProgramDesc program;
    program.blocks.resize(1);
    OpDesc op;
    op.type = type;
    std::vector<FeedSpec> feeds;
    for (const char* slot : {"X", "Y"}) {
      VarDesc var;
      var.name = slot;
      var.shape = {16, 16};
      var.dtype = DType::kBFloat16;
      feeds.push_back({slot, var.dtype, var.shape});
      program.global().vars.push_back(std::move(var));
      if (std::string(type) != "relu" || feeds.size() == 1)
        op.SetInput(slot, {slot});
    }
    op.SetOutput("Out", {"out"});
    BlockBuilder builder(&Registry(true), &program);
    ASSERT_TRUE(builder.Append(std::move(op)).ok());
    Session session(&Registry(true));
    const auto plan = session.Compile(program, feeds, {"out"});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ((*plan)->steps().size(), 1u) << type;
    EXPECT_NE((*plan)->steps()[0].implementation, "reference") << type;
  }
}

}  // namespace test_halves
}  // namespace pd
