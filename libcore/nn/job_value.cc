// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/job_value.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/io/tokenizer.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_rule.pb.h"
#include "libcore/nn/job_text.h"

namespace pd {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::io::Tokenizer;

namespace {

std::string Shown(const ScalarToken& token) {
  if (!token.shown.empty() && token.kind == ScalarToken::kString)
    return token.shown;
  return absl::StrCat("'", token.shown.empty() ? token.text : token.shown, "'");
}

absl::Status Expected(absl::string_view what, const ScalarToken& token,
                      const FieldDescriptor* field) {
  return InvalidArgument("'%s' takes %s; got %s", field->name(), what,
                         Shown(token));
}

// Calls Set<Name> or Add<Name> of the message's reflection.
#define PD_STORE(Name, value)                                          \
  (field->is_repeated() ? reflection->Add##Name(message, field, value) \
                        : reflection->Set##Name(message, field, value))

absl::Status SetWhole(const ScalarToken& token, const FieldDescriptor* field,
                      Message* message) {
  if (token.kind != ScalarToken::kInteger)
    return Expected("an integer", token, field);
  // Protobuf would read 010 as 8.
  if (token.text.size() > 1 && token.text[0] == '0' &&
      (token.text[1] | 32) != 'x')
    return Expected("an integer that does not start with 0", token, field);
  const Reflection* reflection = message->GetReflection();
  const bool is_unsigned =
      field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64 ||
      field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32;
  const bool wide = field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
                    field->cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
  uint64_t limit = wide ? std::numeric_limits<int64_t>::max()
                        : std::numeric_limits<int32_t>::max();
  if (is_unsigned) limit = limit * 2 + 1;
  // Two's complement holds one more below zero.
  if (token.negative) limit = is_unsigned ? 0 : limit + 1;
  uint64_t value = 0;
  if (!Tokenizer::ParseInteger(token.text, limit, &value))
    return Expected(absl::StrCat("an integer in [",
                                 is_unsigned ? "0"
                                 : wide      ? "-9223372036854775808"
                                             : "-2147483648",
                                 ", ", token.negative ? limit - 1 : limit, "]"),
                    token, field);
  const int64_t with_sign =
      static_cast<int64_t>(token.negative ? ~value + 1 : value);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      PD_STORE(Int32, static_cast<int32_t>(with_sign));
      break;
    case FieldDescriptor::CPPTYPE_INT64:
      PD_STORE(Int64, with_sign);
      break;
    case FieldDescriptor::CPPTYPE_UINT32:
      PD_STORE(UInt32, static_cast<uint32_t>(value));
      break;
    default:
      PD_STORE(UInt64, value);
  }
  return absl::OkStatus();
}

absl::Status SetReal(const ScalarToken& token, const FieldDescriptor* field,
                     Message* message) {
  const bool infinite = token.text == "inf" &&
                        token.kind != ScalarToken::kString &&
                        field->options().GetExtension(job::rule).infinite();
  if (token.kind != ScalarToken::kInteger &&
      token.kind != ScalarToken::kFloat && !infinite)
    return Expected("a number", token, field);
  double value = infinite ? std::numeric_limits<double>::infinity()
                          : Tokenizer::ParseFloat(token.text);
  if (token.negative) value = -value;
  const bool narrow = field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
  if ((!std::isfinite(value) && !infinite) ||
      (narrow && !std::isfinite(static_cast<float>(value))))
    return Expected("a finite number", token, field);
  const Reflection* reflection = message->GetReflection();
  if (narrow) {
    PD_STORE(Float, static_cast<float>(value));
  } else {
    PD_STORE(Double, value);
  }
  return absl::OkStatus();
}

absl::Status SetBool(const ScalarToken& token, const FieldDescriptor* field,
                     Message* message) {
  const std::string& t = token.text;
  const bool yes = t == "true" || t == "True" || t == "t" || t == "1";
  const bool no = t == "false" || t == "False" || t == "f" || t == "0";
  if (token.kind == ScalarToken::kString || token.negative || (!yes && !no))
    return Expected("true or false", token, field);
  const Reflection* reflection = message->GetReflection();
  PD_STORE(Bool, yes);
  return absl::OkStatus();
}

absl::Status SetEnum(const ScalarToken& token, const FieldDescriptor* field,
                     Message* message) {
  const EnumDescriptor& type = *field->enum_type();
  const EnumValueDescriptor* value = type.FindValueByName(token.text);
  if (token.kind == ScalarToken::kString)
    return Expected(absl::StrCat("a word without quotes (", WordsOf(type), ")"),
                    token, field);
  if (value == nullptr) {
    std::vector<std::string> words;
    for (int i = 0; i < type.value_count(); ++i)
      words.push_back(type.value(i)->name());
    const std::string nearest = Nearest(token.text, words);
    if (nearest.empty() || token.kind != ScalarToken::kWord)
      return Expected(absl::StrCat("one of ", WordsOf(type)), token, field);
    return InvalidArgument("unknown value '%s' of '%s', did you mean '%s'?",
                           token.text, field->name(), nearest);
  }
  const Reflection* reflection = message->GetReflection();
  PD_STORE(Enum, value);
  return absl::OkStatus();
}

absl::Status SetString(const ScalarToken& token, const FieldDescriptor* field,
                       Message* message) {
  const job::Rule& rule = field->options().GetExtension(job::rule);
  const bool bare =
      rule.scalar() ||
      (rule.word() && token.kind == ScalarToken::kWord && !token.negative);
  if (token.kind != ScalarToken::kString && !bare)
    return Expected("a string in quotes", token, field);
  if (FindBadByte(token.text) != absl::string_view::npos)
    return InvalidArgument("'%s' holds a byte that is not text (UTF-8)",
                           field->name());
  const Reflection* reflection = message->GetReflection();
  PD_STORE(String, token.negative ? "-" + token.text : token.text);
  return absl::OkStatus();
}
#undef PD_STORE

}  // namespace

absl::Status SetScalar(const ScalarToken& token, const FieldDescriptor* field,
                       Message* message) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return SetString(token, field, message);
    case FieldDescriptor::CPPTYPE_BOOL:
      return SetBool(token, field, message);
    case FieldDescriptor::CPPTYPE_ENUM:
      return SetEnum(token, field, message);
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return SetReal(token, field, message);
    default:
      return SetWhole(token, field, message);
  }
}

