// SPDX-License-Identifier: Apache-2.0
// Gradients of what paddle.jit.save wrote: programs without the outputs that
// only gradients read, with loops and branches that overwrite variables. The
// gradients are PaddlePaddle's, from dygraph (testdata/gradients).
#include <gtest/gtest.h>

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

absl::Status Check(const GoldenCase& golden) {
  PD_ASSIGN_OR_RETURN(const auto registry, MakeRegistry());
  ProgramDesc program = golden.forward;
  PD_RETURN_IF_ERROR(StripFeedFetch(&program).status());
  PD_ASSIGN_OR_RETURN(const auto gradients,
                      Differentiate(*registry, golden, &program));
  std::vector<std::string> fetches;
  for (const auto& [input, gradient] : golden.grads) {
    if (gradients.count(input) == 0)
      return NotFound("no gradient of '%s' was made", input);
    fetches.push_back(gradients.at(input));
  }
  Session session(registry.get(), 1);
  PlanOptions plan;
  plan.poison = true;
  session.set_plan_options(plan);
  PD_ASSIGN_OR_RETURN(const NamedArrays results,
                      session.Run(program, golden.feed, fetches));
  for (const auto& [input, gradient] : golden.grads) {
    const std::string difference =
        Difference(results.at(gradients.at(input)), golden.expect.at(gradient),
                   golden.rtol, golden.atol);
    if (!difference.empty()) return DataLoss("%s: %s", gradient, difference);
  }
  return absl::OkStatus();
}

TEST(SavedGradients, ArePaddlePaddles) {
  const auto cases = ReadGoldenCases(PD_TESTDATA "/gradients/saved.zip");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_FALSE(cases->empty());
  for (const GoldenCase& golden : *cases) {
    const absl::Status status = Check(golden);
    EXPECT_TRUE(status.ok()) << golden.name << ": " << status;
  }
}

// The op would look for the new gradients under the old ones' names.
TEST(SavedGradients, OfALoopWhoseGradientsAreThereAreRefused) {
  const auto cases = ReadGoldenCases(PD_TESTDATA "/ops/while.zip");
  ASSERT_TRUE(cases.ok()) << cases.status();
  const auto registry = MakeRegistry();
  ASSERT_TRUE(registry.ok());
  int tried = 0;
  for (const GoldenCase& golden : *cases) {
    if (golden.name != "power_grad") continue;
    ++tried;
    ProgramDesc program = golden.program;
    BackwardOptions options;
    options.targets = golden.targets;
    options.wrt = golden.inputs;
    const auto again = AppendBackward(**registry, options, &program);
    EXPECT_EQ(again.status().code(), absl::StatusCode::kUnimplemented);
    EXPECT_NE(again.status().message().find("'x@GRAD' already"),
              std::string::npos)
        << again.status();
  }
  EXPECT_EQ(tried, 1);
}

}  // namespace
}  // namespace pd
