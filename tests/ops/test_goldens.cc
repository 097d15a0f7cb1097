// SPDX-License-Identifier: Apache-2.0
// Every case of testdata/ops, run three times: as PaddlePaddle saved it, with
// its own gradient ops, by the reference kernels and by the fast ones, by these
// also with each pass off that changes the program; and from the forward ops
// with our append_backward, also without the outputs that only gradients read,
// which programs saved for inference lack. The answers are PaddlePaddle's.
// testdata/ops/not_yet.txt lists what does not pass yet ("zip/case", "zip/case
// fast", "zip/case backward" or "zip/case pruned"); what is listed there and
// passes is a failure too, so the list only shrinks.
//   tests_ops --gtest_filter=*elementwise_add
// PD_OP_GOLDENS names another folder of such zips.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/ops/registry.h"
#include "tests/ops/compare.h"
#include "tests/ops/golden_case.h"
#include "tests/passes/pass_choices.h"

namespace pd {
namespace test_goldens {

std::string Folder() {
  const char* other = std::getenv("PD_OP_GOLDENS");
  return other != nullptr ? other : PD_TESTDATA "/ops";
}

std::vector<std::string> Zips() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(Folder(), error))
    if (entry.path().extension() == ".zip")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::set<std::string> NotYet() {
  std::ifstream file(Folder() + "/not_yet.txt");
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') lines.insert(line);
  return lines;
}

const OpRegistry& Registry(bool fast) {
  static const std::vector<OpRegistry>* registries = [] {
    auto* made = new std::vector<OpRegistry>(2);
    for (OpRegistry& registry : *made) {
      const absl::Status status = RegisterAllOps(&registry);
      EXPECT_TRUE(status.ok()) << status;
    }
    EXPECT_TRUE(AttachAllKernels(&made->back()).ok());
    return made;
  }();
  return (*registries)[fast ? 1 : 0];
}

// Runs a program and compares every array of `want`, found under the name that
// `names` gives for it.
absl::Status RunAndCompare(const GoldenCase& golden, const ProgramDesc& program,
                           const std::map<std::string, std::string>& names,
                           bool fast, const PassOptions& passes = {}) {
  Session session(&Registry(fast), 1);
  session.set_pass_options(passes);
  PlanOptions options;
  options.poison = true;
  session.set_plan_options(options);
  if (!golden.startup.blocks.empty())
    PD_RETURN_IF_ERROR(session.RunOnce(golden.startup));
  std::vector<std::string> fetches;
  for (const auto& [want, got] : names) fetches.push_back(got);
  PD_ASSIGN_OR_RETURN(const NamedArrays results,
                      session.Run(program, golden.feed, fetches));
  std::string wrong;
  for (const auto& [want, got] : names) {
    const std::string difference = Difference(
        results.at(got), golden.expect.at(want), golden.rtol, golden.atol);
    if (!difference.empty())
      absl::StrAppend(&wrong, want, ": ", difference, "; ");
  }
  if (!wrong.empty()) return DataLoss("%s", wrong);
  return absl::OkStatus();
}

absl::Status RunAsSaved(const GoldenCase& golden, bool fast) {
  std::map<std::string, std::string> names;
  std::vector<std::string> fetches;
  for (const auto& [name, array] : golden.expect) {
    // Gradients that the program does not compute are for our backward alone.
    if (golden.program.FindVar(0, name) == nullptr) continue;
    names[name] = name;
    fetches.push_back(name);
  }
  PD_RETURN_IF_ERROR(RunAndCompare(golden, golden.program, names, fast));
  if (!fast) return absl::OkStatus();
  for (const auto& [pass, options] :
       WithOnePassOff(Registry(fast), golden.program, fetches))
    PD_RETURN_IF_ERROR(
        Annotate(RunAndCompare(golden, golden.program, names, fast, options),
                 "without " + pass));
  return absl::OkStatus();
}

// Variables of the first program that the second lacks: the cotangents.
void DeclareFeeds(const GoldenCase& golden, ProgramDesc* program) {
  for (const auto& [name, array] : golden.feed) {
    const VarDesc* var = golden.program.FindVar(0, name);
    if (var != nullptr && program->FindVar(0, name) == nullptr)
      program->global().vars.push_back(*var);
  }
}

// Takes away the outputs that may be absent and that no op reads. False: there
// are none.
bool PruneOutputs(const GoldenCase& golden, ProgramDesc* program) {
  std::set<std::string> kept;
  for (const auto& [target, cotangent] : golden.targets) kept.insert(target);
  for (const BlockDesc& block : program->blocks)
    for (const OpDesc& op : block.ops)
      for (const auto& [slot, names] : op.inputs)
        kept.insert(names.begin(), names.end());
  bool any = false;
  for (BlockDesc& block : program->blocks)
    for (OpDesc& op : block.ops) {
      const OpDef* def = Registry(false).Find(op.type);
      if (def == nullptr || def->runs_blocks()) continue;
      const auto unread = [&](const auto& output) {
        const auto& [slot, names] = output;
        const SlotDef* known = def->FindOutput(slot);
        if (known == nullptr || !known->optional || known->duplicable)
          return false;
        for (const std::string& name : names)
          if (kept.count(name) > 0) return false;
        return !names.empty();
      };
      const auto end =
          std::remove_if(op.outputs.begin(), op.outputs.end(), unread);
      any = any || end != op.outputs.end();
      op.outputs.erase(end, op.outputs.end());
    }
  return any;
}

absl::Status RunOurBackward(const GoldenCase& golden, ProgramDesc program) {
  DeclareFeeds(golden, &program);
  BackwardOptions options;
  options.targets = golden.targets;
  options.wrt = golden.inputs;
  PD_ASSIGN_OR_RETURN(const auto grads,
                      AppendBackward(Registry(false), options, &program));
  std::map<std::string, std::string> names;
  for (const auto& [input, gradient] : golden.grads) {
    const auto it = grads.find(input);
    if (it == grads.end())
      return NotFound("append_backward made no gradient for '%s'", input);
    if (golden.expect.count(gradient) > 0) names[gradient] = it->second;
  }
  return RunAndCompare(golden, program, names, false);
}

class Goldens : public ::testing::TestWithParam<std::string> {};

void Judge(const std::string& name, const absl::Status& status,
           const std::set<std::string>& not_yet) {
  if (not_yet.count(name) > 0)
    EXPECT_FALSE(status.ok()) << name << " passes: take it off not_yet.txt";
  else
    EXPECT_TRUE(status.ok()) << name << ": " << status;
}

TEST_P(Goldens, MatchPaddlePaddle) {
  const auto cases = ReadGoldenCases(Folder() + "/" + GetParam() + ".zip");
  ASSERT_TRUE(cases.ok()) << cases.status();
  EXPECT_FALSE(cases->empty());
  const std::set<std::string> not_yet = NotYet();
  for (const GoldenCase& golden : *cases) {
    const std::string name = GetParam() + "/" + golden.name;
    Judge(name, RunAsSaved(golden, false), not_yet);
    Judge(name + " fast", RunAsSaved(golden, true), not_yet);
    if (golden.targets.empty()) continue;
    ProgramDesc program = golden.forward;
    Judge(name + " backward", RunOurBackward(golden, program), not_yet);
    if (PruneOutputs(golden, &program))
      Judge(name + " pruned", RunOurBackward(golden, program), not_yet);
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Goldens);
INSTANTIATE_TEST_SUITE_P(Ops, Goldens, ::testing::ValuesIn(Zips()),
                         [](const auto& info) { return info.param; });

}  // namespace test_goldens
}  // namespace pd
