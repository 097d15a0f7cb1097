// SPDX-License-Identifier: Apache-2.0
// Tests beyond the golden cases of layers and losses: errors about data,
// random numbers, and fused_gemm_epilogue, which PaddlePaddle has on GPUs only.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "libcore/autodiff/backward.h"
#include "libcore/base/rng.h"
#include "libcore/exec/session.h"
#include "libcore/program/block_builder.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_nn_ops {

// A program of `ops`; what they make is declared, what `feeds` holds is fed.
ProgramDesc ProgramOf(const std::vector<OpDesc>& ops,
                      const NamedArrays& feeds) {
  ProgramDesc program;
  program.blocks.emplace_back();
  for (const auto& [name, array] : feeds) {
    VarDesc var;
    var.name = name;
    var.dtype = array.dtype;
    var.shape = array.shape;
    program.global().vars.push_back(var);
  }
  for (const OpDesc& op : ops) {
    const absl::Status status = InferOp(ReferenceRegistry(), op, 0, &program);
    EXPECT_TRUE(status.ok()) << status;
    program.global().ops.push_back(op);
  }
  return program;
}

OpDesc Op(std::string type, SlotList inputs, SlotList outputs,
          std::map<std::string, Attribute> attrs = {}) {
  OpDesc op;
  op.type = std::move(type);
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.attrs = std::move(attrs);
  return op;
}

std::string ErrorOf(const OpDesc& op, const NamedArrays& feeds) {
  Session session(&ReferenceRegistry());
  std::vector<std::string> fetches;
  for (const auto& [slot, names] : op.outputs)
    fetches.insert(fetches.end(), names.begin(), names.end());
  const auto got = session.Run(ProgramOf({op}, feeds), feeds, fetches);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(got.status().message());
}

TEST(Labels, OutOfRangeNamesValueAndRecord) {
  const NamedArrays feeds = {
      {"x", MakeArray<float>({3, 4}, std::vector<float>(12, 0.25f))},
      {"y", MakeArray<int64_t>({3, 1}, {1, 0, 4})}};
  const std::string expected =
      "'Label' holds 4 at record 2 of 3; expected 0 to 3, or -100 to ignore it";
  EXPECT_NE(ErrorOf(Op("softmax_with_cross_entropy",
                       {{"Logits", {"x"}}, {"Label", {"y"}}},
                       {{"Softmax", {"s"}}, {"Loss", {"l"}}}),
                    feeds)
                .find(expected),
            std::string::npos);
  EXPECT_NE(ErrorOf(Op("cross_entropy2", {{"X", {"x"}}, {"Label", {"y"}}},
                       {{"Y", {"l"}}, {"MatchX", {"m"}}}),
                    feeds)
                .find(expected),
            std::string::npos);
}

TEST(LookupTable, OutOfRangeNamesValueAndRecord) {
  const NamedArrays feeds = {
      {"w", MakeArray<float>({3, 2}, std::vector<float>(6, 1))},
      {"ids", MakeArray<int32_t>({2, 2}, {0, 2, -3, 1})}};
  EXPECT_NE(ErrorOf(Op("lookup_table_v2", {{"W", {"w"}}, {"Ids", {"ids"}}},
                       {{"Out", {"o"}}}),
                    feeds)
                .find("'Ids' holds -3 at record 2 of 4; expected 0 to 2"),
            std::string::npos);
}

TEST(BceLoss, WantsProbabilities) {
  const NamedArrays feeds = {{"x", MakeArray<float>({3}, {0.5f, 1.5f, 0})},
                             {"y", MakeArray<float>({3}, {0, 1, 1})}};
  EXPECT_NE(ErrorOf(Op("bce_loss", {{"X", {"x"}}, {"Label", {"y"}}},
                       {{"Out", {"o"}}}),
                    feeds)
                .find("'X' holds 1.5 at element 1; expected 0 to 1"),
            std::string::npos);
}

TEST(Conv2d, RefusesWhatDoesNotFit) {
  const NamedArrays feeds = {
      {"x", MakeArray<float>({1, 2, 3, 3}, std::vector<float>(18))},
      {"w", MakeArray<float>({4, 3, 2, 2}, std::vector<float>(48))},
      {"big", MakeArray<float>({4, 2, 5, 5}, std::vector<float>(200))}};
  ProgramDesc program = ProgramOf({}, feeds);
  const auto infer = [&](const char* filter) {
    return InferOp(ReferenceRegistry(),
                   Op("conv2d", {{"Input", {"x"}}, {"Filter", {filter}}},
                      {{"Output", {"o"}}}),
                   0, &program);
  };
  EXPECT_NE(infer("w").message().find("2 channels"), absl::string_view::npos)
      << infer("w");
  EXPECT_NE(infer("big").message().find("spans 5 positions"),
            absl::string_view::npos)
      << infer("big");
}

// The Mask of a dropout of `n` elements at a seed and step.
std::vector<uint8_t> MaskOf(int64_t n, const RunContext& run,
                            std::map<std::string, Attribute> attrs,
                            const std::string& out = "out") {
  attrs["dropout_prob"] = 0.3f;
  attrs["dropout_implementation"] = std::string("upscale_in_train");
  const NamedArrays feeds = {
      {"x", MakeArray<float>({n}, std::vector<float>(n, 1))}};
  const ProgramDesc program =
      ProgramOf({Op("dropout", {{"X", {"x"}}},
                    {{"Out", {out}}, {"Mask", {"mask"}}}, attrs)},
                feeds);
  Session session(&ReferenceRegistry());
  auto plan =
      session.Compile(program, {{"x", DType::kFloat32, {n}}}, {"mask", out});
  EXPECT_TRUE(plan.ok()) << plan.status();
  (*plan)->SetFeed(0, feeds.at("x").data<float>());
  EXPECT_TRUE((*plan)->Run(run).ok());
  const uint8_t* mask = (*plan)->fetch(0).data<uint8_t>();
  const float* value = (*plan)->fetch(1).data<float>();
  for (int64_t i = 0; i < n; ++i)
    EXPECT_FLOAT_EQ(value[i], mask[i] != 0 ? 1 / 0.7f : 0.0f);
  return {mask, mask + n};
}

