// SPDX-License-Identifier: Apache-2.0
// while, cond: blocks of the model that run as often as tensors say. They
// become PaddlePaddle's ops: while; two conditional_block and a select_input
// for each result.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/loop.h"
#include "libcore/nn/op_chain.h"

namespace pd {
namespace {

using Names = std::vector<std::string>;

struct Results {
  Names variables, names;  // aligned; the first has no name
};

// The results of a block that a field holds.
absl::StatusOr<Results> RunBlock(const char* field,
                                 std::vector<LayerInput> inputs,
                                 LayerContext* c) {
  LayerReads reads;
  reads.inputs = std::move(inputs);
  PD_ASSIGN_OR_RETURN(LayerResults made, c->Part(field, std::move(reads)));
  Results results{{made.first.variable}, {""}};
  for (LayerOutput& other : made.others) {
    if (other.variable.empty())
      return InvalidArgument("'%s' of '%s' is no tensor", other.name, field);
    results.variables.push_back(std::move(other.variable));
    results.names.push_back(std::move(other.name));
  }
  return results;
}

absl::StatusOr<std::string> BuildWhile(LayerContext* c) {
  Loop loop(c);
  std::vector<LayerInput> inputs;
  for (size_t i = 0; i < c->input_count(); ++i) {
    const std::string called = absl::StrCat(
        "variable ", i + 1, " of the loop (", c->read(i).maker, ")");
    PD_ASSIGN_OR_RETURN(std::string name, loop.Add(c->input(i), called));
    inputs.push_back({std::move(name), c->read(i).maker});
  }
  const std::vector<LayerInput>& kwargs = c->AllNamed("kwargs");
  inputs.insert(inputs.end(), kwargs.begin(), kwargs.end());
  const auto holds = [&]() -> absl::StatusOr<std::string> {
    PD_ASSIGN_OR_RETURN(Results made, RunBlock("cond", inputs, c));
    if (made.variables.size() != 1)
      return InvalidArgument("'cond' gives %d results; expected one bool",
                             made.variables.size());
    PD_RETURN_IF_ERROR(
        CheckCondition(made.variables[0], "the result of 'cond'", *c));
    return made.variables[0];
  };
  PD_ASSIGN_OR_RETURN(const std::string first, holds());
  Names names;
  const auto body = [&]() -> absl::StatusOr<Loop::Run> {
    PD_ASSIGN_OR_RETURN(Results made, RunBlock("body", inputs, c));
    if (made.variables.size() != c->input_count())
      return InvalidArgument(
          "'body' gives %d results; the loop has %d variables: 'output' of the "
          "block names their new values, in the order of the layer's 'input'",
          made.variables.size(), c->input_count());
    names = made.names;
    // The condition is that of the new values.
    std::vector<LayerInput> variables = inputs;
    for (size_t i = 0; i < made.variables.size(); ++i)
      inputs[i].variable = made.variables[i];
    auto again = holds();
    inputs = std::move(variables);
    PD_RETURN_IF_ERROR(again.status());
    return Loop::Run{*std::move(again), std::move(made.variables)};
  };
  PD_RETURN_IF_ERROR(loop.Build(first, body));
  for (size_t i = 1; i < names.size(); ++i)
    c->AddOutput(names[i], inputs[i].variable);
  return inputs[0].variable;
}

// One branch: its block writes variables in front of it.
absl::StatusOr<Results> BuildBranch(const char* field,
                                    const std::string& condition,
                                    LayerContext* c) {
  std::vector<LayerInput> inputs;
  for (size_t i = 1; i < c->input_count(); ++i) inputs.push_back(c->read(i));
  BlockBuilder* main = c->main();
  const int32_t block = main->Enter();
  const auto build = [&]() -> absl::StatusOr<Results> {
    PD_ASSIGN_OR_RETURN(Results made, RunBlock(field, inputs, c));
    for (std::string& variable : made.variables) {
      VarDesc out;
      out.name = main->UniqueTemporary(c->kind());
      out.dtype = c->TypeOf(variable);
      out.shape = c->ShapeOf(variable);
      OpDesc assign;
      assign.type = "assign";
      assign.SetInput("X", {variable});
      assign.SetOutput("Out", {out.name});
      variable = out.name;
      main->AddVarAround(std::move(out));
      PD_RETURN_IF_ERROR(main->Append(std::move(assign)));
    }
    return made;
  };
  auto made = build();
  if (!made.ok()) {
    main->Drop();
    return made.status();
  }
  main->Leave();
  OpDesc op;
  op.type = "conditional_block";
  op.SetInput("Cond", {condition});
  op.attrs["is_scalar_condition"] = true;
  PD_RETURN_IF_ERROR(
      AppendBlockOp(std::move(op), block, "Input", "Out", "Scope", c));
  return made;
}

// The extents that both shapes have; open (-1) where they differ.
Shape Common(Shape a, const Shape& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) a[i] = -1;
  return a;
}

absl::StatusOr<std::string> Select(const std::string& if_true,
                                   const std::string& if_false,
                                   const std::string& mask, LayerContext* c) {
  const Shape a = c->ShapeOf(if_true), b = c->ShapeOf(if_false);
  if (c->TypeOf(if_true) != c->TypeOf(if_false) || a.size() != b.size())
    return InvalidArgument(
        "'true_fn' gives %s%s and 'false_fn' %s%s; expected one element type "
        "and one rank",
        Name(c->TypeOf(if_true)), ToString(a), Name(c->TypeOf(if_false)),
        ToString(b));
  OpDesc op;
  op.type = "select_input";
  op.SetInput("X", {if_false, if_true});
  op.SetInput("Mask", {mask});
  PD_ASSIGN_OR_RETURN(std::string out, c->Append(std::move(op), {"Out"}));
  c->main()->MutableVar(out)->shape = Common(a, b);
  return out;
}

absl::StatusOr<std::string> BuildCond(LayerContext* c) {
  const std::string& condition = c->input(0);
  PD_RETURN_IF_ERROR(CheckCondition(
      condition, absl::StrCat("the condition (", c->read(0).maker, ")"), *c));
  OpChain ops(c->main());
  const std::string mask = ops.Cast(condition, DType::kInt32);
  const std::string other = ops.Unary("logical_not", condition);
  PD_RETURN_IF_ERROR(ops.Give("").status());
  PD_ASSIGN_OR_RETURN(const Results a, BuildBranch("true_fn", condition, c));
  PD_ASSIGN_OR_RETURN(const Results b, BuildBranch("false_fn", other, c));
  if (a.variables.size() != b.variables.size())
    return InvalidArgument(
        "'true_fn' gives %d results and 'false_fn' %d; expected as many",
        a.variables.size(), b.variables.size());
  Names selected;
  for (size_t i = 0; i < a.variables.size(); ++i) {
    PD_ASSIGN_OR_RETURN(std::string one,
                        Select(a.variables[i], b.variables[i], mask, c));
    if (i > 0) c->AddOutput(a.names[i], one);
    selected.push_back(std::move(one));
  }
  return selected[0];
}

}  // namespace

void AddControlFlowLayers(LayerTable* table) {
  (*table)[job::Layer::kWhile] = {BuildWhile, 1, kAnyInputs};
  (*table)[job::Layer::kCond] = {BuildCond, 1, kAnyInputs};
}

}  // namespace pd
