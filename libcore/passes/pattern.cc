// SPDX-License-Identifier: Apache-2.0
#include "libcore/passes/pattern.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

constexpr int kSeveral = -2;  // gradient ops of one op
constexpr absl::string_view kGradOp = "_grad";

bool IsOneOf(const std::vector<std::string>& list, const std::string& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The slot of `op` that reads `name` and nothing else, where that is the only
// place that it stands at; "" otherwise.
std::string OnlySlotReading(const OpDesc& op, const std::string& name) {
  std::string found;
  for (const auto& [slot, names] : op.inputs) {
    if (!IsOneOf(names, name)) continue;
    if (names.size() != 1 || !found.empty()) return "";
    found = slot;
  }
  return found;
}

// The slots of a gradient op that hold variables of its forward op.
std::vector<std::string> ForwardSlots(const OpDesc& grad) {
  std::vector<std::string> slots;
  for (const auto& [slot, names] : grad.inputs)
    if (!names.empty() && !absl::EndsWith(slot, kGradSuffix))
      slots.push_back(slot);
  std::sort(slots.begin(), slots.end());
  return slots;
}

// One string for a gradient op's type and the variables of its forward op.
template <typename NamesIn>
std::string Key(const std::string& type, const std::vector<std::string>& slots,
                const NamesIn& names_in) {
  std::string key = type;
  for (const std::string& slot : slots) {
    absl::StrAppend(&key, "\n", slot);
    for (const std::string& name : names_in(slot))
      absl::StrAppend(&key, "\t", name);
  }
  return key;
}

// Where the ops of a match that are replaced stand, in order.
struct Places {
  explicit Places(std::vector<size_t> list) : ops(std::move(list)) {
    std::sort(ops.begin(), ops.end());
  }
  bool Contains(size_t op) const {
    return std::binary_search(ops.begin(), ops.end(), op);
  }
  std::vector<size_t> ops;
};

// Whether another op than those of `places` is listed between two of them.
bool AnyBetween(const std::vector<size_t>& list, size_t first, size_t last,
                const Places& places) {
  for (auto it = std::upper_bound(list.begin(), list.end(), first);
       it != list.end() && *it < last; ++it)
    if (!places.Contains(*it)) return true;
  return false;
}

// The first, or the last, of the places whose op reads or writes the variable;
// where none does, the first or last of all.
size_t PlaceOf(const OpGraph& graph, const Places& places,
               const std::string& name, SlotList OpDesc::*slots, bool last) {
  size_t found = last ? places.ops.back() : places.ops.front();
  for (size_t i : places.ops) {
    if (!IsOneOf(NamesOf(graph.op(i).*slots), name)) continue;
    found = i;
    if (!last) break;
  }
  return found;
}

// Whether `op` may stand at the first or last of the places alone: it reads
// what they have read, and nobody sees that its results come earlier or later.
bool MayStandAt(const OpGraph& graph, const Places& places, const OpDesc& op,
                bool last) {
  const size_t at = last ? places.ops.back() : places.ops.front();
  for (const std::string& name : NamesOf(op.inputs)) {
    const size_t read =
        PlaceOf(graph, places, name, &OpDesc::inputs, /*last=*/!last);
    if (AnyBetween(graph.Writers(name), std::min(read, at), std::max(read, at),
                   places))
      return false;
  }
  for (const std::string& name : NamesOf(op.outputs)) {
    const size_t written =
        PlaceOf(graph, places, name, &OpDesc::outputs, /*last=*/true);
    const size_t from = std::min(written, at), to = std::max(written, at);
    if (AnyBetween(graph.Writers(name), from, to, places) ||
        AnyBetween(graph.Readers(name), from, to, places))
      return false;
  }
  return true;
}

// The place of `op` among those it replaces; nothing where none will do.
std::optional<size_t> PlaceFor(const OpGraph& graph, const Places& places,
                               const OpDesc& op, FusedAt where) {
  if (where != FusedAt::kFirst && MayStandAt(graph, places, op, true))
    return places.ops.back();
  if (where != FusedAt::kLast && MayStandAt(graph, places, op, false))
    return places.ops.front();
  return std::nullopt;
}

void ReplaceAll(const Places& places, size_t at, OpDesc op, OpGraph* graph) {
  std::vector<size_t> others;
  for (size_t i : places.ops)
    if (i != at) others.push_back(i);
  graph->Replace(at, std::move(op), others);
}

// Whether what the fusion computes no more is read by nobody else.
bool HidesNothing(const Match& match, const Fusion& fusion) {
  std::set<std::string> made;
  for (const OpDesc* op : {&fusion.forward, &fusion.backward})
    for (const std::string& name : NamesOf(op->outputs)) made.insert(name);
  for (const auto& ops : {match.Forward(), match.Backward()})
    for (size_t i : ops)
      for (const std::string& name : NamesOf(match.graph().op(i).outputs))
        if (made.count(name) == 0 && !match.IsPrivate(name)) return false;
  return true;
}

// Replaces both sides, or neither.
bool Apply(const Match& match, Fusion fusion, OpGraph* graph) {
  if (!HidesNothing(match, fusion)) return false;
  const Places forward(match.Forward());
  const auto at = PlaceFor(*graph, forward, fusion.forward, fusion.forward_at);
  if (!at.has_value()) return false;
  if (match.HasGradients()) {
    const Places backward(match.Backward());
    const auto grad_at =
        PlaceFor(*graph, backward, fusion.backward, fusion.backward_at);
    if (!grad_at.has_value()) return false;
    ReplaceAll(backward, *grad_at, std::move(fusion.backward), graph);
  }
  ReplaceAll(forward, *at, std::move(fusion.forward), graph);
  return true;
}

}  // namespace

