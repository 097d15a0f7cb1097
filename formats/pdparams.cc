// SPDX-License-Identifier: Apache-2.0
#include "formats/pdparams.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr absl::string_view kOriginShape = "OriginShape";
constexpr absl::string_view kSlices = "slices";

absl::Status TakeNames(const PickleValue& table, StateDict* state) {
  const auto* dict = table.As<PickleDict>();
  if (dict == nullptr)
    return InvalidArgument("'%s' is of type %s; expected dict",
                           kStructuredNamesKey, TypeName(table));
  state->has_parameter_names = true;
  for (const auto& [key, value] : dict->items) {
    const auto* structured = key.As<std::string>();
    const auto* parameter = value.As<std::string>();
    if (structured == nullptr || parameter == nullptr)
      return InvalidArgument("'%s' maps a %s to a %s; expected str to str",
                             kStructuredNamesKey, TypeName(key),
                             TypeName(value));
    state->parameter_names.emplace_back(*structured, *parameter);
  }
  return absl::OkStatus();
}

// The array of an entry: itself, or the second of a Tensor's (name, array).
const Array* ArrayOf(const PickleValue& value) {
  if (const auto* array = value.As<Array>()) return array;
  const auto* tuple = value.As<PickleTuple>();
  if (tuple == nullptr || tuple->items.size() != 2 ||
      tuple->items[0].As<std::string>() == nullptr)
    return nullptr;
  return tuple->items[1].As<Array>();
}

absl::StatusOr<Shape> OriginShape(const PickleDict& info) {
  const PickleValue* value = info.Find(kOriginShape);
  const auto* tuple = value != nullptr ? value->As<PickleTuple>() : nullptr;
  if (tuple == nullptr) return InvalidArgument("'%s' is missing", kOriginShape);
  Shape shape;
  for (const PickleValue& extent : tuple->items) {
    const auto* number = extent.As<int64_t>();
    if (number == nullptr)
      return InvalidArgument("'%s' holds a %s; expected int", kOriginShape,
                             TypeName(extent));
    shape.push_back(*number);
  }
  return shape;
}

// The tensors that `info` names, taken out of `state`.
absl::StatusOr<std::vector<Array>> TakeSlices(const PickleDict& info,
                                              StateDict* state) {
  const PickleValue* value = info.Find(kSlices);
  const auto* list = value != nullptr ? value->As<PickleList>() : nullptr;
  if (list == nullptr || list->items.empty())
    return InvalidArgument("'%s' is missing", kSlices);
  std::vector<Array> slices;
  for (const PickleValue& item : list->items) {
    const auto* name = item.As<std::string>();
    const auto it =
        name != nullptr ? state->tensors.find(*name) : state->tensors.end();
    if (it == state->tensors.end())
      return InvalidArgument("slice '%s' is missing",
                             name != nullptr ? *name : "");
    if (!slices.empty() && slices[0].dtype != it->second.dtype)
      return InvalidArgument("slice '%s' is %s; the first is %s", *name,
                             Name(it->second.dtype), Name(slices[0].dtype));
    slices.push_back(std::move(it->second));
    state->tensors.erase(it);
  }
  return slices;
}

absl::Status JoinSlices(const std::string& name, const PickleDict& info,
                        StateDict* state) {
  PD_ASSIGN_OR_RETURN(Shape shape, OriginShape(info));
  PD_ASSIGN_OR_RETURN(const auto slices, TakeSlices(info, state));
  size_t present = 0;
  for (const Array& slice : slices) present += slice.size_bytes();
  const DType dtype = slices[0].dtype;
  PD_ASSIGN_OR_RETURN(const int64_t size, CheckedBytes(shape, SizeOf(dtype)));
  if (static_cast<size_t>(size) != present)
    return InvalidArgument("its shape %s takes %d bytes; its %d slices hold %d",
                           ToString(shape), size, slices.size(), present);
  std::byte* to = nullptr;
  Array joined = NewArray(dtype, std::move(shape), &to);
  for (const Array& slice : slices) {
    if (slice.size_bytes() > 0)
      std::memcpy(to, slice.bytes.get(), slice.size_bytes());
    to += slice.size_bytes();
  }
  if (!state->tensors.emplace(name, std::move(joined)).second)
    return InvalidArgument("it is there whole and in slices");
  state->order.push_back(name);
  return absl::OkStatus();
}