TEST(Dropout, DependsOnSeedStepAndName) {
  const auto first = MaskOf(10000, {1, 0}, {});
  EXPECT_EQ(first, MaskOf(10000, {1, 0}, {}));
  EXPECT_NE(first, MaskOf(10000, {2, 0}, {}));
  EXPECT_NE(first, MaskOf(10000, {1, 1}, {}));
  EXPECT_NE(first, MaskOf(10000, {1, 0}, {}, "other"));
  int64_t kept = 0;
  for (uint8_t m : first) kept += m;
  // 7000 +- 5 standard deviations of a binomial.
  EXPECT_NEAR(static_cast<double>(kept), 7000, 5 * std::sqrt(10000 * 0.21));
}

TEST(Dropout, FixSeedRepeatsItself) {
  const std::map<std::string, Attribute> attrs = {{"fix_seed", true},
                                                  {"seed", int32_t{5}}};
  EXPECT_EQ(MaskOf(100, {1, 0}, attrs), MaskOf(100, {2, 7}, attrs));
}

// fused_gemm_epilogue with random float64 arguments.
struct Fused {
  OpDesc op;
  NamedArrays feeds;
};

Fused MakeFused(bool trans_x, bool trans_y, const std::string& activation) {
  const auto random = [](const char* name, Shape shape) {
    RandomStream stream(3, StreamOf(name));
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& v : values) v = stream.Uniform(-1, 1);
    return MakeArray(std::move(shape), values);
  };
  Fused f;
  f.feeds = {{"x", random("x", trans_x ? Shape{5, 2, 3} : Shape{2, 3, 5})},
             {"y", random("y", trans_y ? Shape{4, 5} : Shape{5, 4})},
             {"b", random("b", {4})},
             {"ct", random("ct", {2, 3, 4})}};
  f.op = Op(
      "fused_gemm_epilogue", {{"X", {"x"}}, {"Y", {"y"}}, {"Bias", {"b"}}},
      {{"Out", {"o"}}, {"ReserveSpace", {"r"}}},
      {{"trans_x", trans_x}, {"trans_y", trans_y}, {"activation", activation}});
  return f;
}

double Objective(const ProgramDesc& program, const NamedArrays& feeds) {
  Session session(&ReferenceRegistry());
  const auto got = session.Run(program, feeds, {"o"});
  EXPECT_TRUE(got.ok()) << got.status();
  double sum = 0;
  for (int64_t i = 0; i < 24; ++i)
    sum += got->at("o").data<double>()[i] * feeds.at("ct").data<double>()[i];
  return sum;
}

TEST(FusedGemmEpilogue, GradientsAreDifferences) {
  for (const char* activation : {"none", "relu", "gelu"}) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      SCOPED_TRACE(std::string(activation) + std::to_string(transposed));
      const Fused f =
          MakeFused(transposed & 1, (transposed & 2) != 0, activation);
      const ProgramDesc forward = ProgramOf({f.op}, f.feeds);
      ProgramDesc program = forward;
      BackwardOptions options;
      options.targets = {{"o", "ct"}};
      options.wrt = {"x", "y", "b"};
      const auto names = AppendBackward(ReferenceRegistry(), options, &program);
      ASSERT_TRUE(names.ok()) << names.status();
      Session session(&ReferenceRegistry());
      const auto grads = session.Run(
          program, f.feeds, {names->at("x"), names->at("y"), names->at("b")});
      ASSERT_TRUE(grads.ok()) << grads.status();
      for (const char* input : {"x", "y", "b"}) {
        const Array& at = f.feeds.at(input);
        const double* values = at.data<double>();
        for (int64_t i = 0; i < at.size(); ++i) {
          const auto moved = [&](double by) {
            std::vector<double> copy(values, values + at.size());
            copy[static_cast<size_t>(i)] += by;
            NamedArrays feeds = f.feeds;
            feeds[input] = MakeArray(at.shape, copy);
            return Objective(forward, feeds);
          };
          const double slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
          EXPECT_NEAR(grads->at(names->at(input)).data<double>()[i], slope,
                      1e-8)
              << input << " " << i;
        }
      }
    }
  }
}

TEST(FusedGemmEpilogue, IsMatmulAddActivation) {
  const Fused f = MakeFused(false, true, "relu");
  const ProgramDesc program = ProgramOf(
      {f.op,
       Op("matmul_v2", {{"X", {"x"}}, {"Y", {"y"}}}, {{"Out", {"p"}}},
          {{"trans_y", true}}),
       Op("elementwise_add", {{"X", {"p"}}, {"Y", {"b"}}}, {{"Out", {"q"}}}),
       Op("relu", {{"X", {"q"}}}, {{"Out", {"want"}}})},
      f.feeds);
  Session session(&ReferenceRegistry());
  const auto got = session.Run(program, f.feeds, {"o", "want"});
  ASSERT_TRUE(got.ok()) << got.status();
  for (int64_t i = 0; i < 24; ++i)
    EXPECT_NEAR(got->at("o").data<double>()[i],
                got->at("want").data<double>()[i], 1e-14);
}

}  // namespace test_nn_ops
}  // namespace pd
