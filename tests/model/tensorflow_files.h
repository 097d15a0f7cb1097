// SPDX-License-Identifier: Apache-2.0
// Files of testdata/tensorflow, read, for tests that damage them.
#ifndef PD_TESTS_MODEL_TENSORFLOW_FILES_H_
#define PD_TESTS_MODEL_TENSORFLOW_FILES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/tensorflow_file.h"
#include "tests/formats/format_test.h"

namespace pd {
namespace tensorflow_files {

inline std::string Saved(const std::string& name) {
  return absl::StrCat(PD_TESTDATA, "/tensorflow/", name);
}

inline TfGraph Frozen(const std::string& name) {
  auto graph = ParseTensorflowGraph(testing::MustRead(Saved(name)).view());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *std::move(graph) : TfGraph();
}

inline TfSavedModel SavedModel(const std::string& name) {
  auto model = ParseTensorflowSavedModel(
      testing::MustRead(Saved(absl::StrCat(name, "/saved_model.pb"))).view());
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : TfSavedModel();
}

inline TfNode& NodeOfType(TfGraph* graph, const std::string& op) {
  const auto node =
      std::find_if(graph->nodes.begin(), graph->nodes.end(),
                   [&](const TfNode& node) { return node.op == op; });
  EXPECT_NE(node, graph->nodes.end()) << op;
  return *node;
}

}  // namespace tensorflow_files
}  // namespace pd

#endif  // PD_TESTS_MODEL_TENSORFLOW_FILES_H_
