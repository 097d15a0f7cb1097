// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/torch_script/evaluate.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using ExprKind = ScriptExpr::Kind;
using StatementKind = ScriptStatement::Kind;
using ValueKind = ScriptValue::Kind;

// Of calls within calls: each takes some frames of the stack.
constexpr int kMostCalls = 64;
// Statements and expressions, so that loops end.
constexpr int64_t kMostSteps = 1000000;
// Of expressions within expressions, through all calls.
constexpr int kMostLevels = 500;

// "torch.nn" of an expression of names; "" for others.
std::string DottedName(const ScriptExpr& expr) {
  if (expr.kind == ExprKind::kName) return expr.text;
  if (expr.kind != ExprKind::kAttribute) return "";
  const std::string of = DottedName(expr.items[0]);
  return of.empty() ? "" : absl::StrCat(of, ".", expr.text);
}

bool IsBuiltin(const std::string& name, bool is_variable) {
  static const auto* words =
      new std::set<std::string>{"int",       "float",         "bool",
                                "str",       "range",         "getattr",
                                "annotate",  "uninitialized", "unchecked_cast",
                                "isinstance"};
  return !is_variable &&
         (words->count(name) > 0 || absl::StartsWith(name, "torch.") ||
          absl::StartsWith(name, "ops."));
}

absl::Status Undefined(const std::string& name) {
  return DataLoss("'%s' has no value", name);
}

}  // namespace

ScriptEvaluator::ScriptEvaluator(const TorchScript& script,
                                 ScriptNetwork* network)
    : script_(script), network_(network), paths_(script.objects.size()) {
  for (const auto& [name, array] : TorchScriptWeights(script))
    weight_names_.emplace(std::pair(static_cast<const void*>(array.bytes.get()),
                                    ToString(array.shape)),
                          name);
}

absl::Status ScriptEvaluator::Count() {
  if (++steps_ > kMostSteps)
    return ResourceExhausted("over %d steps of the program", kMostSteps);
  return absl::OkStatus();
}

absl::StatusOr<const ScriptFunction*> ScriptEvaluator::FunctionOf(
    const std::string& module, const std::string& name) {
  const auto source = script_.sources.find(module);
  if (source == script_.sources.end())
    return NotFound("the archive has no source of '%s'", module);
  auto parsed = sources_.find(module);
  if (parsed == sources_.end()) {
    auto functions = ParseTorchSource(source->second);
    if (!functions.ok())
      return Annotate(functions.status(), absl::StrCat("'", module, "'"));
    parsed = sources_.emplace(module, *std::move(functions)).first;
  }
  const auto function = parsed->second.find(name);
  if (function == parsed->second.end())
    return NotFound("'%s' has no '%s'", module, name);
  return function->second.get();
}

absl::StatusOr<const ScriptFunction*> ScriptEvaluator::Forward() {
  const std::string& type = script_.objects[0].type;
  const size_t dot = type.rfind('.');
  return FunctionOf(type.substr(0, dot),
                    absl::StrCat(type.substr(dot + 1), ".forward"));
}

absl::StatusOr<ScriptValue> ScriptEvaluator::Run(const ScriptFunction& function,
                                                 ScriptArguments arguments) {
  if (++depth_ > kMostCalls)
    return InvalidArgument("calls over %d levels deep", kMostCalls);
  Variables variables;
  size_t place = 0;
  for (const auto& [parameter, type] : function.parameters) {
    const auto named =
        std::find_if(arguments.names.begin(), arguments.names.end(),
                     [&, &name = parameter](const auto& given) {
                       return given.first == name;
                     });
    if (place < arguments.places.size()) {
      variables[parameter] = arguments.places[place++];
    } else if (named != arguments.names.end()) {
      variables[parameter] = named->second;
    } else if (const auto it = function.defaults.find(parameter);
               it != function.defaults.end()) {
      PD_ASSIGN_OR_RETURN(variables[parameter], Value(it->second, &variables));
    } else {
      return DataLoss("'%s' lacks its argument '%s'", function.name, parameter);
    }
  }
  ScriptValue answer;
  PD_RETURN_IF_ERROR(
      Annotate(Block(function.body, &variables, &answer).status(),
               absl::StrCat("'", function.name, "'")));
  --depth_;
  return answer;
}

