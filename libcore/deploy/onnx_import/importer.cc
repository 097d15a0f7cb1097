// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx_import/importer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/class_names.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/deploy/onnx_import/importers.h"
#include "libcore/deploy/onnx_import/node.h"
#include "libcore/deploy/onnx_import/unsigned.h"
#include "libcore/exec/session.h"
#include "libcore/program/match_feeds.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

// Scalars have no dimensions from PaddlePaddle 2.5 on; ONNX's never had any.
constexpr int64_t kProgramVersion = 2006000;
// Constants computed while importing have at most so many bytes, or twice as
// many as their inputs.
constexpr int64_t kMaxFolded = int64_t{1} << 20;
// Of graphs in nodes and calls in functions.
constexpr int kMaxDepth = 64;
// No ONNX name that is printable starts so.
constexpr char kTemporary[] = "\x01v";

bool IsTemporary(const std::string& variable) {
  return absl::StartsWith(variable, kTemporary);
}

std::string Describe(const OnnxFileNode& node) {
  std::string text = node.op_type;
  if (!node.domain.empty()) text = absl::StrCat(node.domain, ":", text);
  std::string name = node.name;
  if (name.empty() && !node.outputs.empty()) name = node.outputs.front();
  return absl::StrCat("node '", name, "' (", text, ")");
}

// An initializer as a value.
OnnxValue InitializerOf(const OnnxFileGraph& graph, const std::string& name,
                        const Array& array) {
  OnnxValue value;
  value.constant = array;
  const auto bits = graph.unsigned_bits.find(name);
  if (bits != graph.unsigned_bits.end()) value.unsigned_bits = bits->second;
  return value;
}

// A node of a function with the caller's attributes in place.
OnnxFileNode Resolve(OnnxFileNode node, const OnnxFileFunction& function,
                     const OnnxFileNode& call) {
  std::map<std::string, OnnxFileAttr> attrs;
  for (auto& [name, attr] : node.attrs) {
    if (attr.reference.empty()) {
      attrs.emplace(name, std::move(attr));
      continue;
    }
    const auto given = call.attrs.find(attr.reference);
    const auto fallback = function.defaults.find(attr.reference);
    if (given != call.attrs.end())
      attrs.emplace(name, given->second);
    else if (fallback != function.defaults.end())
      attrs.emplace(name, fallback->second);
  }
  node.attrs = std::move(attrs);
  return node;
}

}  // namespace

OnnxImporter::OnnxImporter(const OpRegistry& registry, const OnnxFile& file,
                           const OnnxKnownInputs& known)
    : registry_(registry), file_(file), known_(known) {
  model_.program.version = kProgramVersion;
  model_.program.blocks.emplace_back();
  builders_.push_back(
      std::make_unique<BlockBuilder>(&registry_, &model_.program));
  scopes_.emplace_back();
  closed_.push_back(0);
}

absl::StatusOr<InferenceModel> OnnxImporter::Import() {
  for (const auto& [name, array] : file_.graph.initializers)
    PD_RETURN_IF_ERROR(Define(name, InitializerOf(file_.graph, name, array)));
  PD_RETURN_IF_ERROR(DeclareInputs());
  for (const OnnxFileValue& output : file_.graph.outputs) {
    outputs_.insert(output.name);
    taken_.insert(output.name);
  }
  PD_RETURN_IF_ERROR(ImportNodes(file_.graph.nodes, file_.opsets));
  PD_RETURN_IF_ERROR(DeclareOutputs());
  return Finish();
}

