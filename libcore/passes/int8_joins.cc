// SPDX-License-Identifier: Apache-2.0
// Part 2 of int8_chains, for ops that move bytes between several tensors: they
// commute with quantizing, so that bytes go through them, not numbers.
//   concat -> int8_quantize        an int8_quantize of each part -> concat
//   int8_dequantize -> split       split -> an int8_dequantize of each part
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "libcore/passes/int8_program.h"

namespace pd {

// The int8_quantize that alone reads what a concat gives; kNone for others.
int Int8Program::QuantizerBehind(const OpDesc& concat) const {
  if (concat.type != "concat" || !concat.Input("AxisTensor").empty())
    return kNone;
  const int quantize = OnlyReader(concat.Out("Out"));
  if (quantize == kNone || op(quantize).type != "int8_quantize") return kNone;
  for (const std::string& name : concat.Input("X"))
    if (ShapeOf(name) == nullptr || bytes_.count(name) > 0) return kNone;
  return quantize;
}

bool Int8Program::MoveOverConcat(size_t at, std::set<size_t>* dropped,
                                 std::vector<OpDesc>* ops) {
  OpDesc concat = graph_->op(at);
  const int quantize = QuantizerBehind(concat);
  if (quantize == kNone) return false;
  std::map<std::string, std::string> bytes;
  std::vector<std::string> parts;
  for (const std::string& x : concat.Input("X")) {
    std::string& part = bytes[x];
    if (part.empty()) {
      part = NewBytes(x);
      OpDesc first = op(quantize);
      first.SetInput("X", {x});
      first.SetOutput("Out", {part});
      ops->push_back(std::move(first));
    }
    parts.push_back(part);
  }
  concat.SetInput("X", std::move(parts));
  concat.SetOutput("Out", op(quantize).Output("Out"));
  ops->push_back(std::move(concat));
  dropped->insert(At(quantize));
  return true;
}

bool Int8Program::MoveUnderSplit(size_t at, std::vector<std::string>* unread,
                                 std::vector<OpDesc>* ops) {
  OpDesc split = graph_->op(at);
  if (split.type != "split" || !split.Input("AxisTensor").empty() ||
      !split.Input("SectionsTensorList").empty())
    return false;
  const int from = WriterOf(split.In("X"), "int8_dequantize");
  if (from == kNone) return false;
  const std::vector<std::string> parts = split.Output("Out");
  for (const std::string& part : parts)
    if (ShapeOf(part) == nullptr ||
        graph_->OnlyWriter(part) != static_cast<int>(at))
      return false;
  std::vector<std::string> bytes;
  std::vector<OpDesc> behind;
  for (const std::string& part : parts) {
    bytes.push_back(NewBytes(part));
    OpDesc dequantize = op(from);
    dequantize.SetInput("X", {bytes.back()});
    dequantize.SetOutput("Out", {part});
    behind.push_back(std::move(dequantize));
  }
  unread->push_back(split.In("X"));
  split.SetInput("X", op(from).Input("X"));
  split.SetOutput("Out", std::move(bytes));
  ops->push_back(std::move(split));
  for (OpDesc& dequantize : behind) ops->push_back(std::move(dequantize));
  return true;
}

bool Int8Program::MoveOverJoins() {
  std::vector<OpDesc> ops;
  std::set<size_t> dropped;
  std::vector<std::string> unread;  // perhaps, afterwards
  bool any = false;
  for (size_t i = 0; i < graph_->size(); ++i) {
    if (graph_->IsRemoved(i) || dropped.count(i) > 0) continue;
    const bool moved =
        MoveOverConcat(i, &dropped, &ops) || MoveUnderSplit(i, &unread, &ops);
    any |= moved;
    if (!moved) ops.push_back(graph_->op(i));
  }
  if (!any) return false;
  std::set<std::string> gone;
  for (const size_t i : dropped) gone.insert(graph_->op(i).In("X"));
  BlockDesc& block = program_->global();
  block.vars.erase(std::remove_if(block.vars.begin(), block.vars.end(),
                                  [&](const VarDesc& var) {
                                    return gone.count(var.name) > 0;
                                  }),
                   block.vars.end());
  block.ops = std::move(ops);
  graph_.emplace(context_, program_);
  DropUnread(unread);
  return true;
}

}  // namespace pd
