// SPDX-License-Identifier: Apache-2.0
// Networks of TensorFlow answer as TensorFlow does, frozen and as SavedModels,
// and what is wrong in one is said with its node. The files are those of
// testdata/make/tensorflow_models.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/detect.h"
#include "formats/npz.h"
#include "formats/tensor_bundle.h"
#include "formats/tensorflow_file.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/deploy/tensorflow_graph.h"
#include "libcore/exec/session.h"
#include "libcore/model/inspect.h"
#include "libcore/model/load_model.h"
#include "tests/formats/format_test.h"
#include "tests/model/tensorflow_files.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_tensorflow {

namespace fs = std::filesystem;
using Kind = TfAttr::Kind;
using tensorflow_files::Frozen;
using tensorflow_files::NodeOfType;
using tensorflow_files::Saved;
using tensorflow_files::SavedModel;
using testing::MustRead;

void ExpectClose(const Array& got, const Array& want, const std::string& name) {
  ASSERT_EQ(got.dtype, want.dtype) << name;
  ASSERT_EQ(got.shape, want.shape) << name;
  if (want.dtype != DType::kFloat32) {
    testing::ExpectSameArray(got, want, name);
    return;
  }
  for (int64_t i = 0; i < want.size(); ++i) {
    const float a = got.data<float>()[i], b = want.data<float>()[i];
    ASSERT_NEAR(a, b, 1e-5 * std::max(1.0f, std::abs(b)))
        << name << " at " << i;
  }
}

// Outputs of frozen graphs are Identity, Identity_1, ... in the order of names.
void CheckAnswers(const std::string& path, const NamedArrays& arrays,
                  bool by_name) {
  SCOPED_TRACE(path);
  const auto model = LoadModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->kind, LoadedModel::Kind::kInference);
  NamedArrays feeds;
  std::vector<std::string> wanted, fetches = model->fetches;
  for (const auto& [name, array] : arrays)
    if (absl::StartsWith(name, "out."))
      wanted.push_back(name);
    else
      feeds[name] = array;
  Session session(&Registry());
  ASSERT_TRUE(FillScope(*model, &session.scope()).ok());
  const auto got = session.Run(model->program, feeds, fetches);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->size(), wanted.size());
  std::sort(fetches.begin(), fetches.end(),
            [](const std::string& a, const std::string& b) {
              return std::pair(a.size(), a) < std::pair(b.size(), b);
            });
  for (size_t i = 0; i < wanted.size(); ++i) {
    // Outputs of TensorFlow 1 have names of their own.
    const std::string own = absl::StrCat("out/", wanted[i].substr(4));
    const std::string name = by_name               ? wanted[i].substr(4)
                             : got->count(own) > 0 ? own
                                                   : fetches[i];
    ASSERT_EQ(got->count(name), 1u) << name;
    ExpectClose(got->at(name), arrays.at(wanted[i]), wanted[i]);
  }
}

TEST(Tensorflow, AnswersOfEveryNetwork) {
  int saved = 0, frozen = 0;
  for (const auto& entry : fs::directory_iterator(Saved(""))) {
    if (entry.path().extension() != ".npz" || entry.path().stem() == "two")
      continue;
    auto arrays = ParseNpz(MustRead(entry.path().string()));
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    const std::string folder =
        fs::path(entry.path()).replace_extension("").string();
    if (fs::exists(folder)) {
      CheckAnswers(folder, *arrays, true);
      ++saved;
    }
    if (!fs::exists(absl::StrCat(folder, ".pb"))) continue;
    CheckAnswers(absl::StrCat(folder, ".pb"), *arrays, false);
    ++frozen;
  }
  EXPECT_EQ(saved, 17);
  EXPECT_EQ(frozen, 17);
}

int CountOps(const LoadedModel& model, const std::string& type) {
  int count = 0;
  for (const OpDesc& op : model.program.global().ops) count += op.type == type;
  return count;
}

// Between convolutions nothing is turned around.
TEST(Tensorflow, PicturesAreTurnedOnce) {
  for (const auto& [name, most] : std::map<std::string, int>{
           {"convnet.pb", 2}, {"resnet.pb", 2}, {"mobile", 1}, {"nchw", 0}}) {
    const auto model = LoadModel(Saved(name));
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(CountOps(*model, "transpose2"), most) << name;
  }
}

// Keras writes them as products and sums.
TEST(Tensorflow, BatchNormsOfKeras) {
  for (const auto& [name, norms] : std::map<std::string, int>{
           {"convnet.pb", 1}, {"resnet.pb", 6}, {"mobile", 5}}) {
    const auto model = LoadModel(Saved(name));
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(CountOps(*model, "batch_norm"), norms) << name;
  }
}

