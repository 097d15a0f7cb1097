// SPDX-License-Identifier: Apache-2.0
// Gradients of what paddle.jit.save wrote: programs without the outputs that
// only gradients read, with loops and branches that overwrite variables. The
// gradients are PaddlePaddle's, from dygraph (testdata/gradients).
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/program/prune.h"
#include "tests/ops/compare.h"
#include "tests/ops/golden_case.h"

namespace pd {
namespace {

// The program with the gradients asked for: their names by variable.
absl::StatusOr<std::map<std::string, std::string>> Differentiate(
    const OpRegistry& registry, const GoldenCase& golden,
    ProgramDesc* program) {
  for (const auto& [target, cotangent] : golden.targets) {
    if (program->global().FindVar(cotangent) != nullptr) continue;
    VarDesc var;
    var.name = cotangent;
    var.dtype = golden.feed.at(cotangent).dtype;
    var.shape = golden.feed.at(cotangent).shape;
    var.stop_gradient = true;
    program->global().vars.push_back(std::move(var));
  }
  BackwardOptions options;
  options.targets = golden.targets;
  options.wrt = golden.inputs;
  return AppendBackward(registry, options, program);
}

// The gradients that were made `times` times in a program, by names that it had
// no variable of, are all as the case says.
absl::Status Check(const GoldenCase& golden, const ProgramDesc& forward,
                   int times) {
  PD_ASSIGN_OR_RETURN(const auto registry, MakeRegistry());
  ProgramDesc program = forward;
  PD_RETURN_IF_ERROR(StripFeedFetch(&program).status());
  std::vector<std::string> fetches, variables;
  for (int i = 0; i < times; ++i) {
    PD_ASSIGN_OR_RETURN(const auto gradients,
                        Differentiate(*registry, golden, &program));
    for (const auto& [input, gradient] : golden.grads) {
      if (gradients.count(input) == 0)
        return NotFound("no gradient of '%s' was made", input);
      variables.push_back(input);
      fetches.push_back(gradients.at(input));
    }
  }
  if (std::set<std::string>(fetches.begin(), fetches.end()).size() !=
      fetches.size())
    return DataLoss("two gradients have one name");
  Session session(registry.get(), 1);
  PlanOptions plan;
  plan.poison = true;
  session.set_plan_options(plan);
  PD_ASSIGN_OR_RETURN(const NamedArrays results,
                      session.Run(program, golden.feed, fetches));
  for (size_t i = 0; i < fetches.size(); ++i) {
    const std::string& expected = golden.grads.at(variables[i]);
    const std::string difference =
        Difference(results.at(fetches[i]), golden.expect.at(expected),
                   golden.rtol, golden.atol);
    if (!difference.empty()) return DataLoss("%s: %s", fetches[i], difference);
  }
  return absl::OkStatus();
}

TEST(SavedGradients, ArePaddlePaddles) {
  const auto cases = ReadGoldenCases(PD_TESTDATA "/gradients/saved.zip");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_FALSE(cases->empty());
  for (const GoldenCase& golden : *cases) {
    const absl::Status status = Check(golden, golden.forward, 1);
    EXPECT_TRUE(status.ok()) << golden.name << ": " << status;
  }
}

// Both gradients of a loop go back through the variables that it kept, and
// have names of their own.
TEST(SavedGradients, AreTheSameASecondTime) {
  const auto cases = ReadGoldenCases(PD_TESTDATA "/gradients/saved.zip");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_FALSE(cases->empty());
  for (const GoldenCase& golden : *cases) {
    const absl::Status status = Check(golden, golden.forward, 2);
    EXPECT_TRUE(status.ok()) << golden.name << ": " << status;
  }
}

// The program has PaddlePaddle's own gradients, whose loops take counters back.
TEST(SavedGradients, AreMadeBesidePaddlePaddles) {
  const auto cases = ReadGoldenCases(PD_TESTDATA "/ops/while.zip");
  ASSERT_TRUE(cases.ok()) << cases.status();
  int tried = 0;
  for (const GoldenCase& golden : *cases) {
    if (golden.grads.empty()) continue;
    ++tried;
    const absl::Status status = Check(golden, golden.program, 1);
    EXPECT_TRUE(status.ok()) << golden.name << ": " << status;
  }
  EXPECT_GT(tried, 1);
}

// Gradient makers read attributes that the program leaves to the schema.
TEST(SavedGradients, FollowDefaultsOfTheSchema) {
  const auto registry = MakeRegistry();
  ASSERT_TRUE(registry.ok()) << registry.status();
  ProgramDesc program;
  program.version = 2003000;
  program.blocks.emplace_back();
  for (const char* name : {"x", "scaled", "joined", "out"}) {
    VarDesc var;
    var.name = name;
    var.shape = {2, 3};
    program.global().vars.push_back(std::move(var));
  }
  program.global().vars[2].shape = {2, 2, 3};
  const auto add = [&](const char* type, SlotList inputs, SlotList outputs) {
    OpDesc op;
    op.type = type;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    program.global().ops.push_back(std::move(op));
  };
  add("scale", {{"X", {"x"}}}, {{"Out", {"scaled"}}});
  add("stack", {{"X", {"x", "scaled"}}}, {{"Y", {"joined"}}});
  add("mean", {{"X", {"joined"}}}, {{"Out", {"out"}}});
  BackwardOptions options;
  options.targets = {{"out", ""}};
  options.wrt = {"x"};
  const auto gradients = AppendBackward(**registry, options, &program);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  Session session(registry->get(), 1);
  const auto results = session.Run(
      program, {{"x", MakeArray<float>({2, 3}, {1, 2, 3, 4, 5, 6})}},
      {gradients->at("x")});
  ASSERT_TRUE(results.ok()) << results.status();
  // Each element is twice among twelve.
  for (int i = 0; i < 6; ++i)
    EXPECT_FLOAT_EQ(results->begin()->second.data<float>()[i], 1.0f / 6);
}

}  // namespace
}  // namespace pd
