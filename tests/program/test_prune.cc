// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/prune.h"

#include <gtest/gtest.h>

#include "tests/program/small_program.h"

namespace pd {
namespace test_prune {

std::vector<std::string> OpTypes(const ProgramDesc& program) {
  std::vector<std::string> types;
  for (const OpDesc& op : program.global().ops) types.push_back(op.type);
  return types;
}

std::vector<std::string> VarNames(const ProgramDesc& program, int block = 0) {
  std::vector<std::string> names;
  for (const VarDesc& var : program.blocks[static_cast<size_t>(block)].vars)
    names.push_back(var.name);
  return names;
}

using Strings = std::vector<std::string>;

TEST(CloneForTest, DropsTrainingAndSetsIsTest) {
  const ProgramDesc clone = CloneForTest(SmallProgram());
  EXPECT_EQ(OpTypes(clone), (Strings{"matmul_v2", "dropout", "softmax",
                                     "elementwise_sub", "mean"}));
  EXPECT_EQ(VarNames(clone), (Strings{"x", "label", "w", "y", "dropped", "diff",
                                      "prob", "mask", "loss"}));
  EXPECT_TRUE(clone.global().ops[1].AttrOr("is_test", false));
  EXPECT_EQ(clone.global().ops[2].FindAttr("is_test"), nullptr);
}

TEST(Prune, KeepsWhatTheFetchNeeds) {
  const auto pruned = Prune(SmallProgram(), {"x"}, {"prob"});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(OpTypes(*pruned), (Strings{"matmul_v2", "dropout", "softmax"}));
  EXPECT_EQ(VarNames(*pruned),
            (Strings{"x", "w", "y", "dropped", "prob", "mask"}));
  const auto again = Prune(*pruned, {"x"}, {"prob"});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(OpTypes(*again), OpTypes(*pruned));
  EXPECT_EQ(VarNames(*again), VarNames(*pruned));
}

TEST(Prune, CutsInTheMiddle) {
  const auto pruned = Prune(SmallProgram(), {"dropped"}, {"prob"});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(OpTypes(*pruned), Strings{"softmax"});
}

TEST(Prune, KeepsWhatOverwritesAFeed) {
  ProgramDesc p = SmallProgram();
  AddOp(&p, "increment", {{"X", {"x"}}}, {{"Out", {"x"}}});
  const auto pruned = Prune(p, {"x"}, {"x"});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  EXPECT_EQ(OpTypes(*pruned), Strings{"increment"});
}

TEST(Prune, NamesThatDoNotFit) {
  EXPECT_EQ(Prune(SmallProgram(), {"x"}, {"porb"}).status().message(),
            "fetch 'porb' is not a variable of the program; the nearest is "
            "'prob'");
  EXPECT_EQ(Prune(SmallProgram(), {"x", "x"}, {"prob"}).status().message(),
            "feed 'x' is named twice");
  EXPECT_EQ(Prune(SmallProgram(), {"x"}, {"loss"}).status().message(),
            "op 3 'elementwise_sub' reads 'label', which is neither fed nor "
            "made");
  EXPECT_EQ(Prune(SmallProgram(), {"x"}, {"label"}).status().message(),
            "fetch 'label' is neither fed nor made by an op");
}

// Two sub-blocks, of which one is dropped: the other is renumbered, and what it
// reads from outside is kept.
TEST(Prune, SubBlocks) {
  ProgramDesc p = SmallProgram();
  p.blocks.resize(3);
  for (int i : {1, 2}) {
    p.blocks[static_cast<size_t>(i)].idx = i;
    p.blocks[static_cast<size_t>(i)].parent_idx = 0;
    AddVar(&p, "inner", {3}, false, i);
  }
  AddVar(&p, "cond", {1})->dtype = DType::kBool;
  AddVar(&p, "offset", {3}, true);
  AddVar(&p, "a", {3});
  AddVar(&p, "b", {3});
  for (const auto& [out, block] :
       {std::make_pair("a", 1), std::make_pair("b", 2)}) {
    AddOp(&p, "conditional_block", {{"Cond", {"cond"}}}, {{"Out", {out}}},
          {{"sub_block", BlockRef{block}}});
    AddOp(&p, "relu", {{"X", {"offset"}}}, {{"Out", {"inner"}}}, {},
          kRoleForward, block);
    AddOp(&p, "assign", {{"X", {"inner"}}}, {{"Out", {out}}}, {}, kRoleForward,
          block);
  }
  const auto pruned = Prune(p, {"cond"}, {"b"});
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  ASSERT_EQ(pruned->blocks.size(), 2u);
  EXPECT_EQ(pruned->blocks[1].idx, 1);
  EXPECT_EQ(VarNames(*pruned), (Strings{"cond", "offset", "b"}));
  EXPECT_EQ(VarNames(*pruned, 1), Strings{"inner"});
  ASSERT_EQ(pruned->global().ops.size(), 1u);
  EXPECT_EQ(pruned->global().ops[0].AttrOr("sub_block", BlockRef{}).index, 1);
}

TEST(FeedFetch, AddAndStripAreInverse) {
  const ProgramDesc p = SmallProgram();
  ProgramDesc with = p;
  ASSERT_TRUE(AddFeedFetch({{"x", "label"}, {"prob", "loss"}}, &with).ok());
  ASSERT_EQ(with.global().ops.size(), p.global().ops.size() + 4);
  EXPECT_EQ(with.global().ops.front().type, "feed");
  EXPECT_EQ(with.global().ops.front().Out("Out"), "x");
  EXPECT_EQ(with.global().FindVar("feed")->kind, VarKind::kFeedMinibatch);
  EXPECT_EQ(with.global().FindVar("fetch")->kind, VarKind::kFetchList);
  EXPECT_EQ(with.global().ops.back().AttrOr("col", int32_t{-1}), 1);
  EXPECT_FALSE(AddFeedFetch({{"x"}, {"prob"}}, &with).ok());

  // Columns give the order, whatever the order of the ops.
  std::swap(with.global().ops[0], with.global().ops[1]);
  const auto names = StripFeedFetch(&with);
  ASSERT_TRUE(names.ok()) << names.status();
  EXPECT_EQ(names->feeds, (Strings{"x", "label"}));
  EXPECT_EQ(names->fetches, (Strings{"prob", "loss"}));
  EXPECT_EQ(OpTypes(with), OpTypes(p));
  EXPECT_EQ(VarNames(with), VarNames(p));
}

TEST(FeedFetch, BadColumns) {
  ProgramDesc p = SmallProgram();
  ASSERT_TRUE(AddFeedFetch({{"x", "label"}, {"prob"}}, &p).ok());
  p.global().ops[1].attrs["col"] = int32_t{0};
  ProgramDesc copy = p;
  EXPECT_EQ(StripFeedFetch(&copy).status().message(),
            "column 0 of op 'feed' holds 'x' and 'label'");
  p.global().ops[1].attrs["col"] = int32_t{2};
  EXPECT_EQ(StripFeedFetch(&p).status().message(),
            "column 1 of 3 of op 'feed' is missing");
}

}  // namespace test_prune
}  // namespace pd