TEST(Tensorflow, NamesAreThoseOfTheSignature) {
  const TfSavedModel saved = SavedModel("heads");
  EXPECT_EQ(saved.version, "2.21.0");
  EXPECT_EQ(saved.signatures.at("serving_default").inputs.at("left").shape,
            (Shape{-1, 5}));
  const auto model = LoadModel(Saved("heads"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->format, "saved model");
  EXPECT_EQ(model->feeds,
            (std::vector<std::string>{"left", "right", "training"}));
  EXPECT_EQ(model->fetches,
            (std::vector<std::string>{"a", "b", "near", "other", "third"}));
  const auto v1 = LoadModel(Saved("v1"));
  ASSERT_TRUE(v1.ok()) << v1.status();
  EXPECT_EQ(v1->params.at("dense/kernel").shape, (Shape{6, 8}));
  const auto two = LoadModel(Saved("two"));
  EXPECT_TRUE(absl::StrContains(
      two.status().message(),
      "its signatures are 'decode', 'encode'; expected one, or "
      "'serving_default' among them"))
      << two.status();
}

std::string ErrorOf(const TfGraph& graph) {
  const auto onnx = TensorflowAsOnnx(graph);
  const absl::Status status =
      onnx.ok() ? FromOnnx(Registry(), *onnx).status() : onnx.status();
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

TEST(Tensorflow, SaysWhatIsWrong) {
  TfGraph graph = Frozen("convnet.pb");
  for (TfNode& node : graph.nodes)
    if (node.op == "Conv2D") node.op = "QuantizedConv2D";
  NodeOfType(&graph, "Softmax").op = "Unheard";
  EXPECT_EQ(ErrorOf(graph),
            "operators that are not supported (and their nodes): "
            "'QuantizedConv2D' (Conv2D, Conv2D_1, Conv2D_2), 'Unheard' "
            "(Softmax)");
  graph = Frozen("convnet.pb");
  NodeOfType(&graph, "FusedBatchNormV3").attrs.erase("is_training");
  EXPECT_EQ(ErrorOf(graph),
            "node 'FusedBatchNormV3' (FusedBatchNormV3): a batch norm that "
            "trains; it should be saved with is_training=False");
  graph = Frozen("convnet.pb");
  NodeOfType(&graph, "Relu").inputs = {"Elu"};
  EXPECT_TRUE(
      absl::StrContains(ErrorOf(graph), "in a loop that is not TensorFlow's"));
  graph = Frozen("convnet.pb");
  NodeOfType(&graph, "Relu").inputs = {"nobody"};
  EXPECT_EQ(ErrorOf(graph), "value 'nobody' is made by no node");
  graph = Frozen("convnet.pb");
  NodeOfType(&graph, "Relu").inputs = {"FusedBatchNormV3:1"};
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "is not supported"));
}

std::string LoopError(const TfSavedModel& model) {
  const auto keys = TensorflowVariables(model);
  EXPECT_TRUE(keys.ok()) << keys.status();
  NamedArrays variables;
  for (const auto& [node, key] : *keys)
    variables[node] = MakeArray<float>({4, 4}, std::vector<float>(16, 1));
  const auto onnx = TensorflowAsOnnx(model, variables);
  EXPECT_FALSE(onnx.ok());
  return std::string(onnx.status().message());
}

// The function that the first loop runs.
TfFunction& BodyOf(TfSavedModel* model) {
  for (auto& [name, function] : model->graph.functions)
    for (const TfNode& node : function.nodes)
      if (absl::EndsWith(node.op, "While"))
        return model->graph.functions.at(node.attrs.at("body").text);
  ADD_FAILURE();
  return model->graph.functions.begin()->second;
}

TEST(Tensorflow, SaysWhatIsWrongInALoop) {
  const TfSavedModel good = SavedModel("loops");
  TfSavedModel model = good;
  int renamed = 0;
  for (auto& [name, function] : model.graph.functions)
    for (TfNode& node : function.nodes)
      if (node.op == "Tanh" || node.op == "SelectV2") {
        node.op = "Unheard";
        ++renamed;
      }
  EXPECT_GT(renamed, 0);
  EXPECT_TRUE(absl::StrContains(LoopError(model), "'Unheard' ("));
  model = good;
  BodyOf(&model).outputs.pop_back();
  EXPECT_TRUE(absl::StrContains(LoopError(model), "values go around"));
  model = good;
  BodyOf(&model).outputs[0] = "nobody:y:0";
  EXPECT_TRUE(absl::StrContains(LoopError(model), "made by no node"));
}

