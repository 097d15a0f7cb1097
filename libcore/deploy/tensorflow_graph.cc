// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/tensorflow_graph.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/tensorflow_import/call.h"
#include "libcore/deploy/tensorflow_import/flatten.h"
#include "libcore/deploy/tensorflow_import/frames.h"

namespace pd {
namespace {

constexpr int64_t kTfOpset = 21;
// So many nodes are named where operators are not supported.
constexpr size_t kMostNodesNamed = 3;

// A program calls such a signature to begin, not to answer.
constexpr char kInitSignature[] = "__saved_model_init_op";

const std::map<std::string, TfImportEntry>& TfTable() {
  static const auto* table = [] {
    auto* all = new std::map<std::string, TfImportEntry>;
    for (const TfImportEntries& part :
         {TfControlFlowImports(), TfElementwiseImports(), TfListImports(),
          TfNetworkImports(), TfPictureImports(), TfShapeImports(),
          TfTableImports()})
      for (const TfImportEntry& entry : part)
        PD_INVARIANT(all->emplace(entry.op, entry).second);
    return all;
  }();
  return *table;
}

// Nodes that make values without a function in the table.
bool IsSource(const std::string& op) {
  return op == "Const" || op == "Placeholder" ||
         op == "PlaceholderWithDefault" || op == "VarHandleOp" ||
         op == "VariableV2" || op == "Variable" || op == "ReadVariableOp";
}

using MissingNodes = std::map<std::string, std::vector<std::string>>;

// The functions that a node runs as branches or rounds.
std::vector<std::string> RunBy(const TfNode& node) {
  std::vector<std::string> names;
  if (!absl::EndsWith(node.op, "While") && !absl::EndsWith(node.op, "If") &&
      !absl::EndsWith(node.op, "Case"))
    return names;
  for (const char* name :
       {"body", "branches", "cond", "else_branch", "then_branch"}) {
    const auto attr = node.attrs.find(name);
    if (attr == node.attrs.end()) continue;
    names.insert(names.end(), attr->second.strings.begin(),
                 attr->second.strings.end());
    if (attr->second.kind == TfAttr::Kind::kString)
      names.push_back(attr->second.text);
  }
  return names;
}

// Also of the functions that nodes run, each of which is looked at once.
absl::Status TakeMissing(const TfGraph& graph, const std::vector<TfNode>& nodes,
                         MissingNodes* missing) {
  std::set<std::string> seen;
  std::vector<std::string> waiting;
  const auto take = [&](const std::vector<TfNode>& body) {
    for (const TfNode& node : body) {
      if (!IsSource(node.op) && TfTable().count(node.op) == 0)
        (*missing)[node.op].push_back(node.name);
      for (const std::string& name : RunBy(node))
        if (seen.insert(name).second) waiting.push_back(name);
    }
  };
  take(nodes);
  while (!waiting.empty()) {
    const std::string name = waiting.back();
    waiting.pop_back();
    PD_ASSIGN_OR_RETURN(const TfFlatFunction function,
                        FlattenTfFunction(graph, name, ""));
    take(function.nodes);
  }
  return absl::OkStatus();
}

absl::Status CheckOperators(const TfGraph& graph,
                            const std::vector<TfNode>& nodes) {
  MissingNodes missing;
  PD_RETURN_IF_ERROR(TakeMissing(graph, nodes, &missing));
  if (missing.empty()) return absl::OkStatus();
  std::string why;
  for (const auto& [op, names] : missing)
    if (absl::StartsWith(op, "LookupTable") ||
        absl::StartsWith(op, "HashTable"))
      why =
          "; tables of texts are looked up before the network, by the program "
          "that feeds it";
  return Unimplemented(
      "operators that are not supported (and their nodes): %s%s",
      absl::StrJoin(missing, ", ",
                    [](std::string* out, const auto& op) {
                      std::vector<std::string> names = op.second;
                      const size_t all = names.size();
                      names.resize(std::min(all, kMostNodesNamed));
                      absl::StrAppend(out, "'", op.first, "' (",
                                      absl::StrJoin(names, ", "));
                      if (all > names.size())
                        absl::StrAppend(out, " and ", all - names.size(),
                                        " more");
                      absl::StrAppend(out, ")");
                    }),
      why);
}

// An input or output and the value that it is.
struct GraphEnd {
  std::string name, value;
  int64_t dtype = 0;
  std::optional<Shape> shape;
};

absl::StatusOr<OnnxFileValue> DeclaredEnd(const GraphEnd& end) {
  OnnxFileValue value;
  value.name = end.name;
  value.is_tensor = true;
  value.shape = end.shape;
  const auto dtype = DTypeFromTensorflow(end.dtype);
  if (end.dtype != 0 && !dtype.has_value())
    return Unimplemented("'%s' is a tensor of %s", end.name,
                         TensorflowTypeName(end.dtype));
  if (dtype.has_value()) {
    PD_ASSIGN_OR_RETURN(value.element_type, OnnxElementType(*dtype));
  }
  return value;
}

std::shared_ptr<TfValue> PlainValue(const std::string& name, int64_t rank) {
  auto value = std::make_shared<TfValue>();
  value->name = value->plain = name;
  value->rank = rank;
  return value;
}

void AddArray(const std::string& name, const Array& array, TfBuild* build) {
  build->graph.initializers[name] = array;
  build->values[name] =
      PlainValue(name, static_cast<int64_t>(array.shape.size()));
}

absl::Status TakeSource(const TfNode& node, TfBuild* build) {
  if (node.op == "ReadVariableOp" || node.op == "PlaceholderWithDefault") {
    const auto read =
        build->values.find(node.inputs.empty() ? "" : node.inputs[0]);
    if (read == build->values.end())
      return DataLoss("it reads nothing that is known");
    build->values[node.name] = read->second;
    return absl::OkStatus();
  }
  if (node.op == "Const") {
    const auto value = node.attrs.find("value");
    if (value == node.attrs.end() ||
        value->second.kind != TfAttr::Kind::kTensor)
      return Unimplemented(
          "a constant of %s",
          TensorflowTypeName(value == node.attrs.end() ? 0 : value->second.i));
    AddArray(node.name, value->second.tensor, build);
    return absl::OkStatus();
  }
  if (node.op == "Placeholder")
    return InvalidArgument("the answer depends on it, and it is no input");
  const auto variable = build->variables.find(node.name);
  if (variable == build->variables.end())
    return DataLoss("no file has the value of this variable");
  AddArray(node.name, variable->second, build);
  return absl::OkStatus();
}

absl::Status ImportTfNode(const TfNode& node, TfBuild* build) {
  if (build->values.count(node.name) > 0) return absl::OkStatus();  // an input
  if (IsSource(node.op)) return TakeSource(node, build);
  const auto entry = TfTable().find(node.op);
  // A function that no attribute names is looked through by nobody before.
  if (entry == TfTable().end())
    return Unimplemented("operator '%s' is not supported", node.op);
  TfCall call(node, entry->second.onnx_type, build);
  entry->second.import(&call);
  return call.status();
}

// The value of an output under its name.
absl::Status GiveOutput(const GraphEnd& end, const std::string& value,
                        TfBuild* build) {
  const auto found = build->values.find(value);
  if (found == build->values.end())
    return Unimplemented("output '%s' is one that is not supported", end.name);
  MakePlain(found->second.get(), build);
  PD_ASSIGN_OR_RETURN(OnnxFileValue output, DeclaredEnd(end));
  build->graph.outputs.push_back(std::move(output));
  if (found->second->plain == end.name) return absl::OkStatus();
  OnnxFileNode same;
  same.op_type = "Identity";
  same.name = end.name;
  same.inputs = {found->second->plain};
  same.outputs = {end.name};
  build->graph.nodes.push_back(std::move(same));
  return absl::OkStatus();
}

// Values that nodes read, and those that graphs in them name.
void TakeRead(const OnnxFileNode& node, std::set<std::string>* read) {
  read->insert(node.inputs.begin(), node.inputs.end());
  for (const auto& [name, attr] : node.attrs)
    for (const OnnxFileGraph& graph : attr.graph) {
      for (const OnnxFileValue& output : graph.outputs)
        read->insert(output.name);
      for (const OnnxFileNode& inner : graph.nodes) TakeRead(inner, read);
    }
}

// A node that changes a tensor array which others read.
bool Writes(const OnnxFileNode& node) {
  if (node.op_type == "ListWrite" && node.domain == "tensorflow") return true;
  for (const auto& [name, attr] : node.attrs)
    for (const OnnxFileGraph& graph : attr.graph)
      if (std::any_of(graph.nodes.begin(), graph.nodes.end(), Writes))
        return true;
  return false;
}

// Nodes and constants that importers have made others of.
void DropUnread(OnnxFileGraph* graph) {
  std::set<std::string> read;
  for (const OnnxFileValue& output : graph->outputs) read.insert(output.name);
  std::vector<OnnxFileNode> kept;
  for (auto node = graph->nodes.rbegin(); node != graph->nodes.rend(); ++node) {
    if (!Writes(*node) &&
        std::none_of(node->outputs.begin(), node->outputs.end(),
                     [&](const auto& name) { return read.count(name) > 0; }))
      continue;
    TakeRead(*node, &read);
    kept.push_back(std::move(*node));
  }
  graph->nodes.assign(std::make_move_iterator(kept.rbegin()),
                      std::make_move_iterator(kept.rend()));
  for (auto it = graph->initializers.begin(); it != graph->initializers.end();)
    it = read.count(it->first) > 0 ? std::next(it)
                                   : graph->initializers.erase(it);
}

// The names of inputs and outputs are taken from nodes where `rename` says so.
absl::StatusOr<OnnxFile> NetworkOf(const TfGraph& as_read,
                                   const std::vector<GraphEnd>& inputs,
                                   const std::vector<GraphEnd>& outputs,
                                   bool rename, const NamedArrays& variables) {
  std::vector<std::string> wanted;
  std::set<std::string> taken;
  for (const GraphEnd& end : outputs) wanted.push_back(end.value);
  for (const GraphEnd& end : inputs) wanted.push_back(end.value);
  if (rename)
    for (const auto* ends : {&inputs, &outputs})
      for (const GraphEnd& end : *ends) taken.insert(end.name);
  TfGraph structured;
  if (HasTfFrames(as_read)) {
    PD_ASSIGN_OR_RETURN(structured, FramesAsFunctions(as_read, wanted));
  }
  const TfGraph& graph = HasTfFrames(as_read) ? structured : as_read;
  PD_ASSIGN_OR_RETURN(const TfFlatGraph flat,
                      FlattenTf(graph, wanted, std::move(taken)));
  PD_RETURN_IF_ERROR(CheckOperators(graph, flat.nodes));
  TfBuild build;
  build.shared = std::make_shared<TfShared>();
  build.shared->graph = &graph;
  for (const auto& [node, array] : variables)
    if (const auto ours = flat.names.find(node); ours != flat.names.end())
      build.variables[ours->second] = array;
  for (const GraphEnd& end : inputs) {
    PD_ASSIGN_OR_RETURN(OnnxFileValue input, DeclaredEnd(end));
    build.graph.inputs.push_back(std::move(input));
    build.values[flat.values.at(end.value)] = PlainValue(
        end.name,
        end.shape.has_value() ? static_cast<int64_t>(end.shape->size()) : -1);
  }
  for (const TfNode& node : flat.nodes) {
    build.nodes[node.name] = &node;
    build.read.insert(node.inputs.begin(), node.inputs.end());
  }
  for (const auto& [value, ours] : flat.values) build.read.insert(ours);
  PD_RETURN_IF_ERROR(ImportTfNodes(flat.nodes, &build));
  for (const GraphEnd& end : outputs)
    PD_RETURN_IF_ERROR(GiveOutput(end, flat.values.at(end.value), &build));
  DropUnread(&build.graph);
  OnnxFile file;
  file.producer = "TensorFlow";
  file.opsets[""] = kTfOpset;
  file.opsets["tensorflow"] = 1;
  file.graph = std::move(build.graph);
  return file;
}

std::vector<GraphEnd> SignatureEnds(const std::map<std::string, TfEnd>& ends) {
  std::vector<GraphEnd> result;
  for (const auto& [name, end] : ends)
    result.push_back({name, end.value, end.dtype, end.shape});
  return result;
}

std::string NodeOf(absl::string_view input) {
  absl::ConsumePrefix(&input, "^");
  return std::string(input.substr(0, input.find(':')));
}

int64_t IntAttr(const TfNode& node, const char* name) {
  const auto attr = node.attrs.find(name);
  return attr == node.attrs.end() ? 0 : attr->second.i;
}

}  // namespace

absl::Status ImportTfNodes(const std::vector<TfNode>& nodes, TfBuild* build) {
  for (const TfNode& node : nodes)
    PD_RETURN_IF_ERROR(
        Annotate(ImportTfNode(node, build),
                 absl::StrCat("node '", node.name, "' (", node.op, ")")));
  return absl::OkStatus();
}

absl::StatusOr<OnnxFile> TensorflowAsOnnx(const TfGraph& graph) {
  std::set<std::string> read;
  for (const TfNode& node : graph.nodes)
    for (const std::string& input : node.inputs) read.insert(NodeOf(input));
  std::vector<GraphEnd> inputs, outputs;
  for (const TfNode& node : graph.nodes) {
    const bool input = node.op == "Placeholder";
    // An argument of a function is left when its calls are gone.
    const auto said = node.attrs.find("shape");
    if (input && read.count(node.name) == 0 &&
        (said == node.attrs.end() || !said->second.shape.has_value() ||
         !DTypeFromTensorflow(IntAttr(node, "dtype")).has_value()))
      continue;
    if (input) {
      const auto shape = node.attrs.find("shape");
      inputs.push_back(
          {node.name, node.name, IntAttr(node, "dtype"),
           shape == node.attrs.end() ? std::nullopt : shape->second.shape});
    } else if (read.count(node.name) == 0 && node.op != "Const" &&
               node.op != "NoOp" && node.op != "Assert") {
      outputs.push_back({node.name, node.name, 0, std::nullopt});
      for (const char* name : {"T", "DstT", "dtype"})
        if (outputs.back().dtype == 0 && node.op == "Identity")
          outputs.back().dtype = IntAttr(node, name);
    }
  }
  if (outputs.empty())
    return InvalidArgument("the graph has no node that nothing reads");
  return NetworkOf(graph, inputs, outputs, /*rename=*/false, {});
}

absl::StatusOr<std::map<std::string, std::string>> TensorflowVariables(
    const TfSavedModel& model) {
  return TfVariableKeys(model.graph, model.restore);
}

absl::StatusOr<OnnxFile> TensorflowAsOnnx(const TfSavedModel& model,
                                          const NamedArrays& variables) {
  const TfSignature* chosen = nullptr;
  std::vector<std::string> names;
  for (const auto& [name, signature] : model.signatures) {
    if (name == kInitSignature) continue;
    names.push_back(absl::StrCat("'", name, "'"));
    chosen = &signature;
  }
  const auto serving = model.signatures.find("serving_default");
  if (serving != model.signatures.end())
    chosen = &serving->second;
  else if (names.size() > 1)
    return InvalidArgument(
        "its signatures are %s; expected one, or 'serving_default' among them",
        absl::StrJoin(names, ", "));
  if (chosen == nullptr || chosen->outputs.empty())
    return InvalidArgument("it has no signature that gives an output");
  PD_ASSIGN_OR_RETURN(
      OnnxFile file,
      NetworkOf(model.graph, SignatureEnds(chosen->inputs),
                SignatureEnds(chosen->outputs), /*rename=*/true, variables));
  file.producer_version = model.version;
  return file;
}

std::vector<std::string> TensorflowImportTypes() {
  std::vector<std::string> types;
  for (const auto& [type, entry] : TfTable()) types.push_back(type);
  return types;
}

}  // namespace pd
