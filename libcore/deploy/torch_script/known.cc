// SPDX-License-Identifier: Apache-2.0
// Functions of numbers, lists and text, and of shapes and dtypes: what a
// network computes before any tensor has elements.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/torch_export.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/torch_script/evaluate.h"

namespace pd {
namespace {

using Known = absl::StatusOr<std::optional<ScriptValue>>;
using Values = std::vector<ScriptValue>;
using ValueKind = ScriptValue::Kind;

constexpr int64_t kMostItems = 1 << 16;

template <typename T>
double ElementOf(const Array& array) {
  T value;
  std::memcpy(&value, array.bytes.get(), sizeof(T));
  return static_cast<double>(value);
}

// The number that a constant without axes is.
std::optional<ScriptValue> NumberIn(const Array& array) {
  switch (array.dtype) {
    case DType::kInt64:
      return ScriptValue::Int({array.data<int64_t>()[0], false});
    case DType::kInt32:
      return ScriptValue::Int({array.data<int32_t>()[0], false});
    case DType::kFloat32:
      return ScriptValue::Float(ElementOf<float>(array));
    case DType::kFloat64:
      return ScriptValue::Float(ElementOf<double>(array));
    default:
      return std::nullopt;
  }
}

Known Compare(const std::string& op, const ScriptValue& a,
              const ScriptValue& b) {
  if (op == "eq" || op == "ne") {
    PD_ASSIGN_OR_RETURN(const bool same, SameScriptValues(a, b));
    return ScriptValue::Bool(same == (op == "eq"));
  }
  double x = a.Number(), y = b.Number();
  // A batch has one row or more: nothing else is known of it.
  if (a.integer.open != b.integer.open) {
    const bool first = a.integer.open;
    const double open = first ? x : y, closed = first ? y : x;
    if (open <= 0 || closed >= open)
      return Unimplemented(
          "a comparison with the batch; a fixed one settles it");
  }
  return ScriptValue::Bool(op == "lt"   ? x < y
                           : op == "le" ? x <= y
                           : op == "gt" ? x > y
                                        : x >= y);
}

Known IntegerArithmetic(const std::string& op, ScriptInt a, ScriptInt b) {
  if (op == "sub") {
    if (b.value == INT64_MIN) return OutOfRange("an integer below all");
    b.value = -b.value;
  }
  if (op == "add" || op == "sub") {
    PD_ASSIGN_OR_RETURN(const ScriptInt sum, AddInts(a, b));
    return ScriptValue::Int(sum);
  }
  if (op == "mul") {
    PD_ASSIGN_OR_RETURN(const ScriptInt product, MultiplyInts(a, b));
    return ScriptValue::Int(product);
  }
  if (op == "floordiv" || op == "floor_divide") {
    PD_ASSIGN_OR_RETURN(const ScriptInt quotient, DivideInts(a, b));
    return ScriptValue::Int(quotient);
  }
  if (op == "min" || op == "max") {
    if (a.open != b.open) return Unimplemented("%s with the batch", op);
    return ScriptValue::Int((a.value < b.value) == (op == "min") ? a : b);
  }
  // remainder
  PD_ASSIGN_OR_RETURN(const ScriptInt quotient, DivideInts(a, b));
  PD_ASSIGN_OR_RETURN(ScriptInt whole, MultiplyInts(quotient, b));
  whole.value = -whole.value;
  PD_ASSIGN_OR_RETURN(const ScriptInt rest, AddInts(a, whole));
  return ScriptValue::Int(rest);
}

Known Arithmetic(const std::string& op, const ScriptValue& a,
                 const ScriptValue& b) {
  const bool whole = !a.Is(ValueKind::kFloat) && !b.Is(ValueKind::kFloat);
  if (whole && op != "div" && op != "pow")
    return IntegerArithmetic(op, a.integer, b.integer);
  const double x = a.Number(), y = b.Number();
  if (a.integer.open || b.integer.open) {
    // Two multiples of the batch.
    if (op != "div" || a.integer.open != b.integer.open || y == 0)
      return Unimplemented("'%s' of the batch; a fixed one settles it", op);
    return ScriptValue::Float(x / y);
  }
  if ((op == "div" || op == "floordiv" || op == "remainder" ||
       op == "floor_divide") &&
      y == 0)
    return InvalidArgument("a division by 0");
  const double out = op == "add"         ? x + y
                     : op == "sub"       ? x - y
                     : op == "mul"       ? x * y
                     : op == "div"       ? x / y
                     : op == "pow"       ? std::pow(x, y)
                     : op == "min"       ? std::min(x, y)
                     : op == "max"       ? std::max(x, y)
                     : op == "remainder" ? x - y * std::floor(x / y)
                                         : std::floor(x / y);
  if (whole && op == "pow" && y >= 0 && std::abs(out) < 9e15)
    return ScriptValue::Int({static_cast<int64_t>(out), false});
  return ScriptValue::Float(out);
}

Known Range(const Values& a) {
  int64_t numbers[3] = {0, 0, 1};
  if (a.empty() || a.size() > 3) return DataLoss("a range of other arguments");
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].Is(ValueKind::kInt) || a[i].integer.open)
      return Unimplemented("a range whose end is not known");
    numbers[a.size() == 1 ? 1 : i] = a[i].integer.value;
  }
  const auto [begin, end, step] = numbers;
  if (step == 0) return DataLoss("a range with a step of 0");
  Values items;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (static_cast<int64_t>(items.size()) >= kMostItems)
      return ResourceExhausted("a range of over %d", kMostItems);
    items.push_back(ScriptValue::Int({i, false}));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return ScriptValue::Items(ValueKind::kList, std::move(items));
}

