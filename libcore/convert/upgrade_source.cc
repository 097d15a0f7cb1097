// SPDX-License-Identifier: Apache-2.0
#include "libcore/convert/upgrade_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/convert/api_arguments.h"
#include "libcore/convert/api_names.h"
#include "libcore/convert/python_tokens.h"
#include "libcore/convert/upgrade_call.h"

namespace pd {
namespace {

constexpr absl::string_view kPackage = "paddle.";
constexpr absl::string_view kFluid = "paddle.fluid";

using TokenKind = PythonToken::Kind;

// An import statement of the source.
struct Import {
  size_t begin = 0, end = 0;       // bytes
  bool of_fluid = false;           // nothing but paddle.fluid and names below
  bool binds_paddle = false;       // the name `paddle` itself
  std::vector<std::string> names;  // that it binds
  int64_t left = 0;                // uses of them that stay
};

class Source {
 public:
  explicit Source(absl::string_view text) : text_(text) {}

  absl::StatusOr<UpgradedSource> Upgrade() {
    PD_ASSIGN_OR_RETURN(tokens_, PythonTokens(text_));
    bool starts = true;  // a statement
    while (at_ < tokens_.size()) {
      const absl::string_view word = Text(tokens_[at_]);
      if (starts && (word == "import" || word == "from")) {
        ReadImport();
        starts = false;
      } else if (tokens_[at_].kind == TokenKind::kName) {
        Use();
        starts = false;
      } else {
        starts = tokens_[at_].kind == TokenKind::kEnd || word == ";" ||
                 (word == ":" && tokens_[at_].depth == 0);
        ++at_;
      }
    }
    EditImports();
    out_.text = Edited();
    return std::move(out_);
  }

 private:
  struct Binding {
    std::string path;
    size_t import;
  };

  absl::string_view Text(const PythonToken& token) const {
    return text_.substr(token.begin, token.end - token.begin);
  }
  bool Is(size_t at, absl::string_view sign) const {
    return at < tokens_.size() && Text(tokens_[at]) == sign;
  }
  bool IsName(size_t at) const {
    return at < tokens_.size() && tokens_[at].kind == TokenKind::kName;
  }

  void Note(size_t byte, std::string text) {
    const absl::string_view before = text_.substr(0, byte);
    const size_t line_start = before.rfind('\n');
    SourceNote note;
    note.line = LineOf(text_, byte);
    note.column = static_cast<int64_t>(
        line_start == absl::string_view::npos ? byte + 1 : byte - line_start);
    note.text = std::move(text);
    out_.notes.push_back(std::move(note));
  }

  // "a.b.c" from the token at `at`, over which it moves; no blanks inside.
  std::string Dotted(size_t* at) const {
    std::string path;
    while (IsName(*at)) {
      absl::StrAppend(&path, Text(tokens_[*at]));
      ++*at;
      if (!Is(*at, ".") || tokens_[*at].begin != tokens_[*at - 1].end ||
          !IsName(*at + 1) || tokens_[*at + 1].begin != tokens_[*at].end)
        break;
      path += '.';
      ++*at;
    }
    return path;
  }

  static bool OfFluid(absl::string_view path) {
    return path == kFluid ||
           (absl::StartsWith(path, kFluid) && path[kFluid.size()] == '.');
  }

  void Bind(const std::string& name, const std::string& path, Import* import) {
    import->of_fluid &= OfFluid(path);
    import->binds_paddle |= name == "paddle" && path == "paddle";
    import->names.push_back(name);
    bindings_[name] = {path, imports_.size()};
  }

  // import a.b as c, d
  // from a.b import c as d, e
  void ReadImport() {
    Import import;
    import.begin = tokens_[at_].begin;
    import.of_fluid = true;
    const bool from = Is(at_, "from");
    ++at_;
    std::string package;
    if (from) {
      package = Dotted(&at_);
      while (at_ < tokens_.size() && !Is(at_, "import") && !Ends()) ++at_;
      if (Is(at_, "import")) ++at_;
    }
    while (!Ends()) {
      if (Is(at_, "*") && OfFluid(package))
        Note(tokens_[at_].begin,
             absl::StrCat(package, ": the names that * imports are not known"));
      if (Is(at_, "*")) import.of_fluid = false;
      if (!IsName(at_)) {
        ++at_;
        continue;
      }
      std::string path = Dotted(&at_), name = path;
      if (from) path = absl::StrCat(package, ".", path);
      if (Is(at_, "as") && IsName(at_ + 1)) {
        name = std::string(Text(tokens_[at_ + 1]));
        at_ += 2;
      } else if (!from) {
        // The statement binds the outermost package.
        import.of_fluid &= OfFluid(path);
        name = path = path.substr(0, path.find('.'));
        if (OfFluid(absl::StrCat(path, ".fluid"))) {
          import.binds_paddle = true;
          bindings_[name] = {path, imports_.size()};
          import.names.push_back(name);
          continue;
        }
      }
      Bind(name, path, &import);
    }
    import.end = tokens_[at_ - 1].end;
    imports_.push_back(std::move(import));
  }

