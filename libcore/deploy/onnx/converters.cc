// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx/converters.h"

#include <filesystem>
#include <map>

#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_export.h"

namespace pd {
namespace {

const std::map<std::string, OnnxConverter>& Table() {
  static const auto* table = [] {
    auto* all = new std::map<std::string, OnnxConverter>;
    for (const OnnxConverters& part :
         {ActivationConverters(), ConvConverters(), ElementwiseConverters(),
          IndexConverters(), MatmulConverters(), NormConverters(),
          PoolConverters(), QuantizeConverters(), RecurrentConverters(),
          ReduceConverters(), ShapeConverters()})
      for (const OnnxConverter& converter : part)
        PD_INVARIANT(all->emplace(converter.op_type, converter).second);
    return all;
  }();
  return *table;
}

// `op_type` without what tells versions of one op apart: `relu_` is `relu` in
// place, `reshape2` the second `reshape`.
std::string Stem(absl::string_view op_type) {
  absl::ConsumeSuffix(&op_type, "_");
  if (!absl::ConsumeSuffix(&op_type, "_v2")) absl::ConsumeSuffix(&op_type, "2");
  return std::string(op_type);
}

// Another version of the op that can be exported, or "". Names that are only
// alike, such as `flip` and `clip`, are no help.
std::string OtherVersion(const std::string& op_type) {
  for (const std::string& other : OnnxOpTypes())
    if (Stem(other) == Stem(op_type)) return other;
  return "";
}

absl::Status ConvertOp(const OpDesc& desc, OnnxGraph* graph) {
  const OnnxConverter* converter = FindOnnxConverter(desc.type);
  if (converter == nullptr) {
    const std::string other = OtherVersion(desc.type);
    return Unimplemented("op '%s' cannot be exported to ONNX%s", desc.type,
                         other.empty() ? "" : "; '" + other + "' can");
  }
  OnnxOp op(desc, converter->onnx_type, graph);
  converter->convert(&op);
  return op.Finish();
}

absl::StatusOr<std::string> Convert(const InferenceModel& model, int opset) {
  OnnxGraph graph(model, opset);
  for (const OpDesc& op : model.program.global().ops)
    PD_RETURN_IF_ERROR(ConvertOp(op, &graph));
  return graph.Finish();
}

}  // namespace

const OnnxConverter* FindOnnxConverter(const std::string& op_type) {
  const auto it = Table().find(op_type);
  return it == Table().end() ? nullptr : &it->second;
}

std::vector<std::string> OnnxOpTypes() {
  std::vector<std::string> types;
  for (const auto& [type, converter] : Table()) types.push_back(type);
  return types;
}

absl::StatusOr<std::string> ToOnnx(const InferenceModel& model, int opset) {
  if (opset < kMinOnnxOpset || opset > kMaxOnnxOpset)
    return OutOfRange("opset %d cannot be written; it must be in [%d, %d]",
                      opset, kMinOnnxOpset, kMaxOnnxOpset);
  auto bytes = Convert(model, opset);
  if (bytes.ok()) return bytes;
  // The opset is never raised silently, but which one would do is worth
  // knowing.
  for (int later = opset + 1; later <= kMaxOnnxOpset; ++later)
    if (Convert(model, later).ok())
      return Unimplemented("%s; it needs opset >= %d", bytes.status().message(),
                           later);
  return bytes.status();
}

absl::Status WriteOnnxModel(const InferenceModel& model, int opset,
                            const std::string& path) {
  PD_ASSIGN_OR_RETURN(const std::string bytes, ToOnnx(model, opset));
  return WriteOnnxBytes(bytes, path);
}

absl::Status WriteOnnxBytes(const std::string& bytes, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) PD_RETURN_IF_ERROR(MakeDirectories(folder));
  return WriteFile(path, bytes);
}

}  // namespace pd
