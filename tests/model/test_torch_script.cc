// SPDX-License-Identifier: Apache-2.0
// Archives of torch.jit.save, traced and scripted, answer as PyTorch does. The
// files are those of testdata/make/torch_script_models.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "formats/torch_script.h"
#include "libcore/deploy/torch_graph.h"
#include "libcore/deploy/torch_script/call.h"
#include "libcore/deploy/torch_script/parse.h"
#include "libcore/deploy/torch_script_graph.h"
#include "libcore/exec/session.h"
#include "libcore/model/load_model.h"
#include "tests/formats/format_test.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_torch_script {

namespace fs = std::filesystem;

std::string Saved(const std::string& name) {
  return absl::StrCat(PD_TESTDATA, "/torch_script/", name);
}

struct Golden {
  NamedArrays feeds, want;
};

// Of "NAME_trace.pt" and "NAME_script.pt": NAME.npz.
Golden GoldenOf(const std::string& file) {
  auto arrays = ParseNpz(testing::MustRead(
      Saved(absl::StrCat(file.substr(0, file.rfind('_')), ".npz"))));
  EXPECT_TRUE(arrays.ok()) << arrays.status();
  Golden golden;
  for (auto& [name, array] : *arrays)
    (absl::StartsWith(name, "out.") ? golden.want : golden.feeds)[name] = array;
  return golden;
}

// The outputs, in their order, are out.0, out.1 and so on.
void ExpectAnswers(const LoadedModel& model, const Golden& golden) {
  Session session(&Registry());
  ASSERT_TRUE(FillScope(model, &session.scope()).ok());
  const auto got = session.Run(model.program, golden.feeds, model.fetches);
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(model.fetches.size(), golden.want.size());
  for (size_t k = 0; k < model.fetches.size(); ++k) {
    const Array& out = got->at(model.fetches[k]);
    const Array& want = golden.want.at(absl::StrCat("out.", k));
    ASSERT_EQ(out.dtype, DType::kFloat32);
    ASSERT_EQ(out.shape, want.shape) << k;
    for (int64_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(out.data<float>()[i], want.data<float>()[i],
                  1e-5 * std::max(1.0f, std::abs(want.data<float>()[i])))
          << "output " << k << " at " << i;
  }
}

TEST(TorchScript, AnswersOfEveryNetwork) {
  int networks = 0;
  for (const auto& entry : fs::directory_iterator(Saved(""))) {
    if (entry.path().extension() != ".pt") continue;
    SCOPED_TRACE(entry.path());
    ++networks;
    const Golden golden = GoldenOf(entry.path().filename().string());
    LoadOptions options;
    options.feeds = &golden.feeds;
    const auto model = LoadModel(entry.path(), options);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->kind, LoadedModel::Kind::kInference);
    ExpectAnswers(*model, golden);
  }
  EXPECT_EQ(networks, 21);
}

// With the batch left open the graph answers for any.
TEST(TorchScript, OpenBatch) {
  for (const char* name :
       {"lenet_trace.pt", "lenet_script.pt", "resnet_trace.pt", "cnn_script.pt",
        "mobile2_script.pt", "shuffle_trace.pt", "gpt_trace.pt",
        "text_cnn_script.pt", "small_unet_script.pt", "rounds_script.pt"}) {
    SCOPED_TRACE(name);
    const Golden golden = GoldenOf(name);
    LoadOptions options;
    for (const auto& [input, array] : golden.feeds) {
      options.shapes[input] = array.shape;
      options.shapes[input][0] = -1;
    }
    const auto model = LoadModel(Saved(name), options);
    ASSERT_TRUE(model.ok()) << model.status();
    for (const std::string& feed : model->feeds)
      EXPECT_EQ(model->program.global().FindVar(feed)->shape[0], -1);
    ExpectAnswers(*model, golden);
  }
}

TorchScript Parsed(const std::string& name) {
  auto script = ParseTorchScript(testing::MustRead(Saved(name)));
  EXPECT_TRUE(script.ok()) << script.status();
  return script.ok() ? *std::move(script) : TorchScript();
}

const std::map<std::string, TorchScriptInput> kLeNetInput = {
    {"x", {{2, 1, 16, 16}, {}}}};

TEST(TorchScript, WeightsHaveTheirNames) {
  const TorchScript script = Parsed("lenet_trace.pt");
  const NamedArrays weights = TorchScriptWeights(script);
  EXPECT_EQ(weights.size(), 8u);
  EXPECT_EQ(weights.at("conv1.weight").shape, (Shape{4, 1, 5, 5}));
  const auto graph = TorchScriptGraph(script, kLeNetInput);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->weights.count("fc2.bias"), 1u);
  EXPECT_EQ(graph->values.at(graph->outputs[0]).shape, (Shape{2, 10}));
}

TEST(TorchScript, ShapesHaveToBeGiven) {
  const auto model = LoadModel(Saved("lenet_script.pt"));
  EXPECT_EQ(model.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(model.status().message(), "--input x="))
      << model.status();
}

