// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <complex>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "formats/pdparams.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/inspect_internal.h"
#include "libcore/model/tree.h"

namespace pd {
namespace {

constexpr size_t kMostItems = 8;  // of a list or dict that are shown
constexpr size_t kMostText = 60;  // bytes of a str
constexpr int kMostDepth = 3;

std::string Show(const PickleValue& value, int depth);

// As few digits as give the number back.
std::string ShowReal(double value) {
  std::string text = absl::StrFormat("%.15g", value);
  if (std::strtod(text.c_str(), nullptr) != value)
    text = absl::StrFormat("%.17g", value);
  return text;
}

std::string ShowItems(const std::vector<PickleValue>& items, int depth) {
  if (depth >= kMostDepth) return absl::StrCat(items.size(), " items");
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(items.size(), kMostItems); ++i)
    shown.push_back(Show(items[i], depth + 1));
  if (items.size() > kMostItems)
    shown.push_back(absl::StrCat("... ", items.size(), " in all"));
  return absl::StrJoin(shown, ", ");
}

std::string ShowDict(const PickleDict& dict, int depth) {
  if (depth >= kMostDepth)
    return absl::StrCat("{", dict.items.size(), " items}");
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(dict.items.size(), kMostItems); ++i)
    shown.push_back(absl::StrCat(Show(dict.items[i].first, depth + 1), ": ",
                                 Show(dict.items[i].second, depth + 1)));
  if (dict.items.size() > kMostItems)
    shown.push_back(absl::StrCat("... ", dict.items.size(), " in all"));
  return absl::StrCat("{", absl::StrJoin(shown, ", "), "}");
}

// As Python shows it, abridged.
std::string Show(const PickleValue& value, int depth) {
  if (value.As<PickleNone>() != nullptr) return "None";
  if (const auto* v = value.As<bool>()) return *v ? "True" : "False";
  if (const auto* v = value.As<int64_t>()) return absl::StrCat(*v);
  if (const auto* v = value.As<double>()) return ShowReal(*v);
  if (const auto* v = value.As<std::complex<double>>())
    return absl::StrFormat("(%s%+gj)", ShowReal(v->real()), v->imag());
  if (const auto* v = value.As<PickleBigInt>())
    return absl::StrCat("an integer of ", v->bytes.size(), " bytes");
  if (const auto* v = value.As<std::string>())
    return v->size() <= kMostText
               ? absl::StrCat("'", *v, "'")
               : absl::StrCat("'", v->substr(0, kMostText), "...'");
  if (const auto* v = value.As<PickleList>())
    return absl::StrCat("[", ShowItems(v->items, depth), "]");
  if (const auto* v = value.As<PickleTuple>())
    return absl::StrCat("(", ShowItems(v->items, depth),
                        v->items.size() == 1 ? ",)" : ")");
  if (const auto* v = value.As<PickleDict>()) return ShowDict(*v, depth);
  if (const auto* v = value.As<Array>())
    return absl::StrCat(Name(v->dtype), " ", ToString(v->shape));
  if (const auto* v = value.As<PickleBytes>())
    return absl::StrCat(v->bytes.size(), " bytes");
  return std::string(TypeName(value));
}

bool HoldsArray(const PickleValue& value) {
  if (value.As<Array>() != nullptr) return true;
  if (const auto* v = value.As<PickleList>())
    return std::any_of(v->items.begin(), v->items.end(), HoldsArray);
  if (const auto* v = value.As<PickleTuple>())
    return std::any_of(v->items.begin(), v->items.end(), HoldsArray);
  if (const auto* v = value.As<PickleDict>())
    return std::any_of(v->items.begin(), v->items.end(), [](const auto& item) {
      return HoldsArray(item.second);
    });
  return false;
}

