// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/dot.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "formats/json_text.h"
#include "libcore/ir/op_names.h"
#include "libcore/program/text_dump.h"

namespace pd {
namespace {

// Attributes that say what an operator does, unless they have these values.
struct ShownAttribute {
  const char* name;
  const char* dull;
};
constexpr ShownAttribute kShown[] = {
    {"ksize", "[1,1]"},
    {"strides", "[1,1]"},
    {"paddings", "[0,0]"},
    {"padding_algorithm", "\"EXPLICIT\""},
    {"dilations", "[1,1]"},
    {"groups", "1"},
    {"pooling_type", ""},
    {"adaptive", "false"},
    {"global_pooling", "false"},
    {"axis", "-1"},
    {"axes", ""},
    {"dim", ""},
    {"keep_dim", "false"},
    {"reduce_all", "false"},
    {"trans_x", "false"},
    {"trans_y", "false"},
    {"transpose_X", "false"},
    {"transpose_Y", "false"},
    {"start_axis", ""},
    {"stop_axis", ""},
    {"begin_norm_axis", ""},
    {"shape", ""},
    {"starts", ""},
    {"ends", ""},
    {"sections", ""},
    {"num", "0"},
    {"scale", "1"},
    {"bias", "0"},
    {"alpha", ""},
    {"dropout_prob", ""},
    {"value", ""},
    {"mode", ""},
    {"hidden_size", ""},
    {"num_layers", "1"},
    {"is_bidirec", "false"},
    {"k", ""},
    {"depth", ""},
};
constexpr size_t kLongest = 40;  // characters of a value

// A quoted string of Graphviz's.
std::string DotString(const std::string& text) {
  std::string quoted = "\"";
  const bool utf8 = IsUtf8(text);
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n')
      quoted += "\\n";
    else if (static_cast<uint8_t>(c) < 0x20 ||
             (!utf8 && static_cast<uint8_t>(c) >= 0x80))
      quoted += '?';
    else
      quoted += c;
  }
  return quoted + "\"";
}

std::string ShapeText(const Shape& shape) {
  std::vector<std::string> extents;
  for (int64_t extent : shape)
    extents.push_back(extent < 0 ? "?" : std::to_string(extent));
  return shape.empty() ? "scalar" : absl::StrJoin(extents, "x");
}

const char* ColourOf(const std::string& type) {
  if (absl::StrContains(type, "conv")) return "#cfe2ff";
  if (absl::StrContains(type, "matmul") || type == "mul" || type == "fc" ||
      type == "rnn")
    return "#d9d2f3";
  if (absl::StrContains(type, "pool")) return "#d3f0e0";
  if (absl::StrContains(type, "norm")) return "#fdeacc";
  if (absl::StrContains(type, "loss") || absl::StrContains(type, "entropy"))
    return "#fbd5d5";
  return "#f4f4f4";
}

// A frame and the frames in it.
struct Frame {
  std::string nodes;
  std::map<std::string, std::unique_ptr<Frame>> inside;
};

class DotWriter {
 public:
  DotWriter(const ProgramDesc& program, const DotOptions& options)
      : program_(program), options_(options) {}

  std::string Write() {
    for (const BlockDesc& block : program_.blocks) DrawBlock(block);
    for (const std::string& fetch : options_.fetches) DrawEnd(fetch);
    std::string text = absl::StrCat(
        "digraph ", DotString(options_.title),
        " {\n  graph [labeljust=l, fontname=\"Helvetica\", fontsize=11, "
        "color=\"#9aa5b1\", "
        "fontcolor=\"#52606d\", ranksep=0.35, nodesep=0.3];\n"
        "  node [fontname=\"Helvetica\", fontsize=11, shape=box, "
        "style=\"rounded,filled\", fillcolor=\"#f4f4f4\", "
        "color=\"#7b8794\"];\n"
        "  edge [fontname=\"Helvetica\", fontsize=9, color=\"#52606d\", "
        "fontcolor=\"#52606d\", arrowsize=0.7];\n");
    WriteFrame(top_, "  ", &text);
    return absl::StrCat(text, edges_, "}\n");
  }

 private:
  void WriteFrame(const Frame& frame, const std::string& indent,
                  std::string* text) {
    *text += frame.nodes;
    for (const auto& [name, inner] : frame.inside) {
      absl::StrAppend(text, indent, "subgraph cluster_", frames_++, " {\n",
                      indent, "  label=", DotString(name),
                      "; style=\"rounded\";\n");
      WriteFrame(*inner, indent + "  ", text);
      absl::StrAppend(text, indent, "}\n");
    }
  }

  Frame& FrameOf(const BlockDesc& block, const std::string& variable,
                 const OpDesc* op) {
    Frame* frame = &top_;
    const auto enter = [&frame](const std::string& name) {
      std::unique_ptr<Frame>& inner = frame->inside[name];
      if (inner == nullptr) inner = std::make_unique<Frame>();
      frame = inner.get();
    };
    if (block.idx > 0) enter(absl::StrCat("block ", block.idx));
    const auto layer = options_.layer_of.find(variable);
    std::string path;
    if (layer != options_.layer_of.end())
      path = layer->second;
    else if (op != nullptr)
      path = NameScopeOf(*op);
    for (absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty()))
      enter(std::string(part));
    return *frame;
  }