// A loop whose body is the function that has the loop in it.
TEST(Tensorflow, LoopsThatRunThemselves) {
  TfGraph graph = Frozen("heads.pb");
  TfFunction function;
  function.inputs = {"x"};
  TfNode loop;
  loop.name = "loop";
  loop.op = "While";
  loop.inputs = {"x"};
  for (const char* name : {"body", "cond"}) {
    loop.attrs[name].kind = Kind::kString;
    loop.attrs[name].text = "f";
  }
  function.nodes = {loop};
  function.outputs = {"loop:output:0"};
  graph.functions["f"] = function;
  loop.inputs = {graph.nodes[0].name};
  graph.nodes.push_back(loop);
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "deep"));
  graph.functions.clear();
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "which the file has not"));
}

// The loop `name` by the functions of these names; "" is said by no attribute.
TfNode LoopOf(const TfGraph& graph, const std::string& name,
              const std::string& condition, const std::string& body) {
  TfNode loop;
  loop.name = name;
  loop.op = "While";
  loop.inputs = {graph.nodes[0].name};
  for (const auto& [attr, text] :
       {std::pair("cond", condition), std::pair("body", body)}) {
    if (text.empty()) continue;
    loop.attrs[attr].kind = Kind::kString;
    loop.attrs[attr].text = text;
  }
  return loop;
}

TfFunction FunctionOf(const std::string& op) {
  TfFunction function;
  function.inputs = {"x"};
  TfNode node;
  node.name = "r";
  node.op = op;
  node.inputs = {"x", "x"};
  function.nodes = {node};
  function.outputs = {"r:z:0"};
  return function;
}

// A loop without the attributes cond and body calls the function whose name is
// empty; the check of operators has not looked through that one before.
TEST(Tensorflow, LoopsThatNameNoFunction) {
  TfGraph graph = Frozen("heads.pb");
  graph.functions[""] = FunctionOf("Frobnicate");
  graph.nodes.push_back(LoopOf(graph, "w", "", ""));
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "not supported"))
      << ErrorOf(graph);
}

// A node is called as the loop's importer calls one of its function.
TEST(Tensorflow, NodesOfFunctionsHaveNamesOfTheirOwn) {
  TfGraph graph = Frozen("heads.pb");
  graph.functions["c"] = FunctionOf("Less");
  graph.functions["b"] = FunctionOf("AddV2");
  graph.nodes.push_back(LoopOf(graph, "w", "c", "b"));
  TfNode range;
  range.name = "w/first/r";
  range.op = "Range";
  range.inputs = {"w", "w", "w"};
  graph.nodes.push_back(range);
  TfNode reshape;
  reshape.name = "s";
  reshape.op = "Reshape";
  reshape.inputs = {graph.nodes[0].name, "w/first/r"};
  graph.nodes.push_back(reshape);
  EXPECT_EQ(ErrorOf(graph),
            "node 's' (Reshape): the length of the shape is not known");
}

// A function that calls itself, twice each time, ends in a status, and so does
// a call that hands on its own output.
TEST(Tensorflow, CallsThatDoNotEnd) {
  TfGraph graph = Frozen("heads.pb");
  TfFunction function;
  function.inputs = {"x"};
  for (const char* name : {"one", "other"}) {
    TfNode call;
    call.name = name;
    call.op = "f";
    call.inputs = {"x"};
    function.nodes.push_back(call);
  }
  TfNode sum;
  sum.name = "sum";
  sum.op = "AddV2";
  sum.inputs = {"one:out:0", "other:out:0"};
  function.nodes.push_back(sum);
  function.outputs = {"sum:z:0"};
  graph.functions["f"] = function;
  TfNode call;
  call.name = "call";
  call.op = "f";
  call.inputs = {graph.nodes[0].name};
  graph.nodes.push_back(call);
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "deep"));
  graph.functions["f"].outputs = {"x"};
  graph.nodes.back().inputs = {"call:0"};
  graph.nodes.push_back(sum);
  graph.nodes.back().inputs = {"call", "call"};
  EXPECT_TRUE(absl::StrContains(ErrorOf(graph), "made of itself"));
}

#ifdef PD_WITH_SANITIZER
constexpr size_t kEachNode = 12;
#else
constexpr size_t kEachNode = 3;
#endif

