// SPDX-License-Identifier: Apache-2.0
// recurrent_grad, as programs of PaddlePaddle 1.x have it, against central
// differences of recurrent in float64. PaddlePaddle 2.6 has no StaticRNN that
// could write such a program, so this one is written by hand.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/rng.h"
#include "libcore/exec/session.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_recurrent_ops {

using Names = std::vector<std::string>;

VarDesc Variable(const std::string& name, Shape shape = {}) {
  VarDesc var;
  var.name = name;
  var.dtype = DType::kFloat64;
  var.shape = std::move(shape);
  return var;
}

OpDesc Op(const std::string& type,
          const std::vector<std::pair<std::string, Names>>& inputs,
          const std::vector<std::pair<std::string, Names>>& outputs) {
  OpDesc op;
  op.type = type;
  for (const auto& [slot, names] : inputs) op.SetInput(slot, names);
  for (const auto& [slot, names] : outputs) op.SetOutput(slot, names);
  return op;
}

// h = tanh(x w + before u), as an output and as the state.
BlockDesc ForwardBlock() {
  BlockDesc block;
  block.idx = 1;
  block.parent_idx = 0;
  for (const char* name : {"x", "before", "a", "b", "c", "h", "state", "o"})
    block.vars.push_back(Variable(name));
  block.ops = {
      Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"a"}}}),
      Op("matmul_v2", {{"X", {"before"}}, {"Y", {"u"}}}, {{"Out", {"b"}}}),
      Op("elementwise_add", {{"X", {"a"}}, {"Y", {"b"}}}, {{"Out", {"c"}}}),
      Op("tanh", {{"X", {"c"}}}, {{"Out", {"h"}}}),
      Op("rnn_memory_helper", {{"X", {"h"}}}, {{"Out", {"state"}}}),
      Op("rnn_memory_helper", {{"X", {"h"}}}, {{"Out", {"o"}}})};
  return block;
}

// `apart`: the state is another variable than the output.
BlockDesc BackwardBlock(bool apart) {
  BlockDesc block;
  block.idx = 2;
  block.parent_idx = 0;
  block.forward_block_idx = 1;
  for (const char* name :
       {"h@GRAD@0", "h@GRAD@1", "h@GRAD", "c@GRAD", "a@GRAD", "b@GRAD",
        "before@GRAD", "u@GRAD", "x@GRAD", "w@GRAD"})
    block.vars.push_back(Variable(name));
  Names parts = {"h@GRAD@0"};
  if (apart) parts.push_back("h@GRAD@1");
  block.ops = {Op("rnn_memory_helper_grad",
                  {{"X", {"h"}}, {"Out", {"o"}}, {"Out@GRAD", {"o@GRAD"}}},
                  {{"X@GRAD", {"h@GRAD@0"}}}),
               Op("sum", {{"X", parts}}, {{"Out", {"h@GRAD"}}}),
               Op("tanh_grad", {{"Out", {"h"}}, {"Out@GRAD", {"h@GRAD"}}},
                  {{"X@GRAD", {"c@GRAD"}}}),
               Op("elementwise_add_grad",
                  {{"X", {"a"}}, {"Y", {"b"}}, {"Out@GRAD", {"c@GRAD"}}},
                  {{"X@GRAD", {"a@GRAD"}}, {"Y@GRAD", {"b@GRAD"}}}),
               Op("matmul_v2_grad",
                  {{"X", {"before"}}, {"Y", {"u"}}, {"Out@GRAD", {"b@GRAD"}}},
                  {{"X@GRAD", {"before@GRAD"}}, {"Y@GRAD", {"u@GRAD"}}}),
               Op("matmul_v2_grad",
                  {{"X", {"x"}}, {"Y", {"w"}}, {"Out@GRAD", {"a@GRAD"}}},
                  {{"X@GRAD", {"x@GRAD"}}, {"Y@GRAD", {"w@GRAD"}}})};
  if (apart)
    block.ops.insert(
        block.ops.begin(),
        Op("rnn_memory_helper_grad",
           {{"X", {"h"}}, {"Out", {"state"}}, {"Out@GRAD", {"state@GRAD"}}},
           {{"X@GRAD", {"h@GRAD@1"}}}));
  return block;
}

// `state`: the name that the state has in the block.
ProgramDesc Program(bool reverse, const std::string& state, bool gradient) {
  ProgramDesc program;
  program.version = 2006000;
  program.blocks.emplace_back();
  BlockDesc& block = program.blocks[0];
  block.vars = {Variable("x", {3, 2, 2}),      Variable("w", {2, 4}),
                Variable("u", {4, 4}),         Variable("start", {2, 4}),
                Variable("o@GRAD", {3, 2, 4}), Variable("o", {3, 2, 4})};
  for (const char* name : {"x@GRAD", "w@GRAD", "u@GRAD", "start@GRAD"})
    block.vars.push_back(Variable(name));
  block.vars.push_back(Variable("scopes"));
  block.vars.back().kind = VarKind::kStepScopes;
  OpDesc op = Op("recurrent",
                 {{"inputs", {"x"}},
                  {"initial_states", {"start"}},
                  {"parameters", {"w", "u"}}},
                 {{"outputs", {"o"}}, {"step_scopes", {"scopes"}}});
  op.attrs["ex_states"] = Names{"before"};
  op.attrs["states"] = Names{state};
  op.attrs["has_states"] = true;
  op.attrs["reverse"] = reverse;
  op.attrs["sub_block"] = BlockRef{1};
  OpDesc grad = op;
  grad.type = "recurrent_grad";
  grad.SetInput("outputs", {"o"});
  grad.SetInput("step_scopes", {"scopes"});
  grad.SetInput("outputs@GRAD", {"o@GRAD"});
  grad.outputs.clear();
  grad.SetOutput("inputs@GRAD", {"x@GRAD"});
  grad.SetOutput("initial_states@GRAD", {"start@GRAD"});
  grad.SetOutput("parameters@GRAD", {"w@GRAD", "u@GRAD"});
  grad.attrs["sub_block"] = BlockRef{2};
  block.ops = {op};
  if (gradient) block.ops.push_back(grad);
  program.blocks.push_back(ForwardBlock());
  if (gradient) program.blocks.push_back(BackwardBlock(state != "o"));
  return program;
}