Known Convert(const std::string& name, const ScriptValue& a,
              const ScriptNetwork& network) {
  ScriptValue value = a;
  if (const Array* array = network.NumberOf(a)) {
    const auto number = NumberIn(*array);
    if (!number.has_value()) return std::optional<ScriptValue>();
    value = *number;
  }
  if (value.Is(ValueKind::kTensor))
    return Unimplemented(
        "an element of a tensor as a number of the program, which hangs on "
        "the input");
  if (!value.IsNumber()) return Unimplemented("a number of what is none");
  if (name == "bool") {
    if (value.integer.open) return ScriptValue::Bool(true);
    return ScriptValue::Bool(value.Number() != 0);
  }
  if (name == "float") {
    if (value.integer.open) return Unimplemented("the batch as a fraction");
    return ScriptValue::Float(value.Number());
  }
  if (!value.Is(ValueKind::kFloat)) return ScriptValue::Int(value.integer);
  if (!(std::abs(value.real) < 9e18))
    return OutOfRange("%g as an integer", value.real);
  return ScriptValue::Int({static_cast<int64_t>(value.real), false});
}

Known OfTensor(const std::string& name, const Values& a,
               const ScriptTensor& tensor) {
  if (name == "size" && a.size() == 2) {
    const int64_t rank = tensor.rank();
    const int64_t at = a[1].integer.value;
    if (at < -rank || at >= rank)
      return InvalidArgument("axis %d of a tensor of %d dimensions", at, rank);
    return ScriptValue::Int(
        tensor.dims[static_cast<size_t>(at < 0 ? at + rank : at)]);
  }
  if (name == "size" || name == "ops.prim.shape") {
    Values dims;
    for (const ScriptInt& dim : tensor.dims)
      dims.push_back(ScriptValue::Int(dim));
    return ScriptValue::Items(ValueKind::kList, std::move(dims));
  }
  if (name == "dim") return ScriptValue::Int({tensor.rank(), false});
  if (name == "len" && tensor.rank() > 0)
    return ScriptValue::Int(tensor.dims[0]);
  if (name == "numel") {
    PD_ASSIGN_OR_RETURN(const ScriptInt count, ProductOf(tensor.dims));
    return ScriptValue::Int(count);
  }
  if (name == "is_floating_point")
    return ScriptValue::Bool(IsFloating(tensor.dtype));
  if (name == "ops.prim.dtype") {
    for (int64_t number = 1; number < 14; ++number)
      if (const auto dtype = DTypeFromTorch(number);
          dtype.ok() && *dtype == tensor.dtype)
        return ScriptValue::Int({number - 1, false});
  }
  if (name == "ops.prim.device" || name == "ops.prim.layout" ||
      name == "ops.aten.device")
    return ScriptValue::Of(ValueKind::kOther);
  if (name == "ops.prim.is_cuda" || name == "ops.prim.is_nested" ||
      name == "ops.prim.requires_grad" || name == "is_nested" ||
      name == "ops.prim.is_quantized" || name == "ops.prim.is_sparse" ||
      name == "is_autocast_enabled")
    return ScriptValue::Bool(false);
  return std::optional<ScriptValue>();
}

