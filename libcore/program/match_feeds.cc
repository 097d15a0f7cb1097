// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/match_feeds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/match_params.h"
#include "libcore/program/prune.h"

namespace pd {
namespace {

using Names = std::set<std::string>;

// How a message begins.
std::string FileAndName(const std::string& file, const std::string& name) {
  return absl::StrCat(file.empty() ? "" : absl::StrCat("'", file, "': "),
                      "array '", name, "'");
}

std::string TypeAndShape(DType dtype, const Shape& shape) {
  return absl::StrCat(Name(dtype), ToString(shape));
}

template <typename From, typename To>
bool Holds(From value) {
  if constexpr (std::is_integral_v<To>) {
    const auto wide = static_cast<int64_t>(value);
    return wide >= static_cast<int64_t>(std::numeric_limits<To>::min()) &&
           wide <= static_cast<int64_t>(std::numeric_limits<To>::max());
  } else {
    const auto rounded =
        static_cast<double>(static_cast<float>(To(static_cast<float>(value))));
    return std::isfinite(rounded) || !std::isfinite(value);
  }
}

// Nothing when an element does not fit; `*bad` is its index then.
template <typename From, typename To>
absl::Status ConvertInto(const Array& array, Array* to, int64_t* bad) {
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(*to, NewArray(DTypeOf<To>(), array.shape, &bytes));
  to->lod = array.lod;
  for (int64_t i = 0; i < array.size(); ++i) {
    From value;
    std::memcpy(&value, array.bytes.get() + i * int64_t{sizeof(From)},
                sizeof(value));
    if (!Holds<From, To>(value)) {
      *bad = i;
      return absl::OkStatus();
    }
    To result;
    if constexpr (std::is_integral_v<To>)
      result = static_cast<To>(value);
    else
      result = To(static_cast<float>(value));
    std::memcpy(bytes + i * int64_t{sizeof(To)}, &result, sizeof(result));
  }
  return absl::OkStatus();
}

// float64 to narrower floats, integers to integers.
absl::Status Convert(const Array& array, DType dtype, Array* to, int64_t* bad) {
  if (array.dtype == DType::kFloat64)
    return DispatchTypes<float, Float16, BFloat16>(dtype, [&](auto tag) {
      return ConvertInto<double, typename decltype(tag)::type>(array, to, bad);
    });
  return DispatchTypes<int64_t, int32_t, int16_t, int8_t, uint8_t>(
      array.dtype, [&](auto from) {
        return DispatchTypes<int64_t, int32_t, int16_t, int8_t, uint8_t>(
            dtype, [&](auto tag) {
              return ConvertInto<typename decltype(from)::type,
                                 typename decltype(tag)::type>(array, to, bad);
            });
      });
}

// The value of one element, as a person writes it.
std::string ElementText(const Array& array, int64_t i) {
  std::string text;
  const std::byte* at =
      array.bytes.get() + i * static_cast<int64_t>(SizeOf(array.dtype));
  const absl::Status known =
      DispatchTypes<double, int64_t, int32_t, int16_t, int8_t, uint8_t>(
          array.dtype, [&](auto tag) {
            typename decltype(tag)::type value;
            std::memcpy(&value, at, sizeof(value));
            text = absl::StrCat(value);
            return absl::OkStatus();
          });
  return known.ok() ? text : "a value";
}

Names MadeBy(const std::vector<OpDesc>& ops) {
  Names made;
  for (const OpDesc& op : ops)
    for (const auto& [slot, names] : op.outputs)
      made.insert(names.begin(), names.end());
  return made;
}

Names ReadBy(const ProgramDesc& program) {
  Names read;
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops)
      for (const auto& [slot, names] : op.inputs)
        read.insert(names.begin(), names.end());
  return read;
}

std::vector<std::string> NamesOf(const NamedArrays& arrays) {
  std::vector<std::string> names;
  for (const auto& [name, array] : arrays) names.push_back(name);
  return names;
}

absl::Status CheckAllThere(const ProgramDesc& program, const FeedCheck& check,
                           const NamedArrays& feeds) {
  std::vector<std::string> absent, given = check.inputs;
  for (const std::string& name : check.inputs)
    if (feeds.count(name) == 0) absent.push_back(name);
  if (absent.empty()) return absl::OkStatus();
  const Names declared(given.begin(), given.end());
  for (const auto& [name, array] : feeds)
    if (declared.count(name) == 0 && program.global().FindVar(name) != nullptr)
      given.push_back(name);
  const auto needed = Prune(program, given, check.fetches);
  // Fetches that do not exist are found, and named, by whoever runs it.
  if (!needed.ok()) return absl::OkStatus();
  const Names read = ReadBy(*needed);
  for (const std::string& name : absent) {
    if (read.count(name) == 0 &&
        std::count(check.fetches.begin(), check.fetches.end(), name) == 0)
      continue;
    const VarDesc* var = program.global().FindVar(name);
    const std::string wanted =
        var == nullptr
            ? ""
            : absl::StrCat(" (", TypeAndShape(var->dtype, var->shape), ")");
    return NotFound(
        "'%s' has no array '%s', an input of '%s'%s; %s", check.file, name,
        check.model, wanted,
        feeds.empty() ? "it holds none"
                      : absl::StrCat("it holds ", QuotedList(NamesOf(feeds))));
  }
  return absl::OkStatus();
}

}  // namespace

