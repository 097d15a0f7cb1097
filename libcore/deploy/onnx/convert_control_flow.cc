// SPDX-License-Identifier: Apache-2.0
// while and conditional_block as Loop and If; lists of tensors as sequences.
// PaddlePaddle's blocks overwrite variables around them. Each of these is a
// state of the Loop, or an output of the If, which gives what the variable was
// before it where the block does not run.
#include <algorithm>
#include <set>

#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

using Names = std::vector<std::string>;

// Variables around `block` that its ops write, scopes apart, in the order of
// the first write.
Names WrittenAround(OnnxOp* op, int32_t block) {
  const ProgramDesc& program = op->model().program;
  const BlockDesc& inside = program.blocks[static_cast<size_t>(block)];
  Names names;
  std::set<std::string> seen;
  for (const OpDesc& inner : inside.ops)
    for (const auto& slot : inner.outputs)
      for (const std::string& name : slot.second) {
        if (name == kEmptyVar || inside.FindVar(name) != nullptr) continue;
        const VarDesc* var = program.FindVar(block, name);
        if (var == nullptr || var->kind == VarKind::kStepScopes) continue;
        if (seen.insert(name).second) names.push_back(name);
      }
  return names;
}

const VarDesc& Around(OnnxOp* op, const std::string& name) {
  return *op->model().program.FindVar(op->graph()->block(), name);
}

// A value for a variable that has none where a block does not run: nothing
// reads it then, but ONNX wants one.
std::string Filler(OnnxOp* op, const VarDesc& var) {
  if (var.kind == VarKind::kLodTensorArray)
    return op->Emit("SequenceEmpty", {}, {{"dtype", OnnxNumberOf(var.dtype)}});
  std::vector<int64_t> shape = var.shape;
  for (int64_t& extent : shape) extent = std::max<int64_t>(extent, 1);
  return op->Emit("Expand", {op->Const(0, var.dtype), op->ConstInts(shape)});
}

std::string ValueOrFiller(OnnxOp* op, const std::string& name) {
  if (op->graph()->HasValue(name)) return op->ValueOf(name);
  return Filler(op, Around(op, name));
}

// The block's index; -1 after an error.
int32_t SubBlock(OnnxOp* op) {
  const Attribute* a = op->desc().FindAttr("sub_block");
  const auto* block = a == nullptr ? nullptr : std::get_if<BlockRef>(a);
  const auto count = static_cast<int32_t>(op->model().program.blocks.size());
  if (block != nullptr && block->index > 0 && block->index < count)
    return block->index;
  op->Fail(InvalidArgument("attr 'sub_block' names no block of the program"));
  return -1;
}

// Gives variables around the block the values that a node made of them.
OnnxValues NewValues(OnnxOp* op, const Names& names) {
  OnnxValues values;
  for (const std::string& name : names) {
    values.push_back(op->graph()->NewValueOf(name));
    op->SetMade(name);
  }
  return values;
}

// A variable of one element in the shape that the program declares.
std::string Declared(OnnxOp* op, const std::string& scalar,
                     const VarDesc& var) {
  return var.shape.empty() ? scalar : op->Reshape(scalar, {1});
}

void ConvertWhile(OnnxOp* op) {
  const int32_t block = SubBlock(op);
  const std::string& condition = op->desc().In("Condition");
  op->Ignore("X");
  const std::string before = op->In("Condition");
  if (!op->status().ok()) return;
  Names states = WrittenAround(op, block);
  states.erase(std::remove(states.begin(), states.end(), condition),
               states.end());
  OnnxValues inputs = {"", op->Scalar(before)};
  for (const std::string& name : states)
    inputs.push_back(ValueOrFiller(op, name));

  OnnxGraph* graph = op->graph();
  graph->BeginGraph();
  graph->NewScalarInput("round", DType::kInt64);
  const VarDesc& var = Around(op, condition);
  const std::string goes_on = graph->NewScalarInput(condition, DType::kBool);
  for (const std::string& name : states)
    graph->SetAlias(name, graph->NewGraphInput(name));
  graph->SetAlias(condition, Declared(op, goes_on, var));
  ConvertBlock(block, graph);
  OnnxValues outputs = {op->Scalar(op->ValueOf(condition))};
  for (const std::string& name : states) outputs.push_back(op->ValueOf(name));
  const auto body = graph->EndGraph(outputs);

  if (!states.empty())
    op->EmitTo(NewValues(op, states), "Loop", inputs, {{"body", body}});
  graph->SetAlias(condition, Declared(op, op->Const(0, DType::kBool), var));
  op->SetMade(condition);
}

