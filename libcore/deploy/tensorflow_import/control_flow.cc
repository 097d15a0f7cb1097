// SPDX-License-Identifier: Apache-2.0
// If, Case and While: nodes of ONNX whose graphs are the functions that they
// run. Values from around a function are read by their names; those that a loop
// only hands on, weights and lengths, are no state of it.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/tensorflow_import/call.h"
#include "libcore/deploy/tensorflow_import/flatten.h"

namespace pd {
namespace {

using Names = TfCall::Names;

// Functions that run themselves, or each other several times, end here.
constexpr int kMostBodiesDeep = 16;
constexpr int64_t kMostBodies = 1 << 12;
constexpr int64_t kMostNodes = 1 << 20;

OnnxFileAttr GraphAttr(OnnxFileGraph graph) {
  OnnxFileAttr attr;
  attr.kind = OnnxFileAttr::Kind::kGraph;
  attr.graph.push_back(std::move(graph));
  return attr;
}

// Whether names of this graph, or of one around it, begin so.
bool IsTaken(const std::string& prefix, const TfBuild& build) {
  for (const TfBuild* b = &build; b != nullptr; b = b->outer) {
    const auto at = b->nodes.lower_bound(prefix);
    if (at != b->nodes.end() && absl::StartsWith(at->first, prefix))
      return true;
  }
  return false;
}

// The function with names that no other node of the graph has.
TfFlatFunction FlatFunction(TfCall* call, const std::string& name,
                            const char* part) {
  if (!call->ok()) return {};
  TfShared& shared = *call->build().shared;
  if (shared.depth >= kMostBodiesDeep || ++shared.bodies > kMostBodies) {
    call->Fail(Unimplemented("functions run more than %d deep or %d times",
                             kMostBodiesDeep, kMostBodies));
    return {};
  }
  std::string prefix = absl::StrCat(call->node().name, "/", part, "/");
  while (IsTaken(prefix, call->build())) absl::StrAppend(&prefix, "_/");
  auto flat = FlattenTfFunction(*shared.graph, name, prefix);
  if (!flat.ok()) {
    call->Fail(flat.status());
    return {};
  }
  shared.nodes += static_cast<int64_t>(flat->nodes.size());
  if (shared.nodes > kMostNodes) {
    call->Fail(Unimplemented("functions that run have more than %d nodes",
                             kMostNodes));
    return {};
  }
  return *std::move(flat);
}

TfBuild Inside(const TfBuild& outer) {
  TfBuild inner;
  inner.outer = &outer;
  inner.shared = outer.shared;
  inner.variables = outer.variables;
  return inner;
}

void RunNodes(TfCall* call, const TfFlatFunction& function, TfBuild* build) {
  if (!call->ok()) return;
  for (const TfNode& node : function.nodes) {
    build->nodes[node.name] = &node;
    build->read.insert(node.inputs.begin(), node.inputs.end());
  }
  build->read.insert(function.outputs.begin(), function.outputs.end());
  ++build->shared->depth;
  call->Fail(ImportTfNodes(function.nodes, build));
  --build->shared->depth;
  // The function may end before the graph around does.
  for (const TfNode& node : function.nodes) build->nodes.erase(node.name);
}

// An input of the call as a function sees it, without what the function's
// nodes make of it.
std::shared_ptr<TfValue> SeenInside(TfCall* call, size_t i) {
  TfValue* value = call->Value(i);
  if (value == nullptr) return std::make_shared<TfValue>();
  MakePlain(value, &call->build());
  return std::make_shared<TfValue>(*value);
}

TfValue* OutputOf(TfCall* call, const TfFlatFunction& function, size_t i,
                  TfBuild* build) {
  if (!call->ok()) return nullptr;
  const auto value = build->values.find(function.outputs[i]);
  if (value == build->values.end()) {
    call->Fail(
        Unimplemented("a function gives '%s', an output that is not "
                      "supported",
                      function.outputs[i]));
    return nullptr;
  }
  MakePlain(value->second.get(), build);
  return value->second.get();
}

void AddOutput(const TfValue& value, OnnxFileGraph* graph) {
  OnnxFileValue end;
  end.name = value.plain;
  end.is_tensor = true;
  graph->outputs.push_back(std::move(end));
}

// A branch and the ranks of its outputs.
struct TfBranch {
  OnnxFileGraph graph;
  std::vector<int64_t> ranks;
};

TfBranch RunBranch(TfCall* call, const std::string& name, const char* part) {
  const TfFlatFunction function = FlatFunction(call, name, part);
  const size_t inputs = call->InputCount() - 1;
  if (call->ok() && function.arguments.size() != inputs)
    call->Fail(DataLoss("function '%s' takes %d arguments, not %d", name,
                        function.arguments.size(), inputs));
  TfBuild inner = Inside(call->build());
  for (size_t i = 0; i < inputs && call->ok(); ++i)
    inner.values[function.arguments[i]] = SeenInside(call, i + 1);
  RunNodes(call, function, &inner);
  TfBranch branch;
  for (size_t i = 0; i < function.outputs.size() && call->ok(); ++i) {
    const TfValue* value = OutputOf(call, function, i, &inner);
    if (value == nullptr) break;
    if (value->list != nullptr)
      call->Fail(Unimplemented("a branch that gives a list of tensors"));
    AddOutput(*value, &inner.graph);
    branch.ranks.push_back(value->rank);
  }
  branch.graph = std::move(inner.graph);
  return branch;
}

void GiveBranches(TfCall* call, const std::string& condition, TfBranch then,
                  TfBranch otherwise) {
  if (call->ok() && then.ranks.size() != otherwise.ranks.size())
    call->Fail(DataLoss("its branches have %d and %d outputs",
                        then.ranks.size(), otherwise.ranks.size()));
  if (!call->ok() || then.ranks.empty()) return;
  const std::vector<int64_t> ranks = then.ranks;
  const Names outputs =
      call->EmitMany("If", {condition}, ranks.size(),
                     {{"then_branch", GraphAttr(std::move(then.graph))},
                      {"else_branch", GraphAttr(std::move(otherwise.graph))}});
  for (size_t i = 0; i < outputs.size(); ++i)
    call->Give(outputs[i], ranks[i] == otherwise.ranks[i] ? ranks[i] : -1, i);
}

// Numbers count as true unless they are 0.
void ImportBranches(TfCall* call) {
  const std::string condition = call->Cast(call->In(0), DType::kBool);
  TfBranch then = RunBranch(call, call->Text("then_branch", ""), "then");
  TfBranch otherwise = RunBranch(call, call->Text("else_branch", ""), "else");
  GiveBranches(call, condition, std::move(then), std::move(otherwise));
}

// Whether the number of the branch is `i`; the last branch stands for numbers
// that no other one has.
std::string IsCase(TfCall* call, size_t i) {
  return call->Emit("Equal", {call->In(0), call->Scalar(static_cast<double>(i),
                                                        DType::kInt32)});
}

// Branches from `i` on.
TfBranch RunCases(TfCall* call, const Names& functions, size_t i) {
  TfBranch branch =
      RunBranch(call, functions[i], absl::StrCat("case", i).c_str());
  if (i + 1 == functions.size() || !call->ok()) return branch;
  TfBranch others = RunCases(call, functions, i + 1);
  if (!call->ok()) return branch;
  TfBuild inner = Inside(call->build());
  inner.values[call->node().inputs[0]] = SeenInside(call, 0);
  TfCall choice(call->node(), "", &inner);
  const std::string is_this = IsCase(&choice, i);
  GiveBranches(&choice, is_this, std::move(branch), std::move(others));
  TfBranch both;
  for (size_t k = 0; choice.ok() && inner.values.count(choice.OutName(k)) > 0;
       ++k) {
    const TfValue& value = *inner.values.at(choice.OutName(k));
    AddOutput(value, &inner.graph);
    both.ranks.push_back(value.rank);
  }
  call->Fail(choice.status());
  both.graph = std::move(inner.graph);
  return both;
}

void ImportCases(TfCall* call) {
  constexpr size_t kMostCases = 64;
  const Names functions = call->TextList("branches");
  if (call->ok() && (functions.empty() || functions.size() > kMostCases))
    call->Fail(Unimplemented("%d branches", functions.size()));
  if (!call->ok()) return;
  const std::string is_first = IsCase(call, 0);
  TfBranch first = RunBranch(call, functions[0], "case0");
  TfBranch others =
      RunCases(call, functions, std::min<size_t>(1, functions.size() - 1));
  GiveBranches(call, is_first, std::move(first), std::move(others));
}

// Whether a function's output i is its argument i as it is, for each i.
absl::StatusOr<std::vector<bool>> HandedOn(TfShared* shared,
                                           const std::string& name, int depth) {
  // Loops deeper in each other are refused when they are imported.
  if (depth > kMostBodiesDeep) return std::vector<bool>();
  const auto known = shared->handed_on.find(name);
  if (known != shared->handed_on.end()) return known->second;
  // Where the function runs itself, nothing counts as handed on.
  shared->handed_on[name] = {};
  PD_ASSIGN_OR_RETURN(const TfFlatFunction function,
                      FlattenTfFunction(*shared->graph, name, ""));
  std::map<std::string, std::string> same;  // value -> argument
  for (const std::string& argument : function.arguments)
    same[argument] = argument;
  for (const TfNode& node : function.nodes) {
    const auto of = [&](size_t i) {
      const auto value = same.find(node.inputs[i]);
      return value == same.end() ? std::string() : value->second;
    };
    if (node.op == "Identity" && node.inputs.size() == 1)
      same[node.name] = of(0);
    if (node.op != "While" && node.op != "StatelessWhile") continue;
    const auto body = node.attrs.find("body");
    if (body == node.attrs.end()) continue;
    PD_ASSIGN_OR_RETURN(const std::vector<bool> inner,
                        HandedOn(shared, body->second.text, depth + 1));
    for (size_t i = 0; i < inner.size() && i < node.inputs.size(); ++i)
      if (inner[i])
        same[i == 0 ? node.name : absl::StrCat(node.name, ":", i)] = of(i);
  }
  std::vector<bool> result;
  for (size_t i = 0; i < function.outputs.size(); ++i) {
    const auto value = same.find(function.outputs[i]);
    result.push_back(i < function.arguments.size() && value != same.end() &&
                     value->second == function.arguments[i]);
  }
  shared->handed_on[name] = result;
  return result;
}

class WhileImport {
 public:
  explicit WhileImport(TfCall* call) : call_(call) {}

