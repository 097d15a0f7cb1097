// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/tensorflow_import/frames.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// Loops and branches deeper in each other than TensorFlow's tools make them.
constexpr int kMostNested = 64;
// Bytes of the nodes of all rounds and branches together.
constexpr size_t kMostCopied = size_t{1} << 30;
constexpr size_t kMostSides = 64;

// Nodes that hand a value to one of several sides.
constexpr char kSwitch[] = "Switch", kSwitchN[] = "_SwitchN";

// The operator, references apart: "RefSwitch" counts as "Switch".
absl::string_view PlainOp(const TfNode& node) {
  static const auto* refs = new std::set<std::string>{
      "RefEnter", "RefExit", "RefMerge", "RefNextIteration", "RefSwitch"};
  absl::string_view op = node.op;
  if (refs->count(node.op) > 0) absl::ConsumePrefix(&op, "Ref");
  return op;
}

// The bytes that each copy of a node has of its own: arrays are shared.
size_t OwnBytes(const TfNode& node) {
  size_t bytes = sizeof(node) + node.name.size() + node.op.size();
  for (const std::string& input : node.inputs)
    bytes += sizeof(input) + input.size();
  for (const auto& [name, attr] : node.attrs) {
    bytes += sizeof(attr) + name.size() + attr.text.size() +
             attr.ints.size() * sizeof(int64_t) +
             attr.floats.size() * sizeof(float);
    for (const std::string& text : attr.strings)
      bytes += sizeof(text) + text.size();
  }
  return bytes;
}

bool IsSwitch(const TfNode& node) {
  return PlainOp(node) == kSwitch || node.op == kSwitchN;
}

// A value of the graph: "NODE" and "NODE:0" are the same.
struct ValueName {
  std::string node;
  int64_t output = 0;
};

absl::StatusOr<ValueName> ParseValue(const std::string& text) {
  const size_t colon = text.find(':');
  ValueName value = {text.substr(0, colon), 0};
  if (colon != std::string::npos &&
      (!absl::SimpleAtoi(text.substr(colon + 1), &value.output) ||
       value.output < 0))
    return DataLoss("'%s' is the name of no value", text);
  return value;
}

std::string TextOf(const ValueName& value) {
  return value.output == 0 ? value.node
                           : absl::StrCat(value.node, ":", value.output);
}

bool IsControl(const std::string& input) {
  return !input.empty() && input[0] == '^';
}

TfAttr FunctionAttr(const std::string& name) {
  TfAttr attr;
  attr.kind = TfAttr::Kind::kString;
  attr.text = name;
  return attr;
}

// Nodes on their way into a function and the values that become its arguments.
struct Region {
  std::map<std::string, std::string> arguments;  // value -> argument
  std::vector<std::string> nodes;                // names
  std::set<std::string> seen;
};

// How a region sees a value: by an argument's name, or as nothing for a value
// of one of its nodes.
using Border = std::function<absl::StatusOr<std::optional<std::string>>(
    const ValueName&, const TfNode&)>;

