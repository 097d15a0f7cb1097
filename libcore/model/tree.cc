// SPDX-License-Identifier: Apache-2.0
#include "libcore/model/tree.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/pdparams.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

std::string TreeKey(const PickleValue& key) {
  if (const auto* text = key.As<std::string>()) return *text;
  if (const auto* number = key.As<int64_t>()) return absl::StrCat(*number);
  if (const auto* real = key.As<double>()) return absl::StrCat(*real);
  if (const auto* on = key.As<bool>()) return *on ? "True" : "False";
  if (const auto* tuple = key.As<PickleTuple>()) {
    std::string text = "(";
    for (const PickleValue& item : tuple->items)
      absl::StrAppend(&text, text.size() > 1 ? "," : "", TreeKey(item));
    return text + ")";
  }
  return std::string(TypeName(key));
}

std::string TreePath(const std::string& path, const std::string& key) {
  return path.empty() ? key : absl::StrCat(path, "/", key);
}

namespace {

class Flattener {
 public:
  explicit Flattener(std::string alone) : alone_(std::move(alone)) {}

  void Walk(const PickleValue& value, const std::string& path, int depth) {
    if (const auto* array = value.As<Array>()) {
      Take(*array, path, "");
    } else if (const PickleTuple* tensor = AsTensor(value)) {
      Take(*tensor->items[1].As<Array>(), path,
           *tensor->items[0].As<std::string>());
    } else if (const auto* list = value.As<PickleList>()) {
      Items(list->items, value, path, depth);
    } else if (const auto* tuple = value.As<PickleTuple>()) {
      Items(tuple->items, value, path, depth);
    } else if (const auto* dict = value.As<PickleDict>()) {
      Dict(*dict, value, path, depth);
    } else {
      Other(value, path);
    }
  }

  absl::StatusOr<FlatTree> Done() {
    std::set<absl::string_view> names;
    for (const TreeArray& array : flat_.arrays)
      if (!names.insert(array.name).second)
        return InvalidArgument("two of its arrays are called '%s'", array.name);
    return std::move(flat_);
  }

 private:
  void Take(const Array& array, const std::string& path, std::string variable) {
    flat_.has_lod |= !array.lod.empty();
    flat_.arrays.push_back(
        {path.empty() ? alone_ : path, &array, std::move(variable)});
  }

  void Other(const PickleValue& value, const std::string& path) {
    flat_.others.push_back(
        path.empty() ? absl::StrCat("a value of type ", TypeName(value))
                     : absl::StrCat("'", path, "' (", TypeName(value), ")"));
  }

  // An empty container is something that no list of arrays shows.
  void Items(const std::vector<PickleValue>& items, const PickleValue& value,
             const std::string& path, int depth) {
    flat_.nested = true;
    if (items.empty()) Other(value, path);
    for (size_t i = 0; i < items.size(); ++i)
      Walk(items[i], TreePath(path, absl::StrCat(i)), depth + 1);
  }

  void Dict(const PickleDict& dict, const PickleValue& value,
            const std::string& path, int depth) {
    flat_.nested |= depth > 0;
    if (dict.items.empty() && depth > 0) Other(value, path);
    for (const auto& [key, entry] : dict.items) {
      const auto* name = key.As<std::string>();
      if (depth == 0 && name != nullptr && *name == kStructuredNamesKey)
        continue;
      Walk(entry, TreePath(path, TreeKey(key)), depth + 1);
    }
  }

  std::string alone_;
  FlatTree flat_;
};

}  // namespace

const PickleTuple* AsTensor(const PickleValue& value) {
  const auto* tuple = value.As<PickleTuple>();
  return tuple != nullptr && tuple->items.size() == 2 &&
                 tuple->items[0].As<std::string>() != nullptr &&
                 tuple->items[1].As<Array>() != nullptr
             ? tuple
             : nullptr;
}

absl::StatusOr<FlatTree> Flatten(const PickleValue& root,
                                 const std::string& alone) {
  Flattener flattener(alone);
  flattener.Walk(root, "", 0);
  return flattener.Done();
}

PickleValue DictOf(const NamedArrays& arrays) {
  PickleDict dict;
  for (const auto& [name, array] : arrays) dict.Add(name, PickleValue{array});
  return PickleValue{std::move(dict)};
}

NamedArrays ArraysIn(const PickleValue& dict) {
  NamedArrays arrays;
  if (const auto* entries = dict.As<PickleDict>())
    for (const auto& [key, value] : entries->items)
      if (const auto* array = value.As<Array>())
        arrays.emplace(TreeKey(key), *array);
  return arrays;
}

}  // namespace pd