  void Import() {
    const std::string body = call_->Text("body", "");
    const std::string test = call_->Text("cond", "");
    body_ = FlatFunction(call_, body, "body");
    test_ = FlatFunction(call_, test, "cond");
    first_ = FlatFunction(call_, test, "first");
    CheckCounts();
    if (!call_->ok()) return;
    auto same = HandedOn(call_->build().shared.get(), body, 0);
    if (!same.ok()) return call_->Fail(same.status());
    same_ = *std::move(same);
    same_.resize(call_->InputCount(), false);
    const std::string go_on = FirstTest();
    RunBody();
    Emit(go_on);
  }

 private:
  void CheckCounts() {
    const size_t count = call_->InputCount();
    if (!call_->ok()) return;
    if (body_.arguments.size() != count || body_.outputs.size() != count ||
        test_.arguments.size() != count || test_.outputs.size() != 1)
      call_->Fail(
          DataLoss("%d values go around; its functions take %d and %d, and "
                   "give %d and %d",
                   count, body_.arguments.size(), test_.arguments.size(),
                   body_.outputs.size(), test_.outputs.size()));
  }

  bool IsState(size_t i) {
    const TfValue* value = call_->Value(i);
    return value != nullptr && value->list == nullptr && !same_[i];
  }

  // The condition before the first round, among the nodes around the loop.
  std::string FirstTest() {
    TfBuild& build = call_->build();
    for (size_t i = 0; i < first_.arguments.size() && call_->ok(); ++i) {
      call_->Value(i);
      if (call_->ok())
        build.values[first_.arguments[i]] =
            build.values.at(call_->node().inputs[i]);
    }
    RunNodes(call_, first_, &build);
    const TfValue* value = OutputOf(call_, first_, 0, &build);
    return value == nullptr ? "" : value->plain;
  }

