// SPDX-License-Identifier: Apache-2.0
#include "libcore/convert/python_tokens.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using TokenKind = PythonToken::Kind;

bool StartsName(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return absl::ascii_isalpha(byte) || c == '_' || byte >= 0x80;
}
bool InName(char c) {
  return StartsName(c) || absl::ascii_isdigit(static_cast<unsigned char>(c));
}

class Lexer {
 public:
  explicit Lexer(absl::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<PythonToken>> All() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        if (open_.empty())
          Add(TokenKind::kEnd, at_ + 1);
        else
          ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size()) {
        at_ += absl::StartsWith(text_.substr(at_), "\\\r\n") ? 3 : 2;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == '"' || c == '\'') {
        PD_RETURN_IF_ERROR(String(at_));
      } else if (StartsName(c)) {
        PD_RETURN_IF_ERROR(Name());
      } else if (absl::ascii_isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else if (absl::ascii_isdigit(static_cast<unsigned char>(c))) {
        Number();
      } else {
        PD_RETURN_IF_ERROR(Sign(c));
      }
    }
    if (!open_.empty())
      return InvalidArgument("line %d: the '%c' has no end",
                             LineOf(text_, open_.back()), text_[open_.back()]);
    Add(TokenKind::kEnd, at_);
    return std::move(tokens_);
  }

 private:
  void Add(TokenKind kind, size_t end) {
    tokens_.push_back({kind, at_, end, static_cast<int>(open_.size())});
    at_ = end;
  }

  absl::Status Name() {
    size_t end = at_;
    while (end < text_.size() && InName(text_[end])) ++end;
    // The letters before a string: rb"", f''.
    if (end < text_.size() && end - at_ <= 2 &&
        (text_[end] == '"' || text_[end] == '\''))
      return String(end);
    Add(TokenKind::kName, end);
    return absl::OkStatus();
  }

  void Number() {  // 1e5, 0x1f, 1.5: no names, nor a dot that leads to one
    size_t end = at_;
    while (end < text_.size() && (InName(text_[end]) || text_[end] == '.'))
      ++end;
    Add(TokenKind::kLiteral, end);
  }

  absl::Status Sign(char c) {
    constexpr absl::string_view kOpen = "([{", kClose = ")]}";
    const size_t bracket = kClose.find(c);
    if (bracket != absl::string_view::npos) {
      if (open_.empty() || text_[open_.back()] != kOpen[bracket])
        return InvalidArgument("line %d: the '%c' closes no '%c'",
                               LineOf(text_, at_), c, kOpen[bracket]);
      open_.pop_back();
    }
    const size_t at = at_;
    Add(TokenKind::kSign, at_ + 1);
    if (kOpen.find(c) != absl::string_view::npos) open_.push_back(at);
    return absl::OkStatus();
  }

  // A string whose quote stands at `quote_at`; letters may stand before it.
  absl::Status String(size_t quote_at) {
    const absl::string_view rest = text_.substr(quote_at);
    const size_t quotes =
        absl::StartsWith(rest, "\"\"\"") || absl::StartsWith(rest, "'''") ? 3
                                                                          : 1;
    const absl::string_view quote = rest.substr(0, quotes);
    for (size_t end = quote_at + quotes; end < text_.size(); ++end) {
      if (text_[end] == '\\') {
        ++end;
      } else if (text_[end] == '\n' && quotes == 1) {
        break;
      } else if (absl::StartsWith(text_.substr(end), quote)) {
        Add(TokenKind::kLiteral, end + quotes);
        return absl::OkStatus();
      }
    }
    return InvalidArgument("line %d: the string has no end",
                           LineOf(text_, quote_at));
  }

  absl::string_view text_;
  size_t at_ = 0;
  std::vector<size_t> open_;  // brackets, by their bytes
  std::vector<PythonToken> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<PythonToken>> PythonTokens(absl::string_view text) {
  return Lexer(text).All();
}

int64_t LineOf(absl::string_view text, size_t byte) {
  return std::count(text.begin(), text.begin() + byte, '\n') + 1;
}

}  // namespace pd
