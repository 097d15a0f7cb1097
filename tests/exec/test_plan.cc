// SPDX-License-Identifier: Apache-2.0
// The plan is tested with a few small ops of its own, so that every rule of the
// builder (aliases, sharing, layouts, persistables, refusals) is met on purpose
// and not only when a network happens to need it. The arena is poisoned with
// NaN: reading a buffer that was given away shows.
#include "libcore/exec/plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

#include "libcore/exec/session.h"
#include "libcore/ops/registry.h"

namespace {
std::atomic<bool> g_counting{false};
std::atomic<int> g_allocations{0};
}  // namespace

void* operator new(size_t size) {
  if (g_counting) ++g_allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  if (g_counting) ++g_allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace pd {
namespace {

using Vec = std::vector<float>;

// Out = X + 1, in place where allowed.
absl::StatusOr<Step> BindPlusOne(BindContext* context) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  context->MayShare(x, out);
  return Step([x, out](const RunContext&) {
    for (int64_t i = 0; i < x->size(); ++i)
      out->data<float>()[i] = x->data<float>()[i] + 1;
    return absl::OkStatus();
  });
}

// Out = X + Y
absl::StatusOr<Step> BindAdd(BindContext* context) {
  Tensor *x = context->Input("X"), *y = context->Input("Y");
  Tensor* out = context->Output("Out");
  context->MayShare(x, out);
  return Step([x, y, out](const RunContext&) {
    for (int64_t i = 0; i < x->size(); ++i)
      out->data<float>()[i] = x->data<float>()[i] + y->data<float>()[i];
    return absl::OkStatus();
  });
}

absl::Status InferFlat(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  context->SetOutput("Out", {NumElements(x.shape)}, x.dtype);
  return absl::OkStatus();
}

// Out has X's bytes.
absl::StatusOr<Step> BindFlat(BindContext* context) {
  context->Alias(context->Input("X"), context->Output("Out"));
  return Step();
}

// Out = 2 X, in transposed layout: the matrix is written column by column.
absl::StatusOr<Step> BindDoubleColumns(BindContext* context) {
  Tensor* original = context->Input("X");
  if (original->rank() != 2) return absl::UnimplementedError("rank is not 2");
  const LayoutPtr columns = PermutedLayout(original->shape(), {1, 0});
  auto x = context->In(original, columns);
  if (!x.ok()) return x.status();
  auto out = context->Out(context->Output("Out"), columns);
  if (!out.ok()) return out.status();
  return Step([x = *x, out = *out](const RunContext&) {
    for (int64_t i = 0; i < x->size(); ++i)
      out->data<float>()[i] = 2 * x->data<float>()[i];
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindDouble(BindContext* context) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  return Step([x, out](const RunContext&) {
    for (int64_t i = 0; i < x->size(); ++i)
      out->data<float>()[i] = 2 * x->data<float>()[i];
    return absl::OkStatus();
  });
}

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() : session_(&registry_) {
    OpDef plus_one("plus_one");
    plus_one.Input("X")
        .Output("Out")
        .Infer(InferUnary)
        .NoGrad()
        .Reference(BindPlusOne);
    EXPECT_TRUE(registry_.Add(std::move(plus_one)).ok());
    OpDef add("add");
    add.Input("X").Input("Y").Output("Out").Infer(InferUnary).NoGrad();
    add.Reference(BindAdd);
    EXPECT_TRUE(registry_.Add(std::move(add)).ok());
    OpDef flat("flat");
    flat.Input("X").Output("Out").Infer(InferFlat).NoGrad().Reference(BindFlat);
    EXPECT_TRUE(registry_.Add(std::move(flat)).ok());
    OpDef twice("double");
    twice.Input("X")
        .Output("Out")
        .Infer(InferUnary)
        .NoGrad()
        .Reference(BindDouble);
    twice.AddImplementation(
        Implementation("columns", BindDoubleColumns).TakesLayouts());
    EXPECT_TRUE(registry_.Add(std::move(twice)).ok());
    program_.blocks.emplace_back();
    PlanOptions options;
    options.poison = true;
    session_.set_plan_options(options);
  }

  void Var(const std::string& name, bool persistable = false) {
    VarDesc var;
    var.name = name;
    var.shape = {-1};
    var.persistable = persistable;
    program_.global().vars.push_back(var);
  }
  void Op(const std::string& type, const std::vector<std::string>& in,
          const std::string& out) {
    OpDesc op;
    op.type = type;
    op.SetInput("X", {in[0]});
    if (in.size() > 1) op.SetInput("Y", {in[1]});
    op.SetOutput("Out", {out});
    if (program_.global().FindVar(out) == nullptr) Var(out);
    program_.global().ops.push_back(op);
  }
  Vec Run(const NamedArrays& feeds, const std::string& fetch) {
    auto result = session_.Run(program_, feeds, {fetch});
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    const Array& a = (*result)[fetch];
    return Vec(a.data<float>(), a.data<float>() + a.size());
  }
  std::unique_ptr<Plan> Compile(const Shape& x, const std::string& fetch) {
    auto plan =
        session_.Compile(program_, {{"x", DType::kFloat32, x}}, {fetch});
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : nullptr;
  }

  OpRegistry registry_;
  ProgramDesc program_;
  Session session_;
};

TEST_F(PlanTest, ChainSharesOneBuffer) {
  Op("plus_one", {"x"}, "a");
  Op("plus_one", {"a"}, "b");
  Op("plus_one", {"b"}, "c");
  EXPECT_EQ(Run({{"x", MakeArray<float>({3}, {1, 2, 3})}}, "c"),
            (Vec{4, 5, 6}));
  auto plan = Compile({16}, "c");
  EXPECT_EQ(plan->stats().arena_bytes, 64u);
  EXPECT_EQ(plan->stats().unplanned_bytes, 192u);
}

TEST_F(PlanTest, ValueThatIsReadLaterIsNotOverwritten) {
  Op("plus_one", {"x"}, "a");
  Op("plus_one", {"a"}, "b");
  Op("add", {"a", "b"}, "c");
  EXPECT_EQ(Run({{"x", MakeArray<float>({2}, {1, 10})}}, "c"), (Vec{5, 23}));
}

TEST_F(PlanTest, AliasKeepsItsSourceAlive) {
  Op("plus_one", {"x"}, "a");
  Op("flat", {"a"}, "f");
  Op("plus_one", {"a"}, "b");  // must not overwrite a: f reads it later
  Op("flat", {"b"}, "g");
  Op("add", {"f", "g"}, "c");
  EXPECT_EQ(Run({{"x", MakeArray<float>({2, 2}, {0, 1, 2, 3})}}, "c"),
            (Vec{3, 5, 7, 9}));
}

TEST_F(PlanTest, AliasOfAFeedFollowsTheFeed) {
  Op("flat", {"x"}, "f");
  Op("plus_one", {"f"}, "c");
  auto plan = Compile({2, 2}, "c");
  const Vec first = {1, 2, 3, 4}, second = {5, 6, 7, 8};
  plan->SetFeed(0, first.data());
  ASSERT_TRUE(plan->Run({}).ok());
  EXPECT_EQ(plan->fetch(0).data<float>()[3], 5);
  plan->SetFeed(0, second.data());
  ASSERT_TRUE(plan->Run({}).ok());
  EXPECT_EQ(plan->fetch(0).data<float>()[3], 9);
  EXPECT_EQ(first[0], 1);  // a feed is never written
}

TEST_F(PlanTest, RenamedVariableReadsItsOldValue) {
  Op("plus_one", {"x"}, "x");
  Op("plus_one", {"x"}, "x");
  EXPECT_EQ(Run({{"x", MakeArray<float>({1}, {1})}}, "x"), (Vec{3}));
}

TEST_F(PlanTest, LayoutsFlowAndReordersStandAtTheBorders) {
  Op("double", {"x"}, "a");
  Op("double", {"a"}, "b");
  Op("plus_one", {"b"}, "c");  // knows row-major only
  Op("double", {"b"}, "d");
  Op("double", {"c"}, "e");
  Op("add", {"d", "e"}, "out");
  const Vec x = {1, 2, 3, 4, 5, 6};
  Vec expected;
  for (float v : x) expected.push_back(8 * v + 2 * (4 * v + 1));
  EXPECT_EQ(Run({{"x", MakeArray<float>({2, 3}, x)}}, "out"), expected);
  auto plan = Compile({2, 3}, "out");
  int reorders = 0;
  for (const StepInfo& step : plan->steps())
    reorders += step.op_type == "reorder";
  EXPECT_EQ(reorders, 5);  // x, b to rows, c to columns, d and e to rows
}

TEST_F(PlanTest, RefusalIsRememberedWithItsReason) {
  Op("double", {"x"}, "a");
  auto plan = Compile({6}, "a");
  ASSERT_EQ(plan->steps().size(), 1u);
  EXPECT_EQ(plan->steps()[0].implementation, "reference");
  EXPECT_EQ(plan->steps()[0].refusals,
            std::vector<std::string>{"columns: rank is not 2"});
}

TEST_F(PlanTest, PersistableIsRearrangedOnceForGood) {
  Var("w", true);
  ASSERT_TRUE(session_.scope()
                  .Set("w", MakeArray<float>({2, 3}, {1, 2, 3, 4, 5, 6}))
                  .ok());
  Op("double", {"w"}, "a");
  auto plan = session_.Compile(program_, {}, {"a"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_NE(session_.scope().Find("w")->tensor.layout(), nullptr);
  EXPECT_EQ((*plan)->steps().size(), 2u);  // the op, the fetch's reorder
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ((*plan)->fetch(0).data<float>()[1], 4);
  // Reading and setting it still speaks row-major.
  EXPECT_EQ(session_.scope().Get("w")->data<float>()[1], 2);
  ASSERT_TRUE(session_.scope()
                  .Set("w", MakeArray<float>({2, 3}, {9, 8, 7, 6, 5, 4}))
                  .ok());
  ASSERT_TRUE((*plan)->Run({}).ok());
  EXPECT_EQ((*plan)->fetch(0).data<float>()[5], 8);
}

TEST_F(PlanTest, UpdatedPersistableIsCopiedAgain) {
  Var("w", true);
  ASSERT_TRUE(session_.scope().Set("w", MakeArray<float>({1, 2}, {1, 2})).ok());
  Op("plus_one", {"w"}, "a");  // uses w row-major first
  Op("flat", {"w"}, "old");    // must keep the value before the update
  Op("plus_one", {"w"}, "w");  // the update
  Op("flat", {"w"}, "new");
  Op("add", {"old", "new"}, "c");
  EXPECT_EQ(Run({}, "c"), (Vec{3, 5}));
}

TEST_F(PlanTest, UnneededOpsAreLeftOut) {
  Op("plus_one", {"x"}, "a");
  Op("plus_one", {"x"}, "b");
  EXPECT_EQ(Compile({4}, "a")->steps().size(), 1u);
}

TEST_F(PlanTest, SteadyStateAllocatesNothing) {
  const Vec x = {1, 2, 3, 4, 5, 6};
  Op("plus_one", {"x"}, "p");
  Op("flat", {"p"}, "q");
  auto plan = Compile({2, 3}, "q");
  plan->SetFeed(0, x.data());
  g_allocations = 0;
  g_counting = true;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(plan->Run({}).ok());
  g_counting = false;
  EXPECT_EQ(g_allocations, 0);
}

TEST_F(PlanTest, NanCheckNamesTheFirstBadOutput) {
  Op("plus_one", {"x"}, "a");
  Op("double", {"a"}, "b");
  PlanOptions options;
  options.check_nan_inf = true;
  session_.set_plan_options(options);
  EXPECT_EQ(Run({{"x", MakeArray<float>({2}, {1, 2})}}, "b"), (Vec{4, 6}));
  const auto result = session_.Run(
      program_, {{"x", MakeArray<float>({3}, {1, NAN, INFINITY})}}, {"b"});
  EXPECT_EQ(result.status().message(),
            "op 'plus_one' that makes 'a': 'a' holds 1 NaN and 1 Inf among "
            "float32[3]");
}

TEST_F(PlanTest, ErrorsNameTheOp) {
  Op("plus_one", {"x"}, "a");
  auto unfed = session_.Compile(program_, {}, {"a"});
  EXPECT_EQ(unfed.status().message(),
            "op 'plus_one' that makes 'a': variable 'x' is read, but nothing "
            "has written it: feed it");
  Op("plus_on", {"x"}, "b");
  auto unknown =
      session_.Run(program_, {{"x", MakeArray<float>({1}, {1})}}, {"b"});
  EXPECT_EQ(unknown.status().message(),
            "op 'plus_on' that makes 'b': operator 'plus_on' does not exist "
            "here; the nearest is 'plus_one'");
  EXPECT_FALSE(
      session_.Compile(program_, {{"x", DType::kFloat32, {-1}}}, {"a"}).ok());
}

// One number is the same with and without an axis; no other shape fits it.
TEST(Scope, TakesOneNumberInEitherShape) {
  Scope scope;
  const auto made = scope.GetOrCreate("loss", DType::kFloat32, {});
  ASSERT_TRUE(made.ok());
  ASSERT_TRUE((*made)->tensor.Allocate().ok());
  *(*made)->tensor.data<float>() = 2.5f;
  const auto again = scope.GetOrCreate("loss", DType::kFloat32, {1});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->tensor.shape(), Shape{1});
  EXPECT_EQ(*(*again)->tensor.data<float>(), 2.5f);
  ASSERT_TRUE(scope.GetOrCreate("loss", DType::kFloat32, {}).ok());
  for (const Shape& shape : {Shape{3}, Shape{0}, Shape{1, 1}})
    EXPECT_EQ(scope.GetOrCreate("loss", DType::kFloat32, shape).status().code(),
              absl::StatusCode::kInvalidArgument)
        << ToString(shape);
}

}  // namespace
}  // namespace pd
