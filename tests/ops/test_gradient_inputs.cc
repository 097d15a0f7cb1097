// SPDX-License-Identifier: Apache-2.0
// Gradient ops of a file whose attributes or inputs are not their forward op's
// are refused with a reason before a kernel sees them.
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "libcore/exec/session.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_gradient_inputs {

// X [2, 3] times Y [3, 4]; the gradient that comes in has `shape`.
absl::Status RunMulGrad(int32_t x_num_col_dims, Shape shape) {
  const auto ones = [](const Shape& s) {
    return MakeArray(
        s, std::vector<float>(static_cast<size_t>(NumElements(s)), 1.0f));
  };
  const NamedArrays feeds = {
      {"x", ones({2, 3})}, {"y", ones({3, 4})}, {"dout", ones(shape)}};
  ProgramDesc program;
  program.version = 2003000;
  program.blocks.emplace_back();
  for (const char* name : {"x", "y", "dout", "dx", "dy"}) {
    VarDesc var;
    var.name = name;
    program.global().vars.push_back(var);
  }
  OpDesc op;
  op.type = "mul_grad";
  op.SetInput("X", {"x"});
  op.SetInput("Y", {"y"});
  op.SetInput("Out@GRAD", {"dout"});
  op.SetOutput("X@GRAD", {"dx"});
  op.SetOutput("Y@GRAD", {"dy"});
  op.attrs["x_num_col_dims"] = x_num_col_dims;
  op.attrs["y_num_col_dims"] = int32_t{1};
  program.global().ops = {op};
  Session session(&Registry(), 1);
  return session.Run(program, feeds, {"dx", "dy"}).status();
}

TEST(GradientInputs, AreThoseOfTheForwardOp) {
  EXPECT_TRUE(RunMulGrad(1, {2, 4}).ok());
  for (const int32_t dims : {-1, 0, 2, 1 << 30, INT32_MAX}) {
    const absl::Status status = RunMulGrad(dims, {2, 4});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << dims;
    EXPECT_TRUE(absl::StrContains(status.message(), "x_num_col_dims"))
        << status;
  }
  for (const Shape& shape : {Shape{2, 400}, Shape{1, 1}, Shape{8}}) {
    const absl::Status status = RunMulGrad(1, shape);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_TRUE(absl::StrContains(
        status.message(), "'Out@GRAD' ('dout') has shape " + ToString(shape) +
                              "; expected [2, 4]"))
        << status;
  }
}

}  // namespace test_gradient_inputs
}  // namespace pd
