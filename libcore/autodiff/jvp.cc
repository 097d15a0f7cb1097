// SPDX-License-Identifier: Apache-2.0
#include "libcore/autodiff/jvp.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace {

// Zeros of the output's shape, to differentiate by: their value never counts.
absl::StatusOr<std::string> AppendCotangent(const OpRegistry& registry,
                                            const std::string& output,
                                            ProgramDesc* program) {
  if (program->global().FindVar(output) == nullptr)
    return NotFound("output '%s' does not exist", output);
  std::string name = absl::StrCat(output, "@COTANGENT");
  while (program->global().FindVar(name) != nullptr)
    absl::StrAppend(&name, "@");
  OpDesc zeros;
  zeros.type = "fill_any_like";
  zeros.SetInput("X", {output});
  zeros.SetOutput("Out", {name});
  zeros.attrs["value"] = 0.0f;
  zeros.attrs["dtype"] = static_cast<int32_t>(-1);
  BlockBuilder builder(&registry, program);
  PD_RETURN_IF_ERROR(builder.Append(std::move(zeros)));
  return name;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> AppendJvp(
    const OpRegistry& registry, const JvpOptions& options,
    ProgramDesc* program) {
  BackwardOptions once, twice;
  once.parameters = twice.parameters = false;
  for (const auto& [variable, tangent] : options.tangents)
    once.wrt.push_back(variable);
  for (const std::string& output : options.outputs) {
    PD_ASSIGN_OR_RETURN(once.targets[output],
                        AppendCotangent(registry, output, program));
    twice.wrt.push_back(once.targets[output]);
  }
  PD_ASSIGN_OR_RETURN(const auto gradients,
                      AppendBackward(registry, once, program));
  for (const auto& [variable, gradient] : gradients)
    twice.targets[gradient] = options.tangents.at(variable);
  PD_ASSIGN_OR_RETURN(const auto products,
                      AppendBackward(registry, twice, program));
  std::map<std::string, std::string> made;
  for (const auto& [output, cotangent] : once.targets) {
    const auto product = products.find(cotangent);
    made[output] = product == products.end() ? cotangent : product->second;
  }
  return made;
}

}  // namespace pd