void ConvertConditionalBlock(OnnxOp* op) {
  const int32_t block = SubBlock(op);
  op->Ignore("Input");
  if (!op->Bool("is_scalar_condition")) {
    op->Fail(Unimplemented("a block that runs unless an input is empty"));
    return;
  }
  const std::string condition = op->Scalar(op->In("Cond"));
  if (!op->status().ok()) return;
  const Names names = WrittenAround(op, block);
  OnnxGraph* graph = op->graph();
  graph->BeginGraph();
  ConvertBlock(block, graph);
  OnnxValues outputs;
  for (const std::string& name : names) outputs.push_back(op->ValueOf(name));
  const auto then = graph->EndGraph(outputs);
  graph->BeginGraph();
  outputs.clear();
  for (const std::string& name : names)
    outputs.push_back(ValueOrFiller(op, name));
  const auto otherwise = graph->EndGraph(outputs);
  if (!names.empty())
    op->EmitTo(NewValues(op, names), "If", {condition},
               {{"then_branch", then}, {"else_branch", otherwise}});
}

// A graph whose only output is a value around it.
std::shared_ptr<const OnnxSubgraph> Giving(OnnxOp* op,
                                           const std::string& value) {
  op->graph()->BeginGraph();
  return op->graph()->EndGraph({value});
}

void ConvertSelectInput(OnnxOp* op) {
  const OnnxValues x = op->Ins("X");
  const std::string mask = op->Scalar(op->In("Mask"));
  if (x.size() != 2) {
    op->Fail(Unimplemented("%d branches; ONNX's If has two", x.size()));
    return;
  }
  op->Give(
      "Out", "If", {op->Cast(mask, DType::kBool)},
      {{"then_branch", Giving(op, x[1])}, {"else_branch", Giving(op, x[0])}});
}

void ConvertIncrement(OnnxOp* op) {
  op->Give("Out", "Add",
           {op->In("X"), op->Const(op->Float("step"), op->TypeOf("X"))});
}

// An element is put in the place of the one that is there, or behind the last.
void ConvertWriteToArray(OnnxOp* op) {
  OnnxGraph* graph = op->graph();
  const std::string& array = op->desc().Out("Out");
  const std::string x = op->In("X");
  const std::string at = op->Scalar(op->Cast(op->In("I"), DType::kInt64));
  if (!op->status().ok()) return;
  if (!graph->HasValue(array)) {
    op->Give("Out", "SequenceConstruct", {x});
    return;
  }
  const std::string list = op->ValueOf(array);
  const std::string behind =
      op->Emit("Less", {at, op->Emit("SequenceLength", {list})});
  graph->BeginGraph();
  const std::string without = op->Emit("SequenceErase", {list, at});
  const auto erased = graph->EndGraph({without});
  const std::string room =
      op->Emit("If", {behind},
               {{"then_branch", erased}, {"else_branch", Giving(op, list)}});
  op->Give("Out", "SequenceInsert", {room, x, at});
}

void ConvertReadFromArray(OnnxOp* op) {
  op->Give("Out", "SequenceAt",
           {op->In("X"), op->Scalar(op->Cast(op->In("I"), DType::kInt64))});
}

void ConvertArrayLength(OnnxOp* op) {
  const VarDesc& var = op->OutVar("Out");
  op->Alias("Out",
            Declared(op, op->Emit("SequenceLength", {op->In("X")}), var));
}

void ConvertArrayToTensor(OnnxOp* op) {
  op->Give("Out", "ConcatFromSequence", {op->In("X")},
           {{"axis", op->Int("axis")},
            {"new_axis", int64_t{op->Bool("use_stack")}}});
  if (op->HasOut("OutIndex"))  // which PaddlePaddle leaves empty
    op->Alias("OutIndex",
              op->ConstArray(MakeArray({0}, std::vector<int32_t>())));
}

}  // namespace

OnnxConverters ControlFlowConverters() {
  return {
      {"conditional_block", ConvertConditionalBlock},
      {"increment", ConvertIncrement},
      {"lod_array_length", ConvertArrayLength},
      {"read_from_array", ConvertReadFromArray},
      {"select_input", ConvertSelectInput},
      {"tensor_array_to_tensor", ConvertArrayToTensor},
      {"while", ConvertWhile},
      {"write_to_array", ConvertWriteToArray},
  };
}

}  // namespace pd
