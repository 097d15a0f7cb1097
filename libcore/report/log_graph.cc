// SPDX-License-Identifier: Apache-2.0
#include "libcore/report/log_graph.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "libcore/program/text_dump.h"

namespace pd {
namespace {

// TensorFlow's names are made of [A-Za-z0-9.][A-Za-z0-9_.\-/]*.
std::string Clean(const std::string& name) {
  std::string clean;
  for (char c : name)
    clean += absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' ||
                     c == '/' || c == '-'
                 ? c
                 : '_';
  if (clean.empty() || clean[0] == '_' || clean[0] == '/' || clean[0] == '-')
    clean.insert(0, "v");
  return clean;
}

class GraphMaker {
 public:
  explicit GraphMaker(const TrainProgram& program) : program_(program) {
    for (const LayerInfo& layer : program.test_layers) {
      for (const std::string& variable : layer.variables)
        layer_of_.emplace(variable, layer.name);
      for (const std::string& parameter : layer.parameters)
        layer_of_.emplace(parameter, layer.name);
    }
  }

  LogGraph Make() {
    const BlockDesc& block = program_.test.global();
    for (const OpDesc& op : block.ops) {
      const std::string& first = FirstOutput(op);
      LogNode node;
      node.name = Unique(first, op.type);
      node.type = op.type;
      std::set<std::string> read;
      for (const auto& [slot, names] : op.inputs)
        for (const std::string& name : names)
          if (name != kEmptyVar && read.insert(name).second)
            node.inputs.push_back(NodeOf(name));
      for (const auto& [slot, names] : op.outputs)
        for (const std::string& name : names) {
          if (name == kEmptyVar) continue;
          const std::string port =
              node.shapes.empty()
                  ? node.name
                  : absl::StrCat(node.name, ":", node.shapes.size());
          node_of_[name] = port;
          node.shapes.push_back(ShapeOf(name));
        }
      node.attributes = ShownAttributes(op);
      graph_.nodes.push_back(std::move(node));
    }
    return std::move(graph_);
  }

 private:
  static const std::string& FirstOutput(const OpDesc& op) {
    static const std::string* const kNone = new std::string;
    for (const auto& [slot, names] : op.outputs)
      if (!names.empty()) return names[0];
    return *kNone;
  }

  std::string Unique(const std::string& variable, const std::string& what) {
    const auto layer = layer_of_.find(variable);
    std::string name =
        Clean(layer != layer_of_.end() ? absl::StrCat(layer->second, "/", what)
                                       : what);
    const int number = numbers_[name]++;
    return number == 0 ? name : absl::StrCat(name, "_", number);
  }

  Shape ShapeOf(const std::string& variable) const {
    const VarDesc* var = program_.test.global().FindVar(variable);
    return var != nullptr ? var->shape : Shape();
  }

  // The node that makes a variable; one of its own for what is there before.
  std::string NodeOf(const std::string& variable) {
    const auto it = node_of_.find(variable);
    if (it != node_of_.end()) return it->second;
    const VarDesc* var = program_.test.global().FindVar(variable);
    LogNode node;
    const bool stays = var != nullptr && var->persistable;
    node.name = Unique(stays ? variable : "", variable);
    node.type = stays ? "Parameter" : "Placeholder";
    node.shapes.push_back(ShapeOf(variable));
    node_of_[variable] = node.name;
    graph_.nodes.push_back(node);
    return node.name;
  }

  const TrainProgram& program_;
  LogGraph graph_;
  std::map<std::string, std::string> layer_of_, node_of_;
  std::map<std::string, int> numbers_;
};

}  // namespace

LogGraph GraphOf(const TrainProgram& program) {
  return GraphMaker(program).Make();
}

}  // namespace pd