std::string WordsOf(const EnumDescriptor& type) {
  std::vector<std::string> words;
  for (int i = 0; i < type.value_count(); ++i)
    words.push_back(type.value(i)->name());
  return absl::StrJoin(words, ", ");
}

namespace {

// Kinds have short names, and another letter makes another one: "nadam" and
// "adamp" are optimizers, not "adam" with a typing mistake, and so is "rprop".
// A mistake leaves a letter out or exchanges two.
bool MayBeMeant(absl::string_view name, absl::string_view kind) {
  constexpr size_t kShort = 6, kMiddle = 8;
  if (kind.size() > kMiddle || EditDistance(name, kind) == 0) return true;
  if (name.size() + 1 < kind.size()) return false;
  if (kind.size() > kShort) return true;
  const std::string typed = absl::AsciiStrToLower(name);
  std::string left(kind);
  for (const char c : typed) {
    const size_t at = left.find(c);
    if (at == std::string::npos) return false;
    left.erase(at, 1);
  }
  return typed[0] == kind[0];
}

}  // namespace

std::string UnknownFieldMessage(const Descriptor& type, const std::string& name,
                                absl::string_view inside) {
  std::vector<std::string> names, alike;
  for (int i = 0; i < type.field_count(); ++i) {
    names.push_back(type.field(i)->name());
    if (type.field(i)->containing_oneof() == nullptr ||
        MayBeMeant(name, names.back()))
      alike.push_back(names.back());
  }
  const std::string nearest = Nearest(name, alike);
  if (!nearest.empty())
    return absl::StrCat("unknown field '", name, "', did you mean '", nearest,
                        "'?");
  // A field of what could stand here: one level was left out.
  std::vector<std::string> inner;
  for (int i = 0; i < type.field_count(); ++i) {
    const Descriptor* child = type.field(i)->message_type();
    if (child != nullptr && child->FindFieldByName(name) != nullptr)
      inner.push_back(absl::StrCat("'", type.field(i)->name(), "'"));
  }
  if (!inner.empty())
    return absl::StrCat("unknown field '", name, "'; it stands inside ",
                        absl::StrJoin(inner, ", "));
  const std::string holder =
      inside.empty() ? "a job" : absl::StrCat("'", inside, "'");
  if (names.empty())
    return absl::StrCat("unknown field '", name, "': ", holder,
                        " has no fields");
  constexpr size_t kShown = 12;
  const bool more = names.size() > kShown;
  if (more) names.resize(kShown);
  return absl::StrCat("unknown field '", name, "'; ", holder, " has ",
                      absl::StrJoin(names, ", "), more ? ", ..." : "");
}

}  // namespace pd
