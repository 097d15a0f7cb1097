// SPDX-License-Identifier: Apache-2.0
// Networks of Keras answer as Keras does, and what is wrong in one is said with
// its layer. The files are those of testdata/make/keras_models.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/hdf5.h"
#include "formats/keras_file.h"
#include "formats/npz.h"
#include "libcore/deploy/keras_graph.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/exec/session.h"
#include "libcore/model/load_model.h"
#include "tests/formats/format_test.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_keras {

namespace fs = std::filesystem;
using Kind = KerasValue::Kind;

std::string Saved(const std::string& name) {
  return absl::StrCat(PD_TESTDATA, "/keras/", name);
}

void ExpectNear(const Array& got, const Array& want, const std::string& name) {
  ASSERT_EQ(got.dtype, want.dtype) << name;
  ASSERT_EQ(got.shape, want.shape) << name;
  ASSERT_EQ(want.dtype, DType::kFloat32) << name;
  for (int64_t i = 0; i < want.size(); ++i) {
    const float a = got.data<float>()[i], b = want.data<float>()[i];
    ASSERT_NEAR(a, b, 1e-5 * std::max(1.0f, std::abs(b)))
        << name << " at " << i;
  }
}

// The arrays of a network's inputs, and what Keras answers.
void ReadCase(const std::string& path, NamedArrays* feeds, NamedArrays* want) {
  auto arrays = ParseNpz(testing::MustRead(path + ".npz"));
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  for (auto& [name, array] : *arrays)
    if (absl::StartsWith(name, "out."))
      (*want)[name.substr(4)] = array;
    else
      (*feeds)[name] = array;
}

TEST(Keras, AnswersOfEveryNetwork) {
  int networks = 0;
  for (const auto& entry : fs::directory_iterator(Saved(""))) {
    const std::string path = entry.path().string();
    if (!absl::EndsWith(path, ".h5") && !absl::EndsWith(path, ".keras"))
      continue;
    SCOPED_TRACE(path);
    ++networks;
    NamedArrays feeds, want;
    ReadCase(path, &feeds, &want);
    const auto model = LoadModel(path);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->kind, LoadedModel::Kind::kInference);
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
  EXPECT_EQ(networks, 24);
}

KerasFile Parsed(const std::string& name) {
  const FileBytes file = testing::MustRead(Saved(name));
  auto keras =
      absl::EndsWith(name, ".h5") ? ParseKerasHdf5(file) : ParseKeras(file);
  EXPECT_TRUE(keras.ok()) << keras.status();
  return keras.ok() ? *std::move(keras) : KerasFile();
}

TEST(Keras, WeightsHaveTheirNames) {
  const KerasFile keras = Parsed("cnn.h5");
  EXPECT_EQ(keras.version, "2.21.0");
  EXPECT_EQ(keras.arrays.at("model_weights/conv1/conv1/kernel:0").shape,
            (Shape{3, 3, 3, 6}));
  const auto model = LoadModel(Saved("cnn.h5"));
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->params.at("conv1/kernel").shape, (Shape{6, 3, 3, 3}));
  EXPECT_EQ(model->params.at("fc1/kernel").shape, (Shape{32, 10}));
  EXPECT_EQ(model->feeds, std::vector<std::string>{"image"});
  EXPECT_EQ(model->fetches, std::vector<std::string>{"fc2"});
}