absl::Status JoinAll(const PickleValue& table, StateDict* state) {
  const auto* dict = table.As<PickleDict>();
  if (dict == nullptr)
    return InvalidArgument("'%s' is of type %s; expected dict", kBigParamsKey,
                           TypeName(table));
  for (const auto& [key, value] : dict->items) {
    const auto* name = key.As<std::string>();
    const auto* info = value.As<PickleDict>();
    if (name == nullptr || info == nullptr)
      return InvalidArgument("'%s' maps a %s to a %s; expected str to dict",
                             kBigParamsKey, TypeName(key), TypeName(value));
    PD_RETURN_IF_ERROR(Annotate(JoinSlices(*name, *info, state),
                                absl::StrCat("big parameter '", *name, "'")));
  }
  auto& order = state->order;
  order.erase(std::remove_if(order.begin(), order.end(),
                             [state](const std::string& name) {
                               return state->tensors.count(name) == 0;
                             }),
              order.end());
  return absl::OkStatus();
}

// Adds `array` in slices of at most `slice_bytes` and says so in `table`.
void AddSlices(const std::string& name, const Array& array, size_t slice_bytes,
               PickleDict* entries, PickleDict* table) {
  const size_t element = SizeOf(array.dtype);
  const size_t most = std::max<size_t>(slice_bytes / element, 1);
  const auto total = static_cast<size_t>(array.size());
  PickleTuple shape;
  for (const int64_t extent : array.shape)
    shape.items.push_back(PickleValue{extent});
  PickleList names;
  for (size_t begin = 0; begin < total; begin += most) {
    Array slice;
    slice.dtype = array.dtype;
    slice.shape = {static_cast<int64_t>(std::min(most, total - begin))};
    slice.bytes = {array.bytes, array.bytes.get() + begin * element};
    std::string part = absl::StrCat(name, "@@.", names.items.size());
    names.items.push_back(PickleValue{part});
    entries->Add(std::move(part), PickleValue{std::move(slice)});
  }
  PickleDict info;
  info.Add(std::string(kOriginShape), PickleValue{std::move(shape)});
  info.Add(std::string(kSlices), PickleValue{std::move(names)});
  table->Add(name, PickleValue{std::move(info)});
}

std::vector<std::string> WritingOrder(const StateDict& state) {
  std::vector<std::string> names;
  std::set<absl::string_view> listed;
  for (const std::string& name : state.order)
    if (state.tensors.count(name) > 0 && listed.insert(name).second)
      names.push_back(name);
  for (const auto& [name, array] : state.tensors)
    if (listed.count(name) == 0) names.push_back(name);
  return names;
}

}  // namespace

absl::StatusOr<StateDict> ParseStateDict(const FileBytes& file) {
  PD_ASSIGN_OR_RETURN(PickleValue root, ParsePickle(file));
  auto* dict = std::get_if<PickleDict>(&root.value);
  if (dict == nullptr)
    return InvalidArgument("it is of type %s; a state dict is a dict",
                           TypeName(root));
  StateDict state;
  PickleValue big;
  for (auto& [key, value] : dict->items) {
    const auto* name = key.As<std::string>();
    if (name == nullptr)
      return InvalidArgument("it has a key of type %s; names are str",
                             TypeName(key));
    if (*name == kStructuredNamesKey) {
      PD_RETURN_IF_ERROR(TakeNames(value, &state));
    } else if (*name == kBigParamsKey) {
      big = std::move(value);
    } else if (const Array* array = ArrayOf(value)) {
      state.tensors.emplace(*name, *array);
      state.order.push_back(*name);
    } else {
      state.others.Add(*name, std::move(value));
    }
  }
  if (big.As<PickleNone>() == nullptr) PD_RETURN_IF_ERROR(JoinAll(big, &state));
  return state;
}

absl::StatusOr<StateDict> ReadStateDict(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(path));
  auto state = ParseStateDict(file);
  if (!state.ok())
    return Annotate(state.status(), absl::StrCat("'", path, "'"));
  return state;
}

absl::Status WriteStateDict(const std::string& path, const StateDict& state,
                            int protocol, size_t slice_bytes) {
  PickleDict entries, slices, table;
  for (const std::string& name : WritingOrder(state)) {
    const Array& array = state.tensors.at(name);
    if (protocol < 4 && array.size_bytes() > slice_bytes)
      AddSlices(name, array, slice_bytes, &slices, &table);
    else
      entries.Add(name, PickleValue{array});
  }
  for (const auto& [key, value] : state.others.items)
    entries.items.emplace_back(key, value);
  if (state.has_parameter_names || !state.parameter_names.empty()) {
    PickleDict names;
    for (const auto& [structured, parameter] : state.parameter_names)
      names.Add(structured, PickleValue{parameter});
    entries.Add(std::string(kStructuredNamesKey),
                PickleValue{std::move(names)});
  }
  for (auto& item : slices.items) entries.items.push_back(std::move(item));
  if (!table.items.empty())
    entries.Add(std::string(kBigParamsKey), PickleValue{std::move(table)});
  return WritePickle(path, PickleValue{std::move(entries)}, protocol);
}

}  // namespace pd
