// SPDX-License-Identifier: Apache-2.0
// ONNX's own node tests, our own exports, and files that lie.
#include "libcore/deploy/onnx_import.h"

#include <fstream>
#include <set>

#include "libcore/deploy/onnx_export.h"
#include "libcore/exec/session.h"
#include "tests/deploy/deploy_fixture.h"
#include "tests/deploy/onnx_nodes.h"
#include "tests/formats/hostile.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_onnx_import {

std::vector<OnnxNodeCase> NodeCases() {
  auto cases = ReadOnnxNodeCases(PD_TESTDATA "/onnx/node_tests.zip");
  EXPECT_TRUE(cases.ok()) << cases.status();
  return cases.ok() ? *std::move(cases) : std::vector<OnnxNodeCase>();
}

// The first words of the lines of not_yet.txt.
std::set<std::string> NotYet() {
  std::set<std::string> names;
  std::ifstream file(PD_TESTDATA "/onnx/not_yet.txt");
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#')
      names.insert(line.substr(0, line.find(' ')));
  return names;
}

TEST(OnnxImport, NodeTests) {
  std::set<std::string> not_yet = NotYet();
  size_t passed = 0;
  for (const OnnxNodeCase& one : NodeCases()) {
    const OnnxNodeOutcome outcome = RunOnnxNodeCase(Registry(), one);
    if (outcome.kind == OnnxNodeOutcome::Kind::kOtherTypes) continue;
    const bool expected = not_yet.erase(one.name) > 0;
    const bool ok = outcome.kind == OnnxNodeOutcome::Kind::kPass;
    passed += ok;
    EXPECT_TRUE(ok || expected) << one.name << ": " << outcome.reason;
    EXPECT_FALSE(ok && expected)
        << one.name << " passes: take it out of not_yet.txt";
  }
  EXPECT_TRUE(not_yet.empty()) << *not_yet.begin() << " is no case";
  EXPECT_GT(passed, 800u);
}

NamedArrays Answers(const InferenceModel& model, const NamedArrays& feeds) {
  Session session(&Registry());
  for (const auto& [name, value] : model.params)
    EXPECT_TRUE(session.scope().Set(name, value).ok());
  auto answers = session.Run(model.program, feeds, model.names.fetches);
  EXPECT_TRUE(answers.ok()) << answers.status();
  return answers.ok() ? *std::move(answers) : NamedArrays();
}

NamedArrays SomeFeeds(const InferenceModel& model) {
  NamedArrays feeds;
  for (const std::string& name : model.names.feeds) {
    Shape shape = model.program.global().FindVar(name)->shape;
    for (int64_t& extent : shape)
      if (extent < 0) extent = 2;
    std::vector<float> values(static_cast<size_t>(NumElements(shape)));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i * 7919 % 1009) / 1009;
    feeds[name] = MakeArray(shape, values);
  }
  return feeds;
}

TEST(OnnxImport, OurExportsAnswerTheSame) {
  for (const std::string name : {"lenet", "cifar_resnet"}) {
    const auto model = ReadInferenceModel(DeployData(name));
    ASSERT_TRUE(model.ok()) << model.status();
    const NamedArrays feeds = SomeFeeds(*model);
    const NamedArrays want = Answers(*model, feeds);
    for (int opset = kMinOnnxOpset; opset <= kMaxOnnxOpset; ++opset) {
      const auto bytes = ToOnnx(Registry(), *model, opset);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      const auto file = ParseOnnx(*bytes, "");
      ASSERT_TRUE(file.ok()) << file.status();
      const auto imported = FromOnnx(Registry(), *file);
      ASSERT_TRUE(imported.ok()) << imported.status();
      EXPECT_EQ(imported->names.feeds, model->names.feeds);
      EXPECT_EQ(imported->names.fetches, model->names.fetches);
      const NamedArrays got = Answers(*imported, feeds);
      for (const auto& [output, array] : want) {
        const Array& other = got.at(output);
        ASSERT_EQ(other.shape, array.shape);
        for (int64_t i = 0; i < array.size(); ++i)
          ASSERT_NEAR(other.data<float>()[i], array.data<float>()[i], 1e-4)
              << name << ", opset " << opset;
      }
    }
  }
}