// Arrays become tensors named by the way to them ("model/fc.weight",
// "list/0"), the rest entries.
void Walk(const PickleValue& value, const std::string& path, Inspection* out) {
  const auto item = [&](const std::vector<PickleValue>& items) {
    for (size_t i = 0; i < items.size(); ++i)
      Walk(items[i], TreePath(path, absl::StrCat(i)), out);
  };
  if (const auto* array = value.As<Array>()) {
    out->tensors.push_back(InfoOf(path, *array, *out));
  } else if (const PickleTuple* tensor = AsTensor(value)) {
    out->tensors.push_back(InfoOf(path, *tensor->items[1].As<Array>(), *out));
    out->tensors.back().parameter_name = *tensor->items[0].As<std::string>();
  } else if (!HoldsArray(value)) {
    out->entries.push_back(
        {path, std::string(TypeName(value)), Show(value, 0)});
  } else if (const auto* list = value.As<PickleList>()) {
    item(list->items);
  } else if (const auto* tuple = value.As<PickleTuple>()) {
    item(tuple->items);
  } else if (const auto* dict = value.As<PickleDict>()) {
    for (const auto& [key, entry] : dict->items)
      Walk(entry, TreePath(path, TreeKey(key)), out);
  }
}

bool IsStateDictRoot(const PickleValue& root) {
  const auto* dict = root.As<PickleDict>();
  return dict != nullptr &&
         std::all_of(dict->items.begin(), dict->items.end(),
                     [](const auto& item) {
                       return item.first.template As<std::string>() != nullptr;
                     });
}

// Optimizers name their accumulators after the parameter.
bool IsAccumulator(absl::string_view name) {
  for (const char* part :
       {"_moment1_", "_moment2_", "_moment_", "_velocity_", "_beta1_pow_acc_",
        "_beta2_pow_acc_", "_mean_square_", "_mean_grad_", "_inf_norm_",
        "__avg_squared_grad_", "__avg_squared_update_", "learning_rate_"})
    if (absl::StrContains(name, part)) return true;
  return false;
}

std::string ContentOf(const StateDict& state, const Inspection& out) {
  if (std::any_of(state.others.items.begin(), state.others.items.end(),
                  [](const auto& item) { return HoldsArray(item.second); }))
    return "nested object";
  if (absl::EndsWith(out.path, ".pdopt") ||
      state.others.Find(kLRSchedulerKey) != nullptr ||
      std::any_of(state.tensors.begin(), state.tensors.end(),
                  [](const auto& t) { return IsAccumulator(t.first); }))
    return "optimizer state";
  if (!state.others.items.empty()) return "nested object";
  return "parameters";
}

void AddStateDict(const StateDict& state, Inspection* out) {
  std::map<absl::string_view, absl::string_view> parameters(
      state.parameter_names.begin(), state.parameter_names.end());
  for (const std::string& name : state.order) {
    const auto array = state.tensors.find(name);
    if (array == state.tensors.end()) continue;
    out->tensors.push_back(InfoOf(name, array->second, *out));
    const auto parameter = parameters.find(name);
    if (parameter != parameters.end())
      out->tensors.back().parameter_name = std::string(parameter->second);
  }
  for (const auto& [key, value] : state.others.items)
    Walk(value, TreeKey(key), out);
  out->content = ContentOf(state, *out);
  // Nobody else writes these.
  if (state.has_parameter_names ||
      state.others.Find(kLRSchedulerKey) != nullptr)
    out->producer = "PaddlePaddle";
}

}  // namespace

absl::Status InspectPickle(const Content& content, Inspection* out) {
  const PickleValue& root = content.object;
  if (IsStateDictRoot(root)) {
    PD_ASSIGN_OR_RETURN(const StateDict state, StateDictOf(root));
    AddStateDict(state, out);
    return absl::OkStatus();
  }
  const bool tensor = root.As<Array>() != nullptr || AsTensor(root) != nullptr;
  out->content = tensor ? "tensor" : "nested object";
  Walk(root, "", out);
  return absl::OkStatus();
}

}  // namespace pd
