// SPDX-License-Identifier: Apache-2.0
// Runs of a loop's body that follow each other in one frame: the variables that
// an op found stay those that it would find, and bodies that could see a value
// of an earlier run get a frame for each.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "libcore/exec/block_executor.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_block_frames {

OpDesc Scale(const std::string& from, const std::string& to, float by) {
  OpDesc op;
  op.type = "scale";
  op.SetInput("X", {from});
  op.SetOutput("Out", {to});
  op.attrs["scale"] = by;
  return op;
}

OpDesc Assign(const std::string& from, const std::string& to) {
  OpDesc op;
  op.type = "assign";
  op.SetInput("X", {from});
  op.SetOutput("Out", {to});
  return op;
}

// A body of these ops, which declares `a` and `b`.
ProgramDesc Body(const std::vector<OpDesc>& ops) {
  ProgramDesc program;
  program.blocks.resize(2);
  program.blocks[1].idx = 1;
  for (const char* name : {"a", "b"}) {
    VarDesc var;
    var.name = name;
    program.blocks[1].vars.push_back(std::move(var));
  }
  program.blocks[1].ops = ops;
  return program;
}

bool MayShare(const ProgramDesc& program) {
  BlockExecutor blocks(&ReferenceRegistry(), &program, nullptr);
  return blocks.MayShareFrame(1);
}

Tensor Floats(const std::vector<float>& values) {
  return ToTensor(
      MakeArray<float>({static_cast<int64_t>(values.size())}, values));
}

std::vector<float> ValuesOf(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.size()};
}

TEST(BlockFrames, AreSharedWhereNoEarlierValueShows) {
  EXPECT_TRUE(MayShare(Body({Scale("kept", "a", 2), Assign("a", "kept")})));
  EXPECT_FALSE(MayShare(Body({Scale("b", "a", 2), Scale("kept", "b", 2)})));
  EXPECT_FALSE(MayShare(Body({Scale("a", "a", 2)})));
  // Another op may keep the value in a list.
  OpDesc write;
  write.type = "write_to_array";
  write.SetInput("X", {"a"});
  write.SetInput("I", {"at"});
  write.SetOutput("Out", {"list"});
  EXPECT_FALSE(MayShare(Body({Scale("kept", "a", 2), write})));
  // A gradient block comes back to the variables of each run.
  ProgramDesc program = Body({Scale("kept", "a", 2), Assign("a", "kept")});
  program.blocks.emplace_back();
  program.blocks[2].idx = 2;
  program.blocks[2].forward_block_idx = 1;
  EXPECT_FALSE(MayShare(program));
}

TEST(BlockFrames, RunsComputeWithWhatTheirVariablesAreNow) {
  const ProgramDesc program = Body({Scale("kept", "a", 2), Scale("a", "b", 5),
                                    Assign("b", "made"), Assign("a", "kept")});
  BlockExecutor blocks(&ReferenceRegistry(), &program, nullptr);
  Tensor kept = Floats({1, 2}), made, other = Floats({7, 8, 9});
  Frame outer;
  outer.Lend("kept", {&kept});
  outer.Lend("made", {&made});
  Frame inner(&outer);
  for (const float factor : {2.0f, 4.0f, 8.0f}) {
    ASSERT_TRUE(blocks.Run(1, &inner, {}).ok());
    EXPECT_EQ(ValuesOf(kept), (std::vector<float>{factor, 2 * factor}));
    EXPECT_EQ(ValuesOf(made), (std::vector<float>{5 * factor, 10 * factor}));
  }
  // Another shape, and back.
  kept = Floats({3});
  ASSERT_TRUE(blocks.Run(1, &inner, {}).ok());
  EXPECT_EQ(ValuesOf(made), std::vector<float>{30});
  kept = Floats({1, 1});
  ASSERT_TRUE(blocks.Run(1, &inner, {}).ok());
  EXPECT_EQ(ValuesOf(made), (std::vector<float>{10, 10}));
  // Another variable of that name.
  outer.Lend("kept", {&other});
  ASSERT_TRUE(blocks.Run(1, &inner, {}).ok());
  EXPECT_EQ(ValuesOf(other), (std::vector<float>{14, 16, 18}));
  EXPECT_EQ(ValuesOf(kept), (std::vector<float>{2, 2}));
  // Another frame around it, and another frame.
  Frame another;
  another.Lend("kept", {&kept});
  another.Lend("made", {&made});
  inner.set_parent(&another);
  ASSERT_TRUE(blocks.Run(1, &inner, {}).ok());
  EXPECT_EQ(ValuesOf(kept), (std::vector<float>{4, 4}));
  Frame second(&another);
  ASSERT_TRUE(blocks.Run(1, &second, {}).ok());
  EXPECT_EQ(ValuesOf(kept), (std::vector<float>{8, 8}));
}

TEST(BlockFrames, AMovedValueIsNotTheNextRunsToChange) {
  // A value that the assign moves out of the frame stays as the reader got it.
  const ProgramDesc program =
      Body({Scale("kept", "a", 3), Assign("a", "kept")});
  BlockExecutor blocks(&ReferenceRegistry(), &program, nullptr);
  Tensor kept = Floats({1});
  Frame outer;
  outer.Lend("kept", {&kept});
  Frame inner(&outer);
  std::vector<Tensor> seen;
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(blocks.Run(1, &inner, {}).ok());
    seen.push_back(kept);  // shares the bytes
  }
  EXPECT_EQ(ValuesOf(seen[0]), std::vector<float>{3});
  EXPECT_EQ(ValuesOf(seen[1]), std::vector<float>{9});
  EXPECT_EQ(ValuesOf(seen[2]), std::vector<float>{27});
}

}  // namespace test_block_frames
}  // namespace pd
