// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/torch_script/network.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using ArgKind = TorchArgument::Kind;
using ValueKind = ScriptValue::Kind;

constexpr size_t kMostNodes = 200000;

bool IsInt(const ScriptValue& value) {
  return value.Is(ValueKind::kInt) || value.Is(ValueKind::kBool);
}

bool AllAre(const ScriptValue& value, ValueKind kind) {
  return value.IsSequence() &&
         std::all_of(value.items->begin(), value.items->end(),
                     [&](const ScriptValue& item) { return item.Is(kind); });
}

bool Fits(char letter, const ScriptValue& value) {
  const bool none = value.Is(ValueKind::kNone);
  switch (letter) {
    case 't':
      return value.Is(ValueKind::kTensor);
    case 'T':
      return AllAre(value, ValueKind::kTensor) && !value.items->empty();
    case 'o':
      return none || value.Is(ValueKind::kTensor);
    case 's':
      return none || value.IsNumber();
    case 'N':
      return value.IsNumber();
    case 'i':
      return none || IsInt(value);
    case 'I':
      return IsInt(value);
    case 'l':
      return none || value.Is(ValueKind::kInt) ||
             AllAre(value, ValueKind::kInt);
    case 'b':
      return none || value.Is(ValueKind::kBool);
    case 'B':
      return value.Is(ValueKind::kBool);
    case 'S':
      return none || value.Is(ValueKind::kText);
    case 'd':
      return none || value.Is(ValueKind::kOther);
    default:
      return true;
  }
}

TorchArgument ArgumentOf(const ScriptValue& value) {
  TorchArgument out;
  const auto integer = [](const ScriptInt& number) {
    return number.open ? kTorchSymbol : number.value;
  };
  switch (value.kind) {
    case ValueKind::kNone:
      break;
    case ValueKind::kBool:
    case ValueKind::kInt:
      out.kind = value.integer.open ? ArgKind::kSymbol : ArgKind::kInt;
      if (value.integer.open)
        out.names = {""};
      else
        out.ints = {value.integer.value};
      break;
    case ValueKind::kFloat:
      out.kind = ArgKind::kFloat;
      out.floats = {value.real};
      break;
    case ValueKind::kText:
      out.kind = ArgKind::kString;
      out.text = value.text;
      break;
    case ValueKind::kTensor:
      out.kind = ArgKind::kTensor;
      out.names = {value.text};
      break;
    case ValueKind::kList:
    case ValueKind::kTuple:
      if (AllAre(value, ValueKind::kInt)) {
        out.kind = ArgKind::kInts;
        for (const ScriptValue& item : *value.items)
          out.ints.push_back(integer(item.integer));
      } else if (AllAre(value, ValueKind::kFloat)) {
        out.kind = ArgKind::kFloats;
        for (const ScriptValue& item : *value.items)
          out.floats.push_back(item.real);
      } else if (AllAre(value, ValueKind::kTensor)) {
        out.kind = ArgKind::kTensors;
        for (const ScriptValue& item : *value.items)
          out.names.push_back(item.text);
      } else {
        out.kind = ArgKind::kOther;
      }
      break;
    default:
      out.kind = ArgKind::kOther;
  }
  return out;
}

int64_t TorchNumberOf(DType dtype) {
  for (int64_t number = 1; number < 14; ++number)
    if (const auto known = DTypeFromTorch(number);
        known.ok() && *known == dtype)
      return number;
  return 0;
}

}  // namespace

std::string ScriptNetwork::FreeName(const std::string& name) {
  std::string free = name;
  for (int64_t i = 1; !names_.insert(free).second; ++i)
    free = absl::StrCat(name, "_", i);
  return free;
}

void ScriptNetwork::Say(const std::string& name, const ScriptTensor& tensor) {
  tensors_[name] = tensor;
  TorchValue value;
  value.scalar_type = TorchNumberOf(tensor.dtype);
  for (const ScriptInt& dim : tensor.dims)
    value.shape.push_back(dim.open ? -1 : dim.value);
  graph_.values[name] = std::move(value);
}

ScriptValue ScriptNetwork::AddInput(const std::string& name,
                                    ScriptTensor tensor, bool dtype_known) {
  names_.insert(name);
  graph_.inputs.push_back(name);
  if (!dtype_known) open_inputs_.insert(name);
  Say(name, tensor);
  return ScriptValue::Of(ValueKind::kTensor, name);
}

absl::StatusOr<ScriptValue> ScriptNetwork::AddWeight(const std::string& name,
                                                     const Array& array) {
  const ScriptValue value = ScriptValue::Of(ValueKind::kTensor, name);
  if (graph_.weights.count(name) > 0) return value;
  if (!names_.insert(name).second)
    return Unimplemented("a weight and an input are both called '%s'", name);
  ScriptTensor tensor;
  tensor.dtype = array.dtype;
  for (const int64_t extent : array.shape)
    tensor.dims.push_back({extent, false});
  graph_.weights[name] = array;
  graph_.parameters[name] = name;
  Say(name, tensor);
  return value;
}

const Array* ScriptNetwork::NumberOf(const ScriptValue& value) const {
  if (!value.Is(ValueKind::kTensor)) return nullptr;
  const auto it = graph_.weights.find(value.text);
  return it == graph_.weights.end() || !it->second.shape.empty() ? nullptr
                                                                 : &it->second;
}