PatternOp& PatternOp::Attr(const std::string& attr, Attribute value) {
  return If([attr, value = std::move(value)](const Match&, const OpDesc& op) {
    const Attribute* given = op.FindAttr(attr);
    return given == nullptr || *given == value;
  });
}

PatternOp& PatternOp::Without(const std::string& slot) {
  return If([slot](const Match&, const OpDesc& op) {
    return op.Input(slot).empty();
  });
}

const Match::Bound* Match::Find(const std::string& name) const {
  for (const Bound& bound : bound_)
    if (bound.pattern->name == name) return &bound;
  return nullptr;
}

const Match::Bound& Match::Get(const std::string& name) const {
  const Bound* bound = Find(name);
  PD_INVARIANT(bound != nullptr);
  return *bound;
}

const OpDesc* Match::grad(const std::string& name) const {
  const Bound* bound = Find(name);
  return bound == nullptr || bound->grad == kNone
             ? nullptr
             : &graph_->op(pd::At(bound->grad));
}

std::vector<size_t> Match::Forward() const {
  std::vector<size_t> ops;
  for (const Bound& bound : bound_) ops.push_back(bound.op);
  return ops;
}

bool Match::Contains(size_t op) const {
  for (const Bound& bound : bound_)
    if (bound.op == op || bound.grad == static_cast<int>(op)) return true;
  return false;
}

bool Match::IsPrivate(const std::string& variable) const {
  if (graph_->IsWanted(variable) || graph_->OnlyWriter(variable) == kNone)
    return false;
  const auto& readers = graph_->Readers(variable);
  return std::all_of(readers.begin(), readers.end(),
                     [&](size_t i) { return Contains(i); });
}

Matcher::Matcher(const OpGraph* graph,
                 const std::vector<const Pattern*>& patterns)
    : graph_(graph) {
  std::set<std::string> types;
  for (const Pattern* pattern : patterns)
    for (const PatternOp& op : *pattern)
      for (const std::string& type : op.types)
        types.insert(absl::StrCat(type, kGradOp));
  for (size_t i = 0; i < graph->size(); ++i) {
    const OpDesc& op = graph->op(i);
    if (types.count(op.type) == 0) continue;
    const std::vector<std::string> slots = ForwardSlots(op);
    if (slots.empty()) continue;
    gradients_[Key(op.type, slots, [&](const std::string& slot) {
      return op.Input(slot);
    })].push_back(i);
    slots_[op.type].insert(slots);
  }
}

// The op whose inputs are those of op `i`, and its results; kNone, kSeveral.
int Matcher::GradientOf(size_t i) const {
  const OpDesc& op = graph_->op(i);
  const std::string type = absl::StrCat(op.type, kGradOp);
  const auto forms = slots_.find(type);
  if (forms == slots_.end()) return kNone;
  int found = kNone;
  for (const std::vector<std::string>& slots : forms->second) {
    const auto list = gradients_.find(Key(
        type, slots, [&](const std::string& slot) -> const auto& {
          return op.Input(slot).empty() ? op.Output(slot) : op.Input(slot);
        }));
    if (list == gradients_.end()) continue;
    for (size_t grad : list->second) {
      if (graph_->IsRemoved(grad) || graph_->op(grad).type != type) continue;
      if (found != kNone) return kSeveral;
      found = static_cast<int>(grad);
    }
  }
  return found;
}

// The op behind op `i`, where nobody else needs what it reads of it.
int Matcher::Next(size_t i, const std::string& output) const {
  const std::string& name = graph_->op(i).Out(output);
  if (graph_->IsWanted(name) || graph_->OnlyWriter(name) != static_cast<int>(i))
    return kNone;
  const std::vector<size_t>& readers = graph_->Readers(name);
  if (readers.empty() || readers.size() > 3 || readers.front() <= i)
    return kNone;
  const size_t next = readers.front();  // gradient ops come later
  for (size_t k = 1; k < readers.size(); ++k) {
    const int reader = static_cast<int>(readers[k]);
    if (reader != GradientOf(i) && reader != GradientOf(next)) return kNone;
  }
  return static_cast<int>(next);
}

