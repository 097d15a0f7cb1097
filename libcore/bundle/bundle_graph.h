// SPDX-License-Identifier: Apache-2.0
// A bundle in the making: the values and nodes of runtime/graph.h, with weights
// in memory.
#ifndef PD_LIBCORE_BUNDLE_BUNDLE_GRAPH_H_
#define PD_LIBCORE_BUNDLE_BUNDLE_GRAPH_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/bundle/runtime/types.h"
#include "libcore/ir/array.h"

namespace pd {

struct BundleValue {
  std::string name;  ///< of inputs and outputs
  pd_run::DType dtype = pd_run::DType::kFloat32;
  Shape shape;                    ///< of inputs, -1: known when it runs
  std::optional<Array> constant;  ///< has the shape and the elements
};

struct BundleNode {
  std::string kernel, layer;
  std::vector<uint32_t> inputs, outputs;
  std::vector<int64_t> ints;
  std::vector<float> floats;
};

struct BundleGraph {
  std::vector<BundleValue> values;
  std::vector<uint32_t> inputs, outputs;
  std::vector<BundleNode> nodes;

  uint32_t Add(BundleValue value) {
    values.push_back(std::move(value));
    return static_cast<uint32_t>(values.size() - 1);
  }
};

/// Puts biases and functions of one number into the products, convolutions and
/// sums whose results nothing else reads.
void FuseNodes(BundleGraph* graph);

/// Removes values that no node and no end of the graph names.
void DropUnusedValues(BundleGraph* graph);

}  // namespace pd

#endif  // PD_LIBCORE_BUNDLE_BUNDLE_GRAPH_H_