// Attributes and constants of other numbers and kinds end in a status.
TEST(Tensorflow, HostileAttributes) {
  int refused = 0, taken = 0;
  const auto attempt = [&](const TfGraph& graph) {
    const auto onnx = TensorflowAsOnnx(graph);
    const bool ok = onnx.ok() && FromOnnx(Registry(), *onnx).ok();
    ++(ok ? taken : refused);
  };
  for (const char* name : {"shapes.pb", "unet.pb"}) {
    const TfGraph good = Frozen(name);
    TfGraph graph = good;
    for (size_t i = 0; i < good.nodes.size(); i += kEachNode) {
      for (const auto& [attr, value] : good.nodes[i].attrs) {
        TfAttr& changed = graph.nodes[i].attrs[attr];
        for (const int64_t number : {int64_t{-1}, int64_t{0}, int64_t{3},
                                     int64_t{1} << 40, INT64_MAX, INT64_MIN}) {
          if (value.kind == Kind::kInt) changed.i = number;
          changed.ints.assign(value.ints.size(), number);
          const bool ints = value.kind == Kind::kTensor &&
                            value.tensor.dtype == DType::kInt32;
          if (ints)
            changed.tensor = MakeArray<int32_t>(
                value.tensor.shape,
                std::vector<int32_t>(static_cast<size_t>(value.tensor.size()),
                                     static_cast<int32_t>(number)));
          if (ints || value.kind == Kind::kInt || !value.ints.empty())
            attempt(graph);
        }
        changed = TfAttr();
        attempt(graph);
        changed = value;
      }
      graph.nodes[i].inputs.clear();
      attempt(graph);
      graph.nodes[i].inputs = good.nodes[i].inputs;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 20);
}

TEST(Tensorflow, DamagedFiles) {
  const FileBytes frozen = MustRead(Saved("heads.pb"));
  EXPECT_EQ(DetectKind(frozen.view(), "x"), FileKind::kTensorflow);
  testing::ForEveryDamage(frozen.view(), [](const FileBytes& file) {
    const auto graph = ParseTensorflowGraph(file.view());
    if (graph.ok()) TensorflowAsOnnx(*graph).status().IgnoreError();
    return graph.ok();
  });
  const FileBytes saved = MustRead(Saved("v1/saved_model.pb"));
  EXPECT_EQ(DetectKind(saved.view(), "x"), FileKind::kSavedModel);
  testing::ForEveryDamage(saved.view(), [](const FileBytes& file) {
    const auto model = ParseTensorflowSavedModel(file.view());
    if (model.ok()) TensorflowVariables(*model).status().IgnoreError();
    return model.ok();
  });
}

TEST(TensorBundle, KeysAndChecksums) {
  const FileBytes index = MustRead(Saved("v1/variables/variables.index"));
  const FileBytes data =
      MustRead(Saved("v1/variables/variables.data-00000-of-00001"));
  EXPECT_EQ(DetectKind(index.view(), "x"), FileKind::kTensorBundle);
  const auto bundle = ParseTensorBundle(index.view());
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->shards, 1);
  ASSERT_EQ(bundle->entries.size(), 2u);
  const BundleEntry& kernel = bundle->entries.at("dense/kernel");
  EXPECT_EQ(kernel.shape, (Shape{6, 8}));
  ASSERT_TRUE(BundleTensor(kernel, data).ok());
  std::string other(data.view());
  other[kernel.offset + 5] ^= 1;
  EXPECT_TRUE(absl::StrContains(
      BundleTensor(kernel, testing::HeapBytes(other)).status().message(),
      "another checksum than was saved"));
  // A byte of a block that differs shows in its checksum.
  testing::ForEveryDamage(index.view(), [&](const FileBytes& file) {
    const auto damaged = ParseTensorBundle(file.view());
    if (!damaged.ok()) return false;
    for (const auto& [key, entry] : damaged->entries)
      BundleTensor(entry, data).status().IgnoreError();
    return true;
  });
}

// A checkpoint alone is parameters by the keys that TensorFlow gives them.
TEST(TensorBundle, IsAModelOfParameters) {
  const auto model = LoadModel(Saved("v1/variables/variables.index"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->kind, LoadedModel::Kind::kParameters);
  EXPECT_EQ(model->params.at("dense/bias").shape, (Shape{8}));
  const auto seen =
      Inspect(Registry(), Saved("v1/variables/variables.index"), false, {});
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->kind, "tensor bundle");
  EXPECT_EQ(seen->tensors.size(), 2u);
}

}  // namespace test_tensorflow
}  // namespace pd
