// SPDX-License-Identifier: Apache-2.0
// ONNX's own node tests, our own exports, and files that lie.
#include "libcore/deploy/onnx_import.h"

#include <fstream>
#include <map>

#include "libcore/deploy/onnx_export.h"
#include "libcore/exec/session.h"
#include "tests/deploy/deploy_fixture.h"
#include "tests/deploy/onnx_nodes.h"
#include "tests/formats/hostile.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_onnx_import {

std::vector<OnnxNodeCase> NodeCases() {
  auto cases = ReadOnnxNodeCases(PD_TESTDATA "/onnx");
  EXPECT_TRUE(cases.ok()) << cases.status();
  return cases.ok() ? *std::move(cases) : std::vector<OnnxNodeCase>();
}

// The lines of not_yet.txt: names, and why each does not pass. Where that is
// noise near 0, the rounding of this processor's vectors may make it pass.
std::map<std::string, bool> MayPass() {
  std::map<std::string, bool> names;
  std::ifstream file(PD_TESTDATA "/onnx/not_yet.txt");
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#')
      names[line.substr(0, line.find(' '))] =
          line.find("  noise near 0: ") != std::string::npos;
  return names;
}

TEST(OnnxImport, NodeTests) {
  std::map<std::string, bool> not_yet = MayPass();
  size_t passed = 0;
  for (const OnnxNodeCase& one : NodeCases()) {
    const OnnxNodeOutcome outcome = RunOnnxNodeCase(Registry(), one);
    if (outcome.kind == OnnxNodeOutcome::Kind::kOtherTypes) continue;
    const auto listed = not_yet.find(one.name);
    const bool expected = listed != not_yet.end();
    const bool noise = expected && listed->second;
    if (expected) not_yet.erase(listed);
    const bool ok = outcome.kind == OnnxNodeOutcome::Kind::kPass;
    passed += ok;
    EXPECT_TRUE(ok || expected) << one.name << ": " << outcome.reason;
    EXPECT_FALSE(ok && expected && !noise)
        << one.name << " passes: take it out of not_yet.txt";
  }
  EXPECT_TRUE(not_yet.empty()) << not_yet.begin()->first << " is no case";
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
        one.name != "test_resize_upsample_scales_nearest" &&
        one.name != "test_attention_3d_gqa_causal" &&
        one.name != "test_tensorscatter_circular" &&
        one.name != "test_bitshift_right_uint16" &&
        one.name != "test_rotary_embedding_3d_input")
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

OnnxFileAttr IntAttr(int64_t value) {
  OnnxFileAttr attr;
  attr.kind = OnnxFileAttr::Kind::kInt;
  attr.i = value;
  return attr;
}

OnnxFileAttr StringAttr(const std::string& value) {
  OnnxFileAttr attr;
  attr.kind = OnnxFileAttr::Kind::kString;
  attr.s = value;
  return attr;
}

TEST(OnnxImport, BitShiftOfScalarsGivesAScalar) {
  OnnxFileNode shift = Node("BitShift", {"x", "z"}, {"y"});
  shift.attrs["direction"] = StringAttr("LEFT");
  OnnxFile file = Model({std::move(shift)});
  file.graph.inputs = {Input("x", {}), Input("z", {})};
  file.graph.outputs = {Input("y", {})};
  for (OnnxFileValue* value :
       {&file.graph.inputs[0], &file.graph.inputs[1], &file.graph.outputs[0]})
    value->element_type = 2;  // uint8
  const auto model = FromOnnx(Registry(), file);
  ASSERT_TRUE(model.ok()) << model.status();
  const Array got = Answers(*model, {{"x", MakeArray<uint8_t>({}, {3})},
                                     {"z", MakeArray<uint8_t>({}, {2})}})
                        .at("y");
  EXPECT_EQ(got.shape, Shape());
  EXPECT_EQ(got.data<uint8_t>()[0], 12);
}

// x and y of an unsigned type, which int64 holds.
std::vector<int64_t> OnUnsigned(OnnxFileNode node, int32_t element_type,
                                const std::vector<int64_t>& x,
                                const std::vector<int64_t>& y,
                                int32_t gives = 0) {
  OnnxFile file = Model({std::move(node)});
  file.opsets[""] = 26;
  file.graph.inputs = {Input("x", {-1}), Input("z", {-1})};
  file.graph.outputs = {Input("y", {-1})};
  for (OnnxFileValue& input : file.graph.inputs)
    input.element_type = element_type;
  file.graph.outputs[0].element_type = gives != 0 ? gives : element_type;
  const auto model = FromOnnx(Registry(), file);
  EXPECT_TRUE(model.ok()) << model.status();
  if (!model.ok()) return {};
  const Shape shape = {static_cast<int64_t>(x.size())};
  const Array got =
      Answers(*model, {{"x", MakeArray(shape, x)}, {"z", MakeArray(shape, y)}})
          .at("y");
  std::vector<int64_t> values;
  for (int64_t i = 0; i < got.size(); ++i)
    values.push_back(got.dtype == DType::kBool ? got.data<bool>()[i]
                                               : got.data<int64_t>()[i]);
  return values;
}

