// SPDX-License-Identifier: Apache-2.0
// A late op is bound once for each set of shapes, LoD and, where a shape
// follows from them, elements of its inputs; whatever it was bound for, it
// computes with the variables of this run.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/exec/late_op.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace test_late_op {

int binds = 0;

// Out = 2 X, of X's LoD. It takes float32 alone.
absl::StatusOr<Step> BindDouble(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (x->dtype() != DType::kFloat32) return Unimplemented("it takes float32");
  ++binds;
  Tensor* scratch = context->Scratch(x->bytes());
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < x->size(); ++i)
      scratch->data<float>()[i] = x->data<float>()[i];
    for (int64_t i = 0; i < x->size(); ++i)
      out->data<float>()[i] = 2 * scratch->data<float>()[i];
    return absl::OkStatus();
  });
}

// Out has Count elements, all 7. Where Count is not known while a program is
// built, the attribute tells the number, as many a program has it.
absl::Status InferFill(InferContext* context) {
  const Tensor* count = context->Input("Count").value;
  const int64_t n = count != nullptr ? count->data<int64_t>()[0]
                                     : context->Attr<int64_t>("count");
  context->SetOutput("Out", {n}, DType::kFloat32);
  return absl::OkStatus();
}
absl::StatusOr<Step> BindFill(BindContext* context) {
  Tensor* out = context->Output("Out");
  ++binds;
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < out->size(); ++i) out->data<float>()[i] = 7;
    return absl::OkStatus();
  });
}

class LateOpTest : public ::testing::Test {
 protected:
  void SetUp() override {
    registry_ = std::make_unique<OpRegistry>();
    ASSERT_TRUE(RegisterAllOps(registry_.get()).ok());
    OpDef twice("test_double");
    twice.Input("X").Output("Out").Infer(InferUnary).NoGrad();
    twice.Reference(BindDouble);
    ASSERT_TRUE(registry_->Add(std::move(twice)).ok());
    OpDef fill("test_fill");
    fill.Input("Count").Output("Out").Attr("count", int64_t{3});
    fill.Infer(InferFill).NoGrad().Reference(BindFill);
    ASSERT_TRUE(registry_->Add(std::move(fill)).ok());
    binds = 0;
  }

  LateOp Make(OpDesc op) {
    auto late = LateOp::Make(*registry_, std::move(op), 0);
    EXPECT_TRUE(late.ok()) << late.status();
    return *std::move(late);
  }
  LateOp Unary(const std::string& type, const std::string& in = "x",
               const std::string& out = "out") {
    OpDesc op;
    op.type = type;
    op.SetInput(type == "test_fill" ? "Count" : "X", {in});
    op.SetOutput("Out", {out});
    return Make(std::move(op));
  }

  // A variable at an address of its own, as each run of a block makes them.
  template <typename T>
  Tensor* New(DType dtype, Shape shape, const std::vector<T>& values) {
    Tensor& tensor = tensors_.emplace_back(dtype, std::move(shape));
    EXPECT_TRUE(tensor.Allocate().ok());
    std::copy(values.begin(), values.end(), tensor.data<T>());
    return &tensor;
  }
  Tensor* Floats(const std::vector<float>& values) {
    return New(DType::kFloat32, {static_cast<int64_t>(values.size())}, values);
  }
  absl::Status Run(const LateOp& op, Frame::Variable in, Frame::Variable out) {
    LateOp::Variables inputs, outputs;
    inputs.Add(op.inputs()[0], in);
    outputs.Add(op.outputs()[0], out);
    return op.Run({}, inputs, outputs, nullptr);
  }
  static std::vector<float> ValuesOf(const Tensor& tensor) {
    return {tensor.data<float>(), tensor.data<float>() + tensor.size()};
  }

  std::unique_ptr<OpRegistry> registry_;
  std::deque<Tensor> tensors_;
};

TEST_F(LateOpTest, IsBoundOnceForEachShapeAndComputesWithTheVariablesOfTheRun) {
  const LateOp op = Unary("test_double");
  for (int run = 0; run < 3; ++run) {
    for (const std::vector<float>& values :
         {std::vector<float>{1.f + run, 2}, std::vector<float>{3, 4, 5.f + run},
          std::vector<float>{}}) {
      Tensor out;
      ASSERT_TRUE(Run(op, {Floats(values)}, {&out}).ok());
      ASSERT_EQ(out.shape(), Shape{static_cast<int64_t>(values.size())});
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(out.data<float>()[i], 2 * values[i]);
    }
  }
  EXPECT_EQ(binds, 3);
  ASSERT_NE(op.choice(), nullptr);
  EXPECT_EQ(op.choice()->implementation, "reference");
}

TEST_F(LateOpTest, MoreShapesThanAreKeptAreRight) {
  const LateOp op = Unary("test_double");
  for (int run = 0; run < 2; ++run)
    for (size_t n = 1; n <= 200; ++n) {
      Tensor out;
      ASSERT_TRUE(
          Run(op, {Floats(std::vector<float>(n, float(n)))}, {&out}).ok());
      EXPECT_EQ(ValuesOf(out), std::vector<float>(n, 2 * float(n)));
    }
}

