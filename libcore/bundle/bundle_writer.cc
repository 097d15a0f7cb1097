// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/bundle_writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"
#include "libcore/bundle/lowerings.h"
#include "libcore/bundle/runtime/bundle_format.h"
#include "libcore/deploy/optimize.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

const std::map<std::string, Lowering>& LoweringTable() {
  static const auto* table = [] {
    auto* all = new std::map<std::string, Lowering>;
    for (const Lowerings& part :
         {ElementLowerings(), ProductLowerings(), RecurrentLowerings(),
          ReduceLowerings(), ShapeLowerings(), WindowLowerings()})
      for (const Lowering& lowering : part)
        PD_INVARIANT(all->emplace(lowering.op_type, lowering).second);
    return all;
  }();
  return *table;
}

// Attributes that ops leave out; folding reads them.
absl::Status FillBundleAttributes(const OpRegistry& registry,
                                  ProgramDesc* program) {
  std::vector<OpDesc>& ops = program->global().ops;
  for (size_t i = 0; i < ops.size(); ++i)
    if (const OpDef* def = registry.Find(ops[i].type))
      PD_RETURN_IF_ERROR(
          Annotate(def->NormalizeAttrs(&ops[i]),
                   absl::StrFormat("op %d '%s'", i, ops[i].type)));
  return absl::OkStatus();
}

absl::Status LowerOp(const OpDesc& desc, BundleBuilder* builder) {
  const Lowering* lowering = FindLowering(desc.type);
  if (lowering == nullptr)
    return Unimplemented("bundles have no kernel for it");
  BundleOp op(desc, lowering->word, builder);
  lowering->lower(&op);
  return op.Finish();
}

std::string FirstResult(const OpDesc& op) {
  for (const auto& slot : op.outputs)
    for (const std::string& name : slot.second)
      if (name != kEmptyVar) return name;
  return "";
}

absl::Status AddInputs(BundleBuilder* builder) {
  const InferenceModel& model = builder->model;
  for (const std::string& name : model.names.feeds) {
    const VarDesc* var = model.program.global().FindVar(name);
    if (var == nullptr) return NotFound("input '%s' is not declared", name);
    BundleValue value;
    value.name = name;
    const auto dtype = BundleType(var->dtype);
    if (!dtype.ok())
      return Annotate(dtype.status(), absl::StrCat("input '", name, "'"));
    value.dtype = *dtype;
    value.shape = var->shape;
    // PaddlePaddle declares extents below -1 where they are not known yet.
    for (int64_t& extent : value.shape) extent = std::max<int64_t>(extent, -1);
    if (value.shape.size() > pd_run::kMaxRank)
      return Unimplemented("input '%s' has rank %d; a bundle has at most %d",
                           name, value.shape.size(), pd_run::kMaxRank);
    builder->graph.inputs.push_back(builder->graph.Add(std::move(value)));
    builder->values[name] = builder->graph.inputs.back();
  }
  return absl::OkStatus();
}

// An output is a value of its own, with its name: a model may give an input, a
// parameter or one result twice.
absl::Status AddOutputs(BundleBuilder* builder) {
  BundleGraph& graph = builder->graph;
  for (const std::string& name : builder->model.names.fetches) {
    const auto found = builder->ValueOf(name);
    if (!found.ok())
      return Unimplemented("output '%s' is none that a bundle computes", name);
    uint32_t value = *found;
    const bool taken = !graph.values[value].name.empty() ||
                       graph.values[value].constant.has_value();
    if (taken) {
      BundleNode same;
      same.kernel = "reshape";
      same.layer = name;
      same.inputs = {value};
      // No axis is added.
      same.ints = {static_cast<int64_t>(pd_run::ReshapeMode::kUnsqueeze)};
      value = graph.Add({});
      same.outputs = {value};
      graph.nodes.push_back(std::move(same));
    }
    graph.values[value].name = name;
    graph.outputs.push_back(value);
  }
  return absl::OkStatus();
}

// Failures of one op type for one reason are one line.
absl::Status BundleFailures(
    const std::vector<std::pair<std::string, std::string>>& failures) {
  if (failures.size() == 1)
    return Unimplemented("%s: %s", failures[0].first, failures[0].second);
  std::string text =
      absl::StrCat(failures.size(), " operators cannot be in a bundle:");
  for (const auto& [place, reason] : failures)
    absl::StrAppend(&text, "\n  ", place, ": ", reason);
  return Unimplemented("%s", text);
}

