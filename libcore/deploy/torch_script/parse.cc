// SPDX-License-Identifier: Apache-2.0
// A parser by recursive descent, with a limit for the depth.
#include "libcore/deploy/torch_script/parse.h"

#include <iterator>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/torch_script/lex.h"

namespace pd {
namespace {

using ExprKind = ScriptExpr::Kind;
using StatementKind = ScriptStatement::Kind;
using TokenKind = ScriptToken::Kind;

constexpr int kMostDepth = 100;

// Operators of two sides, those that bind least first.
constexpr absl::string_view kOperators[][8] = {
    {"or"},       {"and"},    {"==", "!=", "<", ">", "<=", ">=", "is", "in"},
    {"|"},        {"^"},      {"&"},
    {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%", "@"},
};
constexpr size_t kLevels = std::size(kOperators);

class Parser {
 public:
  explicit Parser(std::vector<ScriptToken> tokens)
      : tokens_(std::move(tokens)) {}

  absl::StatusOr<ScriptFunctions> Run() {
    while (at_ + 1 < tokens_.size()) {
      if (Sees("class")) {
        PD_RETURN_IF_ERROR(Class());
      } else if (Sees("def")) {
        PD_RETURN_IF_ERROR(Function(""));
      } else {
        PD_RETURN_IF_ERROR(SkipLine());
      }
    }
    return std::move(functions_);
  }

 private:
  // The last token is a kLine, which nothing takes away.
  const ScriptToken& Now() const { return tokens_[at_]; }
  void Advance() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool Is(TokenKind kind) const { return Now().kind == kind; }
  bool Sees(absl::string_view text) const {
    return Now().text == text && (Is(TokenKind::kSign) || Is(TokenKind::kName));
  }
  bool Took(absl::string_view text) {
    const bool sees = Sees(text);
    if (sees) Advance();
    return sees;
  }
  absl::Status Wrong(absl::string_view expected) const {
    return DataLoss("line %d: '%s'; expected %s", Now().line,
                    Now().text.substr(0, 40), expected);
  }
  absl::Status Expect(absl::string_view text) {
    return Took(text) ? absl::OkStatus() : Wrong(absl::StrCat("'", text, "'"));
  }
  absl::StatusOr<std::string> Word() {
    if (!Is(TokenKind::kName)) return Wrong("a name");
    const std::string text = Now().text;
    Advance();
    return text;
  }
  absl::Status EndOfLine() {
    if (!Is(TokenKind::kLine)) return Wrong("the end of the line");
    Advance();
    return absl::OkStatus();
  }
  absl::Status SkipLine() {
    while (!Is(TokenKind::kLine) && at_ + 1 < tokens_.size()) Advance();
    Advance();
    return absl::OkStatus();
  }

  absl::Status Class() {
    Advance();
    PD_ASSIGN_OR_RETURN(const std::string name, Word());
    PD_RETURN_IF_ERROR(SkipLine());
    if (!Is(TokenKind::kIndent)) return absl::OkStatus();
    Advance();
    while (!Is(TokenKind::kDedent) && at_ + 1 < tokens_.size()) {
      PD_RETURN_IF_ERROR(Sees("def") ? Function(name + ".") : SkipLine());
    }
    Advance();
    return absl::OkStatus();
  }

  // A type is kept as its text.
  std::string Type() {
    std::string text;
    int64_t depth = 0;
    while (!Is(TokenKind::kLine) &&
           (depth > 0 || !(Sees(",") || Sees(")") || Sees("=") || Sees(":")))) {
      if (Sees("[") || Sees("(")) ++depth;
      if (Sees("]") || Sees(")")) --depth;
      text += Now().text;
      Advance();
    }
    return text;
  }

  absl::Status Function(const std::string& prefix) {
    Advance();
    auto function = std::make_shared<ScriptFunction>();
    PD_ASSIGN_OR_RETURN(const std::string name, Word());
    function->name = prefix + name;
    PD_RETURN_IF_ERROR(Expect("("));
    while (!Sees(")")) {
      if (Took("*")) {
        PD_RETURN_IF_ERROR(Expect(","));
        continue;
      }
      PD_ASSIGN_OR_RETURN(const std::string parameter, Word());
      function->parameters.emplace_back(parameter, Took(":") ? Type() : "");
      if (Took("=")) {
        PD_ASSIGN_OR_RETURN(function->defaults[parameter], Expr(0));
      }
      if (!Took(",")) break;
    }
    PD_RETURN_IF_ERROR(Expect(")"));
    if (Took("->")) Type();
    PD_ASSIGN_OR_RETURN(function->body, Block(0));
    functions_[function->name] = function;
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ScriptStatement>> Block(int depth) {
    if (depth > kMostDepth)
      return InvalidArgument("line %d: blocks over %d levels deep", Now().line,
                             kMostDepth);
    std::vector<ScriptStatement> block;
    PD_RETURN_IF_ERROR(Expect(":"));
    PD_RETURN_IF_ERROR(EndOfLine());
    if (!Is(TokenKind::kIndent)) return block;
    Advance();
    while (!Is(TokenKind::kDedent) && at_ + 1 < tokens_.size()) {
      if (Sees("pass")) {
        PD_RETURN_IF_ERROR(SkipLine());
        continue;
      }
      PD_ASSIGN_OR_RETURN(ScriptStatement statement, Statement(depth));
      block.push_back(std::move(statement));
    }
    Advance();
    return block;
  }

  absl::StatusOr<ScriptStatement> Statement(int depth) {
    ScriptStatement out;
    out.line = Now().line;
    if (Took("if")) {
      out.kind = StatementKind::kIf;
      PD_ASSIGN_OR_RETURN(out.value, Expr(0));
      PD_ASSIGN_OR_RETURN(out.body, Block(depth + 1));
      if (Took("else")) {
        PD_ASSIGN_OR_RETURN(out.otherwise, Block(depth + 1));
      }
      return out;
    }
    if (Took("while")) {
      out.kind = StatementKind::kWhile;
      PD_ASSIGN_OR_RETURN(out.value, Expr(0));
      PD_ASSIGN_OR_RETURN(out.body, Block(depth + 1));
      return out;
    }
    if (Took("for")) {
      out.kind = StatementKind::kFor;
      out.targets.emplace_back();
      out.targets[0].kind = ExprKind::kName;
      PD_ASSIGN_OR_RETURN(out.targets[0].text, Word());
      PD_RETURN_IF_ERROR(Expect("in"));
      PD_ASSIGN_OR_RETURN(out.value, Expr(0));
      PD_ASSIGN_OR_RETURN(out.body, Block(depth + 1));
      return out;
    }
    if (Took("return")) {
      out.kind = StatementKind::kReturn;
      if (!Is(TokenKind::kLine)) {
        PD_ASSIGN_OR_RETURN(out.value, Exprs());
      }
      PD_RETURN_IF_ERROR(EndOfLine());
      return out;
    }
    PD_ASSIGN_OR_RETURN(out.value, Exprs());
    if (Took(":")) Type();
    if (Took("=")) {
      out.kind = StatementKind::kAssign;
      out.unpacks = out.value.kind == ExprKind::kTuple;
      if (out.unpacks)
        out.targets = std::move(out.value.items);
      else
        out.targets.push_back(std::move(out.value));
      PD_ASSIGN_OR_RETURN(out.value, Exprs());
    }
    PD_RETURN_IF_ERROR(EndOfLine());
    return out;
  }

  // One expression, or a tuple of those that commas part.
  absl::StatusOr<ScriptExpr> Exprs() {
    PD_ASSIGN_OR_RETURN(ScriptExpr first, Expr(0));
    if (!Sees(",")) return first;
    ScriptExpr tuple;
    tuple.kind = ExprKind::kTuple;
    tuple.items.push_back(std::move(first));
    while (Took(",")) {
      if (Is(TokenKind::kLine) || Sees("=")) break;
      PD_ASSIGN_OR_RETURN(ScriptExpr next, Expr(0));
      tuple.items.push_back(std::move(next));
    }
    return tuple;
  }

  absl::StatusOr<ScriptExpr> Expr(int depth) {
    if (depth > kMostDepth)
      return InvalidArgument("line %d: an expression over %d levels deep",
                             Now().line, kMostDepth);
    PD_ASSIGN_OR_RETURN(ScriptExpr value, Binary(0, depth + 1));
    if (!Took("if")) return value;
    ScriptExpr out;
    out.kind = ExprKind::kTernary;
    out.items.push_back(std::move(value));
    PD_ASSIGN_OR_RETURN(ScriptExpr condition, Binary(0, depth + 1));
    out.items.push_back(std::move(condition));
    PD_RETURN_IF_ERROR(Expect("else"));
    PD_ASSIGN_OR_RETURN(ScriptExpr otherwise, Expr(depth + 1));
    out.items.push_back(std::move(otherwise));
    return out;
  }

  std::string OperatorAt(size_t level) const {
    if (Is(TokenKind::kSign) || Is(TokenKind::kName))
      for (const absl::string_view sign : kOperators[level])
        if (!sign.empty() && Now().text == sign) return std::string(sign);
    return "";
  }

  absl::StatusOr<ScriptExpr> Binary(size_t level, int depth) {
    if (level == kLevels) return Unary(depth);
    PD_ASSIGN_OR_RETURN(ScriptExpr left, Binary(level + 1, depth));
    int64_t chained = 0;
    for (std::string sign = OperatorAt(level); !sign.empty();
         sign = OperatorAt(level)) {
      // Each nests the tree by one more, which is walked by recursion.
      if (++chained > kMostDepth) return Wrong("fewer operators");
      Advance();
      if (sign == "is" && Took("not")) sign = "is not";
      ScriptExpr out;
      out.kind = ExprKind::kBinary;
      out.text = sign;
      out.items.push_back(std::move(left));
      PD_ASSIGN_OR_RETURN(ScriptExpr right, Binary(level + 1, depth));
      out.items.push_back(std::move(right));
      left = std::move(out);
    }
    return left;
  }

  absl::StatusOr<ScriptExpr> Unary(int depth) {
    for (const char* sign : {"-", "+", "not", "~"}) {
      if (!Sees(sign)) continue;
      if (depth > kMostDepth) return Wrong("fewer signs");
      Advance();
      ScriptExpr out;
      out.kind = ExprKind::kUnary;
      out.text = sign;
      PD_ASSIGN_OR_RETURN(ScriptExpr value, Unary(depth + 1));
      if (out.text == "-" && value.kind == ExprKind::kFloat) {
        value.real = -value.real;
        return value;
      }
      out.items.push_back(std::move(value));
      return out;
    }
    PD_ASSIGN_OR_RETURN(ScriptExpr value, Atom(depth));
    for (int64_t chained = 0;; ++chained) {
      if (chained > kMostDepth) return Wrong("fewer calls in one expression");
      ScriptExpr out;
      if (Took(".")) {
        out.kind = ExprKind::kAttribute;
        out.items.push_back(std::move(value));
        PD_ASSIGN_OR_RETURN(out.text, Word());
      } else if (Took("(")) {
        out.kind = ExprKind::kCall;
        out.items.push_back(std::move(value));
        PD_RETURN_IF_ERROR(List(")", depth, &out, /*keywords=*/true));
      } else if (Took("[")) {
        out.kind = ExprKind::kIndex;
        out.items.push_back(std::move(value));
        PD_RETURN_IF_ERROR(List("]", depth, &out));
      } else {
        return value;
      }
      value = std::move(out);
    }
  }

  // Elements up to the bracket `end`.
  absl::Status List(absl::string_view end, int depth, ScriptExpr* out,
                    bool keywords = false) {
    while (!Sees(end)) {
      std::string keyword;
      if (keywords && Is(TokenKind::kName) && at_ + 1 < tokens_.size() &&
          tokens_[at_ + 1].kind == TokenKind::kSign &&
          tokens_[at_ + 1].text == "=") {
        keyword = Now().text;
        Advance();
        Advance();
      }
      PD_ASSIGN_OR_RETURN(ScriptExpr item, Expr(depth + 1));
      out->items.push_back(std::move(item));
      if (keywords) out->keywords.push_back(keyword);
      if (!Took(",")) break;
    }
    return Expect(end);
  }

  absl::StatusOr<ScriptExpr> Dict(int depth) {
    ScriptExpr out;
    out.kind = ExprKind::kDict;
    while (!Sees("}")) {
      for (const bool key : {true, false}) {
        PD_ASSIGN_OR_RETURN(ScriptExpr item, Expr(depth + 1));
        out.items.push_back(std::move(item));
        if (key) PD_RETURN_IF_ERROR(Expect(":"));
      }
      if (!Took(",")) break;
    }
    PD_RETURN_IF_ERROR(Expect("}"));
    return out;
  }

  absl::StatusOr<ScriptExpr> Parenthesis(int depth) {
    ScriptExpr out;
    out.kind = ExprKind::kTuple;
    if (Took(")")) return out;
    PD_ASSIGN_OR_RETURN(ScriptExpr first, Expr(depth + 1));
    if (Took(")")) return first;
    PD_RETURN_IF_ERROR(Expect(","));
    out.items.push_back(std::move(first));
    PD_RETURN_IF_ERROR(List(")", depth, &out));
    return out;
  }

  absl::StatusOr<ScriptExpr> Atom(int depth) {
    ScriptExpr out;
    if (Took("(")) return Parenthesis(depth);
    if (Took("{")) return Dict(depth);
    if (Took("[")) {
      out.kind = ExprKind::kList;
      PD_RETURN_IF_ERROR(List("]", depth, &out));
      return out;
    }
    const std::string text = Now().text;
    if (Is(TokenKind::kText)) {
      out.kind = ExprKind::kText;
      while (Is(TokenKind::kText)) {
        out.text += Now().text;
        Advance();
      }
      return out;
    }
    if (Is(TokenKind::kNumber)) {
      if (absl::SimpleAtoi(text, &out.integer))
        out.kind = ExprKind::kInt;
      else if (absl::SimpleAtod(text, &out.real))
        out.kind = ExprKind::kFloat;
      else
        return Wrong("a number");
      Advance();
      return out;
    }
    if (!Is(TokenKind::kName)) return Wrong("a value");
    Advance();
    if (text == "None") return out;
    if (text == "True" || text == "False") {
      out.kind = ExprKind::kBool;
      out.integer = text == "True" ? 1 : 0;
    } else if (text == "inf" || text == "nan") {
      out.kind = ExprKind::kFloat;
      out.real = text == "inf" ? std::numeric_limits<double>::infinity()
                               : std::numeric_limits<double>::quiet_NaN();
    } else {
      out.kind = ExprKind::kName;
      out.text = text;
    }
    return out;
  }

  std::vector<ScriptToken> tokens_;
  size_t at_ = 0;
  ScriptFunctions functions_;
};

}  // namespace

absl::StatusOr<ScriptFunctions> ParseTorchSource(absl::string_view source) {
  PD_ASSIGN_OR_RETURN(std::vector<ScriptToken> tokens, LexTorchSource(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace pd