  bool Ends() const {
    return at_ >= tokens_.size() || tokens_[at_].kind == TokenKind::kEnd ||
           Is(at_, ";");
  }

  // A name that is no attribute of something before it.
  void Use() {
    const size_t first = at_;
    const bool attribute = first > 0 && Is(first - 1, ".");
    const std::string chain = Dotted(&at_);
    const absl::string_view name = Text(tokens_[first]);
    const auto it = bindings_.find(name);
    // An argument's name, or another value of this name.
    const bool set = Is(at_, "=") && !Is(at_ + 1, "=");
    if (attribute || it == bindings_.end() || set) return;
    const std::string path =
        absl::StrCat(it->second.path, chain.substr(name.size()));
    if (OfFluid(path) &&
        Replace(path, tokens_[first].begin, tokens_[at_ - 1].end))
      return;
    ++imports_[it->second.import].left;
  }

  bool Replace(const std::string& path, size_t begin, size_t end) {
    // The longest name of the table; attributes of it may follow.
    absl::string_view old = absl::StripPrefix(path, kPackage);
    const ApiName* row = FindApiName(old);
    while (row == nullptr && absl::StrContains(old, '.')) {
      old = old.substr(0, old.rfind('.'));
      row = FindApiName(old);
    }
    if (row == nullptr) {
      Note(begin, absl::StrCat(
                      path, path == "paddle.fluid.dygraph.guard"
                                ? ": 2.0 runs op by op from the start, so the "
                                  "block of this `with` stands without it"
                                : ": the table has no such name"));
      return false;
    }
    const std::string found = absl::StrCat(kPackage, old);
    const std::string names = absl::StrReplaceAll(
        absl::StrCat(kPackage, row->new_names), {{", ", " or paddle."}});
    if (!row->same) {
      Note(begin, absl::StrCat(found, " is ", names,
                               " now: its arguments or its results changed"));
      return false;
    }
    const std::string taken = names.substr(0, names.find(' '));
    const absl::string_view attributes =
        absl::string_view(path).substr(found.size());
    const std::vector<ApiParameter>& parameters = ApiParameters(old);
    UpgradedCall call;
    if (attributes.empty() && !parameters.empty()) {
      if (Is(at_, "("))
        call = UpgradeCall(text_, tokens_, at_, parameters);
      else
        Note(begin, absl::StrCat(found, " became ", taken,
                                 ", but where it is called cannot be seen: ",
                                 DescribeParameters(old)));
      if (!call.refusal.empty()) {
        Note(begin, absl::StrCat(found, " is ", taken, " now, ", call.refusal));
        return false;
      }
    }
    edits_.push_back({begin, end, absl::StrCat(taken, attributes)});
    edits_.insert(edits_.end(), call.edits.begin(), call.edits.end());
    ++out_.replaced[found];
    return true;
  }

  // Imports that nothing needs any more make room for `import paddle`.
  void EditImports() {
    if (out_.replaced.empty()) return;
    bool bound = std::any_of(imports_.begin(), imports_.end(),
                             [](const auto& i) { return i.binds_paddle; });
    for (const Import& import : imports_) {
      if (!import.of_fluid) continue;
      const size_t line = text_.rfind('\n', import.begin);
      const size_t start = line == absl::string_view::npos ? 0 : line + 1;
      const bool whole = start == import.begin && (import.end == text_.size() ||
                                                   text_[import.end] == '\n');
      if (import.left > 0 || import.names.empty()) {
        if (!bound)
          edits_.push_back({import.begin, import.begin,
                            whole ? "import paddle\n" : "import paddle; "});
      } else if (import.binds_paddle || !bound || !whole) {
        edits_.push_back({import.begin, import.end, "import paddle"});
      } else {
        edits_.push_back(
            {import.begin, std::min(import.end + 1, text_.size()), ""});
      }
      bound = true;
    }
  }

  std::string Edited() {
    std::stable_sort(
        edits_.begin(), edits_.end(),
        [](const TextEdit& a, const TextEdit& b) { return a.begin < b.begin; });
    std::string text;
    size_t at = 0;
    for (const TextEdit& edit : edits_) {
      if (edit.begin < at) continue;  // in an argument that goes
      absl::StrAppend(&text, text_.substr(at, edit.begin - at), edit.text);
      at = edit.end;
    }
    absl::StrAppend(&text, text_.substr(at));
    return text;
  }

  absl::string_view text_;
  std::vector<PythonToken> tokens_;
  size_t at_ = 0;
  std::map<std::string, Binding, std::less<>> bindings_;
  std::vector<Import> imports_;
  std::vector<TextEdit> edits_;
  UpgradedSource out_;
};

}  // namespace

absl::StatusOr<UpgradedSource> UpgradeSource(absl::string_view text) {
  return Source(text).Upgrade();
}

}  // namespace pd
