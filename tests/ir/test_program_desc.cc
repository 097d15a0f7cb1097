// SPDX-License-Identifier: Apache-2.0
// The structs of a program: slots, attributes, variables by name.
#include "libcore/ir/program_desc.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "libcore/ir/array.h"

namespace pd {
namespace {

TEST(OpDesc, SlotsKeepTheirOrderAndNames) {
  OpDesc op;
  op.SetInput("Y", {"b"});
  op.SetInput("X", {"a", "c"});
  op.SetInput("Y", {"d"});
  ASSERT_EQ(op.inputs.size(), 2u);
  EXPECT_EQ(op.inputs[0].first, "Y");
  EXPECT_EQ(op.In("Y"), "d");
  EXPECT_EQ(op.Input("X"), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(op.In("Z"), "");
  EXPECT_TRUE(op.Output("X").empty());
}

TEST(OpDesc, AttributesHaveTypes) {
  OpDesc op;
  op.attrs = {{"axis", int32_t{1}}, {"scale", 0.5f}};
  EXPECT_EQ(op.Attr<int32_t>("axis"), 1);
  EXPECT_EQ(op.Attr<float>("scale"), 0.5f);
  EXPECT_EQ(op.AttrOr<int32_t>("axis", 7), 1);
  // One that is absent, or of another type, counts as none.
  EXPECT_EQ(op.AttrOr<int32_t>("dim", 7), 7);
  EXPECT_EQ(op.AttrOr<int64_t>("axis", 7), 7);
  EXPECT_EQ(op.FindAttr("dim"), nullptr);
  EXPECT_EQ(TypeOf(op.attrs["scale"]), AttrType::kFloat);
  EXPECT_EQ(Name(AttrType::kFloat), "float");
}

VarDesc Named(const std::string& name) {
  VarDesc var;
  var.name = name;
  return var;
}

// The list is changed as passes do it: large blocks have an index, which may
// never tell of what is not there any more.
TEST(BlockDesc, FindsVariablesOfAListThatChanges) {
  for (const int count : {3, 500}) {
    BlockDesc block;
    for (int i = 0; i < count; ++i)
      block.vars.push_back(Named(absl::StrCat("v", i)));
    const std::string last = absl::StrCat("v", count - 1);
    ASSERT_EQ(block.FindVar(last), &block.vars.back());
    EXPECT_EQ(block.FindVar("none"), nullptr);
    block.vars.push_back(Named("new"));
    EXPECT_EQ(block.FindVar("new"), &block.vars.back());
    block.vars[1].name = "other";
    EXPECT_EQ(block.FindVar("v1"), nullptr);
    EXPECT_EQ(block.FindVar("other"), &block.vars[1]);
    block.vars.erase(block.vars.begin());
    EXPECT_EQ(block.FindVar("v0"), nullptr);
    EXPECT_EQ(block.FindVar("other"), &block.vars[0]);
    const BlockDesc copy = block;
    EXPECT_EQ(copy.FindVar("new"), &copy.vars.back());
  }
}

TEST(ProgramDesc, FindsVariablesOfBlocksAround) {
  ProgramDesc program;
  program.blocks.resize(3);
  program.blocks[1].parent_idx = 0;
  program.blocks[2].parent_idx = 1;
  program.blocks[0].vars = {Named("x"), Named("y")};
  program.blocks[1].vars = {Named("x")};
  EXPECT_EQ(program.FindVar(2, "x"), &program.blocks[1].vars[0]);
  EXPECT_EQ(program.FindVar(2, "y"), &program.blocks[0].vars[1]);
  EXPECT_EQ(program.FindVar(0, "x"), &program.blocks[0].vars[0]);
  EXPECT_EQ(program.FindVar(2, "z"), nullptr);
  EXPECT_EQ(program.FindVar(9, "x"), nullptr);
}

TEST(Array, CopiesShareBytesAndSizesAreChecked) {
  const Array array = MakeArray<float>({2, 2}, {1, 2, 3, 4});
  const Array copy = array;
  EXPECT_EQ(copy.bytes, array.bytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(array.bytes.get()) % 64, 0u);
  EXPECT_EQ(array.size_bytes(), 16u);
  EXPECT_EQ(array.data<float>()[3], 4.0f);
  std::byte* bytes = nullptr;
  EXPECT_FALSE(
      NewArray(DType::kFloat32, {int64_t{1} << 40, int64_t{1} << 40}, &bytes)
          .ok());
}

}  // namespace
}  // namespace pd
