// SPDX-License-Identifier: Apache-2.0
#include "libcore/convert/edit.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "formats/npy.h"
#include "formats/pdparams.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/edit_arrays.h"
#include "libcore/model/name_patterns.h"
#include "libcore/model/tree.h"
#include "libcore/program/match_params.h"

namespace pd {
namespace {

// The tensors of a content by name, in its order.
class TensorList {
 public:
  struct Entry {
    std::string name;
    PickleValue value;  // an array, or the (name, array) of a saved Tensor

    Array& array() {
      auto* tensor = std::get_if<PickleTuple>(&value.value);
      return std::get<Array>(tensor != nullptr ? tensor->items[1].value
                                               : value.value);
    }
  };

  static absl::StatusOr<TensorList> Of(const Content& content) {
    TensorList list;
    list.path_ = content.path;
    const auto* dict = content.object.As<PickleDict>();
    PD_ASSIGN_OR_RETURN(const FlatTree flat,
                        Flatten(content.object, content.stem));
    if (content.rows.has_value() || flat.arrays.empty())
      return InvalidArgument("'%s' holds no tensors by name", content.path);
    size_t plain = 0;
    for (size_t i = 0; dict != nullptr && i < dict->items.size(); ++i)
      plain += IsTensor(dict->items[i].second);
    if (plain == flat.arrays.size()) {
      for (const auto& [key, value] : dict->items) {
        if (IsTensor(value) && key.As<std::string>() != nullptr)
          list.entries.push_back({*key.As<std::string>(), value});
        else
          list.others_.items.emplace_back(key, value);
      }
      list.others_.ordered = dict->ordered;
    } else {
      for (const TreeArray& one : flat.arrays)
        list.entries.push_back({one.name, PickleValue{*one.array}});
      list.left_out = flat.others;
    }
    return list;
  }

  std::vector<Entry> entries;
  std::vector<std::string> left_out;

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const Entry& entry : entries) names.push_back(entry.name);
    return names;
  }
  Entry* Find(absl::string_view name) {
    for (Entry& entry : entries)
      if (entry.name == name) return &entry;
    return nullptr;
  }
  // The error of an option whose `text` names none of the tensors.
  absl::Status NoneCalled(const char* option, const std::string& text,
                          absl::string_view pattern) const {
    const std::vector<std::string> names = Names();
    const std::string nearest = Nearest(pattern, names);
    return InvalidArgument(
        "%s '%s' matches no tensor of '%s': %s", option, text, path_,
        nearest.empty() ? absl::StrCat("there are ", QuotedList(names))
                        : absl::StrCat("the nearest is '", nearest, "'"));
  }
  // Two tensors may not have one name.
  absl::Status CheckNames(const std::map<std::string, std::string>& old) const {
    std::map<std::string, std::string> seen;
    for (const Entry& entry : entries) {
      const auto before = old.find(entry.name);
      const auto [it, is_new] = seen.emplace(entry.name, entry.name);
      if (!is_new)
        return InvalidArgument(
            "two tensors of '%s' would be called '%s'%s", path_, entry.name,
            before == old.end()
                ? ""
                : absl::StrCat("; one of them is '", before->second, "' now"));
    }
    return absl::OkStatus();
  }

  // The dict again; the table of parameter names follows `renamed` and loses
  // what is gone.
  PickleValue ToDict(const std::map<std::string, std::string>& renamed) {
    PickleDict dict;
    dict.ordered = others_.ordered;
    for (Entry& entry : entries) dict.Add(entry.name, std::move(entry.value));
    for (auto& [key, value] : others_.items) {
      const auto* name = key.As<std::string>();
      if (name != nullptr && *name == kStructuredNamesKey)
        EditTable(renamed, &value);
      dict.items.emplace_back(std::move(key), std::move(value));
    }
    return PickleValue{std::move(dict)};
  }

 private:
  static bool IsTensor(const PickleValue& value) {
    return value.As<Array>() != nullptr || AsTensor(value) != nullptr;
  }
  void EditTable(const std::map<std::string, std::string>& renamed,
                 PickleValue* value) {
    auto* table = std::get_if<PickleDict>(&value->value);
    if (table == nullptr) return;
    std::set<std::string> there;
    for (const Entry& entry : entries) there.insert(entry.name);
    PickleDict edited;
    edited.ordered = table->ordered;
    for (auto& [key, entry] : table->items) {
      const auto* name = key.As<std::string>();
      if (name == nullptr) continue;
      const auto other = renamed.find(*name);
      std::string now = other == renamed.end() ? *name : other->second;
      if (there.count(now) > 0) edited.Add(std::move(now), std::move(entry));
    }
    *table = std::move(edited);
  }

  std::string path_;
  PickleDict others_;  // entries that are no tensors
};

absl::Status Average(const std::vector<std::string>& files, TensorList* list) {
  std::vector<TensorList> others;
  for (const std::string& file : files) {
    ReadOptions options;
    PD_ASSIGN_OR_RETURN(const Content content, ReadContent(file, options));
    PD_ASSIGN_OR_RETURN(others.emplace_back(), TensorList::Of(content));
    if (others.back().entries.size() != list->entries.size())
      return InvalidArgument("--average: '%s' holds %d tensors; IN holds %d",
                             file, others.back().entries.size(),
                             list->entries.size());
  }
  for (TensorList::Entry& entry : list->entries) {
    std::vector<const Array*> arrays = {&entry.array()};
    for (size_t i = 0; i < others.size(); ++i) {
      TensorList::Entry* other = others[i].Find(entry.name);
      if (other == nullptr)
        return others[i].NoneCalled("--average", files[i], entry.name);
      const Array& array = other->array();
      if (array.shape != arrays[0]->shape || array.dtype != arrays[0]->dtype)
        return InvalidArgument(
            "--average: '%s' is %s %s in '%s', in IN it is %s %s", entry.name,
            Name(array.dtype), ToString(array.shape), files[i],
            Name(arrays[0]->dtype), ToString(arrays[0]->shape));
      arrays.push_back(&array);
    }
    if (!IsFloating(arrays[0]->dtype)) continue;
    PD_ASSIGN_OR_RETURN(Array mean, MeanOf(arrays));
    entry.array() = std::move(mean);
  }
  return absl::OkStatus();
}