// A chain of convolutions is transposed at its ends alone.
TEST(Keras, FewTransposes) {
  const auto graph = KerasAsOnnx(Parsed("resnet.h5"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(std::count_if(graph->graph.nodes.begin(), graph->graph.nodes.end(),
                          [](const OnnxFileNode& node) {
                            return node.op_type == "Transpose";
                          }),
            1);
}

std::string ErrorOf(const KerasFile& keras) {
  const auto graph = KerasAsOnnx(keras);
  const absl::Status status =
      graph.ok() ? FromOnnx(Registry(), *graph).status() : graph.status();
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

KerasLayer* LayerNamed(KerasFile* keras, const std::string& name) {
  for (KerasLayer& layer : keras->model->layers)
    if (layer.name == name) return &layer;
  ADD_FAILURE() << name;
  return nullptr;
}

TEST(Keras, SaysWhatIsWrong) {
  KerasFile keras = Parsed("resnet.keras");
  LayerNamed(&keras, "a0")->class_name = "Lambda";
  LayerNamed(&keras, "b1")->class_name = "Lambda";
  LayerNamed(&keras, "pool")->class_name = "Special";
  EXPECT_EQ(ErrorOf(keras),
            "layers that are not supported: 'Lambda' (a0, b1), 'Special' "
            "(pool); a Lambda is Python code, which is not run");
  keras = Parsed("resnet.keras");
  LayerNamed(&keras, "bn0")->weights.pop_back();
  EXPECT_EQ(ErrorOf(keras),
            "layer 'bn0' (BatchNormalization): the file has 3 weights for it; "
            "expected 4");
  keras = Parsed("resnet.keras");
  LayerNamed(&keras, "a0")->nodes[0].args[0].ref.layer = "b1";
  EXPECT_TRUE(absl::StrContains(ErrorOf(keras), "waits for a tensor"));
  keras = Parsed("masks.keras");
  LayerNamed(&keras, "pool")->config.dict["data_format"].kind = Kind::kText;
  LayerNamed(&keras, "pool")->config.dict["data_format"].text =
      "channels_first";
  EXPECT_TRUE(absl::StrContains(ErrorOf(keras), "an input with a mask"));
  keras.model.reset();
  EXPECT_TRUE(absl::StrContains(ErrorOf(keras), "weights alone"));
}

// Numbers, kinds and weights that lie end in a status.
TEST(Keras, HostileLayers) {
  int refused = 0, taken = 0;
  const auto attempt = [&](const KerasFile& keras) {
    const auto graph = KerasAsOnnx(keras);
    const bool ok = graph.ok() && FromOnnx(Registry(), *graph).ok();
    ++(ok ? taken : refused);
  };
  for (const char* name : {"heads.keras", "text.h5", "unet.h5"}) {
    KerasFile keras = Parsed(name);
    for (KerasLayer& layer : keras.model->layers) {
      const KerasLayer good = layer;
      for (const auto& [key, value] : good.config.dict) {
        KerasValue& changed = layer.config.dict[key];
        for (const int64_t number : {int64_t{-1}, int64_t{0}, int64_t{7},
                                     int64_t{1} << 20, INT64_MAX, INT64_MIN}) {
          if (value.kind != Kind::kInt && value.kind != Kind::kList) continue;
          changed = value;
          changed.i = number;
          for (KerasValue& item : changed.list) item.i = number;
          attempt(keras);
        }
        changed = KerasValue();
        attempt(keras);
        changed = value;
      }
      for (Array& weight : layer.weights) {
        const Shape shape = weight.shape;
        weight.shape.push_back(1);
        attempt(keras);
        weight.shape = shape;
        if (!shape.empty()) weight.shape.back() = 1;
        attempt(keras);
        weight.shape = shape;
      }
      layer.weights.clear();
      attempt(keras);
      layer.nodes.clear();
      attempt(keras);
      layer = good;
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(taken, 50);
}

// Datasets of other HDF5 files are arrays by their paths.
TEST(Keras, OtherHdf5) {
  const FileBytes file = testing::MustRead(Saved("cnn.h5"));
  const auto root = ParseHdf5(file);
  ASSERT_TRUE(root.ok()) << root.status();
  ASSERT_NE(root->Text("backend"), nullptr);
  EXPECT_EQ(*root->Text("backend"), "tensorflow");
  const Hdf5Object* bn = root->Find("model_weights/bn");
  ASSERT_NE(bn, nullptr);
  EXPECT_EQ(
      bn->texts.at("weight_names"),
      (std::vector<std::string>{"bn/gamma:0", "bn/beta:0", "bn/moving_mean:0",
                                "bn/moving_variance:0"}));
}

TEST(Keras, DamagedHdf5) {
  const FileBytes file = testing::MustRead(Saved("nested.h5"));
  std::string bytes(file.view());
  EXPECT_TRUE(IsHdf5(bytes));
  int good = 0;
  const auto read = [&](absl::string_view damaged) {
    const auto keras = ParseKerasHdf5(testing::HeapBytes(damaged));
    good += keras.ok() && KerasAsOnnx(*keras).ok();
  };
  for (size_t size = 0; size < bytes.size(); size += 97)
    read(absl::string_view(bytes).substr(0, size));
  EXPECT_EQ(good, 0);
  // The superblock and the root, then every so many bytes.
  for (size_t i = 0; i < bytes.size(); i += i < 2048 ? 1 : 31)
    for (const int flip : {0x01, 0x80, 0xff}) {
      const char before = bytes[i];
      bytes[i] = static_cast<char>(before ^ flip);
      read(bytes);
      bytes[i] = before;
    }
  EXPECT_GT(good, 0);
}

TEST(Keras, DamagedArchive) {
  const FileBytes file = testing::MustRead(Saved("nested.keras"));
  EXPECT_TRUE(IsKeras(file.view()));
  std::string bytes(file.view());
  int good = 0;
  const auto read = [&](absl::string_view damaged) {
    const auto keras = ParseKeras(testing::HeapBytes(damaged));
    good += keras.ok() && KerasAsOnnx(*keras).ok();
  };
  for (size_t size = 0; size < bytes.size(); size += 97)
    read(absl::string_view(bytes).substr(0, size));
  EXPECT_EQ(good, 0);
  for (size_t i = 0; i < bytes.size(); i += 31) {
    const char before = bytes[i];
    bytes[i] = static_cast<char>(before ^ 0x15);
    read(bytes);
    bytes[i] = before;
  }
}

}  // namespace test_keras
}  // namespace pd