Known OfList(const std::string& name, const Values& a) {
  auto& items = *a[0].items;
  if (name == "len")
    return ScriptValue::Int({static_cast<int64_t>(items.size()), false});
  if (name == "append" && a.size() == 2) {
    if (static_cast<int64_t>(items.size()) >= kMostItems)
      return ResourceExhausted("a list of over %d", kMostItems);
    const ScriptValue item = a[1];
    items.push_back(item);
    return a[0];
  }
  if (name == "list" || name == "copy")
    return ScriptValue::Items(ValueKind::kList, items);
  if ((name == "add" || name == "extend" || name == "add_") && a.size() == 2 &&
      a[1].IsSequence()) {
    Values all = items;
    if (static_cast<int64_t>(all.size() + a[1].items->size()) > kMostItems)
      return ResourceExhausted("a list of over %d", kMostItems);
    all.insert(all.end(), a[1].items->begin(), a[1].items->end());
    if (name == "add") return ScriptValue::Items(ValueKind::kList, all);
    items = std::move(all);
    return a[0];
  }
  if (name == "mul" && a.size() == 2 && a[1].Is(ValueKind::kInt)) {
    Values all;
    const int64_t times = a[1].integer.value;
    const auto size = static_cast<int64_t>(items.size());
    if (a[1].integer.open || times > kMostItems || times * size > kMostItems)
      return ResourceExhausted("a list of over %d", kMostItems);
    for (int64_t i = 0; i < times; ++i)
      all.insert(all.end(), items.begin(), items.end());
    return ScriptValue::Items(ValueKind::kList, all);
  }
  if (name == "slice" && a.size() >= 2) {
    const auto size = static_cast<int64_t>(items.size());
    const auto place = [&](size_t i, int64_t otherwise) {
      if (i >= a.size() || !a[i].Is(ValueKind::kInt)) return otherwise;
      const int64_t at = a[i].integer.value;
      return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    };
    if (a.size() > 3 && a[3].integer.value != 1)
      return Unimplemented("a slice of a list with a step");
    const int64_t begin = place(1, 0), end = std::max(begin, place(2, size));
    return ScriptValue::Items(
        ValueKind::kList, Values(items.begin() + begin, items.begin() + end));
  }
  if (name == "__contains__" && a.size() == 2) {
    for (const ScriptValue& item : items) {
      PD_ASSIGN_OR_RETURN(const bool same, SameScriptValues(item, a[1]));
      if (same) return ScriptValue::Bool(true);
    }
    return ScriptValue::Bool(false);
  }
  return std::optional<ScriptValue>();
}

bool IsArithmetic(const std::string& name) {
  for (const char* known : {"add", "sub", "mul", "div", "floordiv", "pow",
                            "floor_divide", "remainder"})
    if (name == known) return true;
  return name == "ops.prim.min" || name == "ops.prim.max" || name == "min" ||
         name == "max";
}

// Functions without a meaning for what is computed, and of the settings.
Known Setting(const std::string& name) {
  if (absl::StartsWith(name, "warn")) return ScriptValue();
  if (name == "format" || name == "percentFormat" || name == "str")
    return ScriptValue::Of(ValueKind::kText);
  for (const char* no :
       {"is_grad_enabled", "is_autocast_enabled", "is_autocast_cpu_enabled"})
    if (name == no) return ScriptValue::Bool(false);
  return std::optional<ScriptValue>();
}

Known OfNumbers(const std::string& name, const Values& a) {
  if (name == "neg" && a.size() == 1) {
    if (a[0].Is(ValueKind::kFloat)) return ScriptValue::Float(-a[0].real);
    return IntegerArithmetic("sub", {0, false}, a[0].integer);
  }
  if (a.size() == 2) {
    for (const char* known : {"eq", "ne", "lt", "le", "gt", "ge"})
      if (name == known) return Compare(name, a[0], a[1]);
    if (IsArithmetic(name))
      return Arithmetic(
          absl::StartsWith(name, "ops.prim.") ? name.substr(9) : name, a[0],
          a[1]);
  }
  if (a.size() == 1 && (name == "ceil" || name == "floor" || name == "sqrt")) {
    if (a[0].integer.open) return Unimplemented("'%s' of the batch", name);
    const double x = a[0].Number();
    if (name == "sqrt") return ScriptValue::Float(std::sqrt(x));
    const double out = name == "ceil" ? std::ceil(x) : std::floor(x);
    if (!(std::abs(out) < 9e18)) return OutOfRange("%g as an integer", out);
    return ScriptValue::Int({static_cast<int64_t>(out), false});
  }
  return std::optional<ScriptValue>();
}

}  // namespace

