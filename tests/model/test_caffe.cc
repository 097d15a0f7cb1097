// SPDX-License-Identifier: Apache-2.0
// Networks of Caffe answer as OpenCV does, and what is wrong in one is said
// with its place. The files are those of testdata/make/caffe_models.py.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "formats/caffe_file.h"
#include "formats/npz.h"
#include "libcore/deploy/caffe_graph.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/exec/session.h"
#include "libcore/model/content.h"
#include "libcore/model/load_model.h"
#include "libcore/model/tree.h"
#include "tests/formats/format_test.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_caffe {

namespace fs = std::filesystem;

std::string CaffeData(const std::string& name) {
  return absl::StrCat(PD_TESTDATA, "/caffe/", name);
}

void ExpectNear(const Array& got, const Array& want, const std::string& name) {
  ASSERT_EQ(got.dtype, want.dtype) << name;
  ASSERT_EQ(got.shape, want.shape) << name;
  for (int64_t i = 0; i < want.size(); ++i) {
    const float a = got.data<float>()[i], b = want.data<float>()[i];
    ASSERT_NEAR(a, b, 1e-5 * std::max(1.0f, std::abs(b)))
        << name << " at " << i;
  }
}

TEST(Caffe, AnswersOfEveryNetwork) {
  int networks = 0;
  for (const auto& entry : fs::directory_iterator(CaffeData(""))) {
    if (entry.path().extension() != ".prototxt") continue;
    SCOPED_TRACE(entry.path());
    ++networks;
    const auto model = LoadModel(entry.path());
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->kind, LoadedModel::Kind::kInference);
    EXPECT_EQ(model->format, "prototxt");
    auto arrays = ParseNpz(testing::MustRead(
        fs::path(entry.path()).replace_extension(".npz").string()));
    ASSERT_TRUE(arrays.ok()) << arrays.status();
    NamedArrays feeds, want;
    for (auto& [name, array] : *arrays)
      if (absl::StartsWith(name, "out."))
        want[name.substr(4)] = array;
      else
        feeds[name] = array;
    Session session(&Registry());
    ASSERT_TRUE(FillScope(*model, &session.scope()).ok());
    const auto got = session.Run(model->program, feeds, model->fetches);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(got->size(), want.size());
    for (const auto& [name, array] : want) {
      ASSERT_EQ(got->count(name), 1u) << name;
      ExpectNear(got->at(name), array, name);
    }
  }
  EXPECT_EQ(networks, 14);
}

TEST(Caffe, NormsAndScalesAreOne) {
  const auto model = LoadModel(CaffeData("resnet.prototxt"));
  ASSERT_TRUE(model.ok()) << model.status();
  int norms = 0;
  for (const OpDesc& op : model->program.global().ops) {
    norms += op.type == "batch_norm";
    EXPECT_NE(op.type, "elementwise_mul");
  }
  EXPECT_EQ(norms, 6);
  EXPECT_EQ(model->params.count("bn_conv1.mean"), 1u);
}

