// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layers/op_attributes.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/dtype.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

using Words = std::vector<std::string>;

// "an integer", "numbers": the kind of value that an attribute takes.
std::string Takes(const AttrDef& def) {
  switch (def.type) {
    case AttrType::kInt:
    case AttrType::kLong:
      return absl::EndsWith(def.name, "dtype")
                 ? "an element type, like float32, or its number"
                 : "an integer";
    case AttrType::kInts:
    case AttrType::kLongs:
      return "a list of integers";
    case AttrType::kFloat:
    case AttrType::kFloat64:
      return "a number";
    case AttrType::kFloats:
    case AttrType::kFloat64s:
      return "a list of numbers";
    case AttrType::kBoolean:
      return "true or false";
    case AttrType::kBooleans:
      return "a list of true and false";
    case AttrType::kString:
      return "a string";
    default:
      return "a list of strings";
  }
}

absl::Status Wrong(const AttrDef& def, const Words& words) {
  const std::string got =
      words.empty() ? "no value"
                    : absl::StrCat("'", absl::StrJoin(words, "', '"), "'");
  return InvalidArgument("attribute '%s' takes %s; got %s", def.name,
                         Takes(def), got);
}

bool Read(const std::string& word, int32_t* value) {
  return absl::SimpleAtoi(word, value);
}
bool Read(const std::string& word, int64_t* value) {
  return absl::SimpleAtoi(word, value);
}
bool Read(const std::string& word, double* value) {
  return absl::SimpleAtod(word, value) && !std::isnan(*value);
}
bool Read(const std::string& word, float* value) {
  double wide = 0;
  if (!Read(word, &wide)) return false;
  *value = static_cast<float>(wide);
  return std::isfinite(*value) || std::isinf(wide);
}
bool Read(const std::string& word, std::string* value) {
  *value = word;
  return true;
}
bool Read(const std::string& word, bool* value) {
  *value = word == "true";
  return *value || word == "false";
}

template <typename T>
absl::StatusOr<Attribute> One(const AttrDef& def, const Words& words) {
  T value{};
  if (words.size() != 1 || !Read(words[0], &value)) return Wrong(def, words);
  return Attribute(std::move(value));
}

template <typename T>
absl::StatusOr<Attribute> List(const AttrDef& def, const Words& words) {
  std::vector<T> values;
  for (const std::string& word : words) {
    T value{};
    if (!Read(word, &value)) return Wrong(def, words);
    values.push_back(std::move(value));
  }
  return Attribute(std::move(values));
}

}  // namespace

absl::StatusOr<Attribute> ReadAttribute(const AttrDef& def,
                                        const Words& words) {
  if (words.size() == 1 && def.type == AttrType::kInt &&
      absl::EndsWith(def.name, "dtype")) {
    if (const auto dtype = DTypeFromName(words[0]))
      return Attribute(static_cast<int32_t>(*dtype));
  }
  switch (def.type) {
    case AttrType::kInt:
      return One<int32_t>(def, words);
    case AttrType::kLong:
      return One<int64_t>(def, words);
    case AttrType::kFloat:
      return One<float>(def, words);
    case AttrType::kFloat64:
      return One<double>(def, words);
    case AttrType::kString:
      return One<std::string>(def, words);
    case AttrType::kBoolean:
      return One<bool>(def, words);
    case AttrType::kInts:
      return List<int32_t>(def, words);
    case AttrType::kLongs:
      return List<int64_t>(def, words);
    case AttrType::kFloats:
      return List<float>(def, words);
    case AttrType::kFloat64s:
      return List<double>(def, words);
    case AttrType::kStrings:
      return List<std::string>(def, words);
    case AttrType::kBooleans:
      return List<bool>(def, words);
    default:
      return InvalidArgument(
          "attribute '%s' is %s, which a job cannot say; leave it out",
          def.name, Name(def.type));
  }
}

}  // namespace pd
