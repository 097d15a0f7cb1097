// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/torch_script/call.h"

#include <algorithm>

#include "formats/torch_export.h"

namespace pd {
namespace {

using ValueKind = ScriptValue::Kind;

// The order in which dtypes give way to each other.
int TypeRank(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 0;
    case DType::kUInt8:
    case DType::kInt8:
      return 1;
    case DType::kInt16:
      return 2;
    case DType::kInt32:
      return 3;
    case DType::kInt64:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 5;
    case DType::kFloat32:
      return 6;
    default:
      return 7;
  }
}

int CategoryOf(DType dtype) {
  return dtype == DType::kBool ? 0 : TypeRank(dtype) < 5 ? 1 : 2;
}

}  // namespace

const ScriptValue* ScriptCall::Find(const char* name) const {
  const auto it = arguments_.find(name);
  return it == arguments_.end() || it->second.Is(ValueKind::kNone)
             ? nullptr
             : &it->second;
}

const ScriptTensor& ScriptCall::Tensor(const char* name) {
  static const ScriptTensor none;
  const ScriptValue* value = Find(name);
  if (value != nullptr && value->Is(ValueKind::kTensor)) {
    const auto it = tensors_->find(value->text);
    if (it != tensors_->end()) return it->second;
  }
  Fail(InvalidArgument("'%s' is no tensor", name));
  return none;
}

std::vector<ScriptTensor> ScriptCall::Tensors(const char* name) {
  std::vector<ScriptTensor> out;
  const ScriptValue* value = Find(name);
  if (value != nullptr && value->IsSequence())
    for (const ScriptValue& item : *value->items)
      if (const auto it = tensors_->find(item.text);
          item.Is(ValueKind::kTensor) && it != tensors_->end())
        out.push_back(it->second);
  if (out.empty()) Fail(InvalidArgument("'%s' is no list of tensors", name));
  return out;
}

int64_t ScriptCall::Int(const char* name, int64_t otherwise) {
  const ScriptValue* value = Find(name);
  if (value == nullptr) return otherwise;
  if (value->Is(ValueKind::kInt) || value->Is(ValueKind::kBool))
    return Known(value->integer);
  Fail(InvalidArgument("'%s' is no integer", name));
  return otherwise;
}

double ScriptCall::Number(const char* name, double otherwise) {
  const ScriptValue* value = Find(name);
  if (value == nullptr) return otherwise;
  if (value->IsNumber() && !value->integer.open) return value->Number();
  Fail(InvalidArgument("'%s' is no number that is known", name));
  return otherwise;
}

ScriptDims ScriptCall::Ints(const char* name) {
  const ScriptValue* value = Find(name);
  if (value == nullptr) return {};
  if (value->Is(ValueKind::kInt)) return {value->integer};
  ScriptDims out;
  if (value->IsSequence())
    for (const ScriptValue& item : *value->items)
      if (item.Is(ValueKind::kInt)) out.push_back(item.integer);
  if (!value->IsSequence() || out.size() != value->items->size())
    Fail(InvalidArgument("'%s' is no list of integers", name));
  return out;
}

std::vector<int64_t> ScriptCall::IntsOf(const char* name, size_t count,
                                        int64_t otherwise) {
  std::vector<int64_t> out;
  for (const ScriptInt& item : Ints(name)) out.push_back(Known(item));
  if (out.empty()) out = {otherwise};
  if (out.size() == 1) out.resize(count, out[0]);
  if (out.size() != count) {
    Fail(InvalidArgument("'%s' has %d integers; expected %d", name, out.size(),
                         count));
    out.resize(count, otherwise);
  }
  return out;
}

DType ScriptCall::TypeOr(const char* name, DType otherwise) {
  const ScriptValue* value = Find(name);
  if (value == nullptr) return otherwise;
  // One less than in files of torch.export.
  const int64_t number = Int(name, -1);
  return Or(DTypeFromTorch(number >= 0 && number < 64 ? number + 1 : 0));
}

size_t ScriptCall::Axis(int64_t axis, int64_t rank) {
  if (axis >= -rank && axis < rank)
    return static_cast<size_t>(axis < 0 ? axis + rank : axis);
  if (rank > 0 || axis < -1 || axis > 0)
    Fail(InvalidArgument("axis %d of a tensor of %d dimensions", axis, rank));
  return 0;
}

int64_t ScriptCall::Known(ScriptInt extent) {
  if (extent.open)
    Fail(Unimplemented(
        "an integer that hangs on the batch; a shape with a fixed batch "
        "settles it"));
  return extent.value;
}

ScriptDims ScriptCall::Broadcast(const ScriptDims& a, const ScriptDims& b) {
  ScriptDims out(std::max(a.size(), b.size()), ScriptInt{1, false});
  const ScriptInt one{1, false};
  for (size_t i = 0; i < out.size(); ++i) {
    const ScriptInt x = i < a.size() ? a[a.size() - 1 - i] : one;
    const ScriptInt y = i < b.size() ? b[b.size() - 1 - i] : one;
    if (!(x == one || y == one || x == y))
      Fail(InvalidArgument("extents %d%s and %d%s do not fit each other",
                           x.value, x.open ? " x batch" : "", y.value,
                           y.open ? " x batch" : ""));
    out[out.size() - 1 - i] = x == one ? y : x;
  }
  return out;
}

DType Promoted(ScriptCall* call, const std::vector<const char*>& names) {
  bool any = false, any_scalar = false;
  DType dtype = DType::kBool, scalar = DType::kBool;
  const auto join = [](DType a, DType b) {
    return TypeRank(b) > TypeRank(a) ? b : a;
  };
  for (const char* name : names) {
    const ScriptValue* value = call->Find(name);
    if (value == nullptr) continue;
    if (value->IsNumber()) {
      any_scalar = true;
      scalar = join(scalar, value->Is(ValueKind::kFloat) ? DType::kFloat32
                            : value->Is(ValueKind::kInt) ? DType::kInt64
                                                         : DType::kBool);
      continue;
    }
    const ScriptTensor& tensor = call->Tensor(name);
    if (tensor.rank() == 0) {
      any_scalar = true;
      scalar = join(scalar, tensor.dtype);
    } else {
      any = true;
      dtype = join(dtype, tensor.dtype);
    }
  }
  if (!any) return scalar;
  return any_scalar && CategoryOf(scalar) > CategoryOf(dtype)
             ? (CategoryOf(scalar) == 2 ? DType::kFloat32 : scalar)
             : dtype;
}

const std::multimap<std::string, ScriptOperator>& AllScriptOperators() {
  static const auto* all = [] {
    auto* table = new std::multimap<std::string, ScriptOperator>;
    for (const ScriptOperators& part :
         {ScriptElementwise(), ScriptNetworkOperators(),
          ScriptShapeOperators()})
      for (const ScriptOperator& row : part) table->emplace(row.name, row);
    return table;
  }();
  return *all;
}

}  // namespace pd
