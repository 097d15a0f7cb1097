// SPDX-License-Identifier: Apache-2.0
#include "formats/pdparams.h"

#include <algorithm>
#include <cstring>
#include <map>
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

using Entries = std::vector<std::pair<PickleValue, PickleValue>>;
using Index = std::map<absl::string_view, size_t>;

// The tensors that `info` names, taken out of `entries`, whose place by name
// `index` gives.
absl::StatusOr<std::vector<Array>> TakeSlices(const PickleDict& info,
                                              const Index& index,
                                              Entries* entries) {
  const PickleValue* value = info.Find(kSlices);
  const auto* list = value != nullptr ? value->As<PickleList>() : nullptr;
  if (list == nullptr || list->items.empty())
    return InvalidArgument("'%s' is missing", kSlices);
  std::vector<Array> slices;
  for (const PickleValue& item : list->items) {
    const auto* name = item.As<std::string>();
    const auto at = name != nullptr ? index.find(*name) : index.end();
    const Array* slice =
        at != index.end() ? ArrayOf((*entries)[at->second].second) : nullptr;
    if (slice == nullptr)
      return InvalidArgument("slice '%s' is missing",
                             name != nullptr ? *name : "");
    if (!slices.empty() && slices[0].dtype != slice->dtype)
      return InvalidArgument("slice '%s' is %s; the first is %s", *name,
                             Name(slice->dtype), Name(slices[0].dtype));
    slices.push_back(*slice);
    (*entries)[at->second].second = PickleValue();  // taken
  }
  return slices;
}

absl::StatusOr<Array> JoinSlices(const PickleDict& info, const Index& index,
                                 Entries* entries) {
  PD_ASSIGN_OR_RETURN(Shape shape, OriginShape(info));
  PD_ASSIGN_OR_RETURN(const auto slices, TakeSlices(info, index, entries));
  size_t present = 0;
  for (const Array& slice : slices) present += slice.size_bytes();
  const DType dtype = slices[0].dtype;
  PD_ASSIGN_OR_RETURN(const int64_t size, CheckedBytes(shape, SizeOf(dtype)));
  if (static_cast<size_t>(size) != present)
    return InvalidArgument("its shape %s takes %d bytes; its %d slices hold %d",
                           ToString(shape), size, slices.size(), present);
  std::byte* to = nullptr;
  PD_ASSIGN_OR_RETURN(Array joined, NewArray(dtype, std::move(shape), &to));
  for (const Array& slice : slices) {
    if (slice.size_bytes() > 0)
      std::memcpy(to, slice.bytes.get(), slice.size_bytes());
    to += slice.size_bytes();
  }
  return joined;
}

