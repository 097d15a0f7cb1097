// SPDX-License-Identifier: Apache-2.0
// The text is read by people and compared with diff: the whole of it is fixed
// here.
#include "libcore/program/text_dump.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/program/small_program.h"

namespace pd {
namespace test_text_dump {

TEST(TextDump, WholeProgram) {
  EXPECT_EQ(DumpProgram(SmallProgram()), R"(program version 2003000
block 0
  params
    %w:float32[4,3]
  state
    %lr:float32[1]
  feeds
    %label:float32[-1,3]
    %x:float32[-1,4]
  forward
    %y:float32[-1,3] = matmul_v2(X=%x, Y=%w) {trans_x=false, trans_y=false}
    Out=%dropped:float32[-1,3], Mask=%mask:uint8[-1,3] = dropout(X=%y) {dropout_implementation="upscale_in_train", dropout_prob=0.1}
    %prob:float32[-1,3] = softmax(X=%dropped) {axis=-1}
    %diff:float32[-1,3] = elementwise_sub(X=%prob, Y=%label) {axis=-1}
  loss
    %loss:float32[1] = mean(X=%diff)
  backward
    %diff@GRAD:float32[-1,3] = mean_grad(X=%diff)
    X@GRAD=%@EMPTY@, Y@GRAD=%w@GRAD:float32[4,3] = matmul_v2_grad(X=%x, Out@GRAD=%diff@GRAD) {op_role_var=["w","w@GRAD"]}
  optimize
    %w:float32[4,3] = sgd(Param=%w, Grad=%w@GRAD, LearningRate=%lr)
)");
}

TEST(TextDump, BlocksListsAndKinds) {
  ProgramDesc p;
  p.blocks.resize(2);
  p.blocks[1].idx = 1;
  p.blocks[1].parent_idx = 0;
  AddVar(&p, "array", {-1, 2})->kind = VarKind::kLodTensorArray;
  AddVar(&p, "a", {2})->lod_level = 1;
  AddVar(&p, "b", {2});
  AddOp(&p, "while", {{"X", {"a", "b"}}}, {{"Out", {"array"}}},
        {{"sub_block", BlockRef{1}}});
  AddOp(&p, "print", {{"In", {"a"}}}, {}, {}, kRoleForward, 1);
  EXPECT_EQ(DumpProgram(p), R"(program version 0
block 0
  feeds
    %a:float32[2] lod 1
    %b:float32[2]
  forward
    %array:tensor_array float32[-1,2] = while(X=[%a, %b]) {sub_block=block 1}
block 1 in block 0
  forward
    print(In=%a)
)");
}

TEST(TextDump, NumbersReadBackAsTheSame) {
  EXPECT_EQ(DumpAttribute(1e-5f), "1e-05");
  EXPECT_EQ(DumpAttribute(1.0f / 3), "0.33333334");
  EXPECT_EQ(DumpAttribute(0.1), "0.1");
  EXPECT_EQ(DumpAttribute(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(DumpAttribute(std::numeric_limits<float>::infinity()), "inf");
  EXPECT_EQ(DumpAttribute(std::string("a\"\n")), "\"a\\\"\\n\"");
  EXPECT_EQ(DumpAttribute(std::vector<bool>{true, false}), "[true,false]");
  EXPECT_EQ(DumpAttribute(VarRefs{{"a", "b"}}), "[%a,%b]");
}

}  // namespace test_text_dump
}  // namespace pd
