// SPDX-License-Identifier: Apache-2.0
// Networks of torch.export answer as PyTorch does, and what is wrong in one is
// said with its node. The files are those of
// testdata/make/torch_export_models.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "formats/torch_export.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/deploy/torch_graph.h"
#include "libcore/exec/session.h"
#include "libcore/model/load_model.h"
#include "tests/formats/format_test.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_torch_export {

namespace fs = std::filesystem;
using Kind = TorchArgument::Kind;

std::string Exported(const std::string& name) {
  return absl::StrCat(PD_TESTDATA, "/torch_export/", name);
}

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

TEST(TorchExport, AnswersOfEveryNetwork) {
  int networks = 0;
  for (const auto& entry : fs::directory_iterator(Exported(""))) {
    if (entry.path().extension() != ".pt2") continue;
    SCOPED_TRACE(entry.path());
    ++networks;
    const auto model = LoadModel(entry.path());
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->kind, LoadedModel::Kind::kInference);
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
      ExpectClose(got->at(name), array, name);
    }
  }
  EXPECT_EQ(networks, 25);
}

// A network that was exported with two pictures answers for three of them.
TEST(TorchExport, AnotherBatch) {
  LoadOptions open;
  open.shapes = {{"x", {-1, 3, 33, 33}}};
  const auto model = LoadModel(Exported("resnet.pt2"), open);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->program.global().FindVar("flatten")->shape, (Shape{-1, 16}));
  auto arrays = ParseNpz(testing::MustRead(Exported("resnet.npz")));
  ASSERT_TRUE(arrays.ok()) << arrays.status();
  const Array two = arrays->at("x"), want = arrays->at("out.linear");
  std::vector<float> pictures(two.data<float>(),
                              two.data<float>() + two.size());
  pictures.insert(pictures.end(), pictures.begin(),
                  pictures.begin() + two.size() / 2);
  Session session(&Registry());
  ASSERT_TRUE(FillScope(*model, &session.scope()).ok());
  const auto got = session.Run(
      model->program, {{"x", MakeArray({3, 3, 33, 33}, pictures)}}, {"linear"});
  ASSERT_TRUE(got.ok()) << got.status();
  const Array& rows = got->at("linear");
  ASSERT_EQ(rows.shape, (Shape{3, 10}));
  for (int64_t i = 0; i < rows.size(); ++i)
    EXPECT_NEAR(rows.data<float>()[i], want.data<float>()[i % want.size()],
                1e-5);
}

TorchExport Parsed(const std::string& name) {
  auto exported = ParseTorchExport(testing::MustRead(Exported(name)));
  EXPECT_TRUE(exported.ok()) << exported.status();
  return exported.ok() ? *std::move(exported) : TorchExport();
}

TEST(TorchExport, WeightsHaveTheirNames) {
  const TorchExport exported = Parsed("cnn.pt2");
  EXPECT_EQ(exported.inputs, std::vector<std::string>{"x"});
  EXPECT_EQ(exported.values.at("x").shape, (Shape{-1, 3, 20, 18}));
  EXPECT_EQ(exported.weights.at("features.0.weight").shape,
            (Shape{8, 3, 3, 3}));
  const auto model = LoadModel(Exported("cnn.pt2"));
  ASSERT_TRUE(model.ok()) << model.status();
  // As PaddlePaddle's linear layers have them.
  EXPECT_EQ(model->params.at("classifier.1.weight.T").shape, (Shape{72, 20}));
}