absl::Status OnnxImporter::DeclareInputs() {
  for (const OnnxFileValue& input : file_.graph.inputs) {
    // Files of the first versions list weights among the inputs.
    if (file_.graph.initializers.count(input.name) > 0) continue;
    if (!input.is_tensor)
      return Unimplemented("input '%s' is no tensor", input.name);
    const auto dtype = HolderFromOnnx(input.element_type);
    if (!dtype.has_value())
      return Unimplemented(
          "input '%s' has element type %s; PaddlePaddle has "
          "no such tensors",
          input.name, OnnxTypeName(input.element_type));
    const auto shape = known_.shapes.find(input.name);
    if (shape == known_.shapes.end() && !input.shape.has_value())
      return FailedPrecondition(
          "input '%s' does not say its number of dimensions", input.name);
    VarDesc var;
    var.name = input.name;
    var.dtype = *dtype;
    var.shape = shape != known_.shapes.end() ? shape->second : *input.shape;
    var.need_check_feed = true;
    var.stop_gradient = true;
    OnnxValue value;
    value.unsigned_bits = OnnxUnsignedBits(input.element_type);
    const auto fixed = known_.values.find(input.name);
    if (fixed != known_.values.end()) {
      value.constant = fixed->second;
      PD_RETURN_IF_ERROR(FitDType(var, "", &*value.constant));
    } else {
      value.variable = input.name;
    }
    PD_RETURN_IF_ERROR(Define(input.name, std::move(value)));
    taken_.insert(input.name);
    model_.names.feeds.push_back(input.name);
    builder().AddVar(std::move(var));
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::DeclareOutputs() {
  for (const OnnxFileValue& output : file_.graph.outputs) {
    const std::string& name = output.name;
    OnnxValue* value = Find(name);
    if (value == nullptr)
      return InvalidArgument("output '%s' is made by no node", name);
    if (value->is_list) return Unimplemented("output '%s' is a sequence", name);
    if (output.element_type != 0 &&
        OnnxUnsignedBits(output.element_type) != value->unsigned_bits)
      return InvalidArgument(
          "output '%s' is declared %s; it is of %d unsigned bits", name,
          OnnxTypeName(output.element_type), value->unsigned_bits);
    const auto& fetches = model_.names.fetches;
    if (std::find(fetches.begin(), fetches.end(), name) != fetches.end())
      continue;
    model_.names.fetches.push_back(name);
    const std::string variable = VariableOf(value, name);
    if (variable == name) continue;  // an input
    const auto other = renames_.find(variable);
    if (IsTemporary(variable) &&
        (other == renames_.end() || outputs_.count(other->second) == 0)) {
      renames_[variable] = name;
      continue;
    }
    OpDesc op;
    op.type = "assign";
    op.SetInput("X", {variable});
    const std::string copy = NewVariable();
    op.SetOutput("Out", {copy});
    PD_RETURN_IF_ERROR(builder().Append(std::move(op)));
    renames_[copy] = name;
  }
  TakeClassMetadata(file_.metadata, &model_.names);
  return absl::OkStatus();
}

OnnxValue* OnnxImporter::Find(const std::string& name) {
  for (size_t i = scopes_.size(); i > closed_.back(); --i) {
    const auto it = scopes_[i - 1].find(name);
    if (it != scopes_[i - 1].end()) return &it->second;
  }
  return nullptr;
}

absl::Status OnnxImporter::Define(const std::string& name, OnnxValue value) {
  if (name.empty() || name.find('\0') != std::string::npos)
    return DataLoss("a value has no name, or one with a NUL in it");
  // The first name of a variable is its name.
  if (IsTemporary(value.variable) && outputs_.count(name) == 0)
    renames_.try_emplace(value.variable, name);
  if (!scopes_.back().emplace(name, std::move(value)).second)
    return DataLoss("value '%s' is made twice", name);
  return absl::OkStatus();
}

std::string OnnxImporter::VariableOf(OnnxValue* value,
                                     const std::string& hint) {
  if (value->variable.empty() && value->constant.has_value())
    value->variable = AddParam(hint, *value->constant);
  return value->variable;
}

std::string OnnxImporter::AddParam(const std::string& hint,
                                   const Array& array) {
  std::string name = hint.empty() ? "constant" : hint;
  for (int i = 0; !taken_.insert(name).second; ++i)
    name = absl::StrCat(hint.empty() ? "constant" : hint, "_", i);
  VarDesc var;
  var.name = name;
  var.dtype = array.dtype;
  var.shape = array.shape;
  var.persistable = true;
  var.is_parameter = IsFloating(array.dtype);
  var.stop_gradient = !var.is_parameter;
  builder_of(0).AddVar(std::move(var));
  model_.params[name] = array;
  return name;
}

std::string OnnxImporter::NewVariable() {
  return absl::StrCat(kTemporary, next_variable_++);
}

int32_t OnnxImporter::PushBlock() {
  BlockDesc block;
  block.idx = static_cast<int32_t>(model_.program.blocks.size());
  block.parent_idx = current_;
  current_ = block.idx;
  model_.program.blocks.push_back(std::move(block));
  builders_.push_back(
      std::make_unique<BlockBuilder>(&registry_, &model_.program, current_));
  return current_;
}

absl::StatusOr<std::vector<OnnxValue>> OnnxImporter::ImportGraph(
    const OnnxFileGraph& graph, std::vector<OnnxValue> inputs) {
  if (depth_ >= kMaxDepth)
    return Unimplemented("graphs are nested more than %d deep", kMaxDepth);
  if (inputs.size() != graph.inputs.size())
    return InvalidArgument("the graph in it has %d inputs; expected %d",
                           graph.inputs.size(), inputs.size());
  ++depth_;
  scopes_.emplace_back();
  const auto import = [&]() -> absl::StatusOr<std::vector<OnnxValue>> {
    for (const auto& [name, array] : graph.initializers)
      PD_RETURN_IF_ERROR(Define(name, InitializerOf(graph, name, array)));
    for (size_t i = 0; i < inputs.size(); ++i)
      PD_RETURN_IF_ERROR(Define(graph.inputs[i].name, std::move(inputs[i])));
    PD_RETURN_IF_ERROR(ImportNodes(graph.nodes, opsets_));
    std::vector<OnnxValue> outputs;
    for (const OnnxFileValue& output : graph.outputs) {
      OnnxValue* value = Find(output.name);
      if (value == nullptr)
        return InvalidArgument("output '%s' of the graph in it is not made",
                               output.name);
      if (value->is_list)
        return Unimplemented("output '%s' of the graph in it is a sequence",
                             output.name);
      if (value->unsigned_bits != 0)
        return Unimplemented("output '%s' of the graph in it is uint%d",
                             output.name, value->unsigned_bits);
      VariableOf(value, output.name);
      outputs.push_back(*value);
    }
    return outputs;
  };
  auto outputs = import();
  scopes_.pop_back();
  --depth_;
  return outputs;
}

absl::Status OnnxImporter::ImportNodes(
    const std::vector<OnnxFileNode>& nodes,
    const std::map<std::string, int64_t>& opsets) {
  const std::map<std::string, int64_t> before = opsets_;
  opsets_ = opsets;
  for (const OnnxFileNode& node : nodes)
    PD_RETURN_IF_ERROR(Annotate(ImportNode(node, opsets), Describe(node)));
  opsets_ = before;
  return absl::OkStatus();
}

absl::StatusOr<bool> OnnxImporter::ImportCall(const OnnxFileNode& node) {
  const auto function = std::find_if(
      file_.functions.begin(), file_.functions.end(), [&](const auto& f) {
        return f.name == node.op_type && f.domain == node.domain;
      });
  if (function == file_.functions.end()) return false;
  if (depth_ >= kMaxDepth)
    return Unimplemented("functions are nested more than %d deep", kMaxDepth);
  if (node.inputs.size() > function->inputs.size() ||
      node.outputs.size() > function->outputs.size())
    return InvalidArgument("function '%s' has %d inputs and %d outputs",
                           function->name, function->inputs.size(),
                           function->outputs.size());
  Scope scope;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    OnnxValue* value = Find(node.inputs[i]);
    if (value == nullptr)
      return InvalidArgument("it reads '%s', which nothing has made before it",
                             node.inputs[i]);
    scope[function->inputs[i]] = *value;
  }
  std::vector<OnnxFileNode> nodes;
  for (const OnnxFileNode& inner : function->nodes)
    nodes.push_back(Resolve(inner, *function, node));
  ++depth_;
  closed_.push_back(scopes_.size());
  scopes_.push_back(std::move(scope));
  const absl::Status status = ImportNodes(
      nodes, function->opsets.empty() ? file_.opsets : function->opsets);
  std::vector<OnnxValue> outputs;
  for (size_t i = 0; i < node.outputs.size() && status.ok(); ++i) {
    const OnnxValue* value = Find(function->outputs[i]);
    outputs.push_back(value == nullptr ? OnnxValue() : *value);
  }
  scopes_.pop_back();
  closed_.pop_back();
  --depth_;
  PD_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!node.outputs[i].empty())
      PD_RETURN_IF_ERROR(Define(node.outputs[i], std::move(outputs[i])));
  return true;
}

