// SPDX-License-Identifier: Apache-2.0
// A bundle as it is read: values and nodes. It never changes, and models that
// are clones of each other share it.
#ifndef PD_LIBCORE_BUNDLE_RUNTIME_GRAPH_H_
#define PD_LIBCORE_BUNDLE_RUNTIME_GRAPH_H_

#include <memory>
#include <string>
#include <vector>

#include "libcore/bundle/runtime/bundle_format.h"
#include "libcore/bundle/runtime/error.h"
#include "libcore/bundle/runtime/file_bytes.h"
#include "libcore/bundle/runtime/types.h"

namespace pd_run {

struct Kernel;

struct Value {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;                     // -1: known when it runs
  const void* constant = nullptr;  // in the file
};

struct Node {
  const Kernel* kernel = nullptr;
  std::string layer;
  std::vector<uint32_t> inputs, outputs;
  std::vector<int64_t> ints;
  std::vector<float> floats;
};

struct Graph {
  std::vector<Value> values;
  std::vector<uint32_t> inputs, outputs;
  std::vector<Node> nodes;
  FileBytes bytes;
};

/// Reads a bundle and checks all of it: every count and place lies within the
/// file, every value is made before it is read, and only once. Null after an
/// error.
std::shared_ptr<const Graph> ReadGraph(FileBytes bytes, Error* error);

}  // namespace pd_run

#endif  // PD_LIBCORE_BUNDLE_RUNTIME_GRAPH_H_
