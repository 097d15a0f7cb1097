// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/torch_graph.h"

#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/torch_import/call.h"

namespace pd {
namespace {

constexpr int64_t kOpset = 21;

const std::map<std::string, TorchImportEntry>& Table() {
  static const auto* table = [] {
    auto* all = new std::map<std::string, TorchImportEntry>;
    for (const TorchImportEntries& part :
         {TorchCompareImports(), TorchElementwiseImports(),
          TorchNetworkImports(), TorchRecurrentImports(), TorchShapeImports()})
      for (const TorchImportEntry& entry : part)
        PD_INVARIANT(all->emplace(entry.target, entry).second);
    return all;
  }();
  return *table;
}

// "torch.ops.aten.relu_.default" is relu.default, which changes its input.
struct Target {
  std::string name;
  bool in_place = false;
};

Target TargetOf(const std::string& text) {
  Target target;
  target.name = std::string(absl::StripPrefix(text, "torch.ops.aten."));
  const size_t dot = target.name.find('.');
  if (Table().count(target.name) > 0 || dot == std::string::npos || dot == 0 ||
      target.name[dot - 1] != '_')
    return target;
  target.name.erase(dot - 1, 1);
  target.in_place = true;
  return target;
}

bool IsCheck(const std::string& target) {
  return absl::StrContains(target, "_assert_") ||
         absl::StrContains(target, "sym_constrain_range") ||
         absl::StrContains(target, "aten.sym_size") ||
         absl::StartsWith(target, "_operator.");
}

// Operators whose output may share the memory of their first input.
bool MayShare(absl::string_view target) {
  static const auto* names = new std::set<absl::string_view>{
      "alias",   "chunk",     "contiguous",       "detach",
      "dropout", "expand",    "feature_dropout",  "flatten",
      "narrow",  "permute",   "reshape",          "select",
      "slice",   "split",     "split_with_sizes", "squeeze",
      "t",       "to",        "transpose",        "type_as",
      "unbind",  "unflatten", "unsqueeze",        "view",
      "view_as"};
  return names->count(target.substr(0, target.find('.'))) > 0;
}

absl::Status CheckTargets(const TorchExport& exported) {
  std::map<std::string, int64_t> missing;
  for (const TorchNode& node : exported.nodes)
    if (!IsCheck(node.target) && Table().count(TargetOf(node.target).name) == 0)
      ++missing[node.target];
  if (missing.empty()) return absl::OkStatus();
  return Unimplemented(
      "operators that are not supported (and their calls): %s",
      absl::StrJoin(missing, ", ", [](std::string* out, const auto& target) {
        absl::StrAppend(out, "'", target.first, "' (", target.second, ")");
      }));
}

absl::Status TakeEnds(const TorchExport& exported, TorchBuild* build) {
  for (const bool input : {true, false}) {
    for (const std::string& name : input ? exported.inputs : exported.outputs) {
      const auto value = exported.values.find(name);
      if (value == exported.values.end())
        return DataLoss("the file does not say the shape of '%s'", name);
      OnnxFileValue end;
      end.name = name;
      end.is_tensor = true;
      PD_ASSIGN_OR_RETURN(const DType dtype,
                          DTypeFromTorch(value->second.scalar_type));
      PD_ASSIGN_OR_RETURN(end.element_type, OnnxElementType(dtype));
      end.shape = value->second.shape;
      (input ? build->graph.inputs : build->graph.outputs)
          .push_back(std::move(end));
      if (input) build->values[name] = name;
    }
  }
  return absl::OkStatus();
}

// Which values share memory: by value the first of its group.
class Sharing {
 public:
  void Add(const TorchNode& node) {
    if (node.inputs.empty() || !MayShare(TargetOf(node.target).name)) return;
    const TorchArgument& self = node.inputs[0].second;
    if (self.kind != TorchArgument::Kind::kTensor) return;
    for (const TorchArgument& output : node.outputs)
      for (const std::string& name : output.names)
        first_[name] = FirstOf(self.names[0]);
  }

