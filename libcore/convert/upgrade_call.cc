// SPDX-License-Identifier: Apache-2.0
#include "libcore/convert/upgrade_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace pd {
namespace {

using ParameterKind = ApiParameter::Kind;

// One argument of a call, by the numbers of its tokens.
struct Argument {
  size_t first, last;     // tokens, both of it
  bool by_name = false;   // first is the name, first + 1 the '='
  bool unpacked = false;  // *args, **kwargs
  bool removed = false;
};

class Call {
 public:
  Call(absl::string_view text, const std::vector<PythonToken>& tokens,
       size_t open)
      : text_(text), tokens_(tokens), open_(open) {
    Split();
  }

  UpgradedCall Upgrade(const std::vector<ApiParameter>& parameters) {
    said_.assign(parameters.size(), false);
    for (size_t i = 0; i < arguments_.size() && out_.refusal.empty(); ++i)
      Carry(&arguments_[i], i, parameters);
    std::vector<std::string> more;
    for (size_t i = 0; i < parameters.size() && out_.refusal.empty(); ++i) {
      const ApiParameter& parameter = parameters[i];
      if (said_[i]) continue;
      if (parameter.kind == ParameterKind::kRequired)
        Refuse("which does what ", parameter.old_name, "=", parameter.value,
               " did: say that where it is meant");
      else if (!parameter.new_name.empty() && !parameter.value.empty())
        more.push_back(absl::StrCat(parameter.new_name, "=", parameter.value));
    }
    if (!out_.refusal.empty()) {
      out_.edits.clear();
      return std::move(out_);
    }
    Remove();
    Append(more);
    std::stable_sort(
        out_.edits.begin(), out_.edits.end(),
        [](const TextEdit& a, const TextEdit& b) { return a.begin < b.begin; });
    return std::move(out_);
  }

 private:
  absl::string_view Text(size_t token) const {
    return text_.substr(tokens_[token].begin,
                        tokens_[token].end - tokens_[token].begin);
  }

  // Arguments end at the commas that stand in no bracket of their own and not
  // between a lambda and its colon.
  void Split() {
    const int depth = tokens_[open_].depth + 1;
    bool lambda = false;
    size_t first = open_ + 1;
    for (size_t i = first; i < tokens_.size(); ++i) {
      const bool closes = tokens_[i].depth < depth;
      const bool inside = tokens_[i].depth == depth;
      if (inside && Text(i) == "lambda") lambda = true;
      if (inside && Text(i) == ":") lambda = false;
      if (!closes && !(inside && !lambda && Text(i) == ",")) continue;
      if (i > first) Add(first, i - 1);
      first = i + 1;
      close_ = i;
      if (closes) break;
    }
  }

  void Add(size_t first, size_t last) {
    Argument argument{first, last};
    argument.unpacked = Text(first) == "*";
    argument.by_name = tokens_[first].kind == PythonToken::Kind::kName &&
                       last > first + 1 && Text(first + 1) == "=" &&
                       Text(first + 2) != "=";
    arguments_.push_back(argument);
  }

  template <class... Parts>
  void Refuse(const Parts&... parts) {
    out_.refusal = absl::StrCat(parts...);
  }

  void Carry(Argument* argument, size_t index,
             const std::vector<ApiParameter>& parameters) {
    if (argument->unpacked)
      return Refuse("but the arguments behind '*' cannot be seen");
    const ApiParameter* parameter =
        argument->by_name ? Named(Text(argument->first), parameters)
                          : At(index, parameters);
    if (parameter == nullptr) return;
    said_[parameter - parameters.data()] = true;
    if (parameter->kind != ParameterKind::kKept) {
      Drop(argument, *parameter);
    } else if (!argument->by_name) {
      if (!parameter->positional)
        Edit(tokens_[argument->first].begin, tokens_[argument->first].begin,
             absl::StrCat(parameter->new_name, "="));
    } else if (parameter->old_name != parameter->new_name) {
      Edit(tokens_[argument->first].begin, tokens_[argument->first].end,
           parameter->new_name);
    }
  }