  void RunBody() {
    inner_ = Inside(call_->build());
    const auto input = [&](const std::string& name) {
      OnnxFileValue end;
      end.name = name;
      end.is_tensor = true;
      inner_.graph.inputs.push_back(std::move(end));
    };
    input(absl::StrCat(call_->node().name, "/round"));
    input(absl::StrCat(call_->node().name, "/going_on"));
    for (size_t i = 0; i < body_.arguments.size() && call_->ok(); ++i) {
      auto value = SeenInside(call_, i);
      if (IsState(i)) {
        value->name = value->plain = body_.arguments[i];
        value->first.clear();
        input(value->plain);
      }
      inner_.values[body_.arguments[i]] = std::move(value);
    }
    RunNodes(call_, body_, &inner_);
    for (size_t i = 0; i < test_.arguments.size() && call_->ok(); ++i) {
      OutputOf(call_, body_, i, &inner_);
      if (call_->ok())
        inner_.values[test_.arguments[i]] = inner_.values.at(body_.outputs[i]);
    }
    RunNodes(call_, test_, &inner_);
    if (const TfValue* value = OutputOf(call_, test_, 0, &inner_))
      AddOutput(*value, &inner_.graph);
  }

  void Emit(const std::string& go_on) {
    Names inputs = {"", go_on};
    std::vector<size_t> states;
    for (size_t i = 0; i < body_.arguments.size() && call_->ok(); ++i) {
      const TfValue* next = OutputOf(call_, body_, i, &inner_);
      const TfValue* before = call_->Value(i);
      if (!call_->ok()) return;
      if (next->list != before->list)
        call_->Fail(
            Unimplemented("lists of tensors that a loop exchanges for others"));
      if (next->list != nullptr && next->version != next->list->version)
        call_->Fail(Unimplemented(
            "a loop that hands on a list of tensors as it was before a write"));
      if (!IsState(i)) continue;
      inputs.push_back(call_->In(i));
      states.push_back(i);
      AddOutput(*next, &inner_.graph);
    }
    if (!call_->ok()) return;
    Names outputs;
    if (!states.empty() || !inner_.graph.nodes.empty())
      outputs = call_->EmitMany("Loop", inputs, states.size(),
                                {{"body", GraphAttr(std::move(inner_.graph))}});
    for (size_t k = 0; k < states.size(); ++k)
      call_->Give(outputs[k], call_->Rank(states[k]), states[k]);
    for (size_t i = 0; i < body_.arguments.size() && call_->ok(); ++i) {
      if (std::count(states.begin(), states.end(), i) > 0) continue;
      TfValue value = *call_->Value(i);
      if (value.list != nullptr) value.version = value.list->version;
      call_->GiveValue(std::move(value), i);
    }
  }

  TfCall* call_;
  TfFlatFunction body_, test_, first_;
  std::vector<bool> same_;
  TfBuild inner_;
};

void ImportWhile(TfCall* call) { WhileImport(call).Import(); }

}  // namespace

TfImportEntries TfControlFlowImports() {
  return {
      {"Case", ImportCases},           {"If", ImportBranches},
      {"StatelessCase", ImportCases},  {"StatelessIf", ImportBranches},
      {"StatelessWhile", ImportWhile}, {"While", ImportWhile},
  };
}

}  // namespace pd
