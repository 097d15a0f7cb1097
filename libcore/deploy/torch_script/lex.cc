// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/torch_script/lex.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using TokenKind = ScriptToken::Kind;

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }

class Lexer {
 public:
  explicit Lexer(absl::string_view source) : rest_(source) {}

  absl::StatusOr<std::vector<ScriptToken>> Run() {
    while (!rest_.empty()) {
      if (line_begins_ && depth_ == 0) PD_RETURN_IF_ERROR(Indentation());
      if (!rest_.empty()) PD_RETURN_IF_ERROR(Next());
    }
    EndLine();
    for (size_t i = 1; i < indents_.size(); ++i) Add(TokenKind::kDedent, "");
    Add(TokenKind::kLine, "");
    return std::move(tokens_);
  }

 private:
  void Add(TokenKind kind, absl::string_view text) {
    tokens_.push_back({kind, std::string(text), line_});
  }

  void EndLine() {
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::kLine &&
        tokens_.back().kind != TokenKind::kDedent)
      Add(TokenKind::kLine, "");
  }

  absl::Status Indentation() {
    size_t width = 0;
    while (width < rest_.size() && rest_[width] == ' ') ++width;
    line_begins_ = false;
    if (width < rest_.size() && (rest_[width] == '\n' || rest_[width] == '#')) {
      rest_.remove_prefix(width);
      return absl::OkStatus();
    }
    rest_.remove_prefix(width);
    if (width > indents_.back()) {
      indents_.push_back(width);
      Add(TokenKind::kIndent, "");
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      Add(TokenKind::kDedent, "");
    }
    if (width != indents_.back())
      return DataLoss("line %d: its indentation is that of no line before",
                      line_);
    return absl::OkStatus();
  }

  absl::Status Next() {
    const char c = rest_[0];
    if (c == '\n') {
      rest_.remove_prefix(1);
      if (depth_ == 0) {
        EndLine();
        line_begins_ = true;
      }
      ++line_;
      return absl::OkStatus();
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      rest_.remove_prefix(1);
      return absl::OkStatus();
    }
    if (c == '#') {
      while (!rest_.empty() && rest_[0] != '\n') rest_.remove_prefix(1);
      return absl::OkStatus();
    }
    if (c == '"' || c == '\'') return Text(c);
    if (absl::ascii_isdigit(c) ||
        (c == '.' && rest_.size() > 1 && absl::ascii_isdigit(rest_[1])))
      return Number();
    if (IsWordChar(c)) {
      size_t size = 1;
      while (size < rest_.size() && IsWordChar(rest_[size])) ++size;
      Take(TokenKind::kName, size);
      return absl::OkStatus();
    }
    return Sign();
  }

  void Take(TokenKind kind, size_t size) {
    Add(kind, rest_.substr(0, size));
    rest_.remove_prefix(size);
  }

  absl::Status Sign() {
    for (const absl::string_view sign :
         {"->", "==", "!=", "<=", ">=", "//", "**", "<<", ">>"})
      if (absl::StartsWith(rest_, sign)) {
        Take(TokenKind::kSign, 2);
        return absl::OkStatus();
      }
    const char c = rest_[0];
    if (!absl::StrContains("()[]{},.:=+-*/%<>&|^~@", c))
      return DataLoss("line %d: a character 0x%02x", line_,
                      static_cast<unsigned char>(c));
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && --depth_ < 0)
      return DataLoss("line %d: a bracket closes that none opened", line_);
    Take(TokenKind::kSign, 1);
    return absl::OkStatus();
  }

  absl::Status Number() {
    size_t size = 0;
    while (size < rest_.size() &&
           (absl::ascii_isalnum(rest_[size]) || rest_[size] == '.' ||
            ((rest_[size] == '-' || rest_[size] == '+') && size > 0 &&
             rest_[size - 1] == 'e')))
      ++size;
    Take(TokenKind::kNumber, size);
    return absl::OkStatus();
  }

  absl::Status Text(char quote) {
    std::string text;
    size_t i = 1;
    for (; i < rest_.size() && rest_[i] != quote; ++i) {
      if (rest_[i] == '\n') ++line_;
      if (rest_[i] != '\\' || i + 1 >= rest_.size()) {
        text += rest_[i];
        continue;
      }
      const char next = rest_[++i];
      uint32_t code = 0;
      if (next == 'n') {
        text += '\n';
      } else if (next == 't') {
        text += '\t';
      } else if (next >= '0' && next <= '7') {
        size_t digits = 0;
        while (digits < 3 && i + digits < rest_.size() &&
               rest_[i + digits] >= '0' && rest_[i + digits] <= '7')
          code = code * 8 + static_cast<uint32_t>(rest_[i + digits++] - '0');
        i += digits - 1;
        text += static_cast<char>(code);
      } else {
        text += next;
      }
    }
    if (i >= rest_.size())
      return DataLoss("line %d: a string has no end", line_);
    Add(TokenKind::kText, text);
    rest_.remove_prefix(i + 1);
    return absl::OkStatus();
  }

  absl::string_view rest_;
  int64_t line_ = 1;
  int64_t depth_ = 0;  // of brackets
  bool line_begins_ = true;
  std::vector<size_t> indents_ = {0};
  std::vector<ScriptToken> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<ScriptToken>> LexTorchSource(
    absl::string_view source) {
  return Lexer(source).Run();
}

}  // namespace pd