// The weights' file and the network's under another name.
TEST(Caffe, WeightsOfAnotherFile) {
  ReadOptions options;
  options.program = CaffeData("vgg.prototxt");
  const auto both = ReadContent(CaffeData("vgg.caffemodel"), options);
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_TRUE(both->onnx.has_value());
  EXPECT_EQ(both->onnx->graph.nodes.size(), 19u);
  // The file itself has no more than names of layers and their weights.
  const auto alone = ReadContent(CaffeData("vgg.caffemodel"), {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_FALSE(alone->onnx.has_value());
  EXPECT_EQ(ArraysIn(alone->object).count("conv1_1.0"), 1u);
}

// A network of text, its weights in `weights`.
absl::Status Loaded(const std::string& text,
                    const CaffeNet* weights = nullptr) {
  const auto net = ParseCaffeText(text);
  if (!net.ok()) return net.status();
  const auto graph = CaffeAsOnnx(*net, weights);
  if (!graph.ok()) return graph.status();
  return FromOnnx(Registry(), *graph).status();
}

std::string After(const std::string& layers) {
  return absl::StrCat(
      "layer { name: 'data' type: 'Input' top: 'data' input_param { shape { "
      "dim: 1 dim: 3 dim: 8 dim: 8 } } }\n",
      layers);
}

TEST(Caffe, SaysWhatIsWrong) {
  const auto error = [](const std::string& layers) {
    const absl::Status status = Loaded(After(layers));
    EXPECT_FALSE(status.ok()) << layers;
    return std::string(status.message());
  };
  EXPECT_EQ(error("layer { name: 'a' type: 'Interp' bottom: 'data' top: 'a' }"
                  "layer { name: 'b' type: 'ROIPooling' bottom: 'a' top: 'b' }"
                  "layer { name: 'c' type: 'Interp' bottom: 'b' top: 'c' }"),
            "types of layers that are not supported (and the first of their "
            "layers): 'Interp' ('a'), 'ROIPooling' ('b')");
  EXPECT_TRUE(absl::StrContains(
      error("layer { name: 'l' type: 'SoftmaxWithLoss' bottom: 'data' }"),
      "deploy.prototxt"));
  EXPECT_EQ(
      error("layer { name: 'p' type: 'Pooling' bottom: 'data' top: 'p' "
            "pooling_param { kernel_sise: 2 } }"),
      "line 2, column 86: Message type \"pd.caffe_format.Pooling\" has no "
      "field named \"kernel_sise\".");
  EXPECT_EQ(
      error("layer { name: 'p' type: 'ReLU' bottom: 'nothing' top: 'p' }"),
      "layer 'p' (ReLU): it reads 'nothing', which no layer before it "
      "makes");
  EXPECT_TRUE(absl::StrContains(
      error("layer { name: 'c' type: 'Convolution' bottom: 'data' top: 'c' "
            "convolution_param { num_output: 2 kernel_size: 3 } }"),
      "it has no weights; expected those of a .caffemodel"));
  EXPECT_TRUE(absl::StrContains(
      error("layer { name: 'p' type: 'Pooling' bottom: 'data' top: 'p' "
            "pooling_param { kernel_size: 2 stride: 0 } }"),
      "windows of 2, stride 0, pad 0 over an axis of 8"));
  EXPECT_TRUE(absl::StrContains(
      error("layer { name: 'p' type: 'Pooling' bottom: 'data' top: 'p' "
            "pooling_param { pool: STOCHASTIC kernel_size: 2 } }"),
      "pool 2"));
  EXPECT_TRUE(absl::StrContains(
      error("layer { name: 's' type: 'Slice' bottom: 'data' top: 'a' top: 'b' "
            "}"),
      "2 tops of an axis of 3"));
  EXPECT_TRUE(absl::StrContains(
      error("layer { name: 'c' type: 'Crop' bottom: 'data' bottom: 'data' top: "
            "'c' crop_param { offset: 1 } }"),
      "cannot be cut"));
  EXPECT_EQ(
      error("layer { name: 't' type: 'Tile' bottom: 'data' top: 't' tile_param "
            "{ axis: 7 tiles: 2 } }"),
      "node 't' (caffe:Tile): axis is 7; a tensor of 4 dimensions has [-4, 3]");
}

TEST(Caffe, SaysWhatIsWrongWithBoxes) {
  const auto error = [](const std::string& layer) {
    const absl::Status status = Loaded(After(absl::StrCat(
        "layer { name: 'loc' type: 'Input' top: 'loc' input_param { shape { "
        "dim: 1 dim: 8 } } }"
        "layer { name: 'b' ",
        layer, " top: 'b' }")));
    EXPECT_FALSE(status.ok()) << layer;
    return std::string(status.message());
  };
  EXPECT_TRUE(absl::StrContains(
      error("type: 'PriorBox' bottom: 'data' bottom: 'data' prior_box_param { "
            "min_size: 4 max_size: 8 max_size: 9 }"),
      "1 min_size, 2 max_size, 4 variance"));
  EXPECT_TRUE(absl::StrContains(
      error("type: 'PriorBox' bottom: 'data' bottom: 'data' prior_box_param { "
            "min_size: -4 }"),
      "a size, ratio or variance is -4"));
  EXPECT_TRUE(absl::StrContains(
      error("type: 'PriorBox' bottom: 'data' bottom: 'data' prior_box_param { "
            "min_size: 4 step_h: 3 }"),
      "step_h and step_w are 3 and 0"));
  EXPECT_TRUE(absl::StrContains(
      error("type: 'DetectionOutput' bottom: 'loc' bottom: 'loc' bottom: 'loc' "
            "detection_output_param { num_classes: 2 share_location: false }"),
      "share_location"));
  EXPECT_TRUE(absl::StrContains(
      error("type: 'DetectionOutput' bottom: 'loc' bottom: 'loc' bottom: 'loc' "
            "detection_output_param { num_classes: 2 }"),
      "its boxes have shape [-1, 8]; expected [1, 2, n]"));
}

// A recurrence of one unit over steps of two numbers.
CaffeNet Recurrent(const std::string& type) {
  CaffeNet net;
  net.inputs = {{"x", {4, 1, 2}}, {"cont", {4, 1}}};
  CaffeLayer layer;
  layer.name = "r";
  layer.type = type;
  layer.bottoms = {"x", "cont"};
  layer.tops = {"r"};
  layer.params["num_output"] = {1};
  const int64_t rows = type == "LSTM" ? 4 : 1;
  const auto ones = [](const Shape& shape) {
    return MakeArray<float>(
        shape, std::vector<float>(
                   static_cast<size_t>(shape.size() < 2 ? shape[0]
                                                        : shape[0] * shape[1]),
                   1));
  };
  layer.blobs = {ones({rows, 2}), ones({rows}), ones({rows, 1})};
  if (type == "RNN") {
    layer.blobs.push_back(ones({1, 1}));
    layer.blobs.push_back(ones({1}));
  }
  net.layers = {layer};
  return net;
}

TEST(Caffe, RecurrencesThatDoNotFit) {
  for (const std::string type : {"LSTM", "RNN"}) {
    const CaffeNet good = Recurrent(type);
    ASSERT_TRUE(CaffeAsOnnx(good, nullptr).ok());
    const auto refused = [&](auto change, const char* why) {
      CaffeNet net = good;
      change(&net.layers[0]);
      const auto graph = CaffeAsOnnx(net, nullptr);
      ASSERT_FALSE(graph.ok()) << why;
      EXPECT_TRUE(absl::StrContains(graph.status().message(), why))
          << graph.status();
    };
    refused([](CaffeLayer* l) { l->bottoms = {"x"}; }, "it has 1 bottoms");
    refused([](CaffeLayer* l) { l->blobs.clear(); }, "it has no weights");
    refused([](CaffeLayer* l) { l->blobs.pop_back(); }, "weights and 1 tops");
    refused([](CaffeLayer* l) { l->tops.push_back("t"); }, "and 2 tops");
    refused([](CaffeLayer* l) { l->params["expose_hidden"] = {1}; },
            "and the states");
    refused([](CaffeLayer* l) { l->params["num_output"] = {2}; },
            "num_output is 2");
    refused([](CaffeLayer* l) { l->params["num_output"] = {1e300}; },
            "num_output is 1e+300");
    refused([](CaffeLayer* l) { l->params.clear(); }, "num_output is 0");
  }
}

TEST(Caffe, WeightsWithoutNumbersAreRefused) {
  CaffeNet net;
  net.inputs = {{"x", {1, 3}}};
  CaffeLayer layer;
  layer.name = "p";
  layer.type = "InnerProduct";
  layer.bottoms = {"x"};
  layer.tops = {"p"};
  layer.blobs = {MakeArray<float>({3, 0}, std::vector<float>())};
  net.layers = {layer};
  const auto graph = CaffeAsOnnx(net, nullptr);
  ASSERT_FALSE(graph.ok());
  EXPECT_TRUE(absl::StrContains(graph.status().message(), "no numbers"));
}

// BatchNorm "n" of the input "x", and Scale "s" of its result.
CaffeNet NormAndScale() {
  CaffeNet net;
  net.inputs = {{"x", {1, 2, 3, 3}}};
  const Array two = MakeArray<float>({2}, {1, 2});
  CaffeLayer norm, scale;
  norm.name = "n";
  norm.type = "BatchNorm";
  norm.bottoms = {"x"};
  norm.tops = {"n"};
  norm.blobs = {two, two, MakeArray<float>({1}, {1})};
  scale.name = "s";
  scale.type = "Scale";
  scale.bottoms = {"n"};
  scale.tops = {"s"};
  scale.blobs = {two};
  net.layers = {norm, scale};
  return net;
}

TEST(Caffe, ABatchNormWithoutATopIsNoneToScale) {
  CaffeNet net = NormAndScale();
  net.layers[0].tops.clear();
  net.layers[1].bottoms = {"x"};
  const auto graph = CaffeAsOnnx(net, nullptr);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->graph.nodes.size(), 2u);
}

TEST(Caffe, ASecondScaleIsALayer) {
  CaffeNet net = NormAndScale();
  auto graph = CaffeAsOnnx(net, nullptr);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->graph.nodes.size(), 1u);
  CaffeLayer second = net.layers[1];
  second.name = "t";
  second.bottoms = {"s"};
  second.tops = {"t"};
  net.layers.push_back(second);
  graph = CaffeAsOnnx(net, nullptr);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->graph.nodes.size(), 2u);
  ASSERT_EQ(graph->graph.outputs.size(), 1u);
  EXPECT_EQ(graph->graph.outputs[0].name, "t");
}

