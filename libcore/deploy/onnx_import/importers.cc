// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx_import/importers.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/program/match_feeds.h"

namespace pd {
namespace {

// Inputs of integers with at most so many elements may decide on a structure.
constexpr int64_t kMaxStructural = 64;

const std::map<std::string, OnnxImportEntry>& Table() {
  static const auto* table = [] {
    auto* all = new std::map<std::string, OnnxImportEntry>;
    for (const OnnxImportEntries& part :
         {ActivationImports(),  AttentionImports(),
          CaffeBoxImports(),    CaffeNetworkImports(),
          CaffeTensorImports(), ControlFlowImports(),
          ConvImports(),        ElementwiseImports(),
          IndexImports(),       LinearAttentionImports(),
          LossImports(),        MatmulImports(),
          NormImports(),        PadImports(),
          PoolImports(),        QuantizeImports(),
          RandomImports(),      RecurrentImports(),
          ReduceImports(),      ResizeImports(),
          ScatterImports(),     SequenceImports(),
          ShapeImports(),       SignalImports(),
          TensorflowImports(),  TensorflowListImports(),
          TextImports(),        TrainingImports(),
          VisionImports()})
      for (const OnnxImportEntry& entry : part)
        PD_INVARIANT(all->emplace(entry.onnx_type, entry).second);
    return all;
  }();
  return *table;
}

}  // namespace

const OnnxImportEntry* FindOnnxImport(const std::string& domain,
                                      const std::string& type) {
  const auto it =
      Table().find(domain.empty() ? type : absl::StrCat(domain, ":", type));
  return it == Table().end() ? nullptr : &it->second;
}

std::vector<std::string> OnnxImportTypes() {
  std::vector<std::string> types;
  for (const auto& [type, entry] : Table()) types.push_back(type);
  return types;
}

absl::StatusOr<InferenceModel> FromOnnx(const OpRegistry& registry,
                                        const OnnxFile& file,
                                        const OnnxKnownInputs& known) {
  return OnnxImporter(registry, file, known).Import();
}

absl::StatusOr<InferenceModel> ImportOnnx(
    const OpRegistry& registry, const OnnxFile& file, const NamedArrays* feeds,
    const std::map<std::string, Shape>& shapes) {
  OnnxKnownInputs known;
  known.shapes = shapes;
  auto model = FromOnnx(registry, file, known);
  if (model.ok() || feeds == nullptr || feeds->empty()) return model;
  for (const OnnxFileValue& input : file.graph.inputs) {
    const auto fed = feeds->find(input.name);
    if (fed != feeds->end() && shapes.count(input.name) == 0 &&
        input.shape.has_value() && !TakesShape(*input.shape, fed->second.shape))
      return InvalidArgument("array '%s' is %s%s; the model declares %s",
                             input.name, Name(fed->second.dtype),
                             ToString(fed->second.shape),
                             ToString(*input.shape));
  }
  for (const auto& [name, array] : *feeds) known.shapes[name] = array.shape;
  auto for_shapes = FromOnnx(registry, file, known);
  if (for_shapes.ok()) return for_shapes;
  for (const auto& [name, array] : *feeds)
    if ((!IsFloating(array.dtype) || array.shape.size() <= 1) &&
        array.size() <= kMaxStructural)
      known.values.insert({name, array});
  return FromOnnx(registry, file, known);
}

}  // namespace pd
