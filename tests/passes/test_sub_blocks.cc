// SPDX-License-Identifier: Apache-2.0
// Passes in the blocks of loops and branches: the chains that become one op,
// which then runs with shapes that are known only in the loop; what stays
// because another block, the next iteration or a gradient block reads it; and
// that every pass gives the numbers of the program without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tests/passes/net.h"

namespace pd {
namespace test_sub_blocks {

// A network whose second block is the body of a loop over `i` below `n`, which
// hands `y` from one iteration to the next.
struct LoopNet : Net {
  LoopNet() {
    program.blocks.resize(2);
    program.blocks[1].idx = 1;
    program.blocks[1].parent_idx = 0;
  }
  void Counter(const std::string& name, float value) {
    Op("fill_constant", {}, {{"Out", {name}}},
       {{"shape", std::vector<int64_t>{1}},
        {"value", value},
        {"dtype", static_cast<int32_t>(DType::kInt64)}});
  }
  // An op of the body; what it makes is declared there, with this shape, if
  // one is given.
  void Inner(const std::string& type, SlotList inputs, SlotList outputs,
             std::map<std::string, Attribute> attrs = {}, Shape shape = {}) {
    OpDesc op;
    op.type = type;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.attrs = std::move(attrs);
    if (!shape.empty()) {
      VarDesc var;
      var.name = op.outputs[0].second[0];
      var.shape = shape;
      program.blocks[1].vars.push_back(var);
    }
    program.blocks[1].ops.push_back(std::move(op));
  }
  // Ends the body with what counts, and adds the loop to block 0.
  void Loop(std::vector<std::string> reads) {
    Counter("i", 0);
    Counter("n", 3);
    Inner("increment", {{"X", {"i"}}}, {{"Out", {"i"}}}, {{"step", 1.0f}});
    Inner("less_than", {{"X", {"i"}}, {"Y", {"n"}}}, {{"Out", {"more"}}});
    Op("less_than", {{"X", {"i"}}, {"Y", {"n"}}}, {{"Out", {"more"}}});
    for (const char* name : {"y", "i", "n"}) reads.push_back(name);
    OpDesc loop;
    loop.type = "while";
    loop.SetInput("X", std::move(reads));
    loop.SetInput("Condition", {"more"});
    loop.SetOutput("Out", {"y", "i", "more"});
    loop.SetOutput("StepScopes", {"scopes"});
    loop.attrs["sub_block"] = BlockRef{1};
    VarDesc scopes;
    scopes.name = "scopes";
    scopes.kind = VarKind::kStepScopes;
    program.global().vars.push_back(scopes);
    program.global().ops.push_back(std::move(loop));
    fetches = {"y"};
  }
  std::string InnerTypes() const {
    std::vector<std::string> types;
    for (const OpDesc& op : program.blocks[1].ops) types.push_back(op.type);
    return absl::StrJoin(types, " ");
  }
};

constexpr char kCounts[] = " increment less_than";

// y = relu(conv(y) + b), three times.
LoopNet ConvLoop() {
  LoopNet net;
  const Shape shape = {2, 3, 6, 6};
  net.Var("x", shape, false);
  net.Var("w", {3, 3, 3, 3}, true);
  net.Var("b", {3}, true);
  net.Op("assign", {{"X", {"x"}}}, {{"Out", {"y"}}});
  net.Inner("conv2d", {{"Input", {"y"}}, {"Filter", {"w"}}},
            {{"Output", {"c"}}}, {{"paddings", std::vector<int32_t>{1, 1}}},
            shape);
  net.Inner("elementwise_add", {{"X", {"c"}}, {"Y", {"b"}}}, {{"Out", {"a"}}},
            {{"axis", int32_t{1}}}, shape);
  net.Inner("relu", {{"X", {"a"}}}, {{"Out", {"r"}}}, {}, shape);
  net.Inner("assign", {{"X", {"r"}}}, {{"Out", {"y"}}});
  net.Loop({"w", "b"});
  return net;
}

// y = [attention(y; k, v) of 4 heads as a matrix] * m + b, one line after
// another of what the passes fuse.
LoopNet AttentionLoop() {
  LoopNet net;
  const Shape shape = {2, 4, 5, 6};
  net.Var("x", shape, false);
  net.Var("k", {2, 4, 5, 6}, true);
  net.Var("v", {2, 4, 5, 6}, true);
  net.Var("m", {6, 6}, true);
  net.Var("b", {6}, true);
  net.Op("assign", {{"X", {"x"}}}, {{"Out", {"y"}}});
  const Shape scores = {2, 4, 5, 5};
  net.Inner("matmul_v2", {{"X", {"y"}}, {"Y", {"k"}}}, {{"Out", {"s"}}},
            {{"trans_y", true}}, scores);
  net.Inner("scale", {{"X", {"s"}}}, {{"Out", {"t"}}}, {{"scale", 0.5f}},
            scores);
  net.Inner("softmax", {{"X", {"t"}}}, {{"Out", {"p"}}}, {}, scores);
  net.Inner("matmul_v2", {{"X", {"p"}}, {"Y", {"v"}}}, {{"Out", {"o"}}}, {},
            shape);
  net.Inner("matmul_v2", {{"X", {"o"}}, {"Y", {"m"}}}, {{"Out", {"f"}}}, {},
            shape);
  net.Inner("elementwise_add", {{"X", {"f"}}, {"Y", {"b"}}}, {{"Out", {"g"}}},
            {}, shape);
  net.Inner("relu", {{"X", {"g"}}}, {{"Out", {"y"}}});
  net.Loop({"k", "v", "m", "b"});
  return net;
}

void ExpectSameNumbers(const LoopNet& net) {
  PassOptions none;
  for (const Pass& pass : AllPasses()) none.disabled.insert(pass.name);
  const NamedArrays want = AnswersOf(net, none);
  ASSERT_EQ(want.size(), net.fetches.size());
  ExpectNear(want, AnswersOf(net, {}), 1e-5);
}

TEST(SubBlocks, FuseTheBodyOfALoop) {
  LoopNet conv = ConvLoop();
  ExpectSameNumbers(conv);
  conv.Run();
  EXPECT_EQ(conv.InnerTypes(), std::string("fused_conv2d assign") + kCounts);
  EXPECT_TRUE(absl::EndsWith(conv.Types(), "less_than while"));
  EXPECT_EQ(conv.program.blocks[1].FindVar("c"), nullptr);
  LoopNet attention = AttentionLoop();
  ExpectSameNumbers(attention);
  attention.Run();
  EXPECT_EQ(attention.InnerTypes(),
            std::string("scaled_dot_product_attention fused_gemm_epilogue") +
                kCounts);
}

TEST(SubBlocks, FuseAroundALoop) {
  LoopNet net = ConvLoop();
  net.Op("conv2d", {{"Input", {"y"}}, {"Filter", {"w"}}}, {{"Output", {"d"}}});
  net.Op("relu", {{"X", {"d"}}}, {{"Out", {"e"}}});
  net.fetches = {"e"};
  ExpectSameNumbers(net);
  net.Run();
  EXPECT_TRUE(absl::EndsWith(net.Types(), "while fused_conv2d")) << net.Types();
}

// A loop that reads what lies in a chain around it, or writes what the chain
// reads, though it lists neither.
TEST(SubBlocks, LoopsBetweenTheOpsOfAChain) {
  for (const bool writes : {false, true}) {
    LoopNet net = ConvLoop();
    net.Op("assign", {{"X", {"x"}}}, {{"Out", {"z"}}});
    net.Op("conv2d", {{"Input", {"z"}}, {"Filter", {"w"}}},
           {{"Output", {"d"}}});
    net.Op("relu", {{"X", {"d"}}}, {{"Out", {"e"}}});
    auto& ops = net.program.global().ops;
    // The loop between the convolution and the activation.
    std::rotate(ops.end() - 4, ops.end() - 3, ops.end() - 1);
    if (writes)
      net.Inner("scale", {{"X", {"z"}}}, {{"Out", {"z"}}}, {{"scale", 2.0f}});
    else
      net.Inner("relu", {{"X", {"d"}}}, {{"Out", {"q"}}}, {}, {2, 3, 4, 4});
    net.fetches = {"y", "e"};
    ExpectSameNumbers(net);
    net.Run();
    EXPECT_TRUE(absl::EndsWith(net.Types(), "assign conv2d while relu"))
        << writes << ": " << net.Types();
  }
}

TEST(SubBlocks, LeaveWhatOthersRead) {
  const auto stays = [](LoopNet net, const char* what) {
    net.Run();
    EXPECT_TRUE(absl::StartsWith(net.InnerTypes(), "conv2d elementwise_add"))
        << what << ": " << net.InnerTypes();
  };
  LoopNet outer = ConvLoop();  // the sum is a variable around the loop
  outer.Op("assign", {{"X", {"x"}}}, {{"Out", {"a"}}});
  auto& around = outer.program.global().ops;
  std::rotate(around.begin(), around.end() - 1, around.end());
  auto& vars = outer.program.blocks[1].vars;
  vars.erase(vars.begin() + 1);
  outer.program.global().ops.back().outputs[0].second.push_back("a");
  outer.fetches.push_back("a");
  ExpectSameNumbers(outer);
  LoopNet inside = outer;
  inside.Run();
  EXPECT_TRUE(absl::StartsWith(inside.InnerTypes(), "fused_conv2d relu"))
      << inside.InnerTypes();
  LoopNet before = ConvLoop();  // read ahead of where it is written
  auto& ops = before.program.blocks[1].ops;
  std::rotate(ops.begin(), ops.begin() + 1, ops.begin() + 3);
  before.Run();
  EXPECT_FALSE(absl::StrContains(before.InnerTypes(), "fused_conv2d"))
      << before.InnerTypes();
  LoopNet by_attribute = ConvLoop();  // as a recurrent op knows its states
  by_attribute.program.global().ops.back().attrs["states"] =
      std::vector<std::string>{"c"};
  stays(std::move(by_attribute), "a state");
  LoopNet nested = ConvLoop();  // a block in the body reads it
  nested.program.blocks.emplace_back();
  nested.program.blocks[2].idx = 2;
  nested.program.blocks[2].parent_idx = 1;
  OpDesc reads;
  reads.type = "relu";
  reads.SetInput("X", {"c"});
  reads.SetOutput("Out", {"q"});
  nested.program.blocks[2].ops.push_back(reads);
  stays(std::move(nested), "a nested block");
}

TEST(SubBlocks, LeaveBlocksWithGradients) {
  LoopNet net = ConvLoop();
  net.program.blocks.emplace_back();
  net.program.blocks[2].idx = 2;
  net.program.blocks[2].parent_idx = 0;
  net.program.blocks[2].forward_block_idx = 1;
  net.Run();
  EXPECT_TRUE(absl::StartsWith(net.InnerTypes(), "conv2d elementwise_add relu"))
      << net.InnerTypes();
}

// Updates in a branch, as gradient merging makes them, become one op there.
TEST(SubBlocks, MergeTheUpdatesOfABranch) {
  LoopNet net;
  net.Var("rate", {1}, true);
  for (const std::string name : {"p", "q"}) {
    net.Var(name, {4}, true);
    net.Var(name + "@GRAD", {4}, false);
    net.Inner("sgd",
              {{"Param", {name}},
               {"Grad", {name + "@GRAD"}},
               {"LearningRate", {"rate"}}},
              {{"ParamOut", {name}}});
  }
  net.Counter("i", 0);
  net.Counter("n", 3);
  net.Op("less_than", {{"X", {"i"}}, {"Y", {"n"}}}, {{"Out", {"on"}}});
  OpDesc branch;
  branch.type = "conditional_block";
  branch.SetInput("Cond", {"on"});
  branch.SetInput("Input", {"p", "q", "p@GRAD", "q@GRAD", "rate"});
  branch.SetOutput("Out", {"p", "q"});
  branch.SetOutput("Scope", {"scopes"});
  branch.attrs["sub_block"] = BlockRef{1};
  branch.attrs["is_scalar_condition"] = true;
  VarDesc scopes;
  scopes.name = "scopes";
  scopes.kind = VarKind::kStepScopes;
  net.program.global().vars.push_back(scopes);
  net.program.global().ops.push_back(branch);
  net.fetches = {"p", "q"};
  ExpectSameNumbers(net);
  net.Run();
  EXPECT_EQ(net.InnerTypes(), "merged_sgd");
}

}  // namespace test_sub_blocks
}  // namespace pd