absl::StatusOr<const OnnxUnsignedRule*> OnnxImporter::UnsignedRuleOf(
    const OnnxFileNode& node, int32_t* bits) {
  std::vector<int32_t> each;
  for (const std::string& name : node.inputs)
    if (const OnnxValue* value = name.empty() ? nullptr : Find(name))
      each.push_back(value->unsigned_bits);
  *bits = each.empty() ? 0 : *std::max_element(each.begin(), each.end());
  for (const auto& [name, attr] : node.attrs)
    *bits = std::max(*bits, attr.unsigned_bits);
  const auto to = node.attrs.find("to");
  if (node.domain.empty() && to != node.attrs.end() &&
      (node.op_type == "Cast" || node.op_type == "BitCast"))
    *bits = std::max(*bits, OnnxUnsignedBits(to->second.i));
  if (*bits == 0) return nullptr;
  const OnnxUnsignedRule* rule = FindOnnxUnsignedRule(node);
  if (rule == nullptr || *bits > rule->most_bits)
    return Unimplemented(
        "operator '%s' on uint%d, which PaddlePaddle's tensors lack",
        node.op_type, *bits);
  for (const int32_t one : each)
    if (rule->same && one != *bits)
      return InvalidArgument("its inputs are of several types, one is uint%d",
                             *bits);
  return rule;
}

