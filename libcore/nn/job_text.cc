// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/job_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_rule.pb.h"
#include "libcore/nn/job_sizes.h"
#include "libcore/nn/job_value.h"

namespace pd {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::io::Tokenizer;

std::string JoinPath(absl::string_view parent, absl::string_view field) {
  return parent.empty() ? std::string(field) : absl::StrCat(parent, ".", field);
}

std::string ElementPath(absl::string_view field, int index) {
  return absl::StrCat(field, "[", index, "]");
}

void ErasePlaces(absl::string_view path, Places* places) {
  auto it = places->lower_bound(std::string(path));
  while (it != places->end() &&
         absl::string_view(it->first).substr(0, path.size()) == path) {
    const char next =
        it->first.size() > path.size() ? it->first[path.size()] : '\0';
    const bool inside =
        next == '\0' || next == '.' || next == '[' || next == '@';
    it = inside ? places->erase(it) : std::next(it);
  }
}

void MovePlaces(absl::string_view from, absl::string_view to, Places* places) {
  std::vector<std::pair<std::string, std::string>> moved;
  for (auto it = places->lower_bound(std::string(from));
       it != places->end() &&
       absl::string_view(it->first).substr(0, from.size()) == from;
       ++it)
    moved.emplace_back(absl::StrCat(to, it->first.substr(from.size())),
                       it->second);
  ErasePlaces(from, places);
  for (auto& [path, place] : moved)
    places->insert_or_assign(std::move(path), std::move(place));
}

size_t FindBadByte(absl::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    size_t length = c < 0x80                ? 1
                    : c >= 0xC2 && c < 0xE0 ? 2
                    : c >= 0xE0 && c < 0xF0 ? 3
                    : c >= 0xF0 && c < 0xF5 ? 4
                                            : 0;
    if (c == 0 || length == 0 || length > text.size() - i) return i;
    for (size_t k = 1; k < length; ++k) {
      const unsigned char d = static_cast<unsigned char>(text[i + k]);
      // The first continuation excludes overlong forms and surrogates.
      const unsigned char low = k == 1 && c == 0xE0   ? 0xA0
                                : k == 1 && c == 0xF0 ? 0x90
                                                      : 0x80;
      const unsigned char high = k == 1 && c == 0xED   ? 0x9F
                                 : k == 1 && c == 0xF4 ? 0x8F
                                                       : 0xBF;
      if (d < low || d > high) return i;
    }
    i += length;
  }
  return absl::string_view::npos;
}

std::string ElementName(const Message& holder, const FieldDescriptor* field,
                        int i) {
  const Reflection* reflection = holder.GetReflection();
  const Message& element = reflection->GetRepeatedMessage(holder, field, i);
  const Descriptor* type = element.GetDescriptor();
  const FieldDescriptor* name = type->FindFieldByName("name");
  if (name == nullptr || name->cpp_type() != FieldDescriptor::CPPTYPE_STRING)
    return "";
  const std::string given = element.GetReflection()->GetString(element, name);
  if (!given.empty() || type->name() != "Layer") return given;
  const auto kind_of = [](const Message& layer) {
    return layer.GetReflection()->GetOneofFieldDescriptor(
        layer, layer.GetDescriptor()->FindOneofByName("kind"));
  };
  const FieldDescriptor* kind = kind_of(element);
  if (kind == nullptr) return "";
  int number = 0;
  for (int k = 0; k < i; ++k)
    if (kind_of(reflection->GetRepeatedMessage(holder, field, k)) == kind)
      ++number;
  return absl::StrCat(kind->name(), "_", number);
}

