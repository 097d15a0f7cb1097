// SPDX-License-Identifier: Apache-2.0
// Each fault is put into a good program; the message must lead to it.
#include "libcore/program/verifier.h"

#include <gtest/gtest.h>

#include "libcore/ops/registry.h"
#include "tests/program/small_program.h"

namespace pd {
namespace test_verifier {

class VerifierTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    // The outline of a backward pass is no real one.
    program_ = SmallProgram();
    program_.global().ops.resize(5);
  }
  std::string Message() {
    return std::string(VerifyProgram(registry_, program_).message());
  }
  std::vector<OpDesc>& ops() { return program_.global().ops; }

  OpRegistry registry_;
  ProgramDesc program_;
};

TEST_F(VerifierTest, GoodProgram) { EXPECT_EQ(Message(), ""); }

TEST_F(VerifierTest, UnknownOp) {
  ops()[2].type = "sotfmax";
  EXPECT_EQ(VerifyProgram(registry_, program_).code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_NE(Message().find("block 0, op 2 'sotfmax': "), std::string::npos);
  EXPECT_NE(Message().find("'softmax'"), std::string::npos) << Message();
}

TEST_F(VerifierTest, SlotAndAttribute) {
  ops()[2].attrs["axis"] = std::string("last");
  EXPECT_EQ(Message(),
            "block 0, op 2 'softmax': attr 'axis' is of type string; expected "
            "int");
  ops()[2].attrs.erase("axis");
  ops()[2].inputs.emplace_back("Y", std::vector<std::string>{"x"});
  EXPECT_NE(Message().find("block 0, op 2 'softmax': "), std::string::npos);
  EXPECT_NE(Message().find("'Y'"), std::string::npos) << Message();
}

TEST_F(VerifierTest, NormalizesOps) {
  ops()[2].attrs.erase("axis");
  ops()[3].type = "unknown_here";
  const OpDesc unknown = ops()[3];
  ASSERT_TRUE(NormalizeOps(registry_, &program_).ok());
  EXPECT_EQ(ops()[2].Attr<int32_t>("axis"), -1);
  EXPECT_EQ(ops()[3].attrs, unknown.attrs);
  ops()[2].attrs["axis"] = VarRef{"a"};
  const absl::Status given = NormalizeOps(registry_, &program_);
  EXPECT_EQ(given.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(given.message(),
            "block 0, op 2 'softmax': attr 'axis' is given by a variable");
  ops()[2].attrs["axis"] = std::string("last");
  EXPECT_EQ(NormalizeOps(registry_, &program_).message(),
            "block 0, op 2 'softmax': attr 'axis' is of type string; expected "
            "int");
}

TEST_F(VerifierTest, UndeclaredVariable) {
  ops()[2].SetInput("X", {"droped"});
  EXPECT_EQ(Message(),
            "block 0, op 2 'softmax': input 'X' names variable 'droped', which "
            "is not declared; the nearest is 'dropped'");
  ops()[2].SetInput("X", {"dropped"});
  ops()[2].SetOutput("Out", {"nowhere"});
  EXPECT_EQ(Message(),
            "block 0, op 2 'softmax': output 'Out' names variable 'nowhere', "
            "which is not declared");
}

TEST_F(VerifierTest, ReadBeforeMade) {
  std::swap(ops()[0], ops()[1]);
  EXPECT_EQ(Message(),
            "block 0, op 0 'dropout': input 'X' reads 'y', which op 1 "
            "'matmul_v2' makes only later");
}

TEST_F(VerifierTest, TwoOutputsOfOneName) {
  ops()[1].SetOutput("Mask", {"dropped"});
  EXPECT_EQ(Message(),
            "block 0, op 1 'dropout': output 'Mask' writes 'dropped', which "
            "another output of the op writes too");
}

TEST_F(VerifierTest, SubBlockOutOfRange) {
  ops()[2].attrs["sub_block"] = BlockRef{3};
  EXPECT_NE(Message().find("'sub_block' is block 3"), std::string::npos)
      << Message();
}

TEST_F(VerifierTest, Feeds) {
  EXPECT_TRUE(CheckFeeds(program_, {"x", "label"}).ok());
  EXPECT_EQ(CheckFeeds(program_, {"x"}).message(),
            "block 0, op 3 'elementwise_sub': input 'Y' reads 'label', which "
            "is neither fed nor made");
  EXPECT_EQ(CheckFeeds(program_, {"x", "label", "image"}).message(),
            "feed 'image' is not a variable of the program");
}

}  // namespace test_verifier
}  // namespace pd
