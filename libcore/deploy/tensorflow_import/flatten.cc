// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/tensorflow_import/flatten.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Functions that call each other twice would be 2^depth calls.
constexpr int kMaxCallDepth = 64;
constexpr size_t kMaxCalls = size_t{1} << 14, kMaxNodes = size_t{1} << 20;
// A value that is handed on more often than this is handed in a circle.
constexpr int kMaxHandedOn = 1 << 12;
// The op of nodes that stand for arguments of a function.
constexpr char kArgument[] = "_Arg";

// A body that runs: the graph's, or that of a function for one call of it.
struct CallScope {
  const TfFunction* function = nullptr;  // null: the graph
  const std::map<std::string, const TfNode*>* nodes = nullptr;
  CallScope* caller = nullptr;
  const TfNode* call = nullptr;  // of the caller
  std::map<std::string, TfAttr> attrs;
  std::map<const TfNode*, CallScope*> calls;
  int depth = 0;
};

// An output of a node that is no call.
struct NodePlace {
  CallScope* scope = nullptr;
  const TfNode* node = nullptr;
  int64_t output = 0;
};

// Where the outputs of an operator's output `name` begin.
int64_t FirstOutput(const std::string& op, const std::string& name) {
  static const auto* outputs =
      new std::map<std::string, std::vector<std::string>>{
          {"FusedBatchNorm", {"y", "batch_mean", "batch_variance"}},
          {"FusedBatchNormV2", {"y", "batch_mean", "batch_variance"}},
          {"FusedBatchNormV3", {"y", "batch_mean", "batch_variance"}},
          {"MaxPoolWithArgmax", {"output", "argmax"}},
          {"Merge", {"output", "value_index"}},
          {"Switch", {"output_false", "output_true"}},
          {"TensorArrayV3", {"handle", "flow"}},
          {"TensorListConcatV2", {"tensor", "lengths"}},
          {"TopKV2", {"values", "indices"}},
          {"Unique", {"y", "idx"}},
          {"UniqueV2", {"y", "idx"}}};
  const auto of = outputs->find(op);
  if (of == outputs->end()) return 0;
  const auto at = std::find(of->second.begin(), of->second.end(), name);
  return at - of->second.begin();
}

bool IsSame(const std::string& op) {
  return op == "Identity" || op == "StopGradient" || op == "DisableCopyOnRead";
}

class CallTree {
 public:
  // `function`: the tree of a function whose arguments nothing gives; null:
  // that of the graph.
  CallTree(const TfGraph& graph, const TfFunction* function) : graph_(graph) {
    root_ =
        NewScope(function == nullptr ? graph.nodes : function->nodes, function);
    if (function == nullptr) return;
    for (const std::string& name : function->inputs) {
      arguments_[name].name = name;
      arguments_[name].op = kArgument;
    }
  }

  CallScope* root() { return root_; }

  // The function that a node calls; null for another node.
  absl::StatusOr<const TfFunction*> Called(const TfNode& node) const {
    std::string name = node.op;
    if (node.op == "PartitionedCall" || node.op == "StatefulPartitionedCall") {
      const auto attr = node.attrs.find("f");
      if (attr != node.attrs.end()) name = attr->second.text;
    }
    const auto function = graph_.functions.find(name);
    if (function != graph_.functions.end()) return &function->second;
    if (name == node.op && name.find("PartitionedCall") == std::string::npos)
      return nullptr;
    return DataLoss("node '%s' calls function '%s', which the file has not",
                    node.name, name);
  }

  absl::StatusOr<CallScope*> Enter(CallScope* caller, const TfNode& call,
                                   const TfFunction& function) {
    const auto known = caller->calls.find(&call);
    if (known != caller->calls.end()) return known->second;
    if (caller->depth >= kMaxCallDepth || scopes_.size() >= kMaxCalls)
      return Unimplemented("functions are called more than %d deep or %d times",
                           kMaxCallDepth, kMaxCalls);
    CallScope* scope = NewScope(function.nodes, &function);
    scope->caller = caller;
    scope->call = &call;
    scope->depth = caller->depth + 1;
    for (const auto& [name, attr] : call.attrs) {
      PD_ASSIGN_OR_RETURN(scope->attrs[name], Given(*caller, attr, call));
    }
    caller->calls[&call] = scope;
    return scope;
  }

  // An attribute with the caller's in place.
  absl::StatusOr<TfAttr> Given(const CallScope& scope, const TfAttr& attr,
                               const TfNode& node) const {
    if (attr.kind != TfAttr::Kind::kPlaceholder) return attr;
    const auto given = scope.attrs.find(attr.text);
    if (given != scope.attrs.end()) return given->second;
    return DataLoss("node '%s' reads attribute '%s', which no caller gives",
                    node.name, attr.text);
  }