  // An error where node `index` changes a value and a later one reads another
  // value that shares its memory.
  absl::Status Check(const TorchExport& exported, size_t index) const {
    const TorchNode& node = exported.nodes[index];
    // Dropout of a network that does not train changes nothing.
    if (!TargetOf(node.target).in_place ||
        MayShare(TargetOf(node.target).name) || node.inputs.empty() ||
        node.inputs[0].second.names.empty())
      return absl::OkStatus();
    const std::string& changed = node.inputs[0].second.names[0];
    const std::string group = FirstOf(changed);
    const auto shares = [&](const std::string& name) {
      return name != changed && FirstOf(name) == group;
    };
    bool read = false;
    for (size_t i = index + 1; i < exported.nodes.size(); ++i)
      for (const auto& [parameter, argument] : exported.nodes[i].inputs)
        for (const std::string& name : argument.names)
          read = read || shares(name);
    for (const std::string& name : exported.outputs)
      read = read || shares(name);
    if (!read) return absl::OkStatus();
    return Unimplemented(
        "it changes a part of a tensor that is read later; the program that "
        "ExportedProgram.run_decompositions() gives has no such calls");
  }

 private:
  std::string FirstOf(const std::string& name) const {
    const auto it = first_.find(name);
    return it == first_.end() ? name : it->second;
  }

  std::map<std::string, std::string> first_;
};

absl::Status ImportNode(const TorchNode& node, TorchBuild* build) {
  if (IsCheck(node.target)) return absl::OkStatus();
  const Target target = TargetOf(node.target);
  const TorchImportEntry& entry = Table().at(target.name);
  TorchCall call(node, entry.onnx_type, build);
  entry.import(&call);
  PD_RETURN_IF_ERROR(call.status());
  for (const std::string& output : call.outputs())
    if (build->values.count(output) == 0 && build->read.count(output) > 0)
      return Unimplemented("its output '%s' is not supported", output);
  if (!target.in_place || node.inputs.empty()) return absl::OkStatus();
  const TorchArgument& self = node.inputs[0].second;
  if (self.kind == TorchArgument::Kind::kTensor && !call.outputs().empty())
    build->values[self.names[0]] = build->values[call.outputs()[0]];
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<OnnxFile> TorchAsOnnx(const TorchExport& exported) {
  PD_RETURN_IF_ERROR(CheckTargets(exported));
  TorchBuild build;
  build.exported = &exported;
  for (const auto& [value, weight] : exported.parameters) {
    const auto array = exported.weights.find(weight);
    if (array == exported.weights.end())
      return DataLoss("the file has no weight '%s'", weight);
    build.graph.initializers[weight] = array->second;
    build.values[value] = weight;
  }
  PD_RETURN_IF_ERROR(TakeEnds(exported, &build));
  build.read.insert(exported.outputs.begin(), exported.outputs.end());
  for (const TorchNode& node : exported.nodes)
    for (const auto& [parameter, argument] : node.inputs)
      build.read.insert(argument.names.begin(), argument.names.end());
  Sharing sharing;
  for (size_t i = 0; i < exported.nodes.size(); ++i) {
    const TorchNode& node = exported.nodes[i];
    sharing.Add(node);
    absl::Status status = sharing.Check(exported, i);
    if (status.ok()) status = ImportNode(node, &build);
    PD_RETURN_IF_ERROR(Annotate(
        status,
        absl::StrCat("node '",
                     node.outputs.empty() || node.outputs[0].names.empty()
                         ? ""
                         : node.outputs[0].names[0],
                     "' (", node.target, ")")));
  }
  for (const std::string& name : exported.outputs) {
    const auto value = build.values.find(name);
    if (value == build.values.end())
      return DataLoss("output '%s' is made by no node", name);
    if (value->second == name) continue;
    OnnxFileNode same;
    same.op_type = "Identity";
    same.name = name;
    same.inputs = {value->second};
    same.outputs = {name};
    build.graph.nodes.push_back(std::move(same));
  }
  OnnxFile file;
  file.producer = "PyTorch";
  file.producer_version = exported.version;
  file.opsets[""] = kOpset;
  file.graph = std::move(build.graph);
  return file;
}

std::vector<std::string> TorchImportTypes() {
  std::vector<std::string> types;
  for (const auto& [type, entry] : Table()) types.push_back(type);
  return types;
}

}  // namespace pd
