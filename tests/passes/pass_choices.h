// SPDX-License-Identifier: Apache-2.0
// Which passes have to be switched off, one at a time, for a program to run
// otherwise than with all of them.
#ifndef PD_TESTS_PASSES_PASS_CHOICES_H_
#define PD_TESTS_PASSES_PASS_CHOICES_H_

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "libcore/passes/pipeline.h"
#include "libcore/program/text_dump.h"

namespace pd {

/// The program as it is compiled, as text.
inline std::string Rewritten(const OpRegistry& registry, ProgramDesc program,
                             const std::vector<std::string>& fetches,
                             const PassOptions& options) {
  PassContext context;
  context.registry = &registry;
  context.keep.insert(fetches.begin(), fetches.end());
  const absl::Status status = RunPasses(context, options, &program);
  EXPECT_TRUE(status.ok()) << status;
  return DumpProgram(program);
}

/// Options by the name of the one pass that is off in them. Passes that leave
/// the program as it is are left out: there would be nothing new to run.
inline std::map<std::string, PassOptions> WithOnePassOff(
    const OpRegistry& registry, const ProgramDesc& program,
    const std::vector<std::string>& fetches) {
  const std::string all = Rewritten(registry, program, fetches, {});
  std::map<std::string, PassOptions> choices;
  for (const Pass& pass : AllPasses()) {
    PassOptions options;
    options.disabled.insert(pass.name);
    if (Rewritten(registry, program, fetches, options) != all)
      choices[pass.name] = options;
  }
  return choices;
}

}  // namespace pd

#endif  // PD_TESTS_PASSES_PASS_CHOICES_H_