  // The node that makes the value that `text` names in `scope`.
  absl::StatusOr<NodePlace> Resolve(CallScope* scope, std::string text) {
    for (int steps = 0; steps < kMaxHandedOn; ++steps) {
      const std::vector<std::string> parts = absl::StrSplit(text, ':');
      if (scope->function != nullptr && parts.size() == 1) {
        const auto& inputs = scope->function->inputs;
        const auto at = std::find(inputs.begin(), inputs.end(), text);
        if (at != inputs.end() && scope->caller == nullptr)
          return NodePlace{scope, &arguments_.at(text), 0};
        if (at != inputs.end()) {
          const auto i = static_cast<size_t>(at - inputs.begin());
          if (i >= scope->call->inputs.size())
            return DataLoss("node '%s' gives no input '%s'", scope->call->name,
                            text);
          text = scope->call->inputs[i];
          scope = scope->caller;
          continue;
        }
      }
      PD_ASSIGN_OR_RETURN(const NodePlace place, PlaceOf(scope, text, parts));
      PD_ASSIGN_OR_RETURN(const TfFunction* called, Called(*place.node));
      if (called == nullptr) return place;
      if (place.output >= static_cast<int64_t>(called->outputs.size()))
        return DataLoss("'%s': the function has %d outputs", text,
                        called->outputs.size());
      PD_ASSIGN_OR_RETURN(scope, Enter(scope, *place.node, *called));
      text = called->outputs[static_cast<size_t>(place.output)];
    }
    return DataLoss("value '%s' is made of itself", text);
  }

  // Resolve, and past nodes that hand their input on.
  absl::StatusOr<NodePlace> Origin(CallScope* scope, const std::string& text) {
    PD_ASSIGN_OR_RETURN(NodePlace place, Resolve(scope, text));
    for (int steps = 0; IsSame(place.node->op) && !place.node->inputs.empty();
         ++steps) {
      if (steps > kMaxHandedOn)
        return DataLoss("value '%s' is made of itself", text);
      PD_ASSIGN_OR_RETURN(place, Resolve(place.scope, place.node->inputs[0]));
    }
    return place;
  }

 private:
  CallScope* NewScope(const std::vector<TfNode>& nodes,
                      const TfFunction* function) {
    auto& index = indices_[function];
    if (index.empty())
      for (const TfNode& node : nodes) index.emplace(node.name, &node);
    scopes_.push_back(std::make_unique<CallScope>());
    scopes_.back()->function = function;
    scopes_.back()->nodes = &index;
    return scopes_.back().get();
  }

  absl::StatusOr<NodePlace> PlaceOf(CallScope* scope, const std::string& text,
                                    const std::vector<std::string>& parts) {
    const auto node = scope->nodes->find(parts[0]);
    if (node == scope->nodes->end())
      return DataLoss("value '%s' is made by no node", text);
    NodePlace place = {scope, node->second, 0};
    uint32_t number = 0;
    const bool numbered = parts.size() > 1 && parts.size() < 4 &&
                          absl::SimpleAtoi(parts.back(), &number);
    if (parts.size() == 3 && numbered)
      place.output = FirstOutput(node->second->op, parts[1]) + number;
    else if (parts.size() == 2)
      place.output =
          numbered ? int64_t{number} : FirstOutput(node->second->op, parts[1]);
    else if (parts.size() != 1)
      return DataLoss("'%s' is the name of no value", text);
    return place;
  }

  const TfGraph& graph_;
  std::map<const TfFunction*, std::map<std::string, const TfNode*>> indices_;
  std::vector<std::unique_ptr<CallScope>> scopes_;
  CallScope* root_ = nullptr;
  std::map<std::string, TfNode> arguments_;  // of the root
};

bool FillsTable(const TfNode& node) {
  return node.op == "InitializeTableV2" || node.op == "LookupTableImportV2";
}

// The function that a node calls, if it calls one.
std::string CalledName(const TfNode& node) {
  const auto attr = node.attrs.find("f");
  return attr == node.attrs.end() ? node.op : attr->second.text;
}

