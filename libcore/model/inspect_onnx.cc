// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/deploy/class_names.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/model/inspect_internal.h"

namespace pd {
namespace {

VariableInfo VariableOf(const OnnxFileValue& value) {
  VariableInfo info;
  info.name = value.name;
  info.shape = value.shape.value_or(Shape());
  info.dtype = DTypeFromOnnx(value.element_type).value_or(DType::kFloat32);
  return info;
}

// Nodes by type, those of sub-graphs too.
void CountNodes(const OnnxFileGraph& graph,
                std::map<std::string, int64_t>* ops) {
  for (const OnnxFileNode& node : graph.nodes) {
    ++(*ops)[node.op_type];
    for (const auto& [name, attr] : node.attrs)
      for (const OnnxFileGraph& inner : attr.graph) CountNodes(inner, ops);
  }
}

// The program that the model becomes.
absl::StatusOr<InferenceModel> ImportedFrom(const OpRegistry& registry,
                                            const OnnxFile& onnx) {
  OnnxKnownInputs known;
  auto program = FromOnnx(registry, onnx, known);
  if (absl::IsFailedPrecondition(program.status())) {
    // Its structure hangs on open extents: as CountFlops takes them.
    for (const OnnxFileValue& input : onnx.graph.inputs) {
      Shape shape = input.shape.value_or(Shape());
      if (!shape.empty() && shape[0] < 0) shape[0] = 1;
      std::replace(shape.begin(), shape.end(), int64_t{-1}, kOpenExtent);
      known.shapes[input.name] = std::move(shape);
    }
    program = FromOnnx(registry, onnx, known);
  }
  return program;
}

FlopCount FlopsOf(const OpRegistry& registry,
                  absl::StatusOr<InferenceModel> imported) {
  if (imported.ok()) return CountFlops(registry, std::move(imported->program));
  FlopCount none;
  none.why_unknown = std::string(imported.status().message());
  return none;
}

}  // namespace

absl::Status InspectOnnx(const OpRegistry& registry, const Content& content,
                         Inspection* out) {
  const OnnxFile& onnx = *content.onnx;
  out->content = "inference model";
  if (!onnx.producer.empty())
    out->producer =
        onnx.producer_version.empty()
            ? onnx.producer
            : absl::StrCat(onnx.producer, " ", onnx.producer_version);
  if (onnx.ir_version > 0)
    out->facts.push_back({"ir_version", onnx.ir_version});
  for (const auto& [domain, version] : onnx.opsets)
    out->facts.push_back(
        {domain.empty() ? "opset" : absl::StrCat("opset ", domain), version});
  ModelInfo model;
  for (const OnnxFileValue& input : onnx.graph.inputs)
    if (onnx.graph.initializers.count(input.name) == 0)
      model.inputs.push_back(VariableOf(input));
  auto imported = ImportedFrom(registry, onnx);
  for (const OnnxFileValue& output : onnx.graph.outputs) {
    VariableInfo info = VariableOf(output);
    const VarDesc* var = imported.ok() && !output.shape.has_value()
                             ? imported->program.global().FindVar(output.name)
                             : nullptr;
    if (var != nullptr) info.shape = var->shape;
    model.outputs.push_back(std::move(info));
  }
  FeedFetch names;
  for (const VariableInfo& output : model.outputs)
    names.fetches.push_back(output.name);
  TakeClassMetadata(onnx.metadata, &names);
  AddClasses(names, out);
  CountNodes(onnx.graph, &model.ops);
  model.flops = FlopsOf(registry, std::move(imported));
  out->model = std::move(model);
  for (const auto& [name, array] : onnx.graph.initializers)
    out->tensors.push_back(InfoOf(name, array, *out));
  return absl::OkStatus();
}

}  // namespace pd
