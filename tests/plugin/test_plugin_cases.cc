// SPDX-License-Identifier: Apache-2.0
// Programs with custom operators that PaddlePaddle saved, run with operators of
// the same names of plug-ins of ours: as they were saved, with PaddlePaddle's
// own gradient ops, and with the gradients of our append_backward. The answers
// are PaddlePaddle's.
//   PD_PLUGINS=lib.so,... PD_PLUGIN_CASES=cases.zip,... test_plugin_cases
// runs other plug-ins on other cases.
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/plugin/plugins.h"
#include "tests/ops/compare.h"
#include "tests/ops/golden_case.h"

namespace pd {
namespace test_plugin_cases {

std::vector<std::string> Listed(const char* variable,
                                const std::string& otherwise) {
  const char* list = std::getenv(variable);
  return absl::StrSplit(list != nullptr ? list : otherwise, ',');
}

absl::StatusOr<std::unique_ptr<OpRegistry>> Registry() {
  for (const std::string& file : Listed(
           "PD_PLUGINS", absl::StrCat(PD_PLUGIN_FOLDER, "/librelu_ops.so,",
                                      PD_PLUGIN_FOLDER, "/libvec_ops.so,",
                                      PD_PLUGIN_FOLDER, "/libinplace_ops.so")))
    PD_RETURN_IF_ERROR(LoadPlugin(file));
  PD_ASSIGN_OR_RETURN(auto registry, MakeRegistry());
  PD_RETURN_IF_ERROR(AddPluginOps(registry.get()));
  return registry;
}

// An answer that numpy gave has shape [1] where the program's variable, as
// PaddlePaddle saved it, has [].
Array AsDeclared(Array answer, const VarDesc* var) {
  if (var != nullptr && var->shape.empty() && answer.shape == Shape{1})
    answer.shape = {};
  return answer;
}

absl::Status RunAndCompare(const OpRegistry& registry, const GoldenCase& golden,
                           const ProgramDesc& program,
                           const std::map<std::string, std::string>& names) {
  Session session(&registry, 1);
  PlanOptions options;
  options.poison = true;
  session.set_plan_options(options);
  std::vector<std::string> fetches;
  for (const auto& [want, got] : names) fetches.push_back(got);
  PD_ASSIGN_OR_RETURN(const NamedArrays results,
                      session.Run(program, golden.feed, fetches));
  for (const auto& [want, got] : names) {
    const std::string difference = Difference(
        results.at(got),
        AsDeclared(golden.expect.at(want), golden.program.FindVar(0, want)),
        golden.rtol, golden.atol);
    if (!difference.empty()) return DataLoss("%s: %s", want, difference);
  }
  return absl::OkStatus();
}

absl::Status RunAsSaved(const OpRegistry& registry, const GoldenCase& golden) {
  std::map<std::string, std::string> names;
  for (const auto& [name, array] : golden.expect) names[name] = name;
  return RunAndCompare(registry, golden, golden.program, names);
}

absl::Status RunOurBackward(const OpRegistry& registry,
                            const GoldenCase& golden) {
  ProgramDesc program = golden.forward;
  for (const auto& [name, array] : golden.feed) {
    const VarDesc* var = golden.program.FindVar(0, name);
    if (var != nullptr && program.FindVar(0, name) == nullptr)
      program.global().vars.push_back(*var);
  }
  BackwardOptions options;
  options.targets = golden.targets;
  options.wrt = golden.inputs;
  PD_ASSIGN_OR_RETURN(const auto gradients,
                      AppendBackward(registry, options, &program));
  std::map<std::string, std::string> names;
  for (const auto& [input, gradient] : golden.grads) {
    const auto made = gradients.find(input);
    if (made == gradients.end())
      return NotFound("append_backward made no gradient for '%s'", input);
    if (golden.expect.count(gradient) > 0) names[gradient] = made->second;
  }
  return RunAndCompare(registry, golden, program, names);
}

TEST(PluginCases, MatchPaddlePaddle) {
  const auto registry = Registry();
  ASSERT_TRUE(registry.ok()) << registry.status();
  for (const std::string& zip :
       Listed("PD_PLUGIN_CASES", PD_TESTDATA "/plugin/relu.zip," PD_TESTDATA
                                             "/plugin/concat.zip," PD_TESTDATA
                                             "/plugin/inplace.zip")) {
    const auto cases = ReadGoldenCases(zip);
    ASSERT_TRUE(cases.ok()) << cases.status();
    EXPECT_FALSE(cases->empty());
    for (const GoldenCase& golden : *cases) {
      const absl::Status saved = RunAsSaved(**registry, golden);
      EXPECT_TRUE(saved.ok()) << zip << "/" << golden.name << ": " << saved;
      if (golden.targets.empty()) continue;
      const absl::Status ours = RunOurBackward(**registry, golden);
      EXPECT_TRUE(ours.ok())
          << zip << "/" << golden.name << " backward: " << ours;
    }
  }
}

}  // namespace test_plugin_cases
}  // namespace pd
