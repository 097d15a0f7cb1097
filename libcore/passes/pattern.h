// SPDX-License-Identifier: Apache-2.0
// Chains of ops as data: a pass lists ops of which each reads the previous
// one's result, Matcher finds such chains together with their gradient ops, and
// FuseMatches replaces the chain by one op and its gradient by another,
// provided that no other op reads the variables in between.
//
//   static const auto* const kNormAct = new Pattern{
//       {"norm", {"batch_norm"}, {"X"}, "Y"},
//       {"act", {"relu", "relu6"}, {"X"}, "Out"}};
//
// A pattern's first op is not optional. Matches are tried at each op in the
// order of the program, so that earlier ops win. A chain continues only where a
// result has a single reader beside the chain's gradient ops, so matching takes
// time linear in the number of ops.
#ifndef PD_LIBCORE_PASSES_PATTERN_H_
#define PD_LIBCORE_PASSES_PATTERN_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libcore/passes/op_graph.h"

namespace pd {

class Match;

/// One op of a pattern.
struct PatternOp {
  /// Whether an op fits, given the ops that are bound before it.
  using Condition = std::function<bool(const Match& match, const OpDesc& op)>;

  /// How the op's gradient op is found: kMirrored: it has the type of the op
  /// with "_grad" and stands in the chain of gradients; kKept and kItself: see
  /// KeepsGradient and GradientIsItself.
  enum class Gradient { kMirrored, kKept, kItself };

  std::string name;                 ///< in the match
  std::vector<std::string> types;   ///< it has any of them
  std::vector<std::string> inputs;  ///< slots; one reads the op before
  std::string output;               ///< the slot that the op behind reads
  bool optional = false;
  Gradient gradient = Gradient::kMirrored;
  std::string gradient_attr;  ///< of kItself
  std::vector<Condition> conditions;

  /// The op may be missing.
  PatternOp& Optional() { return optional = true, *this; }
  PatternOp& If(Condition fits) {
    return conditions.push_back(std::move(fits)), *this;
  }
  /// The attribute has this value, or the op's type has no such attribute.
  PatternOp& Attr(const std::string& attr, Attribute value);
  /// An input slot holds no name.
  PatternOp& Without(const std::string& slot);
  /// The op's gradient op is no part of the chain: it stays as it is.
  PatternOp& KeepsGradient() { return gradient = Gradient::kKept, *this; }
  /// The gradient op is of the op's own type, with the same value of this
  /// attribute, as that of a scale is; conditions hold for both, and do not
  /// look at the match. It may be missing where the chain's input wants no
  /// gradient.
  PatternOp& GradientIsItself(const std::string& attr) {
    gradient_attr = attr;
    return gradient = Gradient::kItself, *this;
  }
};

using Pattern = std::vector<PatternOp>;

/// The ops of a program that a pattern's names are bound to.
class Match {
 public:
  explicit Match(const OpGraph* graph) : graph_(graph) {}

  const OpGraph& graph() const { return *graph_; }
  /// Whether the pattern's op is there.
  bool Has(const std::string& name) const { return Find(name) != nullptr; }
  /// The op, its number, and its slot that reads the op before; it must be
  /// there.
  const OpDesc& op(const std::string& name) const {
    return graph_->op(at(name));
  }
  size_t at(const std::string& name) const { return Get(name).op; }
  const std::string& slot(const std::string& name) const {
    return Get(name).slot;
  }
  /// Its gradient op; null where there is none.
  const OpDesc* grad(const std::string& name) const;
  /// The last op that is there.
  const OpDesc& last() const { return graph_->op(bound_.back().op); }
  bool HasGradients() const { return !backward_.empty(); }
  /// Numbers of the ops, from first to last; of the gradient ops likewise in
  /// the order in which they run.
  std::vector<size_t> Forward() const;
  const std::vector<size_t>& Backward() const { return backward_; }
  /// Whether no op outside of the match reads or writes the variable, and it is
  /// no fetch.
  bool IsPrivate(const std::string& variable) const;

 private:
  friend class Matcher;
  struct Bound {
    const PatternOp* pattern;
    size_t op;
    int grad;
    std::string slot;
  };
  const Bound* Find(const std::string& name) const;
  const Bound& Get(const std::string& name) const;
  bool Contains(size_t op) const;

  const OpGraph* graph_;
  std::vector<Bound> bound_;
  std::vector<size_t> backward_;
};

/// Finds matches in a graph, whose ops may be replaced meanwhile. Both it and
/// the patterns outlive the matcher.
class Matcher {
 public:
  Matcher(const OpGraph* graph, const std::vector<const Pattern*>& patterns);

  /// The match whose first op is op `first`: with every optional op that is
  /// there, and with the gradient ops of all, or of none. Nothing where there
  /// is none, or where only some have a gradient op.
  std::optional<Match> MatchAt(const Pattern& pattern, size_t first) const;

 private:
  int GradientOf(size_t op) const;
  int Next(size_t op, const std::string& output) const;
  bool Bind(const PatternOp& pattern, int op, Match* match) const;
  bool BindGradients(Match* match) const;
  int GradientReading(const std::string& name, const Match::Bound& bound) const;

  const OpGraph* graph_;
  // Gradient ops by their type and what they read of their forward op, and the
  // lists of slots of which these keys are made.
  std::map<std::string, std::vector<size_t>> gradients_;
  std::map<std::string, std::set<std::vector<std::string>>> slots_;
};

/// The place of one op that stands for several: the first or last of theirs.
enum class FusedAt { kFirst, kLast, kLastOrFirst };

/// The ops that take the place of a match.
struct Fusion {
  OpDesc forward;
  OpDesc backward;  ///< unused where the match has no gradient ops
  FusedAt forward_at = FusedAt::kLast, backward_at = FusedAt::kLast;
};

/// Fills in a fusion; false where the match is none after all.
using FuseFn = std::function<bool(const Match& match, Fusion* fusion)>;

/// Calls `fuse` for each match, in the order of the program, and replaces it
/// where no other op reads or writes the variables between its ops. At an op
/// where several patterns match, the first wins that can be replaced.
absl::Status FuseMatches(const PassContext& context,
                         const std::vector<const Pattern*>& patterns,
                         const FuseFn& fuse, ProgramDesc* program);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_PATTERN_H_
