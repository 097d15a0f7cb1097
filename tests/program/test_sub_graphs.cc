// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/sub_graphs.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "absl/strings/match.h"
#include "libcore/base/file.h"

namespace pd {
namespace test_sub_graphs {

OpDesc Op(const std::string& type, std::vector<std::string> in,
          std::vector<std::string> out) {
  OpDesc op;
  op.type = type;
  op.inputs = {{"X", std::move(in)}};
  op.outputs = {{"Out", std::move(out)}};
  return op;
}

ProgramDesc Program(std::vector<OpDesc> ops) {
  ProgramDesc program;
  program.blocks.resize(1);
  program.blocks[0].ops = std::move(ops);
  return program;
}

using Groups = std::vector<std::vector<size_t>>;

TEST(SubGraphs, HangTogetherByVariables) {
  EXPECT_EQ(SubGraphsOf(Program({})), Groups());
  EXPECT_EQ(
      SubGraphsOf(Program({Op("relu", {"a"}, {"b"}), Op("relu", {"c"}, {"d"}),
                           Op("relu", {"b"}, {"e"}),
                           Op("fill", {std::string(kEmptyVar)}, {"f"}),
                           Op("fill", {std::string(kEmptyVar)}, {"g"}),
                           Op("relu", {"c"}, {"h"})})),
      (Groups{{0, 2}, {1, 5}, {3}, {4}}));
  // A later op joins what was apart.
  EXPECT_EQ(
      SubGraphsOf(Program({Op("relu", {"a"}, {"b"}), Op("relu", {"c"}, {"d"}),
                           Op("sum", {"d", "b"}, {"e"})})),
      (Groups{{0, 1, 2}}));
}

TEST(SubGraphs, AFileHasThoseOfAllPrograms) {
  const std::string path = ::testing::TempDir() + "sub_graphs.txt";
  ASSERT_TRUE(
      AddSubGraphs("train", Program({Op("relu", {"a"}, {"b"})}), path).ok());
  ASSERT_TRUE(AddSubGraphs(
                  "eval",
                  Program({Op("relu", {"a"}, {"b"}), Op("tanh", {"c"}, {"d"})}),
                  path)
                  .ok());
  const auto text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_TRUE(
      absl::StrContains(text->view(), "program 'train': 1 sub-graph\n"));
  EXPECT_TRUE(
      absl::StrContains(text->view(), "program 'eval': 2 sub-graphs\n"));
  EXPECT_TRUE(absl::StrContains(text->view(), "tanh"));
  std::remove(path.c_str());
  EXPECT_FALSE(AddSubGraphs("x", Program({}), "/nowhere/file").ok());
}

}  // namespace test_sub_graphs
}  // namespace pd