absl::Status OnnxImporter::ImportNode(
    const OnnxFileNode& node, const std::map<std::string, int64_t>& opsets) {
  PD_ASSIGN_OR_RETURN(const bool called, ImportCall(node));
  if (called) return absl::OkStatus();
  const OnnxImportEntry* entry = FindOnnxImport(node.domain, node.op_type);
  if (entry == nullptr) {
    const std::string nearest = Nearest(node.op_type, OnnxImportTypes());
    return Unimplemented(
        "operator '%s'%s is not supported%s", node.op_type,
        node.domain.empty() ? "" : " of domain '" + node.domain + "'",
        nearest.empty() || nearest == node.op_type
            ? ""
            : "; the nearest that is: '" + nearest + "'");
  }
  const auto opset = opsets.find(node.domain);
  if (opset == opsets.end())
    return DataLoss("the file says no opset of domain '%s'", node.domain);
  if (node.domain.empty() &&
      (opset->second < 1 || opset->second > kMaxOnnxImportOpset))
    return Unimplemented("opset %d; those up to %d are supported",
                         opset->second, kMaxOnnxImportOpset);
  int32_t bits = 0;
  PD_ASSIGN_OR_RETURN(const OnnxUnsignedRule* rule,
                      UnsignedRuleOf(node, &bits));
  const bool folding = folding_;
  folding_ = folding_ && !entry->random;
  OnnxNode context(node, entry->op_type, opset->second, this);
  (rule != nullptr && rule->import != nullptr ? rule->import
                                              : entry->import)(&context);
  folding_ = folding;
  PD_RETURN_IF_ERROR(context.Finish());
  for (size_t i = 0; rule != nullptr && rule->from >= 0 &&
                     i < std::min(rule->outputs, node.outputs.size());
       ++i)
    if (OnnxValue* value = Find(node.outputs[i])) {
      const auto from = static_cast<size_t>(rule->from);
      const OnnxValue* like =
          from < node.inputs.size() ? Find(node.inputs[from]) : nullptr;
      value->unsigned_bits = like == nullptr ? bits : like->unsigned_bits;
    }
  return absl::OkStatus();
}