absl::StatusOr<ScriptEvaluator::Flow> ScriptEvaluator::Block(
    const std::vector<ScriptStatement>& block, Variables* variables,
    ScriptValue* answer) {
  for (const ScriptStatement& statement : block) {
    PD_RETURN_IF_ERROR(Count());
    auto flow = Statement(statement, variables, answer);
    if (!flow.ok())
      return Annotate(flow.status(), absl::StrCat("line ", statement.line));
    if (*flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

absl::StatusOr<ScriptEvaluator::Flow> ScriptEvaluator::Statement(
    const ScriptStatement& statement, Variables* variables,
    ScriptValue* answer) {
  switch (statement.kind) {
    case StatementKind::kExpr: {
      const std::string& word = statement.value.text;
      if (statement.value.kind == ExprKind::kName && word == "break")
        return Flow::kBreak;
      if (statement.value.kind == ExprKind::kName && word == "continue")
        return Flow::kContinue;
      PD_RETURN_IF_ERROR(Value(statement.value, variables).status());
      return Flow::kNext;
    }
    case StatementKind::kAssign: {
      PD_ASSIGN_OR_RETURN(ScriptValue value, Value(statement.value, variables));
      PD_RETURN_IF_ERROR(Assign(statement, std::move(value), variables));
      return Flow::kNext;
    }
    case StatementKind::kReturn: {
      PD_ASSIGN_OR_RETURN(*answer, Value(statement.value, variables));
      return Flow::kReturn;
    }
    case StatementKind::kIf: {
      PD_ASSIGN_OR_RETURN(const ScriptValue value,
                          Value(statement.value, variables));
      PD_ASSIGN_OR_RETURN(const bool truth, Truth(value));
      return Block(truth ? statement.body : statement.otherwise, variables,
                   answer);
    }
    case StatementKind::kWhile:
    case StatementKind::kFor:
      return Loop(statement, variables, answer);
  }
  return Flow::kNext;
}

absl::StatusOr<ScriptEvaluator::Flow> ScriptEvaluator::Loop(
    const ScriptStatement& statement, Variables* variables,
    ScriptValue* answer) {
  std::vector<ScriptValue> items;
  const bool counted = statement.kind == StatementKind::kFor;
  if (counted) {
    PD_ASSIGN_OR_RETURN(const ScriptValue over,
                        Value(statement.value, variables));
    if (over.Is(ValueKind::kUnknown)) return network_->Missing();
    if (!over.IsSequence()) return Unimplemented("a loop over no list");
    items = *over.items;
  }
  for (size_t i = 0; !counted || i < items.size(); ++i) {
    PD_RETURN_IF_ERROR(Count());
    if (counted) {
      (*variables)[statement.targets[0].text] = items[i];
    } else {
      PD_ASSIGN_OR_RETURN(const ScriptValue value,
                          Value(statement.value, variables));
      PD_ASSIGN_OR_RETURN(const bool truth, Truth(value));
      if (!truth) break;
    }
    PD_ASSIGN_OR_RETURN(const Flow flow,
                        Block(statement.body, variables, answer));
    if (flow == Flow::kReturn) return flow;
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

absl::Status ScriptEvaluator::Assign(const ScriptStatement& statement,
                                     ScriptValue value, Variables* variables) {
  const auto& targets = statement.targets;
  for (const ScriptExpr& target : targets)
    if (target.kind != ExprKind::kName)
      return Unimplemented("an attribute or element that is set");
  if (!statement.unpacks) {
    (*variables)[targets[0].text] = std::move(value);
    return absl::OkStatus();
  }
  if (value.Is(ValueKind::kUnknown)) {
    for (const ScriptExpr& target : targets) (*variables)[target.text] = value;
    return absl::OkStatus();
  }
  if (!value.IsSequence() || value.items->size() != targets.size())
    return DataLoss("a value that is no tuple of %d", targets.size());
  const std::vector<ScriptValue> items = *value.items;
  for (size_t i = 0; i < targets.size(); ++i)
    (*variables)[targets[i].text] = items[i];
  return absl::OkStatus();
}

absl::StatusOr<bool> ScriptEvaluator::Truth(const ScriptValue& value) {
  if (value.Is(ValueKind::kUnknown)) {
    PD_RETURN_IF_ERROR(network_->Missing());
    return Unimplemented("a condition that is not known");
  }
  if (value.IsNumber() && !value.integer.open) return value.Number() != 0;
  if (value.Is(ValueKind::kTensor))
    return Unimplemented(
        "a condition on the elements of a tensor; a network whose branches "
        "hang on its input cannot be written down as one graph");
  if (value.IsNumber())
    return Unimplemented("a condition on the batch; a fixed one settles it");
  return DataLoss("a condition that is no bool");
}

absl::StatusOr<ScriptValue> ScriptEvaluator::Constant(const std::string& name) {
  size_t number = 0;
  if (name.empty() || name[0] != 'c' ||
      !absl::SimpleAtoi(name.substr(1), &number) ||
      number >= script_.constants.size())
    return DataLoss("the archive has no constant '%s'", name.substr(0, 40));
  return ValueOf(script_.constants[number], absl::StrCat("CONSTANTS.", name));
}

absl::StatusOr<ScriptValue> ScriptEvaluator::ValueOf(const PickleValue& value,
                                                     const std::string& name) {
  if (const bool* truth = value.As<bool>()) return ScriptValue::Bool(*truth);
  if (const int64_t* integer = value.As<int64_t>())
    return ScriptValue::Int({*integer, false});
  if (const double* real = value.As<double>()) return ScriptValue::Float(*real);
  if (const std::string* text = value.As<std::string>())
    return ScriptValue::Of(ValueKind::kText, *text);
  if (const Array* array = value.As<Array>()) {
    const auto known = weight_names_.find(
        {static_cast<const void*>(array->bytes.get()), ToString(array->shape)});
    return network_->AddWeight(
        known == weight_names_.end() ? name : known->second, *array);
  }
  const auto* list = value.As<PickleList>();
  const auto* tuple = value.As<PickleTuple>();
  if (list == nullptr && tuple == nullptr)
    return ScriptValue::Of(value.As<PickleNone>() != nullptr
                               ? ValueKind::kNone
                               : ValueKind::kOther);
  const std::vector<PickleValue>& from =
      list != nullptr ? list->items : tuple->items;
  std::vector<ScriptValue> items;
  for (size_t i = 0; i < from.size(); ++i) {
    PD_ASSIGN_OR_RETURN(ScriptValue item,
                        ValueOf(from[i], absl::StrCat(name, ".", i)));
    items.push_back(std::move(item));
  }
  return ScriptValue::Items(
      list != nullptr ? ValueKind::kList : ValueKind::kTuple, std::move(items));
}

absl::StatusOr<ScriptValue> ScriptEvaluator::Attribute(
    const ScriptValue& of, const std::string& name) {
  if (of.Is(ValueKind::kUnknown)) return of;
  if (!of.Is(ValueKind::kObject))
    return Unimplemented("attribute '%s' of what is no module", name);
  const auto number = static_cast<size_t>(of.object);
  const auto it = script_.objects[number].attributes.find(name);
  if (it == script_.objects[number].attributes.end())
    return DataLoss("'%s' has no attribute '%s'", script_.objects[number].type,
                    name);
  const std::string path = absl::StrCat(paths_[number], name);
  if (it->second.object < 0) return ValueOf(it->second.value, path);
  ScriptValue value = ScriptValue::Of(ValueKind::kObject);
  value.object = it->second.object;
  std::string& known = paths_[static_cast<size_t>(value.object)];
  if (known.empty()) known = path + ".";
  return value;
}

absl::StatusOr<ScriptValue> ScriptEvaluator::Index(const ScriptValue& of,
                                                   const ScriptValue& index) {
  if (of.Is(ValueKind::kUnknown)) return of;
  if (of.Is(ValueKind::kDict)) {
    for (size_t i = 0; i + 1 < of.items->size(); i += 2) {
      PD_ASSIGN_OR_RETURN(const bool same,
                          SameScriptValues((*of.items)[i], index));
      if (same) return (*of.items)[i + 1];
    }
    return DataLoss("a dict lacks a key that is read");
  }
  if (!of.IsSequence() || !index.Is(ValueKind::kInt) || index.integer.open)
    return Unimplemented("an element of what is no list");
  const auto size = static_cast<int64_t>(of.items->size());
  const int64_t at = index.integer.value;
  if (at < -size || at >= size) return DataLoss("element %d of %d", at, size);
  return (*of.items)[static_cast<size_t>(at < 0 ? at + size : at)];
}

absl::StatusOr<ScriptValue> ScriptEvaluator::Method(const ScriptValue& self,
                                                    const std::string& name,
                                                    ScriptArguments arguments) {
  if (self.Is(ValueKind::kUnknown)) return self;
  if (!self.Is(ValueKind::kObject))
    return Unimplemented("method '%s' of what is no module", name);
  const std::string& type =
      script_.objects[static_cast<size_t>(self.object)].type;
  const size_t dot = type.rfind('.');
  PD_ASSIGN_OR_RETURN(
      const ScriptFunction* function,
      FunctionOf(type.substr(0, dot),
                 absl::StrCat(type.substr(dot + 1), ".", name)));
  arguments.places.insert(arguments.places.begin(), self);
  return Run(*function, std::move(arguments));
}

absl::StatusOr<ScriptValue> ScriptEvaluator::CallOf(const ScriptExpr& expr,
                                                    Variables* variables) {
  const ScriptExpr& callee = expr.items[0];
  const std::string name = DottedName(callee);
  const std::string first = name.substr(0, name.find('.'));
  const bool builtin = IsBuiltin(name, variables->count(first) > 0);
  ScriptArguments arguments;
  // Types are no values.
  const bool typed = name == "annotate" || name == "unchecked_cast";
  if (name == "uninitialized" || name == "torch.device")
    return ScriptValue::Of(name == "torch.device" ? ValueKind::kOther
                                                  : ValueKind::kNone);
  if (typed && expr.items.size() == 3) return Value(expr.items[2], variables);
  bool unknown = false;
  for (size_t i = 1; i < expr.items.size(); ++i) {
    PD_ASSIGN_OR_RETURN(ScriptValue value, Value(expr.items[i], variables));
    unknown = unknown || value.Is(ValueKind::kUnknown);
    if (expr.keywords[i - 1].empty())
      arguments.places.push_back(std::move(value));
    else
      arguments.names.emplace_back(expr.keywords[i - 1], std::move(value));
  }
  if (builtin) {
    if (name == "getattr" && arguments.places.size() == 2)
      return Attribute(arguments.places[0], arguments.places[1].text);
    if (unknown && name != "torch.append")
      return ScriptValue::Of(ValueKind::kUnknown);
    PD_ASSIGN_OR_RETURN(std::optional<ScriptValue> known,
                        EvaluateKnown(name, arguments, *network_));
    if (known.has_value()) return *std::move(known);
    for (ScriptValue& value : arguments.places) {
      // A number that tensors are computed with.
      if (value.Is(ValueKind::kObject))
        return Unimplemented("a module as an argument of '%s'", name);
    }
    absl::string_view op = name;
    if (!absl::ConsumePrefix(&op, "torch.")) absl::ConsumePrefix(&op, "ops.");
    absl::ConsumePrefix(&op, "_C._nn.");
    return network_->Call(std::string(op), arguments);
  }
  if (callee.kind == ExprKind::kAttribute && first != "__torch__") {
    PD_ASSIGN_OR_RETURN(const ScriptValue self,
                        Value(callee.items[0], variables));
    return Method(self, callee.text, std::move(arguments));
  }
  PD_ASSIGN_OR_RETURN(const ScriptValue function, Value(callee, variables));
  if (function.Is(ValueKind::kUnknown)) return function;
  if (!function.Is(ValueKind::kFunction))
    return Unimplemented("a call of '%s'", name);
  const size_t dot = function.text.rfind('.');
  PD_ASSIGN_OR_RETURN(
      const ScriptFunction* found,
      FunctionOf(function.text.substr(0, dot), function.text.substr(dot + 1)));
  return Run(*found, std::move(arguments));
}

absl::StatusOr<ScriptValue> ScriptEvaluator::Operation(const ScriptExpr& expr,
                                                       Variables* variables) {
  if (expr.text == "and" || expr.text == "or") {
    PD_ASSIGN_OR_RETURN(const ScriptValue first,
                        Value(expr.items[0], variables));
    PD_ASSIGN_OR_RETURN(const bool left, Truth(first));
    if (left == (expr.text == "or")) return ScriptValue::Bool(left);
    return Value(expr.items[1], variables);
  }
  std::vector<ScriptValue> items;
  for (const ScriptExpr& operand : expr.items) {
    PD_ASSIGN_OR_RETURN(ScriptValue item, Value(operand, variables));
    items.push_back(std::move(item));
  }
  for (const ScriptValue& item : items)
    if (item.Is(ValueKind::kUnknown)) return item;
  static const auto* names = new std::map<std::string, std::string>{
      {"+", "add"},       {"-", "sub"},
      {"*", "mul"},       {"/", "div"},
      {"//", "floordiv"}, {"%", "remainder"},
      {"==", "eq"},       {"!=", "ne"},
      {"<", "lt"},        {">", "gt"},
      {"<=", "le"},       {">=", "ge"},
      {"is", "__is__"},   {"is not", "__isnot__"},
      {"not", "__not__"}, {"**", "pow"}};
  std::string name =
      names->count(expr.text) > 0 ? names->at(expr.text) : expr.text;
  if (expr.text == "-" && items.size() == 1) name = "neg";
  const ScriptArguments arguments{items, {}};
  PD_ASSIGN_OR_RETURN(
      std::optional<ScriptValue> known,
      EvaluateKnown(absl::StrCat("torch.", name), arguments, *network_));
  if (known.has_value()) return *std::move(known);
  return network_->Call(name, arguments);
}

absl::StatusOr<ScriptValue> ScriptEvaluator::Value(const ScriptExpr& expr,
                                                   Variables* variables) {
  PD_RETURN_IF_ERROR(Count());
  if (levels_ > kMostLevels)
    return InvalidArgument("expressions over %d levels deep", kMostLevels);
  ++levels_;
  const absl::Cleanup leave = [&] { --levels_; };
  std::vector<ScriptValue> items;
  const auto evaluate = [&](size_t count) -> absl::Status {
    for (size_t i = 0; i < count; ++i) {
      PD_ASSIGN_OR_RETURN(ScriptValue item, Value(expr.items[i], variables));
      items.push_back(std::move(item));
    }
    return absl::OkStatus();
  };
  switch (expr.kind) {
    case ExprKind::kNone:
      return ScriptValue();
    case ExprKind::kBool:
      return ScriptValue::Bool(expr.integer != 0);
    case ExprKind::kInt:
      return ScriptValue::Int({expr.integer, false});
    case ExprKind::kFloat:
      return ScriptValue::Float(expr.real);
    case ExprKind::kText:
      return ScriptValue::Of(ValueKind::kText, expr.text);
    case ExprKind::kName: {
      const auto it = variables->find(expr.text);
      if (it != variables->end()) return it->second;
      if (expr.text == "Tensor" || expr.text == "number")
        return ScriptValue::Of(ValueKind::kOther);
      return Undefined(expr.text);
    }
    case ExprKind::kAttribute: {
      const std::string name = DottedName(expr);
      if (absl::StartsWith(name, "CONSTANTS.")) return Constant(expr.text);
      if (absl::StartsWith(name, "__torch__."))
        return ScriptValue::Of(ValueKind::kFunction, name);
      PD_RETURN_IF_ERROR(evaluate(1));
      return Attribute(items[0], expr.text);
    }
    case ExprKind::kIndex:
      if (expr.items.size() != 2)
        return Unimplemented("an index of %d", expr.items.size() - 1);
      PD_RETURN_IF_ERROR(evaluate(2));
      return Index(items[0], items[1]);
    case ExprKind::kCall:
      return CallOf(expr, variables);
    case ExprKind::kList:
    case ExprKind::kTuple:
    case ExprKind::kDict: {
      PD_RETURN_IF_ERROR(evaluate(expr.items.size()));
      for (const ScriptValue& item : items)
        if (item.Is(ValueKind::kUnknown)) return item;
      return ScriptValue::Items(expr.kind == ExprKind::kList ? ValueKind::kList
                                : expr.kind == ExprKind::kTuple
                                    ? ValueKind::kTuple
                                    : ValueKind::kDict,
                                std::move(items));
    }
    case ExprKind::kUnary:
    case ExprKind::kBinary:
      return Operation(expr, variables);
    case ExprKind::kTernary: {
      PD_ASSIGN_OR_RETURN(const ScriptValue condition,
                          Value(expr.items[1], variables));
      PD_ASSIGN_OR_RETURN(const bool truth, Truth(condition));
      return Value(expr.items[truth ? 0 : 2], variables);
    }
  }
  return Undefined(expr.text);
}

}  // namespace pd