bool Matcher::Bind(const PatternOp& pattern, int i, Match* match) const {
  if (i == kNone || !IsOneOf(pattern.types, graph_->op(At(i)).type))
    return false;
  const OpDesc& op = graph_->op(At(i));
  std::string slot = pattern.inputs.front();
  if (!match->bound_.empty()) {
    const Match::Bound& before = match->bound_.back();
    slot =
        OnlySlotReading(op, graph_->op(before.op).Out(before.pattern->output));
    if (!IsOneOf(pattern.inputs, slot)) return false;
  }
  for (const PatternOp::Condition& fits : pattern.conditions)
    if (!fits(*match, op)) return false;
  match->bound_.push_back({&pattern, At(i), kNone, slot});
  return true;
}

// The gradient op of a bound op that alone reads the gradient `name`.
int Matcher::GradientReading(const std::string& name,
                             const Match::Bound& bound) const {
  const int reader = graph_->OnlyReader(name);
  if (reader == kNone) return kNone;
  const PatternOp& pattern = *bound.pattern;
  const OpDesc& grad = graph_->op(At(reader));
  if (pattern.gradient != PatternOp::Gradient::kItself)
    return reader == bound.grad &&
                   grad.In(absl::StrCat(pattern.output, kGradSuffix)) == name
               ? reader
               : kNone;
  const OpDesc& op = graph_->op(bound.op);
  const Attribute *one = op.FindAttr(pattern.gradient_attr),
                  *two = grad.FindAttr(pattern.gradient_attr);
  const bool same =
      (one == nullptr) == (two == nullptr) && (one == nullptr || *one == *two);
  if (grad.type != op.type || grad.In(pattern.inputs.front()) != name || !same)
    return kNone;
  for (const PatternOp::Condition& fits : pattern.conditions)
    if (!fits(Match(graph_), grad)) return kNone;
  return reader;
}

bool Matcher::BindGradients(Match* match) const {
  bool any = false;
  for (Match::Bound& bound : match->bound_) {
    if (bound.pattern->gradient != PatternOp::Gradient::kMirrored) continue;
    bound.grad = GradientOf(bound.op);
    if (bound.grad == kSeveral) return false;
    any = any || bound.grad != kNone;
  }
  if (!any) return true;
  const Match::Bound* behind = nullptr;
  for (auto it = match->bound_.rbegin(); it != match->bound_.rend(); ++it) {
    if (it->pattern->gradient == PatternOp::Gradient::kKept) continue;
    if (behind != nullptr) {
      const auto& gradient =
          graph_->op(At(behind->grad))
              .Output(absl::StrCat(behind->slot, kGradSuffix));
      if (behind->pattern->gradient == PatternOp::Gradient::kItself) {
        const OpDesc& itself = graph_->op(At(behind->grad));
        it->grad = GradientReading(itself.Out(behind->pattern->output), *it);
      } else if (gradient.empty() || gradient[0] == kEmptyVar) {
        return it->pattern->gradient == PatternOp::Gradient::kItself &&
               it + 1 == match->bound_.rend();
      } else {
        it->grad = GradientReading(gradient[0], *it);
      }
    }
    if (it->grad == kNone) return false;
    match->backward_.push_back(At(it->grad));
    behind = &*it;
  }
  return true;
}

std::optional<Match> Matcher::MatchAt(const Pattern& pattern,
                                      size_t first) const {
  Match match(graph_);
  if (!Bind(pattern.front(), static_cast<int>(first), &match))
    return std::nullopt;
  int next = Next(first, pattern.front().output);
  for (size_t k = 1; k < pattern.size(); ++k) {
    if (Bind(pattern[k], next, &match))
      next = k + 1 < pattern.size() ? Next(At(next), pattern[k].output) : kNone;
    else if (!pattern[k].optional)
      return std::nullopt;
  }
  if (!BindGradients(&match)) return std::nullopt;
  return match;
}

absl::Status FuseMatches(const PassContext& context,
                         const std::vector<const Pattern*>& patterns,
                         const FuseFn& fuse, ProgramDesc* program) {
  std::set<std::string> first;
  for (const Pattern* pattern : patterns)
    first.insert(pattern->front().types.begin(), pattern->front().types.end());
  const auto rewrite = [&](OpGraph* graph) {
    const Matcher matcher(graph, patterns);
    for (size_t i = 0; i < graph->size(); ++i) {
      for (const Pattern* pattern : patterns) {
        if (graph->IsRemoved(i)) break;
        const std::optional<Match> match = matcher.MatchAt(*pattern, i);
        Fusion fusion;
        if (match.has_value() && fuse(*match, &fusion) &&
            Apply(*match, std::move(fusion), graph))
          break;
      }
    }
  };
  ForEachGraph(context, first, rewrite, program);
  return absl::OkStatus();
}

}  // namespace pd
