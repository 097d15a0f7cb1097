// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/dot.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"

namespace pd {
namespace test_dot {

// x -> conv2d (weight w) -> relu -> y, and a name that would end a string.
ProgramDesc Small() {
  ProgramDesc program;
  program.blocks.emplace_back();
  BlockDesc& block = program.global();
  const auto var = [&block](const char* name, Shape shape, bool stays) {
    VarDesc desc;
    desc.name = name;
    desc.shape = std::move(shape);
    desc.persistable = stays;
    block.vars.push_back(desc);
  };
  var("x\"; evil", {-1, 3, 8, 8}, false);
  var("w", {4, 3, 3, 3}, true);
  var("h", {-1, 4, 6, 6}, false);
  var("y", {-1, 4, 6, 6}, false);
  OpDesc conv;
  conv.type = "conv2d";
  conv.SetInput("Input", {"x\"; evil"});
  conv.SetInput("Filter", {"w"});
  conv.SetOutput("Output", {"h"});
  conv.attrs["strides"] = std::vector<int32_t>{2, 2};
  conv.attrs["dilations"] = std::vector<int32_t>{1, 1};
  conv.attrs["use_cudnn"] = true;
  OpDesc relu;
  relu.type = "relu";
  relu.SetInput("X", {"h"});
  relu.SetOutput("Out", {"y"});
  block.ops = {conv, relu};
  return program;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at)
    ++count;
  return count;
}

TEST(DotGraph, DrawsOpsShapesAndLayers) {
  DotOptions options;
  options.title = "small";
  options.fetches = {"y"};
  options.layer_of = {{"h", "stage1/conv1"}, {"y", "stage1/act"}};
  const std::string text = DotGraph(Small(), options);
  EXPECT_TRUE(absl::StartsWith(text, "digraph \"small\" {"));
  EXPECT_TRUE(absl::StrContains(text, "label=\"conv2d\\nstrides [2,2]\""));
  EXPECT_FALSE(absl::StrContains(text, "use_cudnn"));
  EXPECT_TRUE(
      absl::StrContains(text, "label=\"x\\\"; evil\\nfloat32 ?x3x8x8\""));
  EXPECT_EQ(Count(text, "label=\"?x4x6x6\""), 2);  // to relu, to the end
  EXPECT_EQ(Count(text, "subgraph cluster_"), 3);
  EXPECT_EQ(Count(text, "label=\"stage1\""), 1);
  EXPECT_EQ(Count(text, " -> "), 4);
  EXPECT_EQ(std::count(text.begin(), text.end(), '{'),
            std::count(text.begin(), text.end(), '}'));
  EXPECT_EQ(text, DotGraph(Small(), options));
}

TEST(DotGraph, UsesNameScopes) {
  ProgramDesc program = Small();
  program.global().ops[0].attrs["op_namescope"] = std::string("/");
  program.global().ops[1].attrs["op_namescope"] = std::string("/head/");
  const std::string text = DotGraph(program, {});
  EXPECT_EQ(Count(text, "subgraph cluster_"), 1);
  EXPECT_TRUE(absl::StrContains(text, "label=\"head\""));
}

TEST(DotGraph, DrawsSubBlocks) {
  ProgramDesc program = Small();
  program.blocks.emplace_back();
  program.blocks[1].idx = 1;
  program.blocks[1].parent_idx = 0;
  OpDesc inner;
  inner.type = "tanh";
  inner.SetInput("X", {"h"});
  inner.SetOutput("Out", {"h"});
  program.blocks[1].ops = {inner};
  OpDesc loop;
  loop.type = "while";
  loop.SetInput("X", {"y"});
  loop.attrs["sub_block"] = BlockRef{1};
  program.global().ops.push_back(loop);
  const std::string text = DotGraph(program, {});
  EXPECT_TRUE(absl::StrContains(text, "label=\"block 1\""));
  EXPECT_EQ(Count(text, "label=\"runs\""), 1);
}

TEST(DotGraph, EmptyProgram) {
  EXPECT_TRUE(absl::EndsWith(DotGraph(ProgramDesc(), {}), "}\n"));
}

}  // namespace test_dot
}  // namespace pd
