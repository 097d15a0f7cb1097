// SPDX-License-Identifier: Apache-2.0
#include "libcore/bundle/bundle_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "libcore/bundle/runtime/attributes.h"
#include "libcore/bundle/runtime/bundle_format.h"

namespace pd {
namespace {

using pd_run::Binary;
using pd_run::BinaryInts;
using pd_run::ConvInts;
using pd_run::LinearInts;

bool IsConv(const BundleNode& node) {
  return node.kernel == "conv" || node.kernel == "conv_transpose" ||
         node.kernel == "depthwise_conv";
}

// Where the function of a node stands; none for kernels that have no function.
std::optional<size_t> FunctionPlace(const BundleNode& node) {
  if (IsConv(node)) return ConvInts::kFunction;
  if (node.kernel == "linear") return LinearInts::kFunction;
  if (node.kernel == "binary") return BinaryInts::kFunction;
  return std::nullopt;
}

class Fuser {
 public:
  explicit Fuser(BundleGraph* graph)
      : graph_(graph), removed_(graph->nodes.size()) {
    for (size_t i = 0; i < graph->nodes.size(); ++i)
      for (const uint32_t input : graph->nodes[i].inputs)
        readers_[input].push_back(i);
    // An output of the model is read outside.
    for (const uint32_t output : graph->outputs)
      readers_[output].push_back(graph->nodes.size());
  }

  void Run() {
    for (size_t i = 0; i < graph_->nodes.size(); ++i) {
      if (removed_[i]) continue;
      FuseBias(&graph_->nodes[i]);
      FuseFunction(&graph_->nodes[i]);
    }
    size_t kept = 0;
    for (size_t i = 0; i < removed_.size(); ++i) {
      if (removed_[i]) continue;
      if (kept != i) graph_->nodes[kept] = std::move(graph_->nodes[i]);
      ++kept;
    }
    graph_->nodes.resize(kept);
  }

 private:
  // The only node that reads the result of `node`; null where there is not one.
  BundleNode* OnlyReader(const BundleNode& node, size_t* at) {
    const std::vector<size_t>& readers = readers_[node.outputs[0]];
    if (readers.size() != 1 || readers[0] == graph_->nodes.size())
      return nullptr;
    *at = readers[0];
    return &graph_->nodes[*at];
  }

  // Whether `sum` adds one number to each channel of a convolution or each
  // column of a product.
  bool AddsBias(const BundleNode& node, const BundleNode& sum) const {
    if (sum.kernel != "binary" || sum.inputs[0] != node.outputs[0] ||
        sum.ints[BinaryInts::kOperation] != static_cast<int64_t>(Binary::kAdd))
      return false;
    const BundleValue& bias = graph_->values[sum.inputs[1]];
    if (!bias.constant.has_value() || bias.dtype != pd_run::DType::kFloat32)
      return false;
    const Shape& shape = bias.constant->shape;
    const int64_t axis = sum.ints[BinaryInts::kAxis];
    if (IsConv(node)) {
      const int64_t channels = node.ints[ConvInts::kOut];
      if (shape == Shape{channels}) return axis == 1;
      return shape == Shape{1, channels, 1, 1} ||
             (shape == Shape{channels, 1, 1} && (axis == -1 || axis == 1));
    }
    if (shape != Shape{node.ints[LinearInts::kColumns]}) return false;
    return axis == -1 || axis == node.ints[LinearInts::kAxis];
  }

  void FuseBias(BundleNode* node) {
    size_t at = 0;
    if ((!IsConv(*node) && node->kernel != "linear") ||
        node->inputs.size() != 2)
      return;
    const BundleNode* sum = OnlyReader(*node, &at);
    if (sum == nullptr || !AddsBias(*node, *sum)) return;
    // The runtime takes it as a vector, whatever its shape was.
    const uint32_t bias = sum->inputs[1];
    node->inputs.push_back(bias);
    node->outputs = sum->outputs;
    removed_[at] = true;
  }

  void FuseFunction(BundleNode* node) {
    size_t at = 0;
    const std::optional<size_t> place = FunctionPlace(*node);
    if (!place.has_value() || node->ints[*place] != 0) return;
    const BundleNode* next = OnlyReader(*node, &at);
    if (next == nullptr || next->kernel != "unary") return;
    node->ints[*place] = next->ints[0];
    node->floats = next->floats;
    node->outputs = next->outputs;
    removed_[at] = true;
  }

  BundleGraph* graph_;
  std::vector<bool> removed_;
  std::map<uint32_t, std::vector<size_t>> readers_;
};

}  // namespace

void FuseNodes(BundleGraph* graph) { Fuser(graph).Run(); }

void DropUnusedValues(BundleGraph* graph) {
  std::vector<uint32_t> place(graph->values.size(), pd_run::kNoValue);
  std::vector<BundleValue> kept;
  const auto keep = [&](std::vector<uint32_t>* values) {
    for (uint32_t& value : *values) {
      if (value == pd_run::kNoValue) continue;
      if (place[value] == pd_run::kNoValue) {
        place[value] = static_cast<uint32_t>(kept.size());
        kept.push_back(std::move(graph->values[value]));
      }
      value = place[value];
    }
  };
  keep(&graph->inputs);
  for (BundleNode& node : graph->nodes) {
    keep(&node.inputs);
    keep(&node.outputs);
  }
  keep(&graph->outputs);
  graph->values = std::move(kept);
}

}  // namespace pd