// Numbers on both sides of 2^31 and 2^63, against the machine's own unsigned
// arithmetic.
TEST(OnnxImport, UnsignedIntegersAreExact) {
  constexpr int32_t kUInt32 = 12, kUInt64 = 13, kBoolean = 9;
  const std::vector<uint64_t> a = {
      0, 1, 7, 1ull << 31, 1ull << 63, ~0ull, ~0ull, 12345678901234567890ull,
      5};
  const std::vector<uint64_t> b = {3,     ~0ull,      2,         3,         7,
                                   ~0ull, 1ull << 63, 987654321, 1ull << 63};
  for (const int32_t type : {kUInt32, kUInt64}) {
    const uint64_t mask = type == kUInt32 ? 0xffffffff : ~0ull;
    std::vector<int64_t> x, y;
    for (size_t i = 0; i < a.size(); ++i) {
      x.push_back(static_cast<int64_t>(a[i] & mask));
      y.push_back(static_cast<int64_t>(std::max<uint64_t>(b[i] & mask, 1)));
    }
    const auto check = [&](const char* op, auto formula, int32_t gives = 0) {
      const auto got =
          OnUnsigned(Node(op, {"x", "z"}, {"y"}), type, x, y, gives);
      ASSERT_EQ(got.size(), x.size()) << op;
      for (size_t i = 0; i < x.size(); ++i) {
        const auto u = static_cast<uint64_t>(x[i]);
        const auto v = static_cast<uint64_t>(y[i]);
        EXPECT_EQ(static_cast<uint64_t>(got[i]), formula(u, v) & mask)
            << op << ", " << u << " and " << v;
      }
    };
    check("Add", [](uint64_t u, uint64_t v) { return u + v; });
    check("Sub", [](uint64_t u, uint64_t v) { return u - v; });
    check("Mul", [](uint64_t u, uint64_t v) { return u * v; });
    check("Div", [](uint64_t u, uint64_t v) { return u / v; });
    check("Mod", [](uint64_t u, uint64_t v) { return u % v; });
    check("Max", [](uint64_t u, uint64_t v) { return std::max(u, v); });
    check("Min", [](uint64_t u, uint64_t v) { return std::min(u, v); });
    check(
        "Less", [](uint64_t u, uint64_t v) -> uint64_t { return u < v; },
        kBoolean);
    for (const bool left : {true, false}) {
      OnnxFileNode shift = Node("BitShift", {"x", "z"}, {"y"});
      shift.attrs["direction"] = StringAttr(left ? "LEFT" : "RIGHT");
      const int bits = type == kUInt32 ? 32 : 64;
      for (const int by : {0, 1, 5, 31, 32, 62, 63, 64}) {
        const auto got =
            OnUnsigned(shift, type, x, std::vector<int64_t>(x.size(), by));
        ASSERT_EQ(got.size(), x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          const auto u = static_cast<uint64_t>(x[i]);
          const uint64_t want =
              by >= bits ? 0 : (left ? u << by : u >> by) & mask;
          EXPECT_EQ(static_cast<uint64_t>(got[i]), want) << u << ", " << by;
        }
      }
    }
  }
}

TEST(OnnxImport, UnsignedIntegersAreRefusedWhereTheyWouldBeWrong) {
  const auto refusal = [](OnnxFileNode node, int32_t gives) {
    OnnxFile file = Model({std::move(node)});
    file.graph.inputs[0].element_type = 13;
    file.graph.outputs[0].element_type = gives;
    return std::string(Refusal(file).message());
  };
  EXPECT_EQ(refusal(Node("Neg", {"x"}, {"y"}), 13),
            "node 'y' (Neg): operator 'Neg' on uint64, which PaddlePaddle's "
            "tensors lack");
  EXPECT_EQ(refusal(Node("Clip", {"x"}, {"y"}), 13),
            "node 'y' (Clip): operator 'Clip' on uint64, which PaddlePaddle's "
            "tensors lack");
  EXPECT_EQ(refusal(Node("Identity", {"x"}, {"y"}), 7),
            "output 'y' is declared int64; it is of 64 unsigned bits");
  OnnxFile mixed = Model({Node("Add", {"x", "z"}, {"y"})});
  mixed.graph.inputs = {Input("x", {4}), Input("z", {4})};
  mixed.graph.inputs[0].element_type = 12;
  mixed.graph.inputs[1].element_type = 7;
  EXPECT_EQ(Refusal(mixed).message(),
            "node 'y' (Add): its inputs are of several types, one is uint32");
}