// The error for LeNet's forward with another body.
std::string ErrorOf(const std::string& body) {
  TorchScript script = Parsed("lenet_trace.pt");
  script.sources["__torch__"] = absl::StrCat(
      "class LeNet(Module):\n  def forward(self: __torch__.LeNet,\n    x: "
      "Tensor) -> Tensor:\n",
      body);
  const auto graph = TorchScriptGraph(script, kLeNetInput);
  EXPECT_FALSE(graph.ok()) << body;
  return std::string(graph.status().message());
}

TEST(TorchScript, SaysWhatIsWrong) {
  EXPECT_EQ(ErrorOf("    a = torch.fft_fft(x, None)\n"
                    "    b = torch.special(a)\n"
                    "    c = torch.hann(torch.hann(x))\n"
                    "    return torch.add(b, c)\n"),
            "operators that are not supported (and their calls): "
            "'torch.fft_fft' (1), 'torch.hann' (1)");
  for (const auto& [body, words] :
       std::vector<std::pair<std::string, std::string>>{
           {"    if bool(torch.sum(x)):\n      pass\n    return x\n",
            "hangs on the input"},
           {"    if torch.gt(torch.sum(x), 0):\n      pass\n    return x\n",
            "a condition on the elements"},
           {"    return torch.view(x, [7, -1])\n", "elements"},
           {"    ops.prim.RaiseException(\"too small\")\n    return x\n",
            "raises 'too small'"},
           {"    return y\n", "'y' has no value"},
           {"    return (self).other(x, )\n", "has no 'LeNet.other'"},
           {"    return (self).forward(x, )\n", "levels deep"},
           {"    while True:\n      y = x\n    return x\n", "steps"},
           {"    return self.conv9\n", "no attribute 'conv9'"},
           {"    return CONSTANTS.c7\n", "no constant 'c7'"},
           {"    return torch.relu(x\n", "line 5"},
           {"    return torch.select(x, 9, 0)\n", "axis 9"}})
    EXPECT_TRUE(absl::StrContains(ErrorOf(body), words))
        << body << ErrorOf(body);
  std::string deep(100000, '(');
  EXPECT_TRUE(
      absl::StrContains(ErrorOf("    return " + deep + "\n"), "levels deep"));
}

// A part of x is changed, and x read later.
TEST(TorchScript, ChangesThroughViewsAreRefused) {
  TorchScript script = Parsed("lenet_trace.pt");
  script.sources["__torch__"] =
      "class LeNet(Module):\n"
      "  def forward(self: __torch__.LeNet,\n"
      "    x: Tensor) -> Tensor:\n"
      "    y = torch.exp(x)\n"
      "    z = torch.relu_(torch.select(y, 0, 1))\n"
      "    return torch.add(y, z)\n";
  const auto graph = TorchScriptGraph(script, kLeNetInput);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto onnx = TorchAsOnnx(*graph);
  EXPECT_TRUE(absl::StrContains(onnx.status().message(), "changes a part"))
      << onnx.status();
}

// The importer of torch.export's graphs knows every overload of the table.
TEST(TorchScript, OperatorsOfTheTable) {
  const auto known = TorchImportTypes();
  const std::set<std::string> targets(known.begin(), known.end());
  for (const auto& [name, op] : AllScriptOperators())
    EXPECT_EQ(targets.count(op.target), 1u) << op.target;
  EXPECT_GT(AllScriptOperators().size(), 150u);
}

TEST(TorchScript, DamagedFiles) {
  const FileBytes file = testing::MustRead(Saved("text_cnn_script.pt"));
  EXPECT_TRUE(IsTorchScript(file.view()));
  std::string bytes(file.view());
  int good = 0;
  const auto read = [&](absl::string_view damaged) {
    const auto script = ParseTorchScript(testing::HeapBytes(damaged));
    good +=
        script.ok() && TorchScriptGraph(*script, {{"ids", {{2, 11}, {}}}}).ok();
  };
  for (size_t size = 0; size < bytes.size(); size += 97)
    read(absl::string_view(bytes).substr(0, size));
  EXPECT_EQ(good, 0);
  for (size_t i = 0; i < bytes.size(); i += 13) {
    const char before = bytes[i];
    bytes[i] = static_cast<char>(before ^ 0x15);
    read(bytes);
    bytes[i] = before;
  }
}

// Checksums guard an archive; here the source itself is damaged.
TEST(TorchScript, DamagedSources) {
  for (const char* name : {"text_cnn_script.pt", "gpt_trace.pt"}) {
    const TorchScript good = Parsed(name);
    const bool gpt = absl::StartsWith(name, "gpt");
    const std::map<std::string, TorchScriptInput> inputs = {
        {"ids", {gpt ? Shape{2, 9} : Shape{2, 11}, {}}}};
    int refused = 0, taken = 0;
    TorchScript script = good;
    for (auto& [module, source] : script.sources) {
      for (size_t i = 0; i < source.size(); i += 31) {
        const char before = source[i];
        for (const char c : {'(', '9', '\n', ' ', '-'}) {
          source[i] = c;
          const auto graph = TorchScriptGraph(script, inputs);
          ++(graph.ok() && TorchAsOnnx(*graph).ok() ? taken : refused);
        }
        source[i] = before;
      }
    }
    EXPECT_GT(refused, 20);
    EXPECT_GT(taken, 20);
  }
}

}  // namespace test_torch_script
}  // namespace pd
