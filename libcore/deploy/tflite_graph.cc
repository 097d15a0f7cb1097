// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/tflite_graph.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/tflite_import/call.h"

namespace pd {
namespace {

constexpr int64_t kTfliteOpset = 21;
// Operators of graphs that others run, each time that they do.
constexpr int64_t kMostOperators = int64_t{1} << 17;
constexpr int kReshape = 22, kTransposeConv = 67, kCustom = 32;

const std::map<int, TfliteImportEntry>& TfliteImports() {
  static const auto* table = [] {
    auto* all = new std::map<int, TfliteImportEntry>;
    for (const TfliteImportEntries& part :
         {TfliteControlFlowImports(), TfliteElementwiseImports(),
          TfliteNetworkImports(), TfliteRecurrentImports(),
          TfliteShapeImports()})
      for (const TfliteImportEntry& entry : part)
        PD_INVARIANT(all->emplace(entry.code, entry).second);
    return all;
  }();
  return *table;
}

std::string NameOf(const TfliteOperator& op) {
  if (op.code == kCustom) return op.custom;
  const auto entry = TfliteImports().find(op.code);
  return entry == TfliteImports().end() ? absl::StrCat("number ", op.code)
                                        : entry->second.name;
}

// Where the file says a shape that one operator at most computes, nothing is
// left of the arithmetic by which it gives the shape besides.
bool ReadsInput(const TfliteGraph& file, const TfliteOperator& op, size_t i) {
  if (op.code == kTransposeConv) return i != 0;
  if (op.code != kReshape || i != 1 || op.outputs.empty()) return true;
  const Shape& shape = file.tensors[static_cast<size_t>(op.outputs[0])].shape;
  return std::count(shape.begin(), shape.end(), -1) > 1 ||
         std::count(shape.begin(), shape.end(), 0) > 0;
}

// The operators that the outputs hang on.
std::vector<bool> NeededOperators(const TfliteGraph& file) {
  std::set<int32_t> read(file.outputs.begin(), file.outputs.end());
  std::vector<bool> needed(file.operators.size(), false);
  for (size_t k = file.operators.size(); k-- > 0;) {
    const TfliteOperator& op = file.operators[k];
    needed[k] =
        std::any_of(op.outputs.begin(), op.outputs.end(),
                    [&](int32_t tensor) { return read.count(tensor) > 0; });
    for (size_t i = 0; needed[k] && i < op.inputs.size(); ++i)
      if (ReadsInput(file, op, i)) read.insert(op.inputs[i]);
  }
  return needed;
}

// Also of the graphs that operators run, each of which is looked at once.
absl::Status CheckOperators(const TfliteFile& file) {
  std::map<std::string, int> missing;
  std::vector<const TfliteGraph*> graphs = {&file};
  std::set<const TfliteGraph*> seen = {&file};
  for (size_t g = 0; g < graphs.size(); ++g) {
    const std::vector<bool> needed = NeededOperators(*graphs[g]);
    for (size_t k = 0; k < needed.size(); ++k) {
      if (!needed[k]) continue;
      const TfliteOperator& op = graphs[g]->operators[k];
      if (TfliteImports().count(op.code) == 0) ++missing[NameOf(op)];
      for (const TfliteGraph* run : TfliteGraphsOf(file, op))
        if (seen.insert(run).second) graphs.push_back(run);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return Unimplemented(
      "operators that are not supported (and their calls): %s",
      absl::StrJoin(missing, ", ", [](std::string* out, const auto& op) {
        absl::StrAppend(out, "'", op.first, "' (", op.second, ")");
      }));
}

absl::StatusOr<OnnxFileValue> EndOf(const TfliteGraph& file, int32_t tensor) {
  const TfliteTensor& fact = file.tensors[static_cast<size_t>(tensor)];
  OnnxFileValue end;
  end.name = fact.name.empty() ? absl::StrCat("tensor_", tensor) : fact.name;
  end.is_tensor = true;
  if (!fact.dtype.has_value())
    return Unimplemented("tensor '%s' of TFLite's type %d", end.name,
                         fact.type);
  PD_ASSIGN_OR_RETURN(end.element_type, OnnxElementType(*fact.dtype));
  end.shape = fact.shape;
  return end;
}

absl::Status TakeTfliteInputs(TfliteBuild* build) {
  LayoutGraph& graph = build->graph;
  for (const int32_t tensor : build->file->inputs) {
    const TfliteTensor& fact =
        build->file->tensors[static_cast<size_t>(tensor)];
    PD_ASSIGN_OR_RETURN(OnnxFileValue end, EndOf(*build->file, tensor));
    if (!graph.TakeName(end.name))
      return DataLoss("two inputs have the name '%s'", end.name);
    graph.Begin(end.name);
    const bool rounded = IsQuantized(fact);
    const std::string value =
        rounded ? Quantize(&graph, fact, end.name, false, true) : end.name;
    build->values[tensor] = graph.Made(value, fact.shape, false,
                                       rounded ? DType::kFloat32 : *fact.dtype);
    graph.graph.inputs.push_back(std::move(end));
  }
  return graph.status();
}

absl::Status TakeTfliteOutputs(TfliteBuild* build) {
  LayoutGraph& graph = build->graph;
  std::set<std::string> used;
  for (const int32_t tensor : build->file->outputs) {
    const TfliteTensor& fact =
        build->file->tensors[static_cast<size_t>(tensor)];
    const auto value = build->values.find(tensor);
    if (value == build->values.end())
      return DataLoss("output '%s' is made by no operator", fact.name);
    PD_ASSIGN_OR_RETURN(OnnxFileValue end, EndOf(*build->file, tensor));
    graph.Begin(absl::StrCat(end.name, "/output"));
    std::string name = graph.Plain(&value->second);
    if (IsQuantized(fact)) name = Quantize(&graph, fact, name, true, false);
    if (!used.insert(end.name).second ||
        (name != end.name && !graph.TakeName(end.name)))
      end.name = absl::StrCat(end.name, "_", tensor);
    if (name != end.name) {
      OnnxFileNode same;
      same.op_type = "Identity";
      same.name = end.name;
      same.inputs = {name};
      same.outputs = {end.name};
      graph.graph.nodes.push_back(std::move(same));
    }
    graph.graph.outputs.push_back(std::move(end));
  }
  return graph.status();
}

}  // namespace

absl::Status ImportTfliteOperators(TfliteBuild* build) {
  const std::vector<bool> needed = NeededOperators(*build->file);
  for (size_t k = 0; k < needed.size(); ++k) {
    if (!needed[k]) continue;
    const TfliteOperator& op = build->file->operators[k];
    const TfliteImportEntry& entry = TfliteImports().at(op.code);
    if (++*build->ran > kMostOperators)
      return Unimplemented("graphs that run have more than %d operators",
                           kMostOperators);
    build->graph.Begin(absl::StrCat(build->prefix, entry.name, "_", k));
    TfliteCall call(op, entry.onnx_type, build);
    entry.import(&call);
    PD_RETURN_IF_ERROR(
        Annotate(build->graph.status(),
                 absl::StrCat("operator ", k, " (", entry.name, ")")));
  }
  return absl::OkStatus();
}

absl::StatusOr<OnnxFile> TfliteAsOnnx(const TfliteFile& tflite) {
  PD_RETURN_IF_ERROR(CheckOperators(tflite));
  int64_t ran = 0;
  TfliteBuild build;
  build.file = build.whole = &tflite;
  build.ran = &ran;
  PD_RETURN_IF_ERROR(TakeTfliteInputs(&build));
  PD_RETURN_IF_ERROR(ImportTfliteOperators(&build));
  PD_RETURN_IF_ERROR(TakeTfliteOutputs(&build));
  OnnxFile file;
  file.producer = "TFLite";
  file.opsets[""] = kTfliteOpset;
  file.graph = std::move(build.graph.graph);
  return file;
}

}  // namespace pd