absl::Status JoinInto(const PickleDict& table, PickleDict* dict) {
  Index index;
  for (size_t i = 0; i < dict->items.size(); ++i)
    if (const auto* name = dict->items[i].first.As<std::string>())
      index.emplace(*name, i);
  std::vector<std::pair<std::string, Array>> joined;
  for (const auto& [key, value] : table.items) {
    const auto* name = key.As<std::string>();
    const auto* info = value.As<PickleDict>();
    if (name == nullptr || info == nullptr)
      return InvalidArgument("'%s' maps a %s to a %s; expected str to dict",
                             kBigParamsKey, TypeName(key), TypeName(value));
    auto array = JoinSlices(*info, index, &dict->items);
    if (array.ok() && index.count(*name) > 0)
      array = InvalidArgument("it is there whole and in slices");
    if (!array.ok())
      return Annotate(array.status(),
                      absl::StrCat("big parameter '", *name, "'"));
    joined.emplace_back(*name, *std::move(array));
  }
  for (auto& [name, array] : joined)
    dict->Add(std::move(name), PickleValue{std::move(array)});
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

absl::Status JoinBigParams(PickleDict* dict) {
  const PickleValue* found = dict->Find(kBigParamsKey);
  if (found == nullptr) return absl::OkStatus();
  const PickleValue table = *found;
  const auto* slices = table.As<PickleDict>();
  if (slices == nullptr)
    return InvalidArgument("'%s' is of type %s; expected dict", kBigParamsKey,
                           TypeName(table));
  std::set<std::string> gone = {std::string(kBigParamsKey)};
  for (const auto& [key, value] : slices->items) {
    const auto* info = value.As<PickleDict>();
    const PickleValue* list = info != nullptr ? info->Find(kSlices) : nullptr;
    const auto* names = list != nullptr ? list->As<PickleList>() : nullptr;
    if (names == nullptr) continue;  // JoinInto says what is wrong
    for (const PickleValue& name : names->items)
      if (const auto* text = name.As<std::string>()) gone.insert(*text);
  }
  PD_RETURN_IF_ERROR(JoinInto(*slices, dict));
  auto& items = dict->items;
  const auto is_gone = [&gone](const auto& item) {
    const auto* name = item.first.template As<std::string>();
    return name != nullptr && gone.count(*name) > 0;
  };
  items.erase(std::remove_if(items.begin(), items.end(), is_gone), items.end());
  return absl::OkStatus();
}

void SplitBigParams(size_t slice_bytes, PickleDict* dict) {
  PickleDict whole, slices, table;
  whole.ordered = dict->ordered;
  for (auto& [key, value] : dict->items) {
    const auto* name = key.As<std::string>();
    const Array* array = ArrayOf(value);
    if (name != nullptr && array != nullptr &&
        array->size_bytes() > slice_bytes)
      AddSlices(*name, *array, slice_bytes, &slices, &table);
    else
      whole.items.emplace_back(std::move(key), std::move(value));
  }
  if (!table.items.empty()) {
    for (auto& item : slices.items) whole.items.push_back(std::move(item));
    whole.Add(std::string(kBigParamsKey), PickleValue{std::move(table)});
  }
  *dict = std::move(whole);
}

absl::StatusOr<StateDict> StateDictOf(PickleValue root) {
  auto* dict = std::get_if<PickleDict>(&root.value);
  if (dict == nullptr)
    return InvalidArgument("it is of type %s; a state dict is a dict",
                           TypeName(root));
  for (const auto& [key, value] : dict->items)
    if (key.As<std::string>() == nullptr)
      return InvalidArgument("it has a key of type %s; names are str",
                             TypeName(key));
  PD_RETURN_IF_ERROR(JoinBigParams(dict));
  StateDict state;
  for (auto& [key, value] : dict->items) {
    const std::string& name = *key.As<std::string>();
    if (name == kStructuredNamesKey) {
      PD_RETURN_IF_ERROR(TakeNames(value, &state));
    } else if (const Array* array = ArrayOf(value)) {
      state.tensors.emplace(name, *array);
      state.order.push_back(name);
    } else {
      state.others.Add(name, std::move(value));
    }
  }
  return state;
}

absl::StatusOr<StateDict> ParseStateDict(const FileBytes& file,
                                         Alignment alignment) {
  PD_ASSIGN_OR_RETURN(PickleValue root, ParsePickle(file, alignment));
  return StateDictOf(std::move(root));
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
  PickleDict entries;
  for (const std::string& name : WritingOrder(state))
    entries.Add(name, PickleValue{state.tensors.at(name)});
  for (const auto& [key, value] : state.others.items)
    entries.items.emplace_back(key, value);
  if (state.has_parameter_names || !state.parameter_names.empty()) {
    PickleDict names;
    for (const auto& [structured, parameter] : state.parameter_names)
      names.Add(structured, PickleValue{parameter});
    entries.Add(std::string(kStructuredNamesKey),
                PickleValue{std::move(names)});
  }
  if (protocol < 4) SplitBigParams(slice_bytes, &entries);
  return WritePickle(path, PickleValue{std::move(entries)}, protocol);
}

}  // namespace pd