namespace {

constexpr int kMaxDepth = 64;
// For a size that is not known yet.
constexpr int64_t kStandIn = 2;

// The tokenizer's complaints in our words.
std::string TokenMessage(const std::string& message) {
  const auto has = [&](absl::string_view part) {
    return message.find(std::string(part)) != std::string::npos;
  };
  if (has("tring") &&
      (has("cross line") || has("end of string") || has("Multiline")))
    return "this string has no closing quote on its line";
  if (has("escape sequence")) return "a backslash here starts no escape";
  if (has("ascii") || has("control characters"))
    return "this character may stand in quoted strings only";
  if (has("octal")) return "an integer does not start with 0";
  std::string ours = message;
  if (!ours.empty() && ours.back() == '.') ours.pop_back();
  if (!ours.empty())
    ours[0] = absl::ascii_tolower(static_cast<unsigned char>(ours[0]));
  return ours;
}

class TextReader : private google::protobuf::io::ErrorCollector {
 public:
  // Errors are placed in `file`, or, where it is "", by the caller.
  TextReader(absl::string_view text, std::string file, Places* places)
      : file_(std::move(file)),
        places_(places),
        input_(text.data(), static_cast<int>(text.size())),
        tokenizer_(&input_, this) {
    tokenizer_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    tokenizer_.set_require_space_after_number(true);
    Next();
  }

  absl::Status ReadAll(Message* message) {
    PD_RETURN_IF_ERROR(ReadFields(message, "", "", 0));
    return absl::OkStatus();
  }

  // The value after a field's name and colon, and nothing after it.
  absl::Status ReadOnlyValue(Message* message, const FieldDescriptor* field,
                             const std::string& path, std::string place) {
    place_ = std::move(place);
    name_place_ = place_;
    PD_RETURN_IF_ERROR(ReadValue(message, field, path, 0));
    if (Type() != Tokenizer::TYPE_END || !error_.ok())
      return Error(absl::StrCat("unexpected ", Shown(), " after the value"));
    return absl::OkStatus();
  }

 private:
  void AddError(int line, int column, const std::string& message) override {
    if (error_.ok()) error_ = ErrorAt(line, column, TokenMessage(message));
  }

  Tokenizer::TokenType Type() const { return tokenizer_.current().type; }
  const std::string& Text() const { return tokenizer_.current().text; }
  void Next() { tokenizer_.Next(); }
  bool Take(absl::string_view symbol) {
    if (Type() != Tokenizer::TYPE_SYMBOL || Text() != symbol) return false;
    Next();
    return true;
  }
  std::string Shown() const {
    if (Type() == Tokenizer::TYPE_END) return "end of file";
    if (Type() == Tokenizer::TYPE_STRING) return Text();
    return absl::StrCat("'", Text(), "'");
  }

  std::string PlaceOf(int line, int column) const {
    return file_.empty() ? place_
                         : absl::StrCat(file_, ":", line + 1, ":", column + 1);
  }
  std::string Place() const {
    return PlaceOf(tokenizer_.current().line, tokenizer_.current().column);
  }
  // SetByPath may have no place to name.
  static absl::Status Placed(const std::string& place,
                             const std::string& message) {
    return place.empty() ? absl::InvalidArgumentError(message)
                         : InvalidArgument("%s: %s", place, message);
  }
  absl::Status ErrorAt(int line, int column, const std::string& message) {
    return Placed(PlaceOf(line, column), message);
  }
  // An error at the current token, or the tokenizer's own that came before it.
  absl::Status Error(const std::string& message) {
    if (!error_.ok()) return error_;
    return Placed(Place(), message);
  }

  // Fields up to `close` ("": the end of the text).
  absl::Status ReadFields(Message* message, const std::string& path,
                          const std::string& close, int depth) {
    const std::string opened = open_place_;
    while (true) {
      if (!error_.ok()) return error_;
      if (Type() == Tokenizer::TYPE_END) {
        if (close.empty()) return absl::OkStatus();
        return Error(absl::StrCat("'", LastName(path), "' (", opened,
                                  ") is not closed: '", close, "' is missing"));
      }
      if (!close.empty() && Take(close)) return absl::OkStatus();
      PD_RETURN_IF_ERROR(ReadField(message, path, depth));
      if (!Take(",")) Take(";");
    }
  }

