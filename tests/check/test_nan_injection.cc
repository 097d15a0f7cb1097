// SPDX-License-Identifier: Apache-2.0
// One bad number put into every output of every op of the training programs
// that PaddlePaddle saved, with fast kernels and every pass: the check must
// name that op and that output, in blocks of loops and branches too, and a
// quick look must find that there is something. And none where nothing was put
// in: memory is full of NaN before it is used, so an output that an op does not
// write, or padding, would show.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "libcore/exec/nan_check.h"
#include "libcore/kernels/attach.h"
#include "libcore/tensor/tensor.h"
#include "tests/train/golden_run.h"

namespace pd {
namespace test_nan_injection {

// Where an element lies in memory.
int64_t OffsetOf(const Tensor& tensor, int64_t index) {
  if (tensor.layout() == nullptr) return index;
  const auto offsets = tensor.layout()->Offsets();
  int64_t offset = 0;
  for (size_t d = tensor.rank(); d-- > 0;) {
    offset += offsets[d][static_cast<size_t>(index % tensor.dim(d))];
    index /= tensor.dim(d);
  }
  return offset;
}

// Puts NaN or an infinity at one place; false where the type has none.
bool Spoil(std::mt19937* random, Tensor* tensor) {
  if (tensor->is_array()) {
    for (Tensor& element : tensor->elements())
      if (element.raw() != nullptr && Spoil(random, &element)) return true;
    return false;
  }
  if (tensor->raw() == nullptr || tensor->size() == 0 ||
      tensor->kind() == VarKind::kStepScopes)
    return false;
  const int64_t at = OffsetOf(
      *tensor, static_cast<int64_t>((*random)() %
                                    static_cast<uint64_t>(tensor->size())));
  const float bad[2] = {NAN, INFINITY};  // masks may hold -inf
  const float value = bad[(*random)() % 2];
  switch (tensor->dtype()) {
    case DType::kFloat16:
      tensor->data<Float16>()[at] = Float16(value);
      return true;
    case DType::kBFloat16:
      tensor->data<BFloat16>()[at] = BFloat16(value);
      return true;
    case DType::kFloat32:
      tensor->data<float>()[at] = value;
      return true;
    case DType::kFloat64:
      tensor->data<double>()[at] = static_cast<double>(value);
      return true;
    default:
      return false;
  }
}

// An op of the program, the `output`-th thing that it writes.
struct Place {
  int32_t block = 0;
  size_t index = 0;  // block 0: of the plan's step; else of the op
  std::string output;
  bool operator<(const Place& o) const {
    return std::tie(block, index, output) <
           std::tie(o.block, o.index, o.output);
  }
};

// Lists the places of a run, or spoils one.
class Injector : public StepHook {
 public:
  explicit Injector(const Plan* plan) : plan_(plan) {}
  void Before(size_t) override {}
  absl::Status After(size_t step) override {
    for (const auto& [name, tensor] : plan_->variables(step).outputs)
      Visit({0, step, name}, tensor);
    return absl::OkStatus();
  }
  absl::Status AfterInBlock(const BlockStep& step) override {
    for (const auto& [name, variable] : *step.outputs)
      Visit({step.block, step.index, name}, variable.tensor);
    return absl::OkStatus();
  }

  std::set<Place> places;
  const Place* target = nullptr;  // null: none
  bool spoiled = false;
  std::mt19937 random{1};

 private:
  void Visit(const Place& place, Tensor* tensor) {
    if (target == nullptr)
      places.insert(place);
    else if (!spoiled && !(place < *target) && !(*target < place))
      spoiled = Spoil(&random, tensor);
  }

  const Plan* plan_;
};

// Whether dynamic loss scaling looks at the place: it takes a bad gradient away
// and makes the scale smaller, so that is no error.
bool IsForLossScaling(const Plan& plan, const Place& place) {
  if (place.block != 0) return false;
  const auto op = [&](size_t i) -> OpDesc { return plan.variables(i).op; };
  size_t end = plan.steps().size();
  while (end > 0 && op(end - 1).type != "update_loss_scaling") --end;
  const OpDesc here = op(place.index);
  return place.index < end &&
         (here.type == "update_loss_scaling" ||
          here.type == "check_finite_and_unscale" ||
          (here.AttrOr<int32_t>(kOpRoleAttr, kRoleForward) & kRoleBackward) !=
              0);
}

class NanInjection : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    ASSERT_TRUE(AttachAllKernels(&registry_).ok());
  }

  void Check(const TrainCase& c, Session* session, Plan* plan) {
    Injector injector(plan);
    const auto state = Save(*session);
    ASSERT_TRUE(plan->Run({}, &injector).ok());
    int spoiled = 0;
    for (const Place& place : injector.places) {
      Restore(state, session);
      injector.target = &place;
      injector.spoiled = false;
      plan->nan_check()->set_level(NanCheck::Level::kAll);
      const absl::Status status = plan->Run({}, &injector);
      if (!injector.spoiled) continue;
      ++spoiled;
      SCOPED_TRACE(c.folder.filename().string() + " " + place.output);
      if (IsForLossScaling(*plan, place)) {
        // Too late for a look at it: whoever reads it finds it.
        if (!status.ok())
          EXPECT_GT(plan->nan_check()->found().step, place.index);
        continue;
      }
      ASSERT_TRUE(IsNanFound(status)) << status;
      const NonFiniteOutput& found = plan->nan_check()->found();
      EXPECT_EQ(found.variable, place.output);
      EXPECT_EQ(found.block, place.block);
      EXPECT_EQ(place.block == 0 ? found.step : found.index, place.index);
      EXPECT_EQ(found.nan + found.inf, 1);
      // A quick look leaves out what a later op bears witness to.
      Restore(state, session);
      injector.spoiled = false;
      plan->nan_check()->set_level(NanCheck::Level::kQuick);
      EXPECT_TRUE(IsNanFound(plan->Run({}, &injector)));
    }
    EXPECT_GE(spoiled, 2);
    Restore(state, session);
  }

  using State = std::map<std::string, Array>;
  static State Save(const Session& session) {
    State state;
    Session& s = const_cast<Session&>(session);
    for (const std::string& name : s.scope().Names())
      if (s.scope().Find(name)->tensor.has_value())
        state[name] = *s.scope().Get(name);
    return state;
  }
  static void Restore(const State& state, Session* session) {
    for (const auto& [name, value] : state)
      ASSERT_TRUE(session->scope().Set(name, value).ok()) << name;
  }

  OpRegistry registry_;
};

TEST_P(NanInjection, NamesExactlyTheOp) {
  const TrainCase c = LoadTrainCase(GetParam());
  Session session(&registry_);
  PlanOptions options;
  options.poison = true;
  options.check_nan_inf = true;
  session.set_plan_options(options);
  SetInitialState(c, &session);
  std::vector<CaseRunner> runners = RunnersOf(c);
  for (CaseRunner& runner : runners) {
    const absl::Status status = runner.Run(c, 0, &session);
    ASSERT_TRUE(status.ok()) << status;
    Check(c, &session, runner.plan.get());
  }
}

// Under sanitizers few: one of each kind of step.
std::vector<std::string> Cases() {
#ifdef PD_WITH_SANITIZER
  return {"lenet_adam", "while_rnn", "mf_recommender_sparse_sgd"};
#else
  return TrainCaseNames();
#endif
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(NanInjection);
INSTANTIATE_TEST_SUITE_P(Cases, NanInjection, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param; });

}  // namespace test_nan_injection
}  // namespace pd
