// SPDX-License-Identifier: Apache-2.0
// Late ops that the tests of the core alone do not have: the elements of
// reshape2's input 'Shape' belong to the binding, for the shape of the output
// follows from them; a plan computes the shape of integers that it does not
// know yet.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "libcore/exec/late_op.h"
#include "libcore/exec/session.h"
#include "libcore/ir/array.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace test_late_reshape {

template <typename T>
Tensor MakeTensor(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(shape));
  EXPECT_TRUE(tensor.Allocate().ok());
  std::copy(values.begin(), values.end(), tensor.data<T>());
  return tensor;
}

TEST(LateReshapeTest, FollowsTheElementsOfItsInput) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  OpDesc desc;
  desc.type = "reshape2";
  desc.SetInput("X", {"x"});
  desc.SetInput("Shape", {"shape"});
  desc.SetOutput("Out", {"out"});
  desc.SetOutput("XShape", {"xshape"});
  desc.attrs["shape"] = std::vector<int32_t>{2, 3};
  const auto op = LateOp::Make(registry, std::move(desc), 0);
  ASSERT_TRUE(op.ok()) << op.status();
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  for (const Shape& shape :
       {Shape{2, 3}, Shape{3, 2}, Shape{6, 1}, Shape{2, 3}}) {
    Tensor x = MakeTensor<float>(DType::kFloat32, {6}, values);
    Tensor extents = MakeTensor<int64_t>(DType::kInt64, {2}, shape);
    Tensor out, xshape;
    LateOp::Variables inputs, outputs;
    for (const std::string& name : op->inputs())
      inputs.Add(name, {name == "x" ? &x : &extents});
    for (const std::string& name : op->outputs())
      outputs.Add(name, {name == "out" ? &out : &xshape});
    const absl::Status status = op->Run({}, inputs, outputs, nullptr);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(out.shape(), shape);
    EXPECT_EQ(std::vector<float>(out.data<float>(), out.data<float>() + 6),
              values);
  }
}

// No element of the input is there when the plan is made.
TEST(LateReshapeTest, TheShapeOfIntegersIsKnownBeforeTheyAre) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  ProgramDesc program;
  program.blocks.emplace_back();
  VarDesc ids;
  ids.name = "ids";
  ids.dtype = DType::kInt64;
  ids.shape = {-1, -1};
  program.blocks[0].vars.push_back(ids);
  VarDesc extents;
  extents.name = "extents";
  extents.dtype = DType::kInt32;
  program.blocks[0].vars.push_back(extents);
  OpDesc op;
  op.type = "shape";
  op.SetInput("Input", {"ids"});
  op.SetOutput("Out", {"extents"});
  program.blocks[0].ops.push_back(op);
  Session session(&registry);
  const auto answers = session.Run(
      program,
      {{"ids", MakeArray<int64_t>({2, 28}, std::vector<int64_t>(56, 1))}},
      {"extents"});
  ASSERT_TRUE(answers.ok()) << answers.status();
  const Array& shape = answers->at("extents");
  EXPECT_EQ(std::vector<int32_t>(shape.data<int32_t>(),
                                 shape.data<int32_t>() + shape.size()),
            (std::vector<int32_t>{2, 28}));
}

}  // namespace test_late_reshape
}  // namespace pd
