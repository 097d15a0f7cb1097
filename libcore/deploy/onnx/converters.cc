// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx/converters.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx/conv_bias.h"
#include "libcore/deploy/onnx/fixed_boxes.h"
#include "libcore/deploy/onnx_export.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

const std::map<std::string, OnnxConverter>& Table() {
  static const auto* table = [] {
    auto* all = new std::map<std::string, OnnxConverter>;
    for (const OnnxConverters& part :
         {ActivationConverters(), ControlFlowConverters(), ConvConverters(),
          DetectionConverters(), ElementwiseConverters(), IndexConverters(),
          MatmulConverters(), NormConverters(), PoolConverters(),
          ProposalConverters(), QuantizeConverters(), RandomConverters(),
          RecurrentConverters(), ReduceConverters(), ResizeConverters(),
          ScatterConverters(), ShapeConverters()})
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
    return Unimplemented("it cannot be exported to ONNX%s",
                         other.empty() ? "" : "; '" + other + "' can");
  }
  OnnxOp op(desc, converter->onnx_type, graph);
  converter->convert(&op);
  return op.Finish();
}

// The first variable that an op makes.
std::string FirstOutput(const OpDesc& op) {
  for (const auto& slot : op.outputs)
    for (const std::string& name : slot.second)
      if (name != kEmptyVar) return name;
  return "";
}

absl::StatusOr<std::string> Convert(const InferenceModel& model, int opset,
                                    std::vector<OnnxFailure>* failures) {
  OnnxGraph graph(model, opset);
  ConvertBlock(0, &graph);
  *failures = graph.failures();
  if (!failures->empty())
    return Unimplemented("%d operators fail", failures->size());
  return graph.Finish();
}

// Failures of one op type for one reason are one line.
struct Complaint {
  const OnnxFailure* first = nullptr;
  size_t more = 0;
  std::string reason;

  std::string ToString() const {
    const std::string output =
        first->output.empty()
            ? ""
            : absl::StrCat(", which makes '", first->output, "'");
    const std::string others =
        more == 0 ? "" : absl::StrCat(" (and ", more, " more)");
    return absl::StrCat("block ", first->block, ", op ", first->op, " '",
                        first->type, "'", output, others, ": ", reason);
  }
};

// The least opset beyond `opset` at which the op of a failure converts; 0: none
// does.
int OpsetFor(const OnnxFailure& failure,
             const std::map<int, std::vector<OnnxFailure>>& later) {
  for (const auto& [opset, failures] : later)
    if (std::none_of(
            failures.begin(), failures.end(),
            [&](const OnnxFailure& f) { return f.SamePlace(failure); }))
      return opset;
  return 0;
}

// All failures as one error. The opset is never raised silently, but which one
// would do is worth knowing.
absl::Status Complain(const InferenceModel& model, int opset,
                      const std::vector<OnnxFailure>& failures) {
  std::map<int, std::vector<OnnxFailure>> later;
  for (int next = opset + 1; next <= kMaxOnnxOpset; ++next)
    Convert(model, next, &later[next]).IgnoreError();
  std::vector<Complaint> complaints;
  for (const OnnxFailure& failure : failures) {
    std::string reason(failure.status.message());
    if (const int needed = OpsetFor(failure, later); needed > 0)
      absl::StrAppend(&reason, "; it needs opset >= ", needed);
    const auto same = std::find_if(
        complaints.begin(), complaints.end(), [&](const Complaint& c) {
          return c.first->type == failure.type && c.reason == reason;
        });
    if (same != complaints.end())
      ++same->more;
    else
      complaints.push_back({&failure, 0, reason});
  }
  if (complaints.size() == 1)
    return absl::Status(failures[0].status.code(), complaints[0].ToString());
  std::string text = absl::StrCat(failures.size(),
                                  " operators cannot be written as ONNX of "
                                  "opset ",
                                  opset, ":");
  for (const Complaint& complaint : complaints)
    absl::StrAppend(&text, "\n  ", complaint.ToString());
  return absl::Status(failures[0].status.code(), text);
}

// Gives ops the attributes that they leave out.
absl::Status FillAttributes(const OpRegistry& registry, ProgramDesc* program) {
  for (BlockDesc& block : program->blocks)
    for (size_t i = 0; i < block.ops.size(); ++i)
      if (const OpDef* def = registry.Find(block.ops[i].type))
        PD_RETURN_IF_ERROR(
            Annotate(def->NormalizeAttrs(&block.ops[i]),
                     absl::StrFormat("block %d, op %d '%s'", block.idx, i,
                                     block.ops[i].type)));
  return absl::OkStatus();
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

void ConvertBlock(int32_t block, OnnxGraph* graph) {
  const int32_t before = graph->block();
  graph->set_block(block);
  const std::vector<OpDesc>& ops =
      graph->model().program.blocks[static_cast<size_t>(block)].ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].type.empty()) continue;  // MoveConvBiases made it needless
    const absl::Status status = ConvertOp(ops[i], graph);
    if (status.ok()) continue;
    graph->AddFailure({block, i, ops[i].type, FirstOutput(ops[i]), status});
    // Ops that read what it makes are not to blame.
    for (const auto& slot : ops[i].outputs)
      for (const std::string& name : slot.second) graph->NewValueOf(name);
  }
  graph->set_block(before);
}

absl::StatusOr<std::string> ToOnnx(const OpRegistry& registry,
                                   InferenceModel model, int opset) {
  if (opset < kMinOnnxOpset || opset > kMaxOnnxOpset)
    return OutOfRange("opset %d cannot be written; it must be in [%d, %d]",
                      opset, kMinOnnxOpset, kMaxOnnxOpset);
  PD_RETURN_IF_ERROR(FillAttributes(registry, &model.program));
  PD_RETURN_IF_ERROR(ComputeFixedBoxes(registry, &model));
  MoveConvBiases(&model);
  std::vector<OnnxFailure> failures;
  auto bytes = Convert(model, opset, &failures);
  if (!failures.empty()) return Complain(model, opset, failures);
  if (bytes.ok()) return bytes;
  for (int later = opset + 1; later <= kMaxOnnxOpset; ++later)
    if (Convert(model, later, &failures).ok())
      return Unimplemented("%s; it needs opset >= %d", bytes.status().message(),
                           later);
  return bytes.status();
}

absl::Status WriteOnnxModel(const OpRegistry& registry, InferenceModel model,
                            int opset, const std::string& path) {
  PD_ASSIGN_OR_RETURN(const std::string bytes,
                      ToOnnx(registry, std::move(model), opset));
  return WriteOnnxBytes(bytes, path);
}

absl::Status WriteOnnxBytes(const std::string& bytes, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) PD_RETURN_IF_ERROR(MakeDirectories(folder));
  return WriteFile(path, bytes);
}

}  // namespace pd