TEST_F(LateOpTest, LoDIsTheOneOfTheRun) {
  const LateOp op = Unary("test_double");
  for (const LoD& lod :
       {LoD{{0, 1, 3}}, LoD{{0, 2, 3}}, LoD{{0, 1, 3}}, LoD{}}) {
    Tensor* x = Floats({1, 2, 3});
    x->set_lod(lod);
    Tensor out;
    ASSERT_TRUE(Run(op, {x}, {&out}).ok());
    EXPECT_EQ(out.lod(), lod);
  }
  EXPECT_EQ(binds, 3);
}

TEST_F(LateOpTest, AVariableIsReplacedByItsNextValue) {
  const LateOp op = Unary("test_double", "x", "x");
  Tensor* x = Floats({1, -2});
  const Tensor before = *x;  // shares the bytes, which stay as they are
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(Run(op, {x}, {x}).ok());
  EXPECT_EQ(ValuesOf(*x), (std::vector<float>{8, -16}));
  EXPECT_EQ(ValuesOf(before), (std::vector<float>{1, -2}));
  // A fixed variable keeps its bytes, and what shares them sees the change.
  const void* const bytes = x->raw();
  ASSERT_TRUE(Run(op, {x, true}, {x, true}).ok());
  EXPECT_EQ(x->raw(), bytes);
  EXPECT_EQ(ValuesOf(*x), (std::vector<float>{16, -32}));
  // It cannot become another one.
  Tensor* other = Floats({1, 2, 3});
  const absl::Status status = Run(op, {other, true}, {x, true});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

TEST_F(LateOpTest, AnElementThatAShapeFollowsFromBelongsToTheBinding) {
  const LateOp op = Unary("test_fill");
  // The first count is the attribute's, so that the shape alone would seem to
  // follow from nothing.
  for (const int64_t n : {3, 5, 3, 0, 5}) {
    Tensor out;
    ASSERT_TRUE(Run(op, {New<int64_t>(DType::kInt64, {1}, {n})}, {&out}).ok());
    EXPECT_EQ(ValuesOf(out), std::vector<float>(static_cast<size_t>(n), 7));
  }
  EXPECT_EQ(binds, 3);
}

TEST_F(LateOpTest, HalvesAreUpcastInEveryRun) {
  const LateOp op = Unary("test_double");
  for (const float value : {0.5f, 3.f, -1.25f}) {
    Tensor out;
    ASSERT_TRUE(Run(op,
                    {New<Float16>(DType::kFloat16, {2},
                                  {Float16(value), Float16(1.f)})},
                    {&out})
                    .ok());
    ASSERT_EQ(out.dtype(), DType::kFloat16);
    EXPECT_EQ(static_cast<float>(out.data<Float16>()[0]), 2 * value);
    EXPECT_EQ(static_cast<float>(out.data<Float16>()[1]), 2.f);
  }
  EXPECT_EQ(binds, 1);
  EXPECT_EQ(op.choice()->implementation, "reference in float32");
  EXPECT_EQ(op.choice()->refusals,
            std::vector<std::string>{"reference: it takes float32"});
}

TEST_F(LateOpTest, ATraceTellsTheImplementationAndTheRefusals) {
  const LateOp op = Unary("test_double");
  Tensor out;
  ASSERT_TRUE(
      Run(op, {New<Float16>(DType::kFloat16, {1}, {Float16(1.f)})}, {&out})
          .ok());
  const SiteId site = op.Site();
  EXPECT_EQ(op.Site(), site);
  Recorder::Get().Start();
  { RecordEvent event(site); }
  Recorder::Get().Stop();
  const ProfileTrace trace = Recorder::Get().Collect();
  ASSERT_EQ(trace.sites.size(), 1u);
  const TraceSite& told = trace.sites[0];
  EXPECT_EQ(told.type, EventType::kOperatorInner);
  EXPECT_EQ(told.name, "test_double");
  EXPECT_EQ(told.output, "out");
  EXPECT_EQ(told.implementation, "reference in float32");
  EXPECT_EQ(told.refusals,
            std::vector<std::string>{"reference: it takes float32"});
  // Another choice is another site.
  ASSERT_TRUE(Run(op, {Floats({1})}, {&out}).ok());
  EXPECT_NE(op.Site(), site);
}

TEST_F(LateOpTest, AnInputWithoutAValueIsAnErrorInEveryRun) {
  const LateOp op = Unary("test_double");
  Tensor out;
  ASSERT_TRUE(Run(op, {Floats({1, 2})}, {&out}).ok());
  Tensor unwritten(DType::kFloat32, {2});
  EXPECT_EQ(Run(op, {&unwritten}, {&out}).code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace test_late_op
}  // namespace pd