// A damaged file is refused or means something else; it never crashes.
TEST(OnnxImport, DamagedFiles) {
  int parsed = 0;
  const auto read = [&](const std::string& bytes) {
    const auto file = ParseOnnx(bytes, "");
    if (!file.ok()) return;
    ++parsed;
    (void)FromOnnx(Registry(), *file).status();
  };
  for (const OnnxNodeCase& one : NodeCases()) {
    if (one.name != "test_if" && one.name != "test_lstm_with_peepholes" &&
        one.name != "test_loop11" && one.name != "test_constant_pad" &&
        one.name != "test_slice" && one.name != "test_cumsum_1d" &&
        one.name != "test_resize_upsample_scales_nearest")
      continue;
    ForEachPrefix(one.model, read);
    ForEachFlip(one.model, read);
    const std::string tensor = one.data.begin()->second;
    ForEachPrefix(tensor, [](const std::string& bytes) {
      (void)ParseOnnxTensor(bytes).status();
    });
    ForEachFlip(tensor, [](const std::string& bytes) {
      (void)ParseOnnxTensor(bytes).status();
    });
  }
  EXPECT_GT(parsed, 0);
}

OnnxFileValue Input(const std::string& name, Shape shape) {
  OnnxFileValue value;
  value.name = name;
  value.is_tensor = true;
  value.element_type = 1;
  value.shape = std::move(shape);
  return value;
}

OnnxFileNode Node(const std::string& type, std::vector<std::string> inputs,
                  std::vector<std::string> outputs) {
  OnnxFileNode node;
  node.op_type = type;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

OnnxFile Model(std::vector<OnnxFileNode> nodes) {
  OnnxFile file;
  file.opsets[""] = 13;
  file.graph.inputs = {Input("x", {-1, 4})};
  file.graph.outputs = {Input("y", {-1, 4})};
  file.graph.nodes = std::move(nodes);
  return file;
}

absl::Status Refusal(const OnnxFile& file) {
  return FromOnnx(Registry(), file).status();
}

TEST(OnnxImport, SaysWhatIsWrong) {
  EXPECT_EQ(
      Refusal(Model({Node("Relu", {"z"}, {"y"}), Node("Relu", {"y"}, {"z"})}))
          .message(),
      "node 'y' (Relu): it reads 'z', which nothing has made before it");
  EXPECT_EQ(Refusal(Model({Node("Relu", {"x"}, {"z"})})).message(),
            "output 'y' is made by no node");
  EXPECT_EQ(Refusal(Model({Node("Rellu", {"x"}, {"y"})})).message(),
            "node 'y' (Rellu): operator 'Rellu' is not supported; the nearest "
            "that is: 'Relu'");
  EXPECT_EQ(Refusal(Model({Node("Relu", {}, {"y"})})).message(),
            "node 'y' (Relu): it has 0 inputs; input 0 is needed");
  EXPECT_EQ(
      Refusal(Model({Node("Relu", {"x"}, {"y"}), Node("Relu", {"x"}, {"y"})}))
          .message(),
      "node 'y' (Relu): value 'y' is made twice");
  OnnxFile later = Model({Node("Relu", {"x"}, {"y"})});
  later.opsets[""] = 99;
  EXPECT_TRUE(absl::IsUnimplemented(Refusal(later)));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Refusal(Model({Node("CumSum", {"x", "x"}, {"y"})}))));
}

TEST(OnnxImport, FunctionsAreInlined) {
  OnnxFile file = Model({Node("Twice", {"x"}, {"y"})});
  file.graph.nodes[0].domain = "mine";
  OnnxFileFunction twice;
  twice.name = "Twice";
  twice.domain = "mine";
  twice.inputs = {"a"};
  twice.outputs = {"b"};
  twice.nodes = {Node("Add", {"a", "a"}, {"b"})};
  file.functions = {twice};
  const auto model = FromOnnx(Registry(), file);
  ASSERT_TRUE(model.ok()) << model.status();
  const NamedArrays got =
      Answers(*model, {{"x", MakeArray<float>({1, 4}, {1, 2, 3, 4})}});
  EXPECT_EQ(got.at("y").data<float>()[3], 8);
  // One that calls itself has an end.
  file.functions[0].nodes[0] = Node("Twice", {"a"}, {"b"});
  file.functions[0].nodes[0].domain = "mine";
  EXPECT_TRUE(absl::IsUnimplemented(Refusal(file)));
}