  absl::Status ReadField(Message* message, const std::string& path, int depth) {
    if (Type() != Tokenizer::TYPE_IDENTIFIER)
      return Error(absl::StrCat("expected a field's name; got ", Shown()));
    const std::string name = Text();
    const FieldDescriptor* field =
        message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr)
      return Error(
          UnknownFieldMessage(*message->GetDescriptor(), name, LastName(path)));
    const std::string field_path = JoinPath(path, name);
    PD_RETURN_IF_ERROR(CheckFree(*message, field, path));
    const std::string place = Place();
    places_->emplace(field_path, place);
    name_place_ = place;
    Next();
    const bool colon = Take(":");
    const bool is_message =
        field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!colon && !is_message)
      return Error(
          absl::StrCat("expected ':' after '", name, "'; got ", Shown()));
    return ReadValue(message, field, field_path, depth);
  }

  // A singular field, and a oneof, is given once.
  absl::Status CheckFree(const Message& message, const FieldDescriptor* field,
                         const std::string& path) {
    if (field->is_repeated()) return absl::OkStatus();
    const Reflection* reflection = message.GetReflection();
    const FieldDescriptor* before = nullptr;
    if (reflection->HasField(message, field)) {
      before = field;
    } else if (field->containing_oneof() != nullptr) {
      before = reflection->GetOneofFieldDescriptor(message,
                                                   field->containing_oneof());
    }
    if (before == nullptr) return absl::OkStatus();
    const auto it = places_->find(JoinPath(path, before->name()));
    const std::string where =
        it == places_->end() ? "" : absl::StrCat(" (", it->second, ")");
    if (before == field)
      return Error(
          absl::StrCat("field '", field->name(), "' is given twice", where));
    return Error(absl::StrCat("'", field->name(), "' cannot stand beside '",
                              before->name(), "'", where,
                              ": only one of them may be given"));
  }

  absl::Status ReadValue(Message* message, const FieldDescriptor* field,
                         const std::string& path, int depth) {
    if (!field->is_repeated()) return ReadOne(message, field, path, depth);
    if (!Take("[")) return ReadElement(message, field, path, depth);
    if (Take("]")) return absl::OkStatus();
    do {
      name_place_ = Place();
      PD_RETURN_IF_ERROR(ReadElement(message, field, path, depth));
    } while (Take(","));
    if (!error_.ok() || !Take("]"))
      return Error(absl::StrCat("expected ',' or ']' in the list '",
                                field->name(), "'; got ", Shown()));
    return absl::OkStatus();
  }

  absl::Status ReadElement(Message* message, const FieldDescriptor* field,
                           const std::string& path, int depth) {
    const int index = message->GetReflection()->FieldSize(*message, field);
    const std::string element = ElementPath(path, index);
    places_->emplace(element, name_place_);
    return ReadOne(message, field, element, depth);
  }

  absl::Status ReadOne(Message* message, const FieldDescriptor* field,
                       const std::string& path, int depth) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
      return Type() == Tokenizer::TYPE_SYMBOL && Text() == "@"
                 ? ReadSize(message, field, path)
                 : ReadScalar(message, field);
    std::string close;
    open_place_ = Place();
    if (Take("{")) {
      close = "}";
    } else if (Take("<")) {
      close = ">";
    } else {
      return Error(absl::StrCat("expected '{' after '", field->name(),
                                "', which holds fields; got ", Shown()));
    }
    if (depth >= kMaxDepth)
      return Error(
          absl::StrCat("messages are nested more than ", kMaxDepth, " deep"));
    const Reflection* reflection = message->GetReflection();
    Message* inner = field->is_repeated()
                         ? reflection->AddMessage(message, field)
                         : reflection->MutableMessage(message, field);
    return ReadFields(inner, path, close, depth + 1);
  }

  // "@classes", "@classes(label)": until the data say the number, one that the
  // field's rule allows stands there.
  absl::Status ReadSize(Message* message, const FieldDescriptor* field,
                        const std::string& path) {
    const std::string place = Place();
    const auto placed = [&](const absl::Status& status) {
      return status.ok() || place.empty() ? status : Annotate(status, place);
    };
    Next();
    std::string text = absl::StrCat("@", Text());
    Next();
    if (Take("(")) {
      text += "(";
      const auto names = [this] {
        return Type() == Tokenizer::TYPE_IDENTIFIER ||
               Type() == Tokenizer::TYPE_INTEGER || Text() == "." ||
               Text() == "-";
      };
      if (Type() == Tokenizer::TYPE_STRING) {
        Tokenizer::ParseStringAppend(Text(), &text);
        Next();
      }
      for (; names(); Next()) text += Text();
      if (Take(")")) text += ")";
    }
    if (!error_.ok()) return error_;
    PD_RETURN_IF_ERROR(placed(ParseSize(text).status()));
    if (absl::StartsWith(path, "data."))
      return placed(InvalidArgument(
          "'%s' is what the data say; it cannot stand among what says how they "
          "are read",
          text));
    const job::Rule& rule = field->options().GetExtension(job::rule);
    ScalarToken token;
    token.kind = ScalarToken::kInteger;
    token.text = absl::StrCat(std::max<int64_t>(
        kStandIn, rule.has_min() ? static_cast<int64_t>(rule.min()) : 0));
    token.shown = text;
    PD_RETURN_IF_ERROR(placed(SetScalar(token, field, message)));
    (*places_)[SizePath(path)] = text;
    return absl::OkStatus();
  }

  absl::Status ReadScalar(Message* message, const FieldDescriptor* field) {
    const std::string place = Place();
    ScalarToken token;
    if (Take("-")) token.negative = true;
    token.text = Text();
    token.shown = absl::StrCat(token.negative ? "-" : "", Text());
    switch (Type()) {
      case Tokenizer::TYPE_INTEGER:
        token.kind = ScalarToken::kInteger;
        break;
      case Tokenizer::TYPE_FLOAT:
        token.kind = ScalarToken::kFloat;
        break;
      case Tokenizer::TYPE_IDENTIFIER:
        token.kind = ScalarToken::kWord;
        break;
      case Tokenizer::TYPE_STRING:
        token.kind = ScalarToken::kString;
        token.text.clear();
        // Neighbouring strings are one.
        for (; Type() == Tokenizer::TYPE_STRING; Next())
          Tokenizer::ParseStringAppend(Text(), &token.text);
        break;
      default:
        return Error(absl::StrCat("expected a value for '", field->name(),
                                  "'; got ", Shown()));
    }
    if (!error_.ok()) return error_;
    if (token.kind != ScalarToken::kString) Next();
    absl::Status status = SetScalar(token, field, message);
    return status.ok() || place.empty() ? status : Annotate(status, place);
  }

  // "model.layer[3]" -> "layer".
  static std::string LastName(absl::string_view path) {
    const size_t dot = path.rfind('.');
    if (dot != absl::string_view::npos) path.remove_prefix(dot + 1);
    return std::string(path.substr(0, path.find('[')));
  }

  std::string file_, place_;
  Places* places_;
  google::protobuf::io::ArrayInputStream input_;
  absl::Status error_;
  std::string name_place_;  // of the field being read, or of the list element
  std::string open_place_;  // of the brace opened last
  mutable Tokenizer tokenizer_;  // its current() is not const
};

}  // namespace

absl::Status ReadTextMessage(absl::string_view text, const std::string& file,
                             Message* message, Places* places) {
  const size_t bad = FindBadByte(text);
  if (bad != absl::string_view::npos) {
    const absl::string_view before = text.substr(0, bad);
    const size_t line =
        static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
    const size_t start = before.rfind('\n');
    const size_t column =
        start == absl::string_view::npos ? bad : bad - start - 1;
    return InvalidArgument("%s:%d:%d: byte 0x%02x is not text (UTF-8)", file,
                           line + 1, column + 1,
                           static_cast<unsigned char>(text[bad]));
  }
  return TextReader(text, file, places).ReadAll(message);
}

absl::Status ReadTextValue(absl::string_view text, const FieldDescriptor* field,
                           const std::string& path, const std::string& place,
                           Message* message, Places* places) {
  return TextReader(text, "", places)
      .ReadOnlyValue(message, field, path, place);
}

}  // namespace pd