absl::Status ScriptNetwork::AddOutput(const ScriptValue& value) {
  if (value.IsSequence() || value.Is(ValueKind::kDict)) {
    const bool dict = value.Is(ValueKind::kDict);
    for (size_t i = dict ? 1 : 0; i < value.items->size(); i += dict ? 2 : 1)
      PD_RETURN_IF_ERROR(AddOutput((*value.items)[i]));
    return absl::OkStatus();
  }
  if (value.Is(ValueKind::kNone)) return absl::OkStatus();
  if (!value.Is(ValueKind::kTensor))
    return Unimplemented("an output that is no tensor");
  // A value given twice, a weight and an input get a name of their own.
  std::string name = value.text;
  const auto& outputs = graph_.outputs;
  const auto& inputs = graph_.inputs;
  if (graph_.weights.count(name) > 0 ||
      std::count(outputs.begin(), outputs.end(), name) > 0 ||
      std::count(inputs.begin(), inputs.end(), name) > 0) {
    PD_ASSIGN_OR_RETURN(const ScriptValue copy, Call("clone", {{value}, {}}));
    name = copy.text;
  }
  graph_.outputs.push_back(name);
  return absl::OkStatus();
}

bool ScriptNetwork::Match(const ScriptOperator& op,
                          const ScriptArguments& arguments,
                          std::map<std::string, ScriptValue>* named) const {
  named->clear();
  size_t place = 0, taken = 0;
  bool by_place = true;
  for (const absl::string_view parameter :
       absl::StrSplit(op.parameters, ", ")) {
    if (parameter == "|") {
      by_place = false;
      continue;
    }
    const std::string name(parameter.substr(2));
    const ScriptValue* value = nullptr;
    if (by_place && place < arguments.places.size())
      value = &arguments.places[place++];
    for (const auto& [keyword, given] : arguments.names)
      if (keyword == name && value == nullptr) {
        value = &given;
        ++taken;
      }
    static const ScriptValue none;
    if (!Fits(parameter[0], value == nullptr ? none : *value)) return false;
    if (value != nullptr) (*named)[name] = *value;
  }
  return place == arguments.places.size() && taken == arguments.names.size();
}

absl::StatusOr<ScriptValue> ScriptNetwork::Call(
    const std::string& name, const ScriptArguments& arguments) {
  std::string base = name;
  auto range = AllScriptOperators().equal_range(base);
  bool in_place = false;
  if (range.first == range.second && base.size() > 1 && base.back() == '_') {
    base.pop_back();
    in_place = true;
    range = AllScriptOperators().equal_range(base);
  }
  std::map<std::string, ScriptValue> named;
  for (auto it = range.first; it != range.second; ++it)
    if (Match(it->second, arguments, &named))
      return Emit(it->second, in_place, std::move(named));
  ++missing_[absl::StrCat(
      "torch.", name,
      range.first == range.second ? "" : " with these arguments")];
  return ScriptValue::Of(ValueKind::kUnknown);
}

absl::StatusOr<ScriptValue> ScriptNetwork::Emit(
    const ScriptOperator& op, bool in_place,
    std::map<std::string, ScriptValue> named) {
  if (graph_.nodes.size() >= kMostNodes)
    return ResourceExhausted("over %d calls of operators", kMostNodes);
  // An embedding looks up indices.
  if (const auto indices = named.find("indices");
      std::string(op.name) == "embedding" && indices != named.end() &&
      open_inputs_.erase(indices->second.text) > 0) {
    ScriptTensor tensor = tensors_[indices->second.text];
    tensor.dtype = DType::kInt64;
    Say(indices->second.text, tensor);
  }
  ScriptCall call(named, &tensors_);
  op.infer(&call);
  if (!call.ok())
    return Annotate(call.status(), absl::StrCat("torch.", op.name));
  TorchNode node;
  node.target = absl::StrCat("torch.ops.aten.", op.target);
  if (in_place) {
    node.target.insert(node.target.rfind('.'), "_");
    const auto self = named.find("self");
    if (self != named.end() && !call.outputs.empty())
      call.outputs[0] = tensors_[self->second.text];
  }
  for (const auto& [parameter, value] : named) {
    // The importer takes the first input for the tensor that is shared.
    const bool first = parameter == "self";
    node.inputs.insert(first ? node.inputs.begin() : node.inputs.end(),
                       {parameter, ArgumentOf(value)});
  }
  std::vector<ScriptValue> answers;
  for (const ScriptTensor& output : call.outputs) {
    const std::string free = FreeName(op.name);
    Say(free, output);
    answers.push_back(ScriptValue::Of(ValueKind::kTensor, free));
    TorchArgument argument;
    argument.kind = ArgKind::kTensor;
    argument.names = {free};
    node.outputs.push_back(std::move(argument));
  }
  graph_.nodes.push_back(std::move(node));
  if (answers.size() == 1 && !call.gives_list) return answers[0];
  return ScriptValue::Items(
      call.gives_list ? ValueKind::kList : ValueKind::kTuple,
      std::move(answers));
}

absl::Status ScriptNetwork::Missing() const {
  if (missing_.empty()) return absl::OkStatus();
  return Unimplemented(
      "operators that are not supported (and their calls): %s",
      absl::StrJoin(missing_, ", ", [](std::string* out, const auto& name) {
        absl::StrAppend(out, "'", name.first, "' (", name.second, ")");
      }));
}

}  // namespace pd