// Attributes out of every range: refused, whatever the node.
TEST(OnnxImport, RefusesDamagedAttributes) {
  struct Bad {
    const char* op;
    std::vector<std::string> inputs;
    std::map<std::string, int64_t> ints;
    std::map<std::string, std::string> strings = {};
  };
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const Bad& bad : std::vector<Bad>{
           {"Attention", {"q", "q", "q"}, {}},
           {"Attention", {"q", "q", "q"}, {{"q_num_heads", kHuge}}},
           {"Attention", {"q", "q", "q"}, {{"q_num_heads", -1}}},
           {"Attention",
            {"q", "q", "q"},
            {{"q_num_heads", 2}, {"kv_num_heads", 3}}},
           {"Attention", {"p", "p", "p"}, {{"qk_matmul_output_mode", 4}}},
           {"Attention", {"p", "p", "p"}, {{"left_window_size", -kHuge}}},
           {"Attention", {"x", "x", "x"}, {}},
           {"RotaryEmbedding", {"q", "x", "x"}, {}},
           {"RotaryEmbedding", {"q", "x", "x"}, {{"num_heads", kHuge}}},
           {"RotaryEmbedding",
            {"p", "x", "x"},
            {{"rotary_embedding_dim", kHuge}}},
           {"RotaryEmbedding", {"p", "x", "x"}, {{"rotary_embedding_dim", 3}}},
           {"RMSNormalization", {"x", "x"}, {{"axis", kHuge}}},
           {"RMSNormalization", {"x", "x"}, {{"axis", -3}}},
           {"TensorScatter", {"q", "q"}, {{"axis", 0}}},
           {"TensorScatter", {"q", "q"}, {{"axis", -kHuge}}},
           {"TensorScatter", {"q", "q"}, {}, {{"mode", "round"}}},
           {"CausalConvWithState", {"x", "x"}, {}},
           {"CausalConvWithState", {"q", "q"}, {}, {{"activation", "tan"}}},
           {"LinearAttention",
            {"q", "q", "q"},
            {{"q_num_heads", kHuge}, {"kv_num_heads", kHuge}},
            {{"update_rule", "linear"}}},
           {"LinearAttention",
            {"q", "q", "q"},
            {{"q_num_heads", 0}, {"kv_num_heads", 0}},
            {{"update_rule", "linear"}}},
           {"LinearAttention", {"q", "q", "q"}, {}, {{"update_rule", "?"}}},
           {"BitCast", {"x"}, {{"to", kHuge}}},
           {"BitCast", {"x"}, {{"to", 7}}},
           {"BitShift", {"x", "x"}, {}, {{"direction", "LEFT"}}},
           {"DeformConv", {"x", "x", "x"}, {}},
           {"DeformConv", {"p", "p", "p"}, {{"offset_group", 0}}},
           {"DeformConv", {"p", "p", "p"}, {{"group", -kHuge}}},
           {"GridSample", {"p", "p"}, {}, {{"mode", "quartic"}}},
           {"SpaceToDepth", {"p"}, {{"blocksize", 2}}, {{"mode", "ABC"}}},
           {"QuantizeLinear", {"q", "q"}, {{"block_size", kHuge}}},
           {"QuantizeLinear", {"q", "q"}, {{"block_size", -1}}},
           {"DequantizeLinear",
            {"q", "q"},
            {{"block_size", 2}, {"axis", kHuge}}},
           {"ScatterElements", {"x", "i", "x"}, {}, {{"reduction", "median"}}},
           {"ScatterElements", {"x", "i", "x"}, {{"axis", kHuge}}},
       }) {
    OnnxFileNode node = Node(bad.op, bad.inputs, {"y"});
    for (const auto& [name, value] : bad.ints)
      node.attrs[name] = IntAttr(value);
    for (const auto& [name, value] : bad.strings)
      node.attrs[name] = StringAttr(value);
    OnnxFile file = Model({node});
    file.opsets[""] = 28;
    file.graph.inputs = {Input("x", {2, 4}), Input("q", {2, 3, 4}),
                         Input("p", {2, 2, 4, 4}), Input("i", {2, 4})};
    file.graph.inputs[3].element_type = 7;
    const absl::Status status = Refusal(file);
    EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsOutOfRange(status) ||
                absl::IsUnimplemented(status))
        << bad.op << ": " << status;
  }
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