TEST(Caffe, LayersOfOtherPhasesAreLeftOut) {
  EXPECT_TRUE(Loaded(After("layer { name: 'd' type: 'Data' top: 'data' include "
                           "{ phase: TRAIN } }"
                           "layer { name: 'a' type: 'Accuracy' bottom: 'data' "
                           "exclude { phase: TEST } }"
                           "layer { name: 's' type: 'Accuracy' bottom: 'data' "
                           "include { stage: 'val' } }"
                           "layer { name: 'r' type: 'ReLU' bottom: 'data' top: "
                           "'data' }"))
                  .ok());
}

// Every type of layer, with parameters of every sign over tensors of any rank,
// ends in a status.
TEST(Caffe, HostileParameters) {
  CaffeNet net;
  net.inputs = {{"x", {2, 4, 3, 5}}, {"y", {2}}};
  const std::vector<std::string> names = {
      "axis",   "num_axes", "kernel_size", "stride",      "pad",
      "group",  "tiles",    "shape",       "slice_point", "end_axis",
      "offset", "order",    "top_k",       "pool",        "local_size",
      "coeff",  "dilation", "num_output",  "kernel_h",    "min_size",
      "img_h",  "step",     "num_classes", "keep_top_k",  "code_type"};
  int refused = 0, taken = 0;
  for (const std::string& type : OnnxImportTypes()) {
    if (!absl::StartsWith(type, "caffe:")) continue;
    for (const std::string& name : names)
      for (const double value : {-1e9, -1.0, 0.0, 1.0, 3.0, 4e9, 1e300})
        for (const auto& bottoms : std::vector<std::vector<std::string>>{
                 {}, {"x"}, {"y"}, {"x", "y"}, {"x", "x", "x"}})
          for (const bool weights : {false, true}) {
            CaffeLayer layer;
            layer.name = "l";
            layer.type = type.substr(6);
            layer.bottoms = bottoms;
            layer.tops = {"out"};
            layer.params[name] = {value, value};
            if (weights)
              layer.blobs = {
                  MakeArray<float>({4, 4, 1, 1}, std::vector<float>(16, 1)),
                  MakeArray<float>({4}, std::vector<float>(4, 1))};
            net.layers = {layer};
            const auto graph = CaffeAsOnnx(net, nullptr);
            const bool ok = graph.ok() && FromOnnx(Registry(), *graph).ok();
            ++(ok ? taken : refused);
          }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 1000);
}

TEST(Caffe, DamagedFiles) {
  const auto weights = testing::MustRead(CaffeData("elementwise.caffemodel"));
  EXPECT_TRUE(IsCaffeModel(weights.view()));
  int good = 0;
  testing::ForEveryDamage(weights.view(), [&](const FileBytes& file) {
    good += ParseCaffeModel(file.view()).ok();
  });
  const auto text = testing::MustRead(CaffeData("elementwise.prototxt"));
  testing::ForEveryDamage(text.view(), [&](const FileBytes& file) {
    const auto net = ParseCaffeText(file.view());
    if (net.ok()) CaffeAsOnnx(*net, nullptr).status().IgnoreError();
    good += net.ok();
  });
  EXPECT_GT(good, 0);
  std::string deep = "layer { ";
  for (int i = 0; i < 100000; ++i) deep += "a { ";
  EXPECT_FALSE(ParseCaffeText(deep).ok());
}

}  // namespace test_caffe
}  // namespace pd
