// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/checkpoint.h"
#include "libcore/model/inspect_internal.h"
#include "libcore/model/model_files.h"
#include "libcore/model/tree.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

// The version in a program of ours that was not read from a file.
constexpr int64_t kOurVersion = 2003000;

std::string VersionText(int64_t version) {
  return absl::StrCat(version / 1000000, ".", version / 1000 % 1000, ".",
                      version % 1000);
}

template <typename Body>
void ForEachOp(const ProgramDesc& program, const Body& body) {
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops) body(op);
}

VariableInfo VariableOf(const ProgramDesc& program, const std::string& name) {
  VariableInfo info;
  info.name = name;
  if (const VarDesc* var = program.FindVar(0, name); var != nullptr) {
    info.shape = var->shape;
    info.dtype = var->dtype;
  }
  return info;
}

// The inputs of a program without feed ops: variables that ops of block 0 read
// and nothing makes.
std::vector<std::string> FreeVariables(const ProgramDesc& program) {
  std::set<std::string> made;
  ForEachOp(program, [&made](const OpDesc& op) {
    for (const auto& slot : op.outputs)
      made.insert(slot.second.begin(), slot.second.end());
  });
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const OpDesc& op : program.global().ops) {
    for (const auto& slot : op.inputs) {
      for (const std::string& name : slot.second) {
        const VarDesc* var = program.global().FindVar(name);
        if (var != nullptr && !var->persistable && made.count(name) == 0 &&
            seen.insert(name).second)
          names.push_back(name);
      }
    }
  }
  return names;
}

std::string ContentOf(const ProgramDesc& program, const FeedFetch& names) {
  bool trains = false;
  ForEachOp(program, [&trains](const OpDesc& op) {
    const auto role = op.AttrOr<int32_t>(kOpRoleAttr, kRoleForward);
    trains |= (role & (kRoleBackward | kRoleOptimize)) != 0;
  });
  if (trains) return "training program";
  return names.fetches.empty() ? "program" : "inference model";
}

TensorInfo Declared(const VarDesc& var) {
  TensorInfo info;
  info.name = var.name;
  info.shape = var.shape;
  info.dtype = var.dtype;
  const auto bytes = CheckedBytes(var.shape, SizeOf(var.dtype));
  if (bytes.ok()) info.bytes = *bytes;
  return info;
}

void AddTensors(const ProgramDesc& program, const NamedArrays& values,
                Inspection* out) {
  std::map<std::string, TensorInfo> tensors;
  for (const auto& [name, array] : values)
    tensors.emplace(name, InfoOf(name, array, *out));
  size_t missing = 0;
  for (const BlockDesc& block : program.blocks)
    for (const VarDesc& var : block.vars)
      if (var.persistable && var.kind == VarKind::kLodTensor)
        missing += tensors.emplace(var.name, Declared(var)).second;
  for (auto& [name, info] : tensors) out->tensors.push_back(std::move(info));
  if (missing > 0)
    out->notes.push_back(absl::StrCat(
        "no values were found for ", missing, " of ", out->tensors.size(),
        " tensors; their shapes are as declared"));
}

void AddState(const TrainState& state, Inspection* out) {
  out->facts.push_back({"step", state.step});
  out->facts.push_back({"epoch", state.epoch});
  out->facts.push_back({"done", state.done});
  if (state.best_metric.empty() || state.best_step < 0) return;
  out->facts.push_back({"best_metric", state.best_metric});
  out->facts.push_back({"best_value", state.best_value});
  out->facts.push_back({"best_step", state.best_step});
}

// A variable that an op of the main block reads and nobody declares is damage;
// sub-blocks of gradients see more than their parents' variables.
absl::Status CheckInputs(const ProgramDesc& program) {
  std::set<absl::string_view> declared = {kEmptyVar};
  for (const VarDesc& var : program.global().vars) declared.insert(var.name);
  for (const OpDesc& op : program.global().ops)
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        if (declared.count(name) == 0)
          return InvalidArgument(
              "op '%s': input '%s' names variable '%s', which is not declared",
              op.type, slot, name);
  return absl::OkStatus();
}

absl::Status FirstUnknownOp(const OpRegistry& registry,
                            const ProgramDesc& program) {
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops)
      if (op.type != "feed" && op.type != "fetch" &&
          registry.Find(op.type) == nullptr)
        return Unimplemented("block %d: operator '%s' does not exist here",
                             block.idx, op.type);
  return absl::OkStatus();
}

}  // namespace

std::string ProducerOf(const ProgramDesc& program) {
  if (program.version <= 0) return "unknown";
  bool any = false, marked = false;
  ForEachOp(program, [&](const OpDesc& op) {
    any = true;
    // PaddlePaddle 2.3 gives these to every op, and we to none.
    marked |= op.FindAttr("op_device") != nullptr ||
              op.FindAttr("op_callstack") != nullptr;
  });
  if (program.version == kOurVersion && any && !marked) return "pdkit";
  return absl::StrCat("PaddlePaddle ", VersionText(program.version));
}

void AddClasses(const FeedFetch& names, Inspection* out) {
  constexpr size_t kMostShown = 20;
  for (const std::string& fetch : names.fetches) {
    const auto found = names.classes.find(fetch);
    if (found == names.classes.end() || found->second.empty()) continue;
    std::vector<std::string> classes = found->second;
    out->facts.push_back({"class_count", static_cast<int64_t>(classes.size())});
    if (classes.size() > kMostShown) {
      classes.resize(kMostShown);
      classes.emplace_back("...");
    }
    out->facts.push_back({"classes", absl::StrJoin(classes, ", ")});
    return;
  }
}

void AddCheckpoint(const Content& content, Inspection* out) {
  const RunCheckpoint& chosen = *content.checkpoint;
  if (chosen.folder != out->path)
    out->facts.push_back({"checkpoint", chosen.folder});
  if (chosen.newest)
    out->facts.push_back(
        {"checkpoints",
         static_cast<int64_t>(ListCheckpoints(chosen.run).size())});
  AddState(content.state, out);
}

absl::Status InspectProgram(const OpRegistry& registry, Content content,
                            Inspection* out) {
  ProgramDesc program = *std::move(content.program);
  // A training program of ours runs here, and is whole.
  if (!content.checkpoint.has_value()) {
    PD_RETURN_IF_ERROR(CheckInputs(program));
    out->cannot_run = OfFile(content.file, FirstUnknownOp(registry, program));
  }
  ModelInfo model;
  ProgramDesc stripped = program;
  PD_ASSIGN_OR_RETURN(const FeedFetch names, StripFeedFetch(&stripped));
  for (const std::string& name :
       names.feeds.empty() ? FreeVariables(stripped) : names.feeds)
    model.inputs.push_back(VariableOf(program, name));
  for (const std::string& name : names.fetches)
    model.outputs.push_back(VariableOf(program, name));
  ForEachOp(program, [&model](const OpDesc& op) { ++model.ops[op.type]; });
  model.flops = CountFlops(registry, std::move(stripped));
  out->content = ContentOf(program, names);
  out->producer =
      content.checkpoint.has_value() ? "pdkit" : ProducerOf(program);
  if (program.version > 0)
    out->facts.push_back({"program_version", VersionText(program.version)});
  AddClasses(names, out);
  AddTensors(program, ArraysIn(content.object), out);
  model.program = std::move(program);
  out->model = std::move(model);
  return absl::OkStatus();
}

}  // namespace pd
