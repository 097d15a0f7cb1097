// SPDX-License-Identifier: Apache-2.0
// Errors in loops, branches, arrays and tables of TensorFlow 1 name their node,
// whatever a file has. The files are those of
// testdata/make/tensorflow_models.py; test_tensorflow.cc has their answers.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/tensorflow_file.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/deploy/tensorflow_graph.h"
#include "tests/formats/format_test.h"
#include "tests/model/tensorflow_files.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_tensorflow_frames {

using Kind = TfAttr::Kind;
using tensorflow_files::Frozen;
using tensorflow_files::NodeOfType;
using tensorflow_files::Saved;
using tensorflow_files::SavedModel;

std::string ErrorOf(const TfGraph& graph) {
  const auto onnx = TensorflowAsOnnx(graph);
  const absl::Status status =
      onnx.ok() ? FromOnnx(Registry(), *onnx).status() : onnx.status();
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

TfNode& NodeNamed(TfGraph* graph, const std::string& name) {
  const auto node =
      std::find_if(graph->nodes.begin(), graph->nodes.end(),
                   [&](const TfNode& node) { return node.name == name; });
  EXPECT_NE(node, graph->nodes.end()) << name;
  return *node;
}

TEST(Tensorflow, SaysWhatIsWrongInAFrame) {
  const TfGraph good = Frozen("frames.pb");
  TfGraph graph = good;
  NodeOfType(&graph, "LoopCond").op = "Identity";
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "no Switch of a loop"));
  graph = good;
  for (TfNode& node : graph.nodes) node.attrs.erase("frame_name");
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(graph), "reads no Enter of a named loop"));
  graph = good;
  for (TfNode& node : graph.nodes)
    if (node.op == "NextIteration") node.inputs.clear();
  // Nodes whose values nobody takes along are outputs now.
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "reads nothing") ||
              absl::StrContains(ErrorOf(graph), "from outside of its loop"));
  graph = good;
  for (TfNode& node : graph.nodes)
    if (node.op == "Merge") node.inputs.resize(1);
  EXPECT_FALSE(ErrorOf(graph).empty());
  // Which input a Merge took is no value of a loop.
  graph = good;
  NodeNamed(&graph, "while/Less").inputs[0] = "while/Merge:1";
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "reads 'while/Merge:1'"));
  // Operators that are not supported are told wherever they stand.
  graph = good;
  for (TfNode& node : graph.nodes)
    if (node.op == "Tanh" || node.op == "Less") node.op = "Un" + node.op;
  const std::string error = ErrorOf(graph);
  EXPECT_TRUE(absl::StrContains(error, "'UnTanh' (")) << error;
  EXPECT_TRUE(absl::StrContains(error, "'UnLess' (")) << error;
}

// Inputs of many nodes are another node's value; whatever comes of it ends in
// a status.
TEST(Tensorflow, HostileFrames) {
  int refused = 0;
  for (const char* name : {"frames.pb", "loops.pb", "rnn.pb"}) {
    const TfGraph good = Frozen(name);
    for (size_t i = 0; i < good.nodes.size(); i += 11)
      for (size_t k = 0; k < good.nodes[i].inputs.size(); ++k) {
        TfGraph graph = good;
        const size_t other = (i * 7 + k * 13 + 5) % good.nodes.size();
        graph.nodes[i].inputs[k] = good.nodes[other].name;
        refused += !TensorflowAsOnnx(graph).ok();
        graph = good;
        graph.nodes[i].op = good.nodes[other].op;
        refused += !TensorflowAsOnnx(graph).ok();
      }
  }
  EXPECT_GT(refused, 20);
}

// Branches in each other, deeper than any tool makes them.
TEST(Tensorflow, BranchesTooDeep) {
  TfGraph graph;
  const auto add = [&](const std::string& name, const std::string& op,
                       std::vector<std::string> inputs) {
    TfNode node;
    node.name = name;
    node.op = op;
    node.inputs = std::move(inputs);
    graph.nodes.push_back(std::move(node));
  };
  add("p", "Placeholder", {});
  add("m0", "Switch", {"p", "p"});
  std::string inner = "m0:1", other = "m0";
  for (int i = 1; i < 200; ++i) {
    const std::string name = absl::StrCat("m", i);
    add(name, "Merge", {inner, other});
    inner = name;
    other = absl::StrCat("n", i);
    add(other, "Switch", {"p", "p"});
  }
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "deep")) << ErrorOf(graph);
}

TEST(Tensorflow, ListsThatOthersWroteTo) {
  const TfGraph good = Frozen("arrays.pb");
  TfGraph graph = good;
  // The elements as they were before the last write.
  int changed = 0;
  for (TfNode& node : graph.nodes) {
    if (node.op != "TensorArrayGatherV3") continue;
    std::string& flow = node.inputs.back();
    const TfNode& write = NodeNamed(&graph, flow.substr(0, flow.find(':')));
    if (write.op != "TensorArrayWriteV3") continue;
    flow = write.inputs[3];
    ++changed;
  }
  EXPECT_EQ(changed, 1);
  EXPECT_TRUE(absl::StrContains(
      ErrorOf(graph), "reads a list of tensors as it was before a write"));
  // Elements 0, 2, 4, ... of an array.
  graph = good;
  const TfNode& scatter = NodeOfType(&graph, "TensorArrayScatterV3");
  const TfNode& range = NodeNamed(&graph, scatter.inputs[1]);
  ASSERT_EQ(range.op, "Range");
  NodeNamed(&graph, range.inputs[2]).attrs["value"].tensor =
      MakeArray<int32_t>({}, {2});
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "no range from 0"));
  // The same place twice.
  graph = good;
  for (TfNode& node : graph.nodes)
    if (node.op == "TensorArrayScatterV3" &&
        NodeNamed(&graph, node.inputs[1]).op == "Const")
      NodeNamed(&graph, node.inputs[1]).attrs["value"].tensor =
          MakeArray<int32_t>({3}, {2, 0, 2});
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "no range from 0"));
}

TEST(Tensorflow, TablesThatNothingFills) {
  const TfSavedModel good = SavedModel("tables");
  const auto error = [](const TfSavedModel& model) {
    const auto onnx = TensorflowAsOnnx(model, {});
    EXPECT_FALSE(onnx.ok());
    return std::string(onnx.status().message());
  };
  TfSavedModel model = good;
  for (TfNode& node : model.graph.nodes)
    if (node.op == "LookupTableImportV2") node.op = "NoOp";
  EXPECT_TRUE(absl::StrContains(error(model), "no node of the file fills"));
  model = good;
  for (TfNode& node : model.graph.nodes)
    if (node.op == "LookupTableImportV2")
      NodeNamed(&model.graph, node.inputs[1]).attrs["value"].kind =
          Kind::kStrings;
  EXPECT_TRUE(absl::StrContains(error(model), "tables of texts"));
  model = good;
  for (TfNode& node : model.graph.nodes)
    if (node.op == "LookupTableImportV2")
      NodeNamed(&model.graph, node.inputs[2]).attrs["value"].tensor =
          MakeArray<int64_t>({1}, {1});
  EXPECT_TRUE(absl::StrContains(error(model), "with 1 values"));
  model = good;
  for (TfNode& node : model.graph.nodes)
    if (node.op == "LookupTableImportV2") node.inputs.resize(1);
  EXPECT_TRUE(absl::StrContains(error(model), "with nothing"));
}

}  // namespace test_tensorflow_frames
}  // namespace pd
