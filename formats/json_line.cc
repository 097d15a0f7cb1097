// SPDX-License-Identifier: Apache-2.0
#include "formats/json_line.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "formats/json_text.h"
#include "formats/text_input.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

const char* KindName(JsonNode::Kind kind) {
  switch (kind) {
    case JsonNode::Kind::kNull:
      return "null";
    case JsonNode::Kind::kBool:
      return "true or false";
    case JsonNode::Kind::kNumber:
      return "a number";
    case JsonNode::Kind::kString:
      return "a text";
    case JsonNode::Kind::kArray:
      return "an array";
    case JsonNode::Kind::kObject:
      return "an object";
  }
  return "";
}

absl::Status JsonLine::Bad(absl::string_view expected) const {
  if (at_ >= line_.size())
    return DataLoss("column %d: the line ends; expected %s", at_ + 1, expected);
  return DataLoss("column %d: %s; expected %s", at_ + 1,
                  ShownText(line_.substr(at_, 1)), expected);
}

void JsonLine::SkipBlanks() {
  while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' ||
                                line_[at_] == '\r' || line_[at_] == '\n'))
    ++at_;
}

size_t JsonLine::Open(JsonNode::Kind kind) {
  nodes_.emplace_back();
  nodes_.back().kind = kind;
  nodes_.back().at = at_;
  nodes_.back().end = nodes_.size();
  return nodes_.size() - 1;
}

absl::Status JsonLine::Parse(absl::string_view line) {
  line_ = line;
  at_ = 0;
  nodes_.clear();
  PD_RETURN_IF_ERROR(Value(0));
  SkipBlanks();
  return at_ == line_.size() ? absl::OkStatus() : Bad("the end of the line");
}

absl::Status JsonLine::Value(int depth) {
  SkipBlanks();
  if (at_ >= line_.size()) return Bad("a value");
  if (depth > kDeepest)
    return DataLoss("column %d: values are nested more than %d deep", at_ + 1,
                    kDeepest);
  switch (line_[at_]) {
    case '{':
      return List(JsonNode::Kind::kObject, '}', depth);
    case '[':
      return List(JsonNode::Kind::kArray, ']', depth);
    case '"':
      return String();
    case 't':
      return Word("true", JsonNode::Kind::kBool, 1);
    case 'f':
      return Word("false", JsonNode::Kind::kBool, 0);
    case 'n':
      return Word("null", JsonNode::Kind::kNull, 0);
    default:
      return Number();
  }
}

absl::Status JsonLine::Word(absl::string_view word, JsonNode::Kind kind,
                            double number) {
  if (line_.substr(at_, word.size()) != word) return Bad("a value");
  nodes_[Open(kind)].number = number;
  at_ += word.size();
  return absl::OkStatus();
}

absl::Status JsonLine::List(JsonNode::Kind kind, char close, int depth) {
  const size_t node = Open(kind);
  ++at_;
  SkipBlanks();
  size_t items = 0;
  if (at_ < line_.size() && line_[at_] == close) {
    ++at_;
  } else {
    for (;;) {
      if (kind == JsonNode::Kind::kObject) {
        SkipBlanks();
        if (at_ >= line_.size() || line_[at_] != '"')
          return Bad("a member's name in quotes");
        PD_RETURN_IF_ERROR(String());
        SkipBlanks();
        if (at_ >= line_.size() || line_[at_] != ':') return Bad("':'");
        ++at_;
      }
      PD_RETURN_IF_ERROR(Value(depth + 1));
      ++items;
      SkipBlanks();
      if (at_ < line_.size() && line_[at_] == ',') {
        ++at_;
        continue;
      }
      if (at_ >= line_.size() || line_[at_] != close)
        return Bad(absl::StrCat("',' or '", absl::string_view(&close, 1), "'"));
      ++at_;
      break;
    }
  }
  nodes_[node].items = items;
  nodes_[node].end = nodes_.size();
  return absl::OkStatus();
}

absl::Status JsonLine::String() {
  const size_t node = Open(JsonNode::Kind::kString);
  const size_t begin = ++at_;
  bool escaped = false;
  for (; at_ < line_.size() && line_[at_] != '"'; ++at_) {
    const auto c = static_cast<unsigned char>(line_[at_]);
    if (c < 0x20) return Bad("a string without control characters");
    if (c != '\\') continue;
    escaped = true;
    if (++at_ >= line_.size()) break;
  }
  if (at_ >= line_.size()) {
    at_ = begin - 1;
    return DataLoss("column %d: the quote that opens here is never closed",
                    begin);
  }
  nodes_[node].text = line_.substr(begin, at_ - begin);
  nodes_[node].escaped = escaped;
  ++at_;
  return absl::OkStatus();
}

// JSON's numbers are from_chars's but for a few that it would take, too: inf,
// nan, 01, 1., .5.
absl::Status JsonLine::Number() {
  const char* begin = line_.data() + at_;
  const char* end = line_.data() + line_.size();
  const char* digits = begin < end && *begin == '-' ? begin + 1 : begin;
  const auto digit = [end](const char* p) {
    return p < end && *p >= '0' && *p <= '9';
  };
  if (!digit(digits)) return Bad("a value");
  if (*digits == '0' && digit(digits + 1))
    return Bad("a number without leading zeros");
  double value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  if (error == std::errc::result_out_of_range)
    return DataLoss("column %d: the number is outside the range of a double",
                    at_ + 1);
  if (error != std::errc() || stop[-1] == '.')
    return Bad("a number with digits behind its point");
  nodes_[Open(JsonNode::Kind::kNumber)].number = value;
  at_ = static_cast<size_t>(stop - line_.data());
  return absl::OkStatus();
}

size_t JsonLine::Member(size_t object, absl::string_view name) const {
  if (nodes_[object].kind != JsonNode::Kind::kObject) return 0;
  size_t found = 0;
  std::string buffer;
  for (size_t key = object + 1; key < nodes_[object].end;
       key = nodes_[key + 1].end) {
    absl::string_view text = nodes_[key].text;
    if (nodes_[key].escaped) text = Text(key, &buffer).value_or(text);
    if (text == name) found = key + 1;
  }
  return found;
}

size_t JsonLine::Item(size_t array, size_t index) const {
  if (nodes_[array].kind != JsonNode::Kind::kArray ||
      index >= nodes_[array].items)
    return 0;
  size_t node = array + 1;
  while (index-- > 0) node = nodes_[node].end;
  return node;
}

absl::StatusOr<absl::string_view> JsonLine::Text(size_t node,
                                                 std::string* buffer) const {
  const JsonNode& string = nodes_[node];
  if (!string.escaped) return string.text;
  JsonReader reader(line_.substr(string.at));
  auto text = reader.String();
  if (!text.ok())
    return Annotate(text.status(), absl::StrCat("column ", string.at + 1));
  *buffer = *std::move(text);
  return absl::string_view(*buffer);
}

}  // namespace pd