class Structurer {
 public:
  explicit Structurer(const TfGraph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const TfNode& node = graph_.nodes[i];
      places_.emplace(node.name, i);
      if (node.inputs.empty()) continue;
      const auto first = ParseValue(node.inputs[0]);
      if (!first.ok()) continue;
      readers_[first->node].push_back(i);
    }
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!IsLoopMerge(graph_.nodes[i])) continue;
      const auto frame = FrameOfMerge(graph_.nodes[i]);
      if (frame.ok()) merges_[*frame].push_back(i);
    }
  }

  absl::Status Want(const std::string& text) {
    Region region;
    const Border none = [](const ValueName&, const TfNode&)
        -> absl::StatusOr<std::optional<std::string>> { return std::nullopt; };
    return Walk({text}, none, &region);
  }

  TfGraph Take() { return std::move(graph_); }

 private:
  // A loop: its values that go around.
  struct Frame {
    std::string name, condition;              // the node LoopCond
    std::vector<size_t> merges;               // places
    std::vector<std::string> first, next;     // values before it and of a round
    std::map<std::string, size_t> variables;  // by Merge
  };

  const TfNode* Find(const std::string& name) const {
    const auto place = places_.find(name);
    return place == places_.end() ? nullptr : &graph_.nodes[place->second];
  }
  absl::StatusOr<const TfNode*> NodeOf(const std::string& name) const {
    const TfNode* node = Find(name);
    if (node == nullptr) return DataLoss("value '%s' is made by no node", name);
    return node;
  }
  // Past nodes that hand a value on, with what stands at input `i`.
  const TfNode* Reads(const TfNode& node, size_t i) const {
    if (i >= node.inputs.size()) return nullptr;
    const auto value = ParseValue(node.inputs[i]);
    return value.ok() ? Find(value->node) : nullptr;
  }

  // Input of a Merge that comes from the round before.
  static bool IsNext(const TfNode* node) {
    return node != nullptr && PlainOp(*node) == "NextIteration";
  }
  bool IsLoopMerge(const TfNode& node) const {
    return PlainOp(node) == "Merge" &&
           (IsNext(Reads(node, 0)) || IsNext(Reads(node, 1)));
  }
  bool IsLoopSwitch(const TfNode& node) const {
    const TfNode* condition = Reads(node, 1);
    return IsSwitch(node) && condition != nullptr &&
           condition->op == "LoopCond";
  }
  bool IsOfLoop(const TfNode& node) const {
    const absl::string_view op = PlainOp(node);
    return op == "Enter" || op == "LoopCond" || op == "NextIteration" ||
           IsLoopMerge(node) || IsLoopSwitch(node);
  }

  // Takes the nodes that `roots` need, up to `border`. Loops and branches on
  // the way are converted first.
  absl::Status Walk(const std::vector<std::string>& roots, const Border& border,
                    Region* region) {
    std::vector<std::string> stack(roots.rbegin(), roots.rend());
    while (!stack.empty()) {
      const std::string text = std::move(stack.back());
      stack.pop_back();
      PD_ASSIGN_OR_RETURN(const ValueName value, ParseValue(text));
      if (region->arguments.count(TextOf(value)) > 0) continue;
      PD_ASSIGN_OR_RETURN(const TfNode* node, NodeOf(value.node));
      PD_ASSIGN_OR_RETURN(const auto argument, border(value, *node));
      if (argument.has_value()) {
        region->arguments[TextOf(value)] = *argument;
        continue;
      }
      if (!region->seen.insert(value.node).second) continue;
      PD_RETURN_IF_ERROR(Convert(*node));
      node = Find(value.node);
      if (IsOfLoop(*node) || IsSwitch(*node))
        return Unimplemented(
            "node '%s' (%s) is read from outside of its loop or branch",
            node->name, node->op);
      region->nodes.push_back(value.node);
      copied_ += OwnBytes(*node);
      if (copied_ > kMostCopied)
        return Unimplemented(
            "the nodes of loops and branches take more than %d bytes",
            kMostCopied);
      for (const std::string& input : node->inputs)
        if (!IsControl(input)) stack.push_back(input);
    }
    return absl::OkStatus();
  }

  absl::Status Convert(const TfNode& node) {
    const bool loop = PlainOp(node) == "Exit";
    if (!loop && (PlainOp(node) != "Merge" || IsLoopMerge(node)))
      return absl::OkStatus();
    if (depth_ >= kMostNested)
      return Unimplemented("loops and branches are more than %d deep",
                           kMostNested);
    const std::string name = node.name;
    if (!open_.insert(name).second)
      return DataLoss("node '%s' is made of its own output", name);
    ++depth_;
    const absl::Status status = loop ? ConvertLoop(node) : ConvertBranch(node);
    --depth_;
    open_.erase(name);
    return Annotate(status, absl::StrCat("node '", name, "'"));
  }

  // A name that no node has.
  std::string NewName(const std::string& base) {
    std::string name = base;
    for (int i = 1; places_.count(name) + graph_.functions.count(name) +
                        names_.count(name) >
                    0;
         ++i)
      name = absl::StrCat(base, "_", i);
    names_.insert(name);
    return name;
  }

  std::vector<std::string> Arguments(const std::string& of, size_t count) {
    std::vector<std::string> arguments;
    for (size_t i = 0; i < count; ++i)
      arguments.push_back(NewName(absl::StrCat(of, "/argument", i)));
    return arguments;
  }

  // The function of a region; gives its name.
  absl::StatusOr<std::string> AddFunction(
      const std::string& base, const Region& region,
      std::vector<std::string> arguments,
      const std::vector<std::string>& outputs) {
    TfFunction function;
    function.inputs = std::move(arguments);
    const auto seen =
        [&](const std::string& text) -> absl::StatusOr<std::string> {
      PD_ASSIGN_OR_RETURN(const ValueName value, ParseValue(text));
      const auto argument = region.arguments.find(TextOf(value));
      return argument != region.arguments.end() ? argument->second
                                                : TextOf(value);
    };
    for (const std::string& name : region.nodes) {
      TfNode node = *Find(name);
      std::vector<std::string> inputs;
      for (const std::string& input : node.inputs) {
        if (IsControl(input)) continue;
        PD_ASSIGN_OR_RETURN(std::string ours, seen(input));
        inputs.push_back(std::move(ours));
      }
      node.inputs = std::move(inputs);
      function.nodes.push_back(std::move(node));
    }
    for (const std::string& output : outputs) {
      PD_ASSIGN_OR_RETURN(std::string ours, seen(output));
      function.outputs.push_back(std::move(ours));
    }
    const std::string name = NewName(base);
    graph_.functions[name] = std::move(function);
    return name;
  }

  void AddNode(TfNode node) {
    places_[node.name] = graph_.nodes.size();
    graph_.nodes.push_back(std::move(node));
  }
  void MakeIdentity(size_t place, const std::string& of) {
    TfNode& node = graph_.nodes[place];
    node.op = "Identity";
    node.inputs = {of};
  }

  // Values that regions take as they are around them: what a file or a user
  // gives, which has no copy.
  static bool IsGiven(const TfNode& node) {
    return node.op == "Placeholder" || node.op == "PlaceholderWithDefault" ||
           node.op == "VarHandleOp" || node.op == "VariableV2" ||
           node.op == "Variable";
  }

  absl::StatusOr<Frame> FrameOf(const TfNode& exit) const {
    Frame frame;
    const TfNode* last = Reads(exit, 0);
    if (last == nullptr || !IsLoopSwitch(*last))
      return DataLoss("an Exit reads no Switch of a loop");
    frame.condition = Reads(*last, 1)->name;
    const TfNode* merge = Reads(*last, 0);
    if (merge == nullptr || !IsLoopMerge(*merge))
      return DataLoss("the Switch '%s' reads no Merge of a loop", last->name);
    PD_ASSIGN_OR_RETURN(frame.name, FrameOfMerge(*merge));
    for (const size_t i : merges_.at(frame.name)) {
      const TfNode& node = graph_.nodes[i];
      const size_t next = IsNext(Reads(node, 0)) ? 0 : 1;
      const TfNode* enter = Reads(node, 1 - next);
      const TfNode* round = Reads(node, next);
      if (enter->inputs.empty() || round->inputs.empty())
        return DataLoss("'%s' or '%s' reads nothing", enter->name, round->name);
      frame.variables[node.name] = frame.merges.size();
      frame.merges.push_back(i);
      frame.first.push_back(enter->inputs[0]);
      frame.next.push_back(round->inputs[0]);
    }
    return frame;
  }

  absl::StatusOr<std::string> FrameOfMerge(const TfNode& merge) const {
    for (size_t i = 0; i < 2; ++i) {
      const TfNode* enter = Reads(merge, i);
      if (enter == nullptr || PlainOp(*enter) != "Enter") continue;
      const auto name = enter->attrs.find("frame_name");
      if (name != enter->attrs.end() &&
          name->second.kind == TfAttr::Kind::kString)
        return name->second.text;
    }
    return DataLoss("the Merge '%s' reads no Enter of a named loop",
                    merge.name);
  }

  absl::Status ConvertLoop(const TfNode& exit) {
    PD_ASSIGN_OR_RETURN(const Frame frame, FrameOf(exit));
    if (!open_frames_.insert(frame.name).second)
      return DataLoss("loop '%s' is inside of itself", frame.name);
    const absl::Status status =
        Annotate(MakeWhile(frame), absl::StrCat("loop '", frame.name, "'"));
    open_frames_.erase(frame.name);
    return status;
  }

  absl::Status MakeWhile(const Frame& frame) {
    const std::string name = NewName(absl::StrCat(frame.name, "/While"));
    std::vector<std::string> inputs = frame.first;
    std::vector<std::string> arguments = Arguments(name, inputs.size());
    std::map<std::string, size_t> fixed;  // by value: its argument
    const Border border =
        [&](const ValueName& value,
            const TfNode& node) -> absl::StatusOr<std::optional<std::string>> {
      const TfNode* merge = IsLoopSwitch(node) ? Reads(node, 0) : &node;
      if (IsLoopSwitch(node) && (Reads(node, 1)->name != frame.condition ||
                                 merge == nullptr || value.output != 1))
        return Unimplemented("a round reads '%s'", TextOf(value));
      if (merge == &node && IsLoopMerge(node) && value.output != 0)
        return Unimplemented("a round reads '%s', the number of the input",
                             TextOf(value));
      if (const auto own = frame.variables.find(merge->name);
          own != frame.variables.end())
        return arguments[own->second];
      const bool enter = PlainOp(node) == "Enter";
      if (!enter && !IsGiven(node)) return std::nullopt;
      if (enter && node.inputs.empty())
        return DataLoss("'%s' reads nothing", node.name);
      const auto [at, fresh] = fixed.try_emplace(TextOf(value), inputs.size());
      if (fresh) {
        inputs.push_back(enter ? node.inputs[0] : TextOf(value));
        arguments.push_back(NewName(absl::StrCat(name, "/fixed", at->second)));
      }
      return arguments[at->second];
    };
    const TfNode* condition = Find(frame.condition);
    if (condition->inputs.empty())
      return DataLoss("'%s' reads nothing", frame.condition);
    const std::string go_on = condition->inputs[0];
    Region test, body;
    PD_RETURN_IF_ERROR(Walk({go_on}, border, &test));
    PD_RETURN_IF_ERROR(Walk(frame.next, border, &body));
    std::vector<std::string> outputs = frame.next;
    TfNode loop;
    loop.name = name;
    loop.op = "While";
    loop.inputs = inputs;
    PD_ASSIGN_OR_RETURN(const std::string cond,
                        AddFunction(name + "/cond", test, arguments, {go_on}));
    PD_ASSIGN_OR_RETURN(const std::string rounds,
                        AddFunction(name + "/body", body, arguments, outputs));
    // Fixed arguments are handed on.
    auto& given = graph_.functions[rounds].outputs;
    given.insert(given.end(),
                 arguments.begin() + static_cast<std::ptrdiff_t>(given.size()),
                 arguments.end());
    loop.attrs["cond"] = FunctionAttr(cond);
    loop.attrs["body"] = FunctionAttr(rounds);
    for (size_t k = 0; k < frame.merges.size(); ++k)
      ReplaceExits(graph_.nodes[frame.merges[k]].name,
                   TextOf({name, static_cast<int64_t>(k)}));
    AddNode(std::move(loop));
    return absl::OkStatus();
  }

  // Exits of the variable of a Merge are outputs of the While.
  void ReplaceExits(const std::string& merge, const std::string& value) {
    for (const size_t of_merge : readers_[merge]) {
      if (!IsLoopSwitch(graph_.nodes[of_merge])) continue;
      for (const size_t exit : readers_[graph_.nodes[of_merge].name])
        if (PlainOp(graph_.nodes[exit]) == "Exit") MakeIdentity(exit, value);
    }
  }

  // A choice: where it is said and by which side each of a Merge's inputs is
  // made.
  struct Choice {
    std::string by;  // the value that is switched by
    bool many = false;
    std::map<std::string, size_t> arguments;  // by Switch: its argument
    std::vector<std::string> inputs, names;
  };

  absl::Status TakeChoice(const TfNode& node, Choice* choice) const {
    if (node.inputs.size() < 2)
      return DataLoss("the Switch '%s' has %d inputs", node.name,
                      node.inputs.size());
    PD_ASSIGN_OR_RETURN(ValueName by, ParseValue(node.inputs[1]));
    // Switches of one condition read it by way of Identity or not.
    for (int steps = 0; steps < kMostNested; ++steps) {
      const TfNode* same = Find(by.node);
      if (same == nullptr || same->op != "Identity" || same->inputs.empty())
        break;
      PD_ASSIGN_OR_RETURN(by, ParseValue(same->inputs[0]));
    }
    const bool many = node.op == kSwitchN;
    if (choice->by.empty()) {
      choice->by = TextOf(by);
      choice->many = many;
    }
    if (choice->by != TextOf(by) || choice->many != many)
      return Unimplemented(
          "its branches are chosen by '%s' and by '%s', where TensorFlow has "
          "one condition",
          choice->by, TextOf(by));
    return absl::OkStatus();
  }

  // The side of a branch whose nodes read no Switch: those are run after one.
  absl::Status SideByOrder(const Region& region, Choice* choice,
                           std::optional<int64_t>* side) const {
    for (const std::string& name : region.nodes)
      for (const std::string& input : Find(name)->inputs) {
        if (!IsControl(input)) continue;
        const TfNode* before = Find(input.substr(1));
        if (before == nullptr || before->op != "Identity") continue;
        const TfNode* chosen = Reads(*before, 0);
        if (chosen == nullptr || !IsSwitch(*chosen) || IsLoopSwitch(*chosen))
          continue;
        PD_RETURN_IF_ERROR(TakeChoice(*chosen, choice));
        PD_ASSIGN_OR_RETURN(const ValueName value,
                            ParseValue(before->inputs[0]));
        *side = value.output;
        return absl::OkStatus();
      }
    return absl::OkStatus();
  }

  // The nodes of input `i` of a Merge and the side on which they run.
  absl::Status TakeSide(const std::string& name, const std::string& value,
                        Choice* choice, Region* region,
                        std::optional<int64_t>* side) {
    const Border border =
        [&](const ValueName& at,
            const TfNode& node) -> absl::StatusOr<std::optional<std::string>> {
      const bool switched = IsSwitch(node) && !IsLoopSwitch(node);
      if (!switched && !IsGiven(node) && !IsOfLoop(node)) return std::nullopt;
      std::string key = TextOf(at);
      if (switched) {
        PD_RETURN_IF_ERROR(TakeChoice(node, choice));
        if (side->has_value() && **side != at.output)
          return Unimplemented("a branch reads values of two sides, '%s'", key);
        *side = at.output;
        key = node.inputs[0];
      }
      const auto [found, fresh] =
          choice->arguments.try_emplace(key, choice->inputs.size());
      if (fresh) {
        choice->inputs.push_back(key);
        choice->names.push_back(
            NewName(absl::StrCat(name, "/argument", found->second)));
      }
      return choice->names[found->second];
    };
    PD_RETURN_IF_ERROR(Walk({value}, border, region));
    if (side->has_value()) return absl::OkStatus();
    return SideByOrder(*region, choice, side);
  }

  absl::Status ConvertBranch(const TfNode& merge) {
    const std::string merge_name = merge.name;
    std::vector<std::string> values;
    for (const std::string& input : merge.inputs)
      if (!IsControl(input)) values.push_back(input);
    const size_t count = values.size();
    if (count < 2 || count > kMostSides)
      return Unimplemented("a Merge of %d values", count);
    const std::string name = NewName(absl::StrCat(merge_name, "/Case"));
    Choice choice;
    std::vector<Region> regions(count);
    std::vector<std::optional<int64_t>> sides(count);
    for (size_t i = 0; i < count; ++i)
      PD_RETURN_IF_ERROR(
          TakeSide(name, values[i], &choice, &regions[i], &sides[i]));
    PD_ASSIGN_OR_RETURN(const std::vector<size_t> order, OrderOf(sides));
    if (choice.by.empty() || (!choice.many && count != 2))
      return DataLoss("no Switch says which of its %d values counts", count);
    TfNode node;
    node.name = name;
    node.op = choice.many ? "Case" : "If";
    node.inputs = {choice.by};
    node.inputs.insert(node.inputs.end(), choice.inputs.begin(),
                       choice.inputs.end());
    TfAttr branches;
    branches.kind = TfAttr::Kind::kStrings;
    for (const size_t i : order) {
      PD_ASSIGN_OR_RETURN(
          std::string function,
          AddFunction(name + "/side", regions[i], choice.names, {values[i]}));
      branches.strings.push_back(std::move(function));
    }
    if (choice.many) {
      node.attrs["branches"] = branches;
    } else {
      node.attrs["else_branch"] = FunctionAttr(branches.strings[0]);
      node.attrs["then_branch"] = FunctionAttr(branches.strings[1]);
    }
    AddNode(std::move(node));
    MakeIdentity(places_.at(merge_name), name);
    return absl::OkStatus();
  }

  // By side, which value is made there. One of them may say nothing.
  static absl::StatusOr<std::vector<size_t>> OrderOf(
      const std::vector<std::optional<int64_t>>& sides) {
    const size_t count = sides.size();
    std::vector<size_t> order(count, count);
    size_t silent = count;
    for (size_t i = 0; i < count; ++i) {
      if (!sides[i].has_value()) {
        if (silent < count)
          return Unimplemented("values of which nothing says their side");
        silent = i;
        continue;
      }
      const auto side = static_cast<size_t>(*sides[i]);
      if (side >= count || order[side] < count)
        return DataLoss("two of its values are made on one side");
      order[side] = i;
    }
    if (silent < count) *std::find(order.begin(), order.end(), count) = silent;
    return order;
  }

  TfGraph graph_;
  std::map<std::string, size_t> places_;                // of nodes, by name
  std::map<std::string, std::vector<size_t>> readers_;  // of the first input
  std::map<std::string, std::vector<size_t>> merges_;   // of loops, by frame
  std::set<std::string> names_;                         // of what is made here
  std::set<std::string> open_, open_frames_;
  int depth_ = 0;
  size_t copied_ = 0;  // bytes
};

}  // namespace

bool HasTfFrames(const TfGraph& graph) {
  return std::any_of(
      graph.nodes.begin(), graph.nodes.end(), [](const TfNode& node) {
        return PlainOp(node) == "Exit" || PlainOp(node) == "Merge";
      });
}

absl::StatusOr<TfGraph> FramesAsFunctions(
    const TfGraph& graph, const std::vector<std::string>& wanted) {
  Structurer structurer(graph);
  for (const std::string& value : wanted)
    PD_RETURN_IF_ERROR(structurer.Want(value));
  return structurer.Take();
}

}  // namespace pd
