// SPDX-License-Identifier: Apache-2.0
// A run of updates of one kind with dense gradients and equal attributes -> one
// "merged_..." op. Each updates parameters of its own, so the order among them
// does not matter. What may differ from parameter to parameter (whether it
// decays) becomes a list.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/op_graph.h"

namespace pd {
namespace {

// One kind of update.
struct Kind {
  const char* type;
  std::vector<const char*> states;  // inputs beside those that all have
  std::vector<const char*> equal;   // attributes
};

const std::vector<Kind>& Kinds() {
  static const auto* const kKinds = new std::vector<Kind>{
      {"sgd", {}, {}},
      {"momentum", {"Velocity"}, {"mu", "use_nesterov"}},
      {"adam",
       {"Moment1", "Moment2", "Beta1Pow", "Beta2Pow"},
       {"beta1", "beta2", "epsilon", "use_global_beta_pow"}},
      {"adamw",
       {"Moment1", "Moment2", "Beta1Pow", "Beta2Pow"},
       {"beta1", "beta2", "epsilon", "use_global_beta_pow"}},
      {"adagrad", {"Moment"}, {"epsilon"}},
      {"rmsprop",
       {"MeanSquare", "Moment", "MeanGrad"},
       {"epsilon", "decay", "momentum", "centered"}},
  };
  return *kKinds;
}

const Kind* KindOf(const std::string& type) {
  for (const Kind& kind : Kinds())
    if (type == kind.type) return &kind;
  return nullptr;
}

// The inputs that are lists in the merged op.
std::vector<std::string> ListsOf(const OpDesc& op) {
  std::vector<std::string> slots = {"Param", "Grad", "LearningRate"};
  const Kind* kind = KindOf(op.type);
  slots.insert(slots.end(), kind->states.begin(), kind->states.end());
  if (!op.Input("MasterParam").empty()) slots.push_back("MasterParam");
  return slots;
}

bool IsMergeable(const OpDesc& op, const OpGraph& graph) {
  if (KindOf(op.type) == nullptr || op.AttrOr("lazy_mode", false)) return false;
  std::set<std::string> known;
  for (const std::string& slot : ListsOf(op)) {
    if (op.Input(slot).size() != 1) return false;
    known.insert(slot);
  }
  // All skip together.
  known.insert("SkipUpdate");
  for (const auto& [slot, names] : op.inputs)
    if (!names.empty() && known.count(slot) == 0) return false;
  // Selected rows would keep the others from the fast kernel.
  const VarDesc* grad = graph.Var(op.In("Grad"));
  return grad == nullptr || grad->kind != VarKind::kSelectedRows;
}

bool CanJoin(const OpDesc& first, const OpDesc& op, const OpGraph& graph) {
  if (op.type != first.type || !IsMergeable(op, graph)) return false;
  // Masters would keep the others from the fast kernel.
  if (op.Input("MasterParam").size() != first.Input("MasterParam").size() ||
      op.Input("SkipUpdate") != first.Input("SkipUpdate"))
    return false;
  std::vector<const char*> names = KindOf(op.type)->equal;
  names.push_back("multi_precision");
  for (const char* name : names) {
    const Attribute *a = first.FindAttr(name), *b = op.FindAttr(name);
    if ((a == nullptr) != (b == nullptr) || (a != nullptr && !(*a == *b)))
      return false;
  }
  return true;
}

// The attributes that may differ.
void SetLists(const std::vector<const OpDesc*>& ops, OpDesc* merged) {
  if (ops.front()->type == "momentum") {
    std::vector<std::string> methods;
    std::vector<float> coeffs;
    for (const OpDesc* op : ops) {
      methods.push_back(op->Attr<std::string>("regularization_method"));
      coeffs.push_back(op->Attr<float>("regularization_coeff"));
    }
    merged->attrs["regularization_method"] = std::move(methods);
    merged->attrs["regularization_coeff"] = std::move(coeffs);
  } else if (ops.front()->type == "adamw") {
    std::vector<float> coeffs, ratios;
    for (const OpDesc* op : ops) {
      const bool decays = op->Attr<bool>("with_decay");
      coeffs.push_back(decays ? op->Attr<float>("coeff") : 0.0f);
      ratios.push_back(op->Attr<float>("lr_ratio"));
    }
    merged->attrs["coeff"] = std::move(coeffs);
    merged->attrs["lr_ratio"] = std::move(ratios);
  }
}

OpDesc Merge(const std::vector<const OpDesc*>& ops) {
  OpDesc merged;
  const OpDesc& first = *ops.front();
  merged.type = "merged_" + first.type;
  std::vector<const char*> names = KindOf(first.type)->equal;
  names.push_back("multi_precision");
  for (const char* name : names)
    if (const Attribute* a = first.FindAttr(name)) merged.attrs[name] = *a;
  for (const std::string& slot : ListsOf(first)) {
    std::vector<std::string> variables;
    for (const OpDesc* op : ops) variables.push_back(op->In(slot));
    merged.SetInput(slot, std::move(variables));
  }
  if (!first.Input("SkipUpdate").empty())
    merged.SetInput("SkipUpdate", first.Input("SkipUpdate"));
  for (const auto& [slot, unused] : first.outputs) {
    std::vector<std::string> variables;
    for (const OpDesc* op : ops)
      if (!op->Output(slot).empty()) variables.push_back(op->Out(slot));
    if (variables.size() == ops.size())
      merged.SetOutput(slot, std::move(variables));
  }
  SetLists(ops, &merged);
  CopyOpAttrs(ops, &merged);
  return merged;
}

void MergeRuns(OpGraph* graph) {
  for (size_t i = 0; i < graph->size(); ++i) {
    if (!IsMergeable(graph->op(i), *graph)) continue;
    std::vector<size_t> run = {i};
    std::set<std::string> params = {graph->op(i).In("Param")};
    while (i + 1 < graph->size() &&
           CanJoin(graph->op(run[0]), graph->op(i + 1), *graph) &&
           params.insert(graph->op(i + 1).In("Param")).second)
      run.push_back(++i);
    if (run.size() < 2) continue;
    std::vector<const OpDesc*> ops;
    for (size_t at : run) ops.push_back(&graph->op(at));
    OpDesc merged = Merge(ops);
    run.pop_back();
    graph->Replace(i, std::move(merged), run);
  }
}

}  // namespace

absl::Status MergeUpdates(const PassContext& context, ProgramDesc* program) {
  std::set<std::string> types;
  for (const Kind& kind : Kinds()) types.insert(kind.type);
  ForEachGraph(context, types, MergeRuns, program);
  return absl::OkStatus();
}

}  // namespace pd
