// SPDX-License-Identifier: Apache-2.0
// Which copies of a loop's body are left out: none that somebody would miss.
// That values stay the same is seen in tests/nn/test_generate.cc.
#include "libcore/exec/block_moves.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/ops/registry.h"

namespace pd {
namespace test_block_moves {

OpDesc Op(const std::string& type,
          const std::vector<std::pair<std::string, std::string>>& inputs,
          const std::pair<std::string, std::string>& output) {
  OpDesc op;
  op.type = type;
  for (const auto& [slot, name] : inputs) op.SetInput(slot, {name});
  op.SetOutput(output.first, {output.second});
  if (type == "put_along_axis") {
    op.attrs["Axis"] = int32_t{0};
    op.attrs["Reduce"] = std::string("assign");
  }
  return op;
}

const OpDesc kPut =
    Op("put_along_axis", {{"Input", "kept"}, {"Index", "at"}, {"Value", "new"}},
       {"Result", "more"});
const OpDesc kAssign = Op("assign", {{"X", "more"}}, {"Out", "kept"});

OpDesc Scale(const std::string& from, const std::string& to) {
  return Op("scale", {{"X", from}}, {"Out", to});
}

// A body of these ops, which declares all but `kept`, `at` and `new`.
std::string MovesOf(const std::vector<OpDesc>& ops) {
  ProgramDesc program;
  program.blocks.resize(2);
  BlockDesc& block = program.blocks[1];
  block.idx = 1;
  for (const char* name : {"more", "a", "b", "list"}) {
    VarDesc var;
    var.name = name;
    block.vars.push_back(std::move(var));
  }
  block.ops = ops;
  std::vector<LateOp> late;
  for (const OpDesc& op : ops) {
    auto made = LateOp::Make(ReferenceRegistry(), op, 0);
    EXPECT_TRUE(made.ok()) << made.status();
    if (!made.ok()) return "";
    late.push_back(*std::move(made));
  }
  std::string all;
  for (const OpMove move : FindMoves(program, block, late))
    all += move == OpMove::kNone ? '-' : move == OpMove::kMove ? 'm' : 'p';
  return all;
}

TEST(BlockMoves, WhatNothingReadsAnyMoreMoves) {
  EXPECT_EQ(MovesOf({kPut, Scale("more", "a"), kAssign}), "p-m");
  EXPECT_EQ(MovesOf({Scale("new", "more"), kAssign}), "-m");
}

TEST(BlockMoves, WhatIsReadStays) {
  // The new value is read behind the assign.
  EXPECT_EQ(MovesOf({kPut, kAssign, Scale("more", "a")}), "---");
  // The old value is read, before or behind.
  EXPECT_EQ(MovesOf({kPut, Scale("kept", "a"), kAssign}), "--m");
  EXPECT_EQ(MovesOf({Scale("kept", "a"), kPut, kAssign}), "--m");
  // By the same op in another slot.
  EXPECT_EQ(MovesOf({Op("put_along_axis",
                        {{"Input", "kept"}, {"Index", "at"}, {"Value", "kept"}},
                        {"Result", "more"}),
                     kAssign}),
            "-m");
}

TEST(BlockMoves, WhatOthersHoldStays) {
  // A list may keep the bytes.
  EXPECT_EQ(MovesOf({kPut,
                     Op("write_to_array", {{"X", "more"}, {"I", "at"}},
                        {"Out", "list"}),
                     kAssign}),
            "---");
  // Written twice, or outside of the block.
  EXPECT_EQ(MovesOf({kPut, Scale("new", "more"), kAssign}), "---");
  EXPECT_EQ(MovesOf({Scale("new", "outer"),
                     Op("assign", {{"X", "outer"}}, {"Out", "kept"})}),
            "--");
  // Given to another variable than the one that was changed.
  EXPECT_EQ(MovesOf({kPut, Op("assign", {{"X", "more"}}, {"Out", "other"})}),
            "-m");
}

}  // namespace test_block_moves
}  // namespace pd