  const ApiParameter* Named(absl::string_view name,
                            const std::vector<ApiParameter>& parameters) {
    for (const ApiParameter& parameter : parameters)
      if (parameter.kind != ParameterKind::kAdded && parameter.old_name == name)
        return &parameter;
    Refuse("but 1.8 has no argument '", name, "' of it");
    return nullptr;
  }

  const ApiParameter* At(size_t index,
                         const std::vector<ApiParameter>& parameters) {
    if (index < parameters.size() &&
        parameters[index].kind != ParameterKind::kAdded)
      return &parameters[index];
    Refuse("but 1.8 takes fewer arguments than these ", arguments_.size());
    return nullptr;
  }

  void Drop(Argument* argument, const ApiParameter& parameter) {
    const size_t first = argument->first + (argument->by_name ? 2 : 0);
    const absl::string_view value =
        text_.substr(tokens_[first].begin,
                     tokens_[argument->last].end - tokens_[first].begin);
    if (parameter.value.empty() || Same(value, parameter.value))
      argument->removed = true;
    else if (parameter.kind == ParameterKind::kRequired)
      Refuse("which does what ", parameter.old_name, "=", parameter.value,
             " did, and here it is ", value);
    else
      Refuse("which has no '", parameter.old_name, "', and here it is ", value);
  }

  static bool Same(absl::string_view a, absl::string_view b) {
    double x = 0, y = 0;
    if (absl::SimpleAtod(a, &x) && absl::SimpleAtod(b, &y)) return x == y;
    return absl::StrReplaceAll(a, {{"\"", "'"}}) == b;
  }

  void Edit(size_t begin, size_t end, std::string text) {
    out_.edits.push_back({begin, end, std::move(text)});
  }

  // Neighbours go together, with the commas that stood between arguments.
  void Remove() {
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!arguments_[i].removed) continue;
      size_t j = i;
      while (j + 1 < arguments_.size() && arguments_[j + 1].removed) ++j;
      const size_t begin = tokens_[arguments_[i].first].begin;
      const size_t end = tokens_[arguments_[j].last].end;
      if (j + 1 < arguments_.size())
        Edit(begin, tokens_[arguments_[j + 1].first].begin, "");
      else if (i == 0)  // nothing is left; a comma may follow
        Edit(begin, tokens_[close_].begin, "");
      else
        RemoveLast(arguments_[i - 1].last + 1, begin, end);
      i = j;
    }
  }

  // A comment behind the comma belongs to the argument before, which stays.
  void RemoveLast(size_t comma, size_t begin, size_t end) {
    const size_t behind = tokens_[comma].end;
    if (text_.substr(behind, begin - behind).find('#') ==
        absl::string_view::npos) {
      Edit(tokens_[comma].begin, end, "");
    } else {
      Edit(tokens_[comma].begin, behind, "");
      Edit(begin, end, "");
    }
  }

  void Append(const std::vector<std::string>& more) {
    bool first = std::all_of(arguments_.begin(), arguments_.end(),
                             [](const Argument& a) { return a.removed; });
    const size_t at =
        first ? tokens_[close_].begin : tokens_[arguments_.back().last].end;
    for (const std::string& argument : more) {
      Edit(at, at, absl::StrCat(first ? "" : ", ", argument));
      first = false;
    }
  }

  absl::string_view text_;
  const std::vector<PythonToken>& tokens_;
  size_t open_, close_ = 0;
  std::vector<Argument> arguments_;
  std::vector<bool> said_;
  UpgradedCall out_;
};

}  // namespace

UpgradedCall UpgradeCall(absl::string_view text,
                         const std::vector<PythonToken>& tokens, size_t open,
                         const std::vector<ApiParameter>& parameters) {
  return Call(text, tokens, open).Upgrade(parameters);
}

}  // namespace pd