const Array* OnnxImporter::ParamOf(const std::string& variable) const {
  const auto it = model_.params.find(variable);
  return it == model_.params.end() ? nullptr : &it->second;
}

void OnnxImporter::FoldLast(std::vector<std::string>* outs) {
  auto& ops = builder().block().ops;
  if (!folding_ || ops.empty()) return;
  const OpDesc& op = ops.back();
  int64_t limit = kMaxFolded;
  for (const auto& slot : op.inputs) {
    for (const std::string& name : slot.second) {
      const Array* param = ParamOf(name);
      if (param == nullptr) return;
      limit += 2 * static_cast<int64_t>(param->size_bytes());
    }
  }
  for (const auto& [slot, names] : op.outputs) {
    for (const std::string& name : names) {
      const VarDesc* var = FindVar(name);
      if (var == nullptr || slot == "XShape") continue;
      const auto bytes = CheckedBytes(var->shape, SizeOf(var->dtype));
      if (!bytes.ok() || *bytes > limit) return;
    }
  }
  // Ops that cannot be computed now stay for later.
  const auto results = Compute(op, *outs);
  if (!results.ok()) return;
  ops.pop_back();
  for (std::string& out : *outs) out = AddParam("constant", results->at(out));
}

absl::StatusOr<NamedArrays> OnnxImporter::Compute(
    const OpDesc& op, const std::vector<std::string>& wanted) {
  ProgramDesc program;
  program.version = kProgramVersion;
  program.blocks.emplace_back();
  BlockDesc& block = program.global();
  block.ops.push_back(op);
  Session session(&registry_);
  std::set<std::string> seen;
  for (const SlotList* slots : {&op.inputs, &op.outputs}) {
    for (const auto& slot : *slots) {
      for (const std::string& name : slot.second) {
        const VarDesc* var = FindVar(name);
        if (var == nullptr || !seen.insert(name).second) continue;
        block.vars.push_back(*var);
        if (const Array* param = ParamOf(name))
          PD_RETURN_IF_ERROR(session.scope().Set(name, *param));
      }
    }
  }
  return session.Run(program, {}, wanted);
}

InferenceModel OnnxImporter::Finish() {
  // Variables get the names of their ONNX values where these are free.
  std::map<std::string, std::string> final_names;
  for (const auto& [variable, name] : renames_)
    if (outputs_.count(name) > 0) final_names[variable] = name;
  const auto rename = [&](const std::string& variable) -> std::string {
    if (!IsTemporary(variable)) return variable;
    const auto [it, added] = final_names.try_emplace(variable);
    if (!added) return it->second;
    const auto hint = renames_.find(variable);
    const std::string base =
        hint != renames_.end()
            ? hint->second
            : absl::StrCat("tmp_", variable.substr(sizeof(kTemporary) - 1));
    it->second = base;
    for (int i = 0; !taken_.insert(it->second).second; ++i)
      it->second = absl::StrCat(base, "_", i);
    return it->second;
  };
  std::vector<std::string> keep = model_.names.feeds;
  for (BlockDesc& block : model_.program.blocks) {
    for (OpDesc& op : block.ops)
      for (SlotList* slots : {&op.inputs, &op.outputs})
        for (auto& slot : *slots)
          for (std::string& name : slot.second) name = rename(name);
    for (VarDesc& var : block.vars) {
      // Left over from what was computed: no op names them.
      if (IsTemporary(var.name) && final_names.count(var.name) == 0) continue;
      var.name = rename(var.name);
    }
  }
  keep.insert(keep.end(), model_.names.fetches.begin(),
              model_.names.fetches.end());
  DropUnused(keep, &model_.program);
  for (auto it = model_.params.begin(); it != model_.params.end();)
    it = model_.program.global().FindVar(it->first) == nullptr
             ? model_.params.erase(it)
             : std::next(it);
  return std::move(model_);
}

}  // namespace pd
