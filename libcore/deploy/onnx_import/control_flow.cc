// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan as conditional_block and while over blocks of the program.
#include <algorithm>
#include <functional>
#include <set>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_import/importers.h"

namespace pd {
namespace {

using Names = OnnxNode::Names;
using OnnxList = std::vector<OnnxValue>;

// A body whose state changes shape is imported again, so often.
constexpr int kMaxRounds = 4;

// Variables around `block` that its ops name.
Names Captured(const BlockDesc& block) {
  std::set<std::string> own, seen;
  for (const VarDesc& var : block.vars) own.insert(var.name);
  Names names;
  for (const OpDesc& op : block.ops)
    for (const auto& slot : op.inputs)
      for (const std::string& name : slot.second)
        if (own.count(name) == 0 && seen.insert(name).second)
          names.push_back(name);
  return names;
}

// Variables around `block` that its ops write, beside those of `known`.
Names Written(const BlockDesc& block, Names known) {
  std::set<std::string> seen(known.begin(), known.end());
  for (const VarDesc& var : block.vars) seen.insert(var.name);
  for (const OpDesc& op : block.ops)
    for (const auto& slot : op.outputs)
      for (const std::string& name : slot.second)
        if (seen.insert(name).second) known.push_back(name);
  return known;
}

OpDesc Assign(const std::string& from, const std::string& to) {
  OpDesc op;
  op.type = "assign";
  op.SetInput("X", {from});
  op.SetOutput("Out", {to});
  return op;
}

// Declares a variable like `like` in the current block.
std::string Declare(OnnxNode* node, const VarDesc& like) {
  VarDesc var = like;
  var.name = node->importer().NewVariable();
  var.persistable = var.is_parameter = var.need_check_feed = false;
  const std::string name = var.name;
  node->importer().builder().AddVar(std::move(var));
  return name;
}

std::string DeclareKind(OnnxNode* node, VarKind kind) {
  VarDesc var;
  var.kind = kind;
  var.name = node->importer().NewVariable();
  const std::string name = var.name;
  node->importer().builder().AddVar(std::move(var));
  return name;
}

// A branch as a conditional_block; gives the variables of its results.
Names Branch(OnnxNode* node, const std::string& condition,
             const OnnxFileGraph& graph) {
  OnnxImporter& importer = node->importer();
  const int32_t outer = importer.current_block();
  const int32_t block = importer.PushBlock();
  auto results = importer.ImportGraph(graph, {});
  Names outs;
  if (results.ok()) {
    for (const OnnxValue& value : *results) {
      const VarDesc like = *importer.FindVar(value.variable);
      importer.PopBlock();
      outs.push_back(Declare(node, like));
      // Back into the block, to write the variable outside of it.
      node->Fail(importer.builder_of(block).Append(
          Assign(value.variable, outs.back())));
      importer.EnterBlock(block);
    }
  }
  importer.EnterBlock(outer);
  node->Fail(results.status());
  if (!node->ok()) return {};
  OpDesc op;
  op.type = "conditional_block";
  op.SetInput("Cond", {condition});
  Names inputs = Captured(importer.builder_of(block).block());
  op.SetInput("Input", std::move(inputs));
  op.SetOutput("Out", Written(importer.builder_of(block).block(), outs));
  op.SetOutput("Scope", {DeclareKind(node, VarKind::kStepScopes)});
  op.attrs["sub_block"] = BlockRef{block};
  op.attrs["is_scalar_condition"] = true;
  node->Fail(importer.builder().Append(std::move(op)));
  return outs;
}

std::string AsCondition(OnnxNode* node, const std::string& x) {
  return node->Reshape(node->Cast(x, DType::kBool), {1});
}

// One of the two results, with what is known of both shapes.
std::string Selected(OnnxNode* node, const std::string& otherwise,
                     const std::string& then, const std::string& mask) {
  Shape shape = node->ShapeOf(then);
  const Shape other = node->ShapeOf(otherwise);
  const std::string out =
      node->Emit("select_input", {{"X", {otherwise, then}}, {"Mask", {mask}}});
  if (node->ok() && shape.size() != other.size())
    node->Fail(FailedPrecondition("its graphs give shapes %s and %s",
                                  ToString(shape), ToString(other)));
  if (!node->ok()) return "";
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != other[i]) shape[i] = -1;
  node->importer().builder().MutableVar(out)->shape = shape;
  return out;
}

void ImportIf(OnnxNode* node) {
  const OnnxFileGraph* graphs[] = {node->Graph("else_branch"),
                                   node->Graph("then_branch")};
  const auto known = node->KnownInts(0);
  if (!node->ok()) return;
  if (known.has_value() && known->size() == 1) {
    auto results =
        node->importer().ImportGraph(*graphs[(*known)[0] != 0 ? 1 : 0], {});
    if (!results.ok()) return node->Fail(results.status());
    for (size_t i = 0; i < results->size(); ++i)
      node->GiveValue(i, (*results)[i]);
    return;
  }
  const std::string condition = AsCondition(node, node->In(0));
  const Names then = Branch(node, condition, *graphs[1]);
  const std::string otherwise = node->Unary("logical_not", condition);
  const Names other = Branch(node, otherwise, *graphs[0]);
  const std::string mask = node->Cast(condition, DType::kInt32);
  if (node->ok() &&
      (then.size() != other.size() || then.size() < node->OutputCount()))
    node->Fail(InvalidArgument("its graphs have %d and %d outputs", then.size(),
                               other.size()));
  for (size_t i = 0; i < then.size() && node->ok(); ++i)
    if (node->Wants(i)) node->Give(i, Selected(node, other[i], then[i], mask));
}

// A while: state that goes around, and arrays that grow by one each time.
struct Loop {
  const OnnxFileGraph* body = nullptr;
  std::string limit;           // int64 [1]; "" when there is none
  std::string condition;       // bool [1], read before each round
  std::string count;           // int64 [1]
  Names states;                // variables that the body overwrites
  std::vector<int64_t> axes;   // of the results that are collected
  bool condition_out = false;  // the body's first output is the condition
};

// Gives the states the shapes after a round; -1 where an extent changes.
bool Generalize(OnnxNode* node, const Loop& loop, const OnnxList& results) {
  bool changed = false;
  for (size_t i = 0; i < loop.states.size(); ++i) {
    const size_t at = i + (loop.condition_out ? 1 : 0);
    const VarDesc* now = node->importer().FindVar(results[at].variable);
    VarDesc* state = node->importer()
                         .builder_of(node->importer().parent_block())
                         .MutableVar(loop.states[i]);
    if (state == nullptr || now == nullptr || now->dtype != state->dtype ||
        now->shape.size() != state->shape.size()) {
      node->Fail(Unimplemented("state %d changes its type or rank", i));
      return false;
    }
    for (size_t k = 0; k < now->shape.size(); ++k) {
      if (now->shape[k] == state->shape[k] || state->shape[k] == -1) continue;
      state->shape[k] = -1;
      changed = true;
    }
  }
  return changed;
}

absl::Status EndOfRound(OnnxNode* node, const Loop& loop,
                        const OnnxList& results, const Names& arrays) {
  OnnxImporter& importer = node->importer();
  const size_t first = loop.condition_out ? 1 : 0;
  // Copies first: a state may be another one's next value.
  Names next;
  for (size_t i = 0; i < loop.states.size(); ++i)
    next.push_back(node->Unary("assign", results[first + i].variable));
  for (size_t i = 0; i < arrays.size(); ++i) {
    OpDesc op;
    op.type = "write_to_array";
    op.SetInput("X", {results[first + loop.states.size() + i].variable});
    op.SetInput("I", {loop.count});
    op.SetOutput("Out", {arrays[i]});
    PD_RETURN_IF_ERROR(importer.builder().Append(std::move(op)));
  }
  for (size_t i = 0; i < next.size(); ++i)
    PD_RETURN_IF_ERROR(
        importer.builder().Append(Assign(next[i], loop.states[i])));
  const std::string count = node->Affine(loop.count, 1, 1);
  std::string go_on;
  if (!loop.limit.empty()) go_on = node->Binary("less_than", count, loop.limit);
  if (loop.condition_out) {
    const std::string said = AsCondition(node, results[0].variable);
    go_on = go_on.empty() ? said : node->Binary("logical_and", go_on, said);
  }
  PD_RETURN_IF_ERROR(node->status());
  PD_RETURN_IF_ERROR(importer.builder().Append(Assign(count, loop.count)));
  return importer.builder().Append(Assign(go_on, loop.condition));
}

// Imports the body into a block and appends the while; gives the arrays.
Names RunLoop(OnnxNode* node, const Loop& loop,
              const std::function<OnnxList()>& inputs) {
  OnnxImporter& importer = node->importer();
  const int32_t outer = importer.current_block();
  const size_t first = loop.condition_out ? 1 : 0;
  Names arrays;
  for (size_t i = 0; i < loop.axes.size(); ++i)
    arrays.push_back(DeclareKind(node, VarKind::kLodTensorArray));
  int32_t block = -1;
  for (int round = 0; node->ok(); ++round) {
    block = importer.PushBlock();
    auto results = importer.ImportGraph(*loop.body, inputs());
    if (!results.ok()) node->Fail(results.status());
    if (node->ok() &&
        results->size() != first + loop.states.size() + arrays.size())
      node->Fail(InvalidArgument("its body has %d outputs; expected %d",
                                 results->size(),
                                 first + loop.states.size() + arrays.size()));
    if (node->ok() && Generalize(node, loop, *results)) {
      if (round >= kMaxRounds)
        node->Fail(Unimplemented("the shapes of its states"));
      importer.EnterBlock(outer);
      continue;
    }
    if (node->ok()) node->Fail(EndOfRound(node, loop, *results, arrays));
    importer.EnterBlock(outer);
    break;
  }
  importer.EnterBlock(outer);
  if (!node->ok()) return {};
  OpDesc op;
  op.type = "while";
  Names read = Captured(importer.builder_of(block).block());
  read.erase(std::remove(read.begin(), read.end(), loop.condition), read.end());
  op.SetInput("X", std::move(read));
  op.SetInput("Condition", {loop.condition});
  Names written = loop.states;
  written.insert(written.end(), arrays.begin(), arrays.end());
  written.push_back(loop.count);
  written.push_back(loop.condition);
  op.SetOutput("Out",
               Written(importer.builder_of(block).block(), std::move(written)));
  op.SetOutput("StepScopes", {DeclareKind(node, VarKind::kStepScopes)});
  op.attrs["sub_block"] = BlockRef{block};
  op.attrs["is_test"] = true;
  node->Fail(importer.builder().Append(std::move(op)));
  return arrays;
}

// The collected values, stacked along their axis.
std::string Collected(OnnxNode* node, const std::string& array, int64_t axis) {
  return node->EmitMany(
      "tensor_array_to_tensor", {{"X", {array}}}, {{"Out", 1}, {"OutIndex", 1}},
      {{"axis", static_cast<int32_t>(axis)}, {"use_stack", true}})[0];
}

std::string Copy(OnnxNode* node, const std::string& x) {
  return node->Unary("assign", x);
}

OnnxValue ValueOf(const std::string& variable) {
  OnnxValue value;
  value.variable = variable;
  return value;
}

void ImportLoop(OnnxNode* node) {
  Loop loop;
  loop.body = node->Graph("body");
  if (!node->ok()) return;
  loop.condition_out = true;
  node->importer().set_folding(false);
  if (node->Has(0))
    loop.limit = node->Reshape(node->Cast(node->In(0), DType::kInt64), {1});
  loop.count = node->Full({1}, 0, DType::kInt64);
  std::string go_on;
  if (node->Has(1)) go_on = AsCondition(node, node->In(1));
  if (!loop.limit.empty()) {
    const std::string any = node->Binary("less_than", loop.count, loop.limit);
    go_on = go_on.empty() ? any : node->Binary("logical_and", go_on, any);
  }
  loop.condition =
      go_on.empty() ? node->Full({1}, 1, DType::kBool) : Copy(node, go_on);
  for (size_t i = 2; i < node->InputCount(); ++i)
    loop.states.push_back(Copy(node, node->In(i)));
  const size_t results = loop.body->outputs.size();
  if (results < 1 + loop.states.size())
    node->Fail(InvalidArgument("its body has %d outputs for %d states", results,
                               loop.states.size()));
  if (!node->ok()) return;
  loop.axes.assign(results - 1 - loop.states.size(), 0);
  node->importer().set_folding(true);
  const Names arrays = RunLoop(node, loop, [&] {
    OnnxList in = {ValueOf(node->Reshape(loop.count, {})),
                   ValueOf(node->Reshape(loop.condition, {}))};
    for (const std::string& state : loop.states) in.push_back(ValueOf(state));
    return in;
  });
  if (!node->ok()) return;
  for (size_t i = 0; i < loop.states.size(); ++i) node->Give(i, loop.states[i]);
  for (size_t i = 0; i < arrays.size(); ++i)
    if (node->Wants(loop.states.size() + i))
      node->Give(loop.states.size() + i, Collected(node, arrays[i], 0));
}

// Before opset 9 the first input is lengths, and all have a batch axis first:
// a batch of one loses it.
void ImportScan(OnnxNode* node) {
  Loop loop;
  loop.body = node->Graph("body");
  const auto scanned = node->Int("num_scan_inputs", 0);
  const bool batched = node->opset() < 9;
  const size_t skip = batched ? 1 : 0;
  if (!node->ok()) return;
  const auto inputs = static_cast<int64_t>(node->InputCount() - skip);
  if (scanned < 1 || scanned > inputs)
    return node->Fail(
        InvalidArgument("%d of %d inputs are scanned", scanned, inputs));
  const auto states = static_cast<size_t>(inputs - scanned);
  const size_t outs = loop.body->outputs.size();
  if (outs < states)
    return node->Fail(InvalidArgument("its body has %d outputs", outs));
  const auto zero = [](int64_t n) {
    return OnnxNode::Ints(static_cast<size_t>(n), 0);
  };
  const OnnxNode::Ints axes = node->AttrInts("scan_input_axes", zero(scanned));
  loop.axes = node->AttrInts("scan_output_axes",
                             zero(static_cast<int64_t>(outs - states)));
  const auto forwards = [&](const char* attr) {
    const auto d = node->AttrInts(attr);
    return std::all_of(d.begin(), d.end(), [](int64_t v) { return v == 0; });
  };
  if (!forwards("scan_input_directions") || !forwards("directions") ||
      !forwards("scan_output_directions") ||
      axes.size() != static_cast<size_t>(scanned) ||
      loop.axes.size() != outs - states || (batched && node->Has(0)))
    return node->Fail(Unimplemented("directions, axes or lengths of a scan"));
  const auto in = [&](size_t i) {
    const std::string x = node->In(i + skip);
    if (!batched) return x;
    if (node->Extent(x, 0) != 1)
      node->Fail(Unimplemented("a scan over a batch"));
    return node->Squeeze(x, {0});
  };
  node->importer().set_folding(false);
  Names sequences;
  for (size_t i = 0; i < axes.size(); ++i) sequences.push_back(in(states + i));
  const int64_t length_axis = node->Axis(axes[0], node->Rank(sequences[0]));
  loop.limit = node->Slice(node->ShapeVar(sequences[0]), {0}, {length_axis},
                           {length_axis + 1});
  loop.count = node->Full({1}, 0, DType::kInt64);
  loop.condition = node->Binary("less_than", loop.count, loop.limit);
  for (size_t i = 0; i < states; ++i) loop.states.push_back(Copy(node, in(i)));
  node->importer().set_folding(true);
  const Names arrays = RunLoop(node, loop, [&] {
    OnnxList values;
    for (const std::string& state : loop.states)
      values.push_back(ValueOf(state));
    for (size_t i = 0; i < sequences.size(); ++i) {
      const int64_t axis = node->Axis(axes[i], node->Rank(sequences[i]));
      values.push_back(ValueOf(
          node->Squeeze(node->Gather(sequences[i], loop.count, axis), {axis})));
    }
    return values;
  });
  if (!node->ok()) return;
  const auto give = [&](size_t i, const std::string& x) {
    node->Give(i, batched ? node->Unsqueeze(x, {0}) : x);
  };
  for (size_t i = 0; i < states; ++i) give(i, loop.states[i]);
  for (size_t i = 0; i < arrays.size(); ++i)
    if (node->Wants(states + i))
      give(states + i, Collected(node, arrays[i], loop.axes[i]));
}

}  // namespace

OnnxImportEntries ControlFlowImports() {
  return {
      {"If", ImportIf},
      {"Loop", ImportLoop},
      {"Scan", ImportScan},
  };
}

}  // namespace pd