absl::StatusOr<bool> SameScriptValues(const ScriptValue& a,
                                      const ScriptValue& b) {
  if (a.Is(ValueKind::kTensor) || b.Is(ValueKind::kTensor)) return false;
  if (a.IsNumber() && b.IsNumber()) {
    if (a.integer.open == b.integer.open) return a.Number() == b.Number();
    // A multiple of the batch is none of these, whatever the batch.
    const double open = a.integer.open ? a.Number() : b.Number();
    const double closed = a.integer.open ? b.Number() : a.Number();
    if (open > 0 && (closed < open || std::fmod(closed, open) != 0))
      return false;
    return Unimplemented("a comparison with the batch; a fixed one settles it");
  }
  if (a.IsSequence() && b.IsSequence()) {
    if (a.items->size() != b.items->size()) return false;
    for (size_t i = 0; i < a.items->size(); ++i) {
      // Lists of lists of lists are none that networks compare.
      if ((*a.items)[i].IsSequence()) return Unimplemented("lists of lists");
      PD_ASSIGN_OR_RETURN(const bool same,
                          SameScriptValues((*a.items)[i], (*b.items)[i]));
      if (!same) return false;
    }
    return true;
  }
  return a.kind == b.kind && a.text == b.text;
}

Known EvaluateKnown(const std::string& full_name,
                    const ScriptArguments& arguments,
                    const ScriptNetwork& network) {
  const Values& given = arguments.places;
  const std::string name =
      absl::StartsWith(full_name, "torch.") ? full_name.substr(6) : full_name;
  if (name == "range") return Range(given);
  if (name == "ops.prim.RaiseException")
    return InvalidArgument("the program raises '%s'",
                           given.empty() ? "" : given[0].text.substr(0, 200));
  PD_ASSIGN_OR_RETURN(std::optional<ScriptValue> setting, Setting(name));
  if (setting.has_value()) return setting;
  if (given.empty()) return std::optional<ScriptValue>();
  if (name == "ops.prim.NumToTensor" || name == "ops.prim.data" ||
      name == "ops.prim.unchecked_unwrap_optional" ||
      name == "ops.aten._unwrap_optional" || name == "_unwrap_optional" ||
      name == "unwrap_optional")
    return given[0];
  if (name == "int" || name == "float" || name == "bool" || name == "Int" ||
      name == "Float" || name == "IntImplicit" || name == "FloatImplicit" ||
      name == "ScalarImplicit" || name == "item")
    return Convert(name == "Int" || name == "IntImplicit" ? "int" : name,
                   given[0], network);
  if (name == "__is__" || name == "__isnot__") {
    const bool none = given.size() == 2 && given[0].Is(ValueKind::kNone) &&
                      given[1].Is(ValueKind::kNone);
    return ScriptValue::Bool(none == (name == "__is__"));
  }
  if (name == "__not__") {
    if (!given[0].Is(ValueKind::kBool)) return Unimplemented("not of no bool");
    return ScriptValue::Bool(given[0].integer.value == 0);
  }
  // Constants of a trace that numbers are computed with.
  Values values = given;
  const bool numbers =
      std::any_of(given.begin(), given.end(),
                  [](const ScriptValue& value) { return value.IsNumber(); });
  const bool tensors =
      std::any_of(given.begin(), given.end(), [&](const ScriptValue& value) {
        return value.Is(ValueKind::kTensor) &&
               network.NumberOf(value) == nullptr;
      });
  if (numbers && !tensors && values.size() == 2)
    for (ScriptValue& value : values)
      if (const Array* array = network.NumberOf(value))
        if (auto number = NumberIn(*array)) value = *number;
  if (values[0].Is(ValueKind::kTensor))
    return OfTensor(name, values, network.TensorOf(values[0]));
  if (values[0].IsSequence() &&
      !(values.size() == 2 && (name == "eq" || name == "ne")))
    return OfList(name, values);
  if (values.size() == 2 && (name == "eq" || name == "ne") && !tensors)
    return Compare(name, values[0], values[1]);
  if (std::all_of(values.begin(), values.end(),
                  [](const ScriptValue& value) { return value.IsNumber(); }))
    return OfNumbers(name, values);
  return std::optional<ScriptValue>();
}

}  // namespace pd