// Functions that fill tables, or call such ones as deep as calls may be.
std::set<std::string> FillingFunctions(const TfGraph& graph) {
  std::set<std::string> filling;
  bool changed = true;
  for (int depth = 0; changed && depth < kMaxCallDepth; ++depth) {
    changed = false;
    for (const auto& [name, function] : graph.functions) {
      if (filling.count(name) > 0) continue;
      for (const TfNode& node : function.nodes) {
        if (!FillsTable(node) && filling.count(CalledName(node)) == 0) continue;
        filling.insert(name);
        changed = true;
        break;
      }
    }
  }
  return filling;
}

// False for a value that is known only when it runs.
bool TakeConstant(const TfNode& node, TfLookupTable* table, Array* array) {
  const auto value = node.attrs.find("value");
  if (node.op != "Const" || value == node.attrs.end()) return false;
  if (value->second.kind == TfAttr::Kind::kTensor)
    *array = value->second.tensor;
  else
    table->texts = true;
  return true;
}

// Takes nodes after those that they read.
class Flattener {
 public:
  Flattener(const TfGraph& graph, const TfFunction* function,
            std::set<std::string> taken, std::string prefix)
      : tree_(graph, function),
        taken_(std::move(taken)),
        prefix_(std::move(prefix)) {}

  absl::Status Want(const std::string& value) {
    PD_ASSIGN_OR_RETURN(const NodePlace place,
                        tree_.Resolve(tree_.root(), value));
    PD_RETURN_IF_ERROR(Visit(place));
    flat_.values[value] = NameOf(place);
    return absl::OkStatus();
  }

  TfFlatGraph Take() { return std::move(flat_); }

 private:
  using Key = std::pair<CallScope*, const TfNode*>;

  // A node on the way, with its inputs as far as they are resolved.
  struct Open {
    NodePlace place;
    std::vector<NodePlace> inputs;
    size_t next = 0;
  };

  absl::Status Visit(const NodePlace& last) {
    std::vector<Open> stack;
    if (names_.count({last.scope, last.node}) == 0) stack.push_back({last, {}});
    while (!stack.empty()) {
      Open& open = stack.back();
      const Key key = {open.place.scope, open.place.node};
      if (open.next == 0) open_.insert(key);
      const auto& inputs = open.place.node->inputs;
      if (open.next == inputs.size()) {
        PD_RETURN_IF_ERROR(Add(open));
        open_.erase(key);
        stack.pop_back();
        continue;
      }
      const std::string& input = inputs[open.next++];
      if (!input.empty() && input[0] == '^') continue;
      PD_ASSIGN_OR_RETURN(const NodePlace made,
                          tree_.Resolve(open.place.scope, input));
      open.inputs.push_back(made);
      const Key before = {made.scope, made.node};
      if (open_.count(before) > 0)
        return Unimplemented(
            "node '%s' reads what is made of its own output, in a loop that is "
            "not TensorFlow's",
            open.place.node->name);
      if (names_.count(before) == 0) stack.push_back({made, {}});
    }
    return absl::OkStatus();
  }

  absl::Status Add(const Open& open) {
    if (open.place.node->op == kArgument) {
      names_[{open.place.scope, open.place.node}] =
          absl::StrCat(prefix_, open.place.node->name);
      return absl::OkStatus();
    }
    if (flat_.nodes.size() >= kMaxNodes)
      return Unimplemented("more than %d nodes", kMaxNodes);
    TfNode node;
    const TfNode& from = *open.place.node;
    node.op = from.op;
    node.name = absl::StrCat(prefix_, from.name);
    for (int i = 1; node.name.empty() || !taken_.insert(node.name).second; ++i)
      node.name = absl::StrCat(prefix_, from.name, "_", i);
    for (const NodePlace& input : open.inputs)
      node.inputs.push_back(NameOf(input));
    for (const auto& [name, attr] : from.attrs) {
      PD_ASSIGN_OR_RETURN(node.attrs[name],
                          tree_.Given(*open.place.scope, attr, from));
    }
    names_[{open.place.scope, open.place.node}] = node.name;
    if (open.place.scope == tree_.root()) flat_.names[from.name] = node.name;
    flat_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  std::string NameOf(const NodePlace& place) const {
    const std::string& name = names_.at({place.scope, place.node});
    return place.output == 0 ? name : absl::StrCat(name, ":", place.output);
  }

  CallTree tree_;
  std::set<std::string> taken_;
  std::string prefix_;
  TfFlatGraph flat_;
  std::map<Key, std::string> names_;  // of nodes that are taken
  std::set<Key> open_;                // those on the way
};

}  // namespace

absl::StatusOr<TfFlatGraph> FlattenTf(const TfGraph& graph,
                                      const std::vector<std::string>& wanted,
                                      std::set<std::string> taken) {
  Flattener flattener(graph, nullptr, std::move(taken), "");
  for (const std::string& value : wanted)
    PD_RETURN_IF_ERROR(flattener.Want(value));
  return flattener.Take();
}