// Keeps the tensors that one of the patterns matches, or drops them.
absl::Status Select(const char* option,
                    const std::vector<std::string>& patterns, bool keep,
                    TensorList* list) {
  std::set<std::string> used;
  std::vector<TensorList::Entry> selected;
  for (const TensorList::Entry& entry : list->entries) {
    bool matches = false;
    for (const std::string& pattern : patterns)
      if (MatchStars(pattern, entry.name).has_value()) {
        used.insert(pattern);
        matches = true;
      }
    if (matches == keep) selected.push_back(entry);
  }
  for (const std::string& pattern : patterns)
    if (used.count(pattern) == 0)
      return list->NoneCalled(option, pattern, pattern);
  list->entries = std::move(selected);
  return absl::OkStatus();
}

// `renamed` gets, by the old name, the new one.
absl::Status Rename(const std::vector<std::string>& texts, TensorList* list,
                    std::map<std::string, std::string>* renamed) {
  std::set<std::string> used;
  std::map<std::string, std::string> old;
  std::vector<NameChange> changes;
  for (const std::string& text : texts) {
    PD_ASSIGN_OR_RETURN(changes.emplace_back(), NameChange::Parse(text));
  }
  TensorList before = *list;
  for (TensorList::Entry& entry : list->entries) {
    for (const NameChange& change : changes) {
      const auto other = change.Apply(entry.name);
      if (!other.has_value()) continue;
      used.insert(change.text);
      (*renamed)[entry.name] = *other;
      old[*other] = entry.name;
      entry.name = *other;
      break;
    }
  }
  for (const NameChange& change : changes)
    if (used.count(change.text) == 0)
      return before.NoneCalled("--rename", change.text, change.from);
  return list->CheckNames(old);
}

absl::Status Transpose(const std::vector<std::string>& patterns,
                       TensorList* list) {
  for (const std::string& pattern : patterns) {
    bool used = false;
    for (TensorList::Entry& entry : list->entries) {
      if (entry.array().shape.size() != 2 ||
          !MatchStars(pattern, entry.name).has_value())
        continue;
      used = true;
      PD_ASSIGN_OR_RETURN(Array turned, Transposed(entry.array()));
      entry.array() = std::move(turned);
    }
    if (!used) return list->NoneCalled("--transpose", pattern, pattern);
  }
  return absl::OkStatus();
}

absl::Status Set(const std::string& text, TensorList* list) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value =
      equals == std::string::npos ? "" : text.substr(equals + 1);
  if (name.empty() || value.empty())
    return InvalidArgument("--set '%s' is not NAME=FILE.npy or NAME=NUMBER",
                           text);
  TensorList::Entry* entry = list->Find(name);
  double number = 0;
  if (absl::SimpleAtod(value, &number)) {
    if (entry == nullptr) return list->NoneCalled("--set", text, name);
    if (!IsFloating(entry->array().dtype))
      return InvalidArgument(
          "--set '%s': '%s' is of type %s; a number fills floating tensors, a "
          ".npy any",
          text, name, Name(entry->array().dtype));
    const std::vector<double> values(static_cast<size_t>(entry->array().size()),
                                     number);
    PD_ASSIGN_OR_RETURN(Array filled,
                        InFloatingType(MakeArray(entry->array().shape, values),
                                       entry->array().dtype));
    entry->array() = std::move(filled);
    return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(Array array, ReadNpy(value));
  if (entry == nullptr) {
    list->entries.push_back({name, PickleValue{std::move(array)}});
    return absl::OkStatus();
  }
  if (array.shape != entry->array().shape)
    return InvalidArgument(
        "--set '%s': '%s' has shape %s, the tensor has %s; --drop '%s' takes "
        "the tensor away first",
        text, value, ToString(array.shape), ToString(entry->array().shape),
        name);
  entry->array() = std::move(array);
  return absl::OkStatus();
}

}  // namespace

absl::Status EditTensors(const TensorEdits& edits, Content* content,
                         std::vector<std::string>* left_out) {
  PD_ASSIGN_OR_RETURN(TensorList list, TensorList::Of(*content));
  PD_RETURN_IF_ERROR(Average(edits.average, &list));
  if (!edits.keep.empty())
    PD_RETURN_IF_ERROR(Select("--keep", edits.keep, true, &list));
  PD_RETURN_IF_ERROR(Select("--drop", edits.drop, false, &list));
  std::map<std::string, std::string> renamed;
  PD_RETURN_IF_ERROR(Rename(edits.rename, &list, &renamed));
  PD_RETURN_IF_ERROR(Transpose(edits.transpose, &list));
  for (const std::string& text : edits.set)
    PD_RETURN_IF_ERROR(Set(text, &list));
  *left_out = std::move(list.left_out);
  content->object = list.ToDict(renamed);
  return absl::OkStatus();
}

}  // namespace pd