TEST(TorchExport, SaysWhatIsWrong) {
  const auto error = [](TorchExport exported) {
    const auto graph = TorchAsOnnx(exported);
    const absl::Status status =
        graph.ok() ? FromOnnx(Registry(), *graph).status() : graph.status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  TorchExport exported = Parsed("resnet.pt2");
  for (TorchNode& node : exported.nodes)
    if (absl::StrContains(node.target, "conv2d"))
      node.target = "torch.ops.quantized.conv2d.default";
  exported.nodes.back().target = "torch.ops.aten.special.default";
  EXPECT_EQ(error(exported),
            "operators that are not supported (and their calls): "
            "'torch.ops.aten.special.default' (1), "
            "'torch.ops.quantized.conv2d.default' (7)");
  exported = Parsed("resnet.pt2");
  for (TorchNode& node : exported.nodes)
    for (auto& [name, argument] : node.inputs)
      if (name == "training") argument.ints = {1};
  EXPECT_TRUE(absl::StrContains(error(exported), "eval()"));
  exported = Parsed("resnet.pt2");
  exported.weights.erase("fc.bias");
  EXPECT_EQ(error(exported), "the file has no weight 'fc.bias'");
  exported = Parsed("resnet.pt2");
  exported.nodes.erase(exported.nodes.begin());
  EXPECT_TRUE(absl::StrContains(error(exported), "is made by no node"));
  // A part of x is changed, and x read later.
  exported = Parsed("shapes.pt2");
  const auto select = std::find_if(
      exported.nodes.begin(), exported.nodes.end(), [](const TorchNode& node) {
        return node.target == "torch.ops.aten.select.int";
      });
  ASSERT_NE(select, exported.nodes.end());
  TorchNode relu;
  relu.target = "torch.ops.aten.relu_.default";
  relu.inputs = {{"self", select->outputs[0]}};
  relu.outputs = select->outputs;
  relu.outputs[0].names = {"changed"};
  exported.values["changed"] = exported.values[select->outputs[0].names[0]];
  exported.nodes.insert(select + 1, relu);
  EXPECT_TRUE(absl::StrContains(error(exported), "run_decompositions()"));
}

// The nodes that are tried: every second one, fewer where sanitizers are slow.
#ifdef PD_WITH_SANITIZER
constexpr size_t kEach = 8;
#else
constexpr size_t kEach = 2;
#endif

// Arguments of other kinds and numbers, and shapes that lie, end in a status.
TEST(TorchExport, HostileArguments) {
  int refused = 0, taken = 0;
  const auto attempt = [&](const TorchExport& exported) {
    const auto graph = TorchAsOnnx(exported);
    const bool ok = graph.ok() && FromOnnx(Registry(), *graph).ok();
    ++(ok ? taken : refused);
  };
  for (const char* name : {"shapes.pt2", "recurrent.pt2"}) {
    const TorchExport good = Parsed(name);
    TorchExport exported = good;
    for (size_t i = 0; i < good.nodes.size(); i += kEach) {
      for (size_t k = 0; k < good.nodes[i].inputs.size(); ++k) {
        TorchArgument& argument = exported.nodes[i].inputs[k].second;
        for (const int64_t value : {int64_t{-1}, int64_t{0}, int64_t{3},
                                    int64_t{1} << 40, INT64_MAX, INT64_MIN}) {
          if (argument.ints.empty()) continue;
          argument.ints.assign(argument.ints.size(), value);
          attempt(exported);
        }
        argument = good.nodes[i].inputs[k].second;
        for (const Kind kind : {Kind::kNone, Kind::kString}) {
          argument = TorchArgument();
          argument.kind = kind;
          attempt(exported);
        }
        argument = good.nodes[i].inputs[k].second;
      }
      exported.nodes[i].outputs.clear();
      attempt(exported);
      exported.nodes[i].outputs = good.nodes[i].outputs;
    }
    for (const auto& [value, fact] : good.values) {
      for (const Shape& shape :
           {Shape{}, Shape{int64_t{1} << 31, int64_t{1} << 31, 7},
            Shape{-1, -1, -1}}) {
        exported.values[value].shape = shape;
        attempt(exported);
      }
      exported.values[value] = fact;
    }
  }
  EXPECT_GT(refused, 20);
  EXPECT_GT(taken, 20);
}

TEST(TorchExport, DamagedFiles) {
  for (const char* name :
       {"shapes.pt2", "masked_torch2_2.pt2", "masked_torch2_5.pt2"}) {
    const FileBytes file = testing::MustRead(Exported(name));
    EXPECT_TRUE(IsTorchExport(file.view()));
    std::string bytes(file.view());
    int good = 0;
    const auto read = [&](absl::string_view damaged) {
      const auto exported = ParseTorchExport(testing::HeapBytes(damaged));
      good += exported.ok() && TorchAsOnnx(*exported).ok();
    };
    for (size_t size = 0; size < bytes.size(); size += 997)
      read(absl::string_view(bytes).substr(0, size));
    EXPECT_EQ(good, 0);
    for (size_t i = 0; i < bytes.size(); i += 211) {
      const char before = bytes[i];
      bytes[i] = static_cast<char>(before ^ 0x15);
      read(bytes);
      bytes[i] = before;
    }
  }
}

}  // namespace test_torch_export
}  // namespace pd