// Appends numbers as they lie in memory; the tree is for little-endian
// machines.
class Buffer {
 public:
  template <typename T>
  void Put(T number) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &number, sizeof(T));
    bytes_.append(bytes, sizeof(T));
  }
  void Count(size_t count) { Put(static_cast<uint32_t>(count)); }
  void String(const std::string& text) {
    Count(text.size());
    bytes_ += text;
  }
  template <typename T>
  void List(const std::vector<T>& list) {
    Count(list.size());
    for (const T& item : list) Put(item);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

size_t Padded(size_t bytes) {
  return (bytes + pd_run::kAlignment - 1) / pd_run::kAlignment *
         pd_run::kAlignment;
}

// The graph with weights from `first` on, and how long the file is.
std::string GraphBytes(const BundleGraph& graph, size_t first, size_t* end) {
  Buffer buffer;
  buffer.Count(graph.values.size());
  for (const BundleValue& value : graph.values) {
    const Shape& shape =
        value.constant.has_value() ? value.constant->shape : value.shape;
    buffer.String(value.name);
    buffer.Put(static_cast<uint32_t>(value.dtype));
    buffer.Count(shape.size());
    for (const int64_t extent : shape) buffer.Put(extent);
    uint64_t place = 0;
    if (value.constant.has_value()) {
      place = first;
      first = Padded(first + value.constant->size_bytes());
    }
    buffer.Put(place);
  }
  *end = first;
  buffer.List(graph.inputs);
  buffer.List(graph.outputs);
  buffer.Count(graph.nodes.size());
  for (const BundleNode& node : graph.nodes) {
    buffer.String(node.kernel);
    buffer.String(node.layer);
    buffer.List(node.inputs);
    buffer.List(node.outputs);
    buffer.List(node.ints);
    buffer.List(node.floats);
  }
  return buffer.bytes();
}

}  // namespace

const Lowering* FindLowering(const std::string& op_type) {
  const auto it = LoweringTable().find(op_type);
  return it == LoweringTable().end() ? nullptr : &it->second;
}

std::vector<std::string> BundleOpTypes() {
  std::vector<std::string> types;
  for (const auto& [type, lowering] : LoweringTable()) types.push_back(type);
  return types;
}

absl::StatusOr<BundleGraph> LowerModel(const OpRegistry& registry,
                                       InferenceModel model) {
  PD_RETURN_IF_ERROR(FillBundleAttributes(registry, &model.program));
  PD_RETURN_IF_ERROR(FoldBatchNorms(&model).status());
  BundleBuilder builder(model);
  PD_RETURN_IF_ERROR(AddInputs(&builder));
  std::vector<std::pair<std::string, std::string>> failures;
  const std::vector<OpDesc>& ops = model.program.global().ops;
  for (size_t i = 0; i < ops.size(); ++i) {
    const absl::Status status = LowerOp(ops[i], &builder);
    if (status.ok()) continue;
    failures.emplace_back(absl::StrFormat("op %d '%s', which makes '%s'", i,
                                          ops[i].type, FirstResult(ops[i])),
                          std::string(status.message()));
    // Ops that read what it makes are not to blame.
    for (const auto& slot : ops[i].outputs)
      for (const std::string& name : slot.second)
        builder.values.emplace(name, builder.graph.Add({}));
  }
  if (!failures.empty()) return BundleFailures(failures);
  PD_RETURN_IF_ERROR(AddOutputs(&builder));
  FuseNodes(&builder.graph);
  DropUnusedValues(&builder.graph);
  return std::move(builder.graph);
}

absl::StatusOr<std::string> BundleBytes(const BundleGraph& graph) {
  for (const BundleValue& value : graph.values)
    if (value.constant.has_value() &&
        value.constant->shape.size() > pd_run::kMaxRank)
      return OutOfRange("a parameter has rank %d; a bundle has at most %d",
                        value.constant->shape.size(), pd_run::kMaxRank);
  // Places do not change the graph's length, so it is known after one writing.
  size_t end = 0;
  const size_t graph_bytes = GraphBytes(graph, 0, &end).size();
  const size_t first = Padded(pd_run::kHeaderBytes + graph_bytes);
  const std::string nodes = GraphBytes(graph, first, &end);
  Buffer header;
  for (size_t i = 0; i < pd_run::kMagicBytes; ++i)
    header.Put(pd_run::kMagic[i]);
  header.Put(pd_run::kFormatVersion);
  header.Put(uint32_t{0});
  header.Put(static_cast<uint64_t>(end));
  header.Put(static_cast<uint64_t>(graph_bytes));
  std::string bytes = header.bytes() + nodes;
  bytes.reserve(end);
  bytes.resize(first, '\0');
  for (const BundleValue& value : graph.values) {
    if (!value.constant.has_value()) continue;
    bytes.append(reinterpret_cast<const char*>(value.constant->bytes.get()),
                 value.constant->size_bytes());
    bytes.resize(Padded(bytes.size()), '\0');
  }
  return bytes;
}

absl::Status WriteBundle(const OpRegistry& registry,
                         const InferenceModel& model, const std::string& path) {
  PD_ASSIGN_OR_RETURN(const BundleGraph graph, LowerModel(registry, model));
  PD_ASSIGN_OR_RETURN(const std::string bytes, BundleBytes(graph));
  PD_RETURN_IF_ERROR(MakeDirectories(FolderOf(path)));
  return WriteFile(path, bytes);
}

}  // namespace pd