Array RandomNumbers(const std::string& name, const Shape& shape) {
  RandomStream random(3, StreamOf(name));
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& v : values) v = 2 * random.Uniform() - 1;
  return MakeArray(shape, values);
}

NamedArrays RecurrentFeeds() {
  NamedArrays feeds;
  for (const auto& [name, shape] :
       std::map<std::string, Shape>{{"x", {3, 2, 2}},
                                    {"w", {2, 4}},
                                    {"u", {4, 4}},
                                    {"start", {2, 4}},
                                    {"o@GRAD", {3, 2, 4}}})
    feeds[name] = RandomNumbers(name, shape);
  return feeds;
}

void CheckAgainstDifferences(bool reverse, const std::string& state) {
  const NamedArrays feeds = RecurrentFeeds();
  const Names inputs = {"x", "w", "u", "start"};
  Names wanted;
  for (const std::string& name : inputs) wanted.push_back(GradName(name));
  Session session(&ReferenceRegistry(), 1);
  const auto got = session.Run(Program(reverse, state, true), feeds, wanted);
  ASSERT_TRUE(got.ok()) << got.status();
  const ProgramDesc forward = Program(reverse, state, false);
  const auto objective = [&](const NamedArrays& at) {
    Session fresh(&ReferenceRegistry(), 1);
    const auto out = fresh.Run(forward, at, {"o"});
    EXPECT_TRUE(out.ok()) << out.status();
    double sum = 0;
    if (!out.ok()) return sum;
    for (int64_t i = 0; i < out->at("o").size(); ++i)
      sum +=
          out->at("o").data<double>()[i] * feeds.at("o@GRAD").data<double>()[i];
    return sum;
  };
  constexpr double kStep = 1e-5;
  for (const std::string& name : inputs) {
    const Array& ours = got->at(GradName(name));
    ASSERT_EQ(ours.shape, feeds.at(name).shape) << name;
    for (int64_t i = 0; i < ours.size(); ++i) {
      double sides[2];
      for (int side = 0; side < 2; ++side) {
        const double* data = feeds.at(name).data<double>();
        std::vector<double> moved(data, data + ours.size());
        moved[static_cast<size_t>(i)] += side == 0 ? kStep : -kStep;
        NamedArrays at = feeds;
        at[name] = MakeArray(ours.shape, moved);
        sides[side] = objective(at);
      }
      EXPECT_NEAR(ours.data<double>()[i], (sides[0] - sides[1]) / (2 * kStep),
                  1e-8)
          << name << " " << i << (reverse ? ", reverse" : "");
    }
  }
}

TEST(RecurrentOps, GradientIsThatOfDifferences) {
  for (const bool reverse : {false, true})
    CheckAgainstDifferences(reverse, "state");
}

// The state is the output: its gradient has two parts.
TEST(RecurrentOps, GradientOfAStateThatIsAnOutput) {
  CheckAgainstDifferences(false, "o");
}

TEST(RecurrentOps, BadProgramsAreRefused) {
  const NamedArrays feeds = RecurrentFeeds();
  const auto status_of = [&](const ProgramDesc& program, const char* fetch) {
    Session session(&ReferenceRegistry(), 1);
    return session.Run(program, feeds, {fetch}).status();
  };
  ProgramDesc states = Program(false, "state", false);
  states.blocks[0].ops[0].attrs["states"] = Names{"state", "h"};
  EXPECT_EQ(status_of(states, "o").code(), absl::StatusCode::kInvalidArgument);
  ProgramDesc unknown = Program(false, "nothing", false);
  EXPECT_EQ(status_of(unknown, "o").code(),
            absl::StatusCode::kFailedPrecondition);
  ProgramDesc alone = Program(false, "state", true);
  alone.blocks[0].ops.erase(alone.blocks[0].ops.begin());
  EXPECT_FALSE(status_of(alone, "x@GRAD").ok());
  ProgramDesc fewer = Program(false, "state", true);
  fewer.blocks[0].ops[1].SetOutput("parameters@GRAD", {"w@GRAD"});
  EXPECT_EQ(status_of(fewer, "x@GRAD").code(),
            absl::StatusCode::kInvalidArgument);
}

// Our own append_backward says that it has none, instead of leaving parameters
// without gradients.
TEST(RecurrentOps, AppendBackwardRefusesIt) {
  ProgramDesc program = Program(false, "state", false);
  BackwardOptions options;
  options.targets = {{"o", "o@GRAD"}};
  options.wrt = {"w"};
  const absl::Status status =
      AppendBackward(ReferenceRegistry(), options, &program).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "'recurrent'")) << status;
}

}  // namespace test_recurrent_ops
}  // namespace pd