TEST(OnnxImport, ConstantsAreComputedAndNamesKept) {
  OnnxFile file =
      Model({Node("Add", {"a", "a"}, {"b"}), Node("Mul", {"x", "b"}, {"z"}),
             Node("Relu", {"z"}, {"y"})});
  file.graph.initializers["a"] = MakeArray<float>({4}, {1, 2, 3, 4});
  const auto model = FromOnnx(Registry(), file);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->program.global().ops.size(), 2u);
  EXPECT_NE(model->program.global().FindVar("z"), nullptr);
  ASSERT_EQ(model->params.size(), 1u);
  EXPECT_EQ(model->params.begin()->second.data<float>()[3], 8);
}

// A bias by channel and bounds behind a convolution in the forms that passes
// take into it; other shapes as they are.
TEST(OnnxImport, ABiasByChannelIsThatOfAConvolution) {
  const std::vector<float> zeros(24, 0.5f);
  const auto ops_for = [&](Shape bias, float high) {
    OnnxFile file =
        Model({Node("Conv", {"x", "w"}, {"c"}), Node("Add", {"b", "c"}, {"d"}),
               Node("Clip", {"d", "low", "high"}, {"y"})});
    file.graph.inputs = {Input("x", {-1, 2, 5, 5})};
    file.graph.outputs = {Input("y", {-1, 3, 4, 4})};
    file.graph.initializers["w"] = MakeArray<float>({3, 2, 2, 2}, zeros);
    file.graph.initializers["b"] = MakeArray<float>(
        bias, std::vector<float>(static_cast<size_t>(NumElements(bias)), 1));
    file.graph.initializers["low"] = MakeArray<float>({}, {0});
    file.graph.initializers["high"] = MakeArray<float>({}, {high});
    const auto model = FromOnnx(Registry(), file);
    EXPECT_TRUE(model.ok()) << model.status();
    std::string text;
    if (!model.ok()) return text;
    for (const OpDesc& op : model->program.global().ops)
      text += op.type +
              (op.type == "elementwise_add"
                   ? std::to_string(op.Attr<int32_t>("axis"))
                   : "") +
              " ";
    // 0.5 times eight ones and the bias: bounded.
    const NamedArrays answers = Answers(
        *model,
        {{"x", MakeArray<float>({1, 2, 5, 5}, std::vector<float>(50, 1))}});
    for (const auto& [name, array] : answers)
      for (int64_t i = 0; i < array.size(); ++i)
        EXPECT_EQ(array.data<float>()[i], std::min(5.0f, high));
    return text;
  };
  EXPECT_EQ(ops_for({1, 3, 1, 1}, 6), "conv2d elementwise_add1 relu6 ");
  EXPECT_EQ(ops_for({3, 1, 1}, 6), "conv2d elementwise_add1 relu6 ");
  EXPECT_EQ(ops_for({3, 1, 1}, 4), "conv2d elementwise_add1 clip ");
  EXPECT_EQ(ops_for({3, 4, 1}, 6), "conv2d elementwise_add-1 relu6 ");
  EXPECT_EQ(ops_for({4}, 6), "conv2d elementwise_add-1 relu6 ");
  EXPECT_EQ(ops_for({1, 1, 1, 1}, 6), "conv2d elementwise_add-1 relu6 ");
}

// Raw protobuf: a model whose one initializer names another file.
std::string WithExternalData(const std::string& location) {
  const auto field = [](int number, const std::string& bytes) {
    return std::string(1, static_cast<char>(number << 3 | 2)) +
           static_cast<char>(bytes.size()) + bytes;
  };
  const std::string entry = field(1, "location") + field(2, location);
  const std::string tensor = std::string("\x08\x04\x10\x01", 4) +
                             field(8, "w") + field(13, entry) +
                             std::string("\x70\x01", 2);
  return field(7, field(5, tensor)) + field(8, "\x10\x0d");
}

TEST(OnnxImport, ExternalDataStayInTheFolder) {
  const std::string folder = EmptyFolder();
  const std::string secret = folder + "_secret";
  const std::string bytes(16, 'a');
  ASSERT_TRUE(WriteFile(secret, bytes).ok());
  ASSERT_TRUE(WriteFile(folder + "/w.bin", bytes).ok());
  const std::string name = std::filesystem::path(secret).filename().string();
  std::filesystem::create_symlink(secret, folder + "/link");
  EXPECT_TRUE(ParseOnnx(WithExternalData("w.bin"), folder).ok());
  for (const std::string& location :
       {"../" + name, secret, std::string("link"), std::string("")})
    EXPECT_FALSE(ParseOnnx(WithExternalData(location), folder).ok())
        << location;
  EXPECT_FALSE(ParseOnnx(WithExternalData("w.bin"), "").ok());
}

}  // namespace test_onnx_import
}  // namespace pd
