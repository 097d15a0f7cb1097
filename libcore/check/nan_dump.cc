// SPDX-License-Identifier: Apache-2.0
#include "libcore/check/nan_dump.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/lod_json.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

// The op alone. What it reads is fed, parameters too; what it writes is
// fetched, where that is a plain tensor.
absl::StatusOr<ProgramDesc> ProgramOf(const NanFinding& finding) {
  ProgramDesc program;
  program.version = finding.version;
  program.blocks.emplace_back();
  BlockDesc& block = program.global();
  FeedFetch names;
  std::set<std::string> declared;
  const auto declare = [&](const std::string& name, const Array* array) {
    if (name == kEmptyVar || !declared.insert(name).second) return;
    VarDesc var;
    for (const VarDesc& known : finding.variables)
      if (known.name == name) var = known;
    var.name = name;
    var.persistable = var.is_parameter = false;
    if (array != nullptr) {
      var.kind = VarKind::kLodTensor;
      var.raw_type.clear();
      var.dtype = array->dtype;
      var.shape = array->shape;
      var.lod_level = static_cast<int32_t>(array->lod.size());
    }
    block.vars.push_back(std::move(var));
  };
  const auto find = [](const NamedArrays& arrays, const std::string& name) {
    const auto it = arrays.find(name);
    return it == arrays.end() ? nullptr : &it->second;
  };
  for (const auto& [slot, list] : finding.op.inputs)
    for (const std::string& name : list)
      declare(name, find(finding.input_values, name));
  for (const auto& [slot, list] : finding.op.outputs)
    for (const std::string& name : list)
      declare(name, find(finding.output_values, name));
  for (const auto& [name, array] : finding.input_values)
    names.feeds.push_back(name);
  for (const auto& [name, array] : finding.output_values)
    names.fetches.push_back(name);
  block.ops.push_back(finding.op);
  PD_RETURN_IF_ERROR(AddFeedFetch(names, &program));
  return program;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> DumpFinding(
    const NanFinding& finding, const std::string& folder) {
  if (!finding.not_kept.empty())
    return Unimplemented(
        "op '%s' reads '%s', which is no plain tensor: an npz file cannot hold "
        "it",
        finding.op.type, absl::StrJoin(finding.not_kept, "', '"));
  if (finding.output_values.empty())
    return FailedPrecondition(
        "the inputs of op '%s' are gone: it did not make a bad number when the "
        "step was repeated",
        finding.op.type);
  PD_ASSIGN_OR_RETURN(const ProgramDesc program, ProgramOf(finding));
  PD_RETURN_IF_ERROR(MakeDirectories(folder));
  std::vector<std::string> paths;
  const auto path = [&](const char* name) {
    paths.push_back(absl::StrCat(folder, "/", name));
    return paths.back();
  };
  PD_RETURN_IF_ERROR(WriteProgram(path("op.pdmodel"), program));
  PD_RETURN_IF_ERROR(WriteNpz(path("inputs.npz"), finding.input_values));
  LoDs lods;
  for (const auto& [name, array] : finding.input_values)
    if (!array.lod.empty()) lods[name] = array.lod;
  if (!lods.empty())
    PD_RETURN_IF_ERROR(WriteFile(path("inputs.lod.json"), LoDText(lods)));
  PD_RETURN_IF_ERROR(WriteNpz(path("outputs.npz"), finding.output_values));
  return paths;
}

}  // namespace pd