absl::StatusOr<TfFlatFunction> FlattenTfFunction(const TfGraph& graph,
                                                 const std::string& name,
                                                 const std::string& prefix) {
  const auto function = graph.functions.find(name);
  if (function == graph.functions.end())
    return DataLoss("function '%s' is called, which the file has not", name);
  TfFlatFunction result;
  std::set<std::string> taken;
  for (const std::string& input : function->second.inputs) {
    result.arguments.push_back(absl::StrCat(prefix, input));
    taken.insert(result.arguments.back());
  }
  Flattener flattener(graph, &function->second, std::move(taken), prefix);
  for (const std::string& value : function->second.outputs)
    PD_RETURN_IF_ERROR(flattener.Want(value));
  TfFlatGraph flat = flattener.Take();
  for (const std::string& value : function->second.outputs)
    result.outputs.push_back(flat.values.at(value));
  result.nodes = std::move(flat.nodes);
  return result;
}

absl::StatusOr<std::map<std::string, std::string>> TfVariableKeys(
    const TfGraph& graph, const std::string& restore) {
  std::map<std::string, std::string> keys;
  CallTree tree(graph, nullptr);
  std::vector<CallScope*> scopes = {tree.root()};
  const auto reader = tree.root()->nodes->find(restore);
  if (reader != tree.root()->nodes->end()) {
    PD_ASSIGN_OR_RETURN(const TfFunction* called, tree.Called(*reader->second));
    if (called != nullptr) {
      PD_ASSIGN_OR_RETURN(CallScope * inner,
                          tree.Enter(tree.root(), *reader->second, *called));
      scopes.push_back(inner);
    }
  }
  for (CallScope* scope : scopes) {
    for (const auto& [name, node] : *scope->nodes) {
      if ((node->op != "AssignVariableOp" && node->op != "Assign") ||
          node->inputs.size() < 2)
        continue;
      PD_ASSIGN_OR_RETURN(const NodePlace value,
                          tree.Origin(scope, node->inputs[1]));
      if (value.node->op != "RestoreV2" || value.node->inputs.size() < 2)
        continue;
      PD_ASSIGN_OR_RETURN(const NodePlace variable,
                          tree.Origin(scope, node->inputs[0]));
      PD_ASSIGN_OR_RETURN(const NodePlace names,
                          tree.Origin(value.scope, value.node->inputs[1]));
      const auto texts = names.node->attrs.find("value");
      if (texts == names.node->attrs.end() ||
          value.output >= static_cast<int64_t>(texts->second.strings.size()))
        return DataLoss("node '%s' reads variables without names",
                        value.node->name);
      keys[variable.node->name] =
          texts->second.strings[static_cast<size_t>(value.output)];
    }
  }
  return keys;
}

std::string TfTableName(const TfNode& table) {
  const auto shared = table.attrs.find("shared_name");
  return shared != table.attrs.end() && !shared->second.text.empty()
             ? shared->second.text
             : table.name;
}

absl::StatusOr<std::map<std::string, TfLookupTable>> TfTables(
    const TfGraph& graph) {
  const std::set<std::string> filling = FillingFunctions(graph);
  std::map<std::string, TfLookupTable> tables;
  CallTree tree(graph, nullptr);
  std::vector<CallScope*> scopes = {tree.root()};
  for (size_t i = 0; i < scopes.size(); ++i)
    for (const auto& [name, node] : *scopes[i]->nodes) {
      if (!FillsTable(*node)) {
        if (filling.count(CalledName(*node)) == 0) continue;
        PD_ASSIGN_OR_RETURN(const TfFunction* called, tree.Called(*node));
        if (called == nullptr) continue;
        PD_ASSIGN_OR_RETURN(CallScope * inner,
                            tree.Enter(scopes[i], *node, *called));
        scopes.push_back(inner);
        continue;
      }
      if (node->inputs.size() < 3)
        return DataLoss("node '%s' fills a table with nothing", name);
      NodePlace places[3];
      for (size_t k = 0; k < 3; ++k) {
        PD_ASSIGN_OR_RETURN(places[k], tree.Origin(scopes[i], node->inputs[k]));
      }
      TfLookupTable table;
      const bool keys = TakeConstant(*places[1].node, &table, &table.keys);
      const bool values = TakeConstant(*places[2].node, &table, &table.values);
      if (keys && values) tables[TfTableName(*places[0].node)] = table;
    }
  return tables;
}

}  // namespace pd