  std::string NewNode() { return absl::StrCat("n", nodes_++); }

  const VarDesc* Find(const BlockDesc& block, const std::string& name) const {
    return program_.FindVar(block.idx, name);
  }

  void DrawBlock(const BlockDesc& block) {
    std::string first;
    for (const OpDesc& op : block.ops) {
      const std::string node = DrawOp(block, op);
      if (first.empty()) first = node;
    }
    if (const auto it = runners_.find(block.idx);
        it != runners_.end() && !first.empty())
      for (const std::string& runner : it->second)
        absl::StrAppend(&edges_, "  ", runner, " -> ", first,
                        " [style=dashed, label=\"runs\"];\n");
  }

  std::string DrawOp(const BlockDesc& block, const OpDesc& op) {
    std::string variable;
    for (const auto& [slot, names] : op.outputs)
      if (variable.empty() && !names.empty()) variable = names[0];
    const std::string node = NewNode();
    Frame& frame = FrameOf(block, variable, &op);
    absl::StrAppend(&frame.nodes, "  ", node,
                    " [label=", DotString(LabelOf(op)), ", fillcolor=\"",
                    ColourOf(op.type), "\"];\n");
    std::set<std::string> read;
    for (const auto& [slot, names] : op.inputs)
      for (const std::string& name : names)
        if (name != kEmptyVar && read.insert(name).second)
          DrawInput(block, op, name, variable, node);
    for (const auto& [slot, names] : op.outputs)
      for (const std::string& name : names)
        if (name != kEmptyVar) makers_[name] = node;
    for (const auto& [name, value] : op.attrs) {
      if (const auto* ref = std::get_if<BlockRef>(&value))
        runners_[ref->index].push_back(node);
      if (const auto* refs = std::get_if<BlockRefs>(&value))
        for (int32_t index : refs->indices) runners_[index].push_back(node);
    }
    return node;
  }

  // The type, then attributes that matter.
  static std::string LabelOf(const OpDesc& op) {
    std::string label = op.type;
    for (const ShownAttribute& shown : kShown) {
      const Attribute* attribute = op.FindAttr(shown.name);
      if (attribute == nullptr) continue;
      std::string value = DumpAttribute(*attribute);
      if (value == shown.dull || value == "[]" || value == "\"\"") continue;
      if (value.size() > kLongest) value = value.substr(0, kLongest) + "...";
      absl::StrAppend(&label, "\n", shown.name, " ", value);
    }
    return label;
  }

  void DrawInput(const BlockDesc& block, const OpDesc& op,
                 const std::string& name, const std::string& variable,
                 const std::string& node) {
    const VarDesc* var = Find(block, name);
    const Shape shape = var != nullptr ? var->shape : Shape();
    const auto maker = makers_.find(name);
    if (maker != makers_.end()) {
      // An update in place is an edge from an op to itself; none is drawn.
      if (maker->second != node)
        absl::StrAppend(&edges_, "  ", maker->second, " -> ", node,
                        " [label=", DotString(ShapeText(shape)), "];\n");
      return;
    }
    std::string& source = sources_[name];
    const bool stays = var != nullptr && var->persistable;
    if (source.empty()) {
      source = NewNode();
      const std::string label = absl::StrCat(
          name, "\n", var != nullptr ? std::string(Name(var->dtype)) + " " : "",
          ShapeText(shape));
      Frame& frame = stays ? FrameOf(block, variable, &op) : top_;
      absl::StrAppend(
          &frame.nodes, "  ", source, " [label=", DotString(label),
          stays ? ", shape=note, style=filled, fontsize=8, height=0.2, "
                  "margin=\"0.06,0.03\", color=\"#c5cbd3\", "
                  "fillcolor=\"#eef0f3\", fontcolor=\"#6b7683\"];\n"
                : ", shape=oval, fillcolor=\"#fff7d6\"];\n");
    }
    absl::StrAppend(
        &edges_, "  ", source, " -> ", node,
        stays ? " [style=dotted, arrowsize=0.4];\n"
              : absl::StrCat(" [label=", DotString(ShapeText(shape)), "];\n"));
  }

  void DrawEnd(const std::string& name) {
    const auto maker = makers_.find(name);
    if (maker == makers_.end() || program_.blocks.empty()) return;
    const VarDesc* var = Find(program_.global(), name);
    const std::string node = NewNode();
    absl::StrAppend(&top_.nodes, "  ", node, " [label=", DotString(name),
                    ", shape=oval, fillcolor=\"#dff3d8\"];\n");
    absl::StrAppend(&edges_, "  ", maker->second, " -> ", node, " [label=",
                    DotString(ShapeText(var != nullptr ? var->shape : Shape())),
                    "];\n");
  }

  const ProgramDesc& program_;
  const DotOptions& options_;
  Frame top_;
  std::string edges_;
  int nodes_ = 0, frames_ = 0;
  std::map<std::string, std::string> makers_, sources_;  // variable -> node
  std::map<int32_t, std::vector<std::string>> runners_;  // block -> nodes
};

}  // namespace

std::string DotGraph(const ProgramDesc& program, const DotOptions& options) {
  return DotWriter(program, options).Write();
}

}  // namespace pd