bool TakesShape(const Shape& declared, const Shape& given) {
  const Shape one = {1};
  if ((declared.empty() && given == one) || (declared == one && given.empty()))
    return true;
  return declared.size() == given.size() &&
         std::equal(given.begin(), given.end(), declared.begin(),
                    [](int64_t g, int64_t d) { return d < 0 || g == d; });
}

absl::Status FitDType(const VarDesc& var, const std::string& file,
                      Array* array) {
  if (array->dtype == var.dtype) return absl::OkStatus();
  const bool converts =
      (array->dtype == DType::kFloat64 && IsFloating(var.dtype)) ||
      (IsInteger(array->dtype) && IsInteger(var.dtype));
  if (!converts)
    return InvalidArgument(
        "%s is %s; the model declares %s: convert it, with NumPy by "
        ".astype('%s')",
        FileAndName(file, var.name), TypeAndShape(array->dtype, array->shape),
        TypeAndShape(var.dtype, var.shape), Name(var.dtype));
  Array to;
  int64_t bad = -1;
  PD_RETURN_IF_ERROR(Convert(*array, var.dtype, &to, &bad));
  if (bad >= 0)
    return InvalidArgument(
        "%s is %s; the model declares %s, which cannot hold element %d, %s",
        FileAndName(file, var.name), Name(array->dtype), Name(var.dtype), bad,
        ElementText(*array, bad));
  if (!file.empty())
    LogInfo("%s is %s; converted to %s, which the model declares",
            FileAndName(file, var.name), Name(array->dtype), Name(var.dtype));
  *array = std::move(to);
  return absl::OkStatus();
}

absl::Status FitFeed(const VarDesc& var, const std::string& file,
                     Array* array) {
  if (!TakesShape(var.shape, array->shape))
    return InvalidArgument("%s is %s; the model declares %s%s",
                           FileAndName(file, var.name),
                           TypeAndShape(array->dtype, array->shape),
                           TypeAndShape(var.dtype, var.shape),
                           IsDynamic(var.shape) ? " (-1: any extent)" : "");
  return FitDType(var, file, array);
}

absl::Status FitFeeds(const ProgramDesc& program, const FeedCheck& check,
                      NamedArrays* feeds) {
  PD_RETURN_IF_ERROR(CheckAllThere(program, check, *feeds));
  Names made = MadeBy(program.global().ops);
  for (const std::string& name : check.inputs) made.erase(name);
  std::vector<std::string> unknown;
  for (auto& [name, array] : *feeds) {
    const VarDesc* var = program.global().FindVar(name);
    if (var == nullptr)
      unknown.push_back(name);
    else if (var->kind != VarKind::kLodTensor)
      continue;
    else if (made.count(name) > 0)
      PD_RETURN_IF_ERROR(FitDType(*var, check.file, &array));
    else
      PD_RETURN_IF_ERROR(FitFeed(*var, check.file, &array));
  }
  if (!unknown.empty())
    LogWarning("'%s' holds %s, which '%s' has no variables for", check.file,
               QuotedList(unknown), check.model);
  return absl::OkStatus();
}

}  // namespace pd
