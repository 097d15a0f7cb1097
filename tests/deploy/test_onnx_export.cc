// SPDX-License-Identifier: Apache-2.0
// Structure: every opset passes ONNX's checker (ToOnnx runs it), and ops that
// differ between opsets become the nodes they should. That the numbers agree
// with PaddlePaddle, scripts/check_interop asks ONNX Runtime.
#include "libcore/deploy/onnx_export.h"

#include <onnx/onnx_pb.h>

#include "tests/deploy/deploy_fixture.h"
#include "tests/ops/registry.h"
#include "tests/program/small_program.h"

namespace pd {
namespace test_onnx_export {

onnx::ModelProto Parsed(const absl::StatusOr<std::string>& bytes) {
  onnx::ModelProto model;
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  if (bytes.ok()) EXPECT_TRUE(model.ParseFromString(*bytes));
  return model;
}

std::vector<std::string> NodeTypes(const onnx::ModelProto& model) {
  std::vector<std::string> types;
  for (const auto& node : model.graph().node()) types.push_back(node.op_type());
  return types;
}

using Strings = std::vector<std::string>;

// A program of one op of `type` on x [-1, 4, 6] with the one output "y".
struct OneOp {
  explicit OneOp(const std::string& type,
                 std::map<std::string, Attribute> attrs = {},
                 Shape shape = {-1, 4, 6}, const std::string& out = "Out") {
    program.blocks.emplace_back();
    AddVar(&program, "x", shape);
    AddVar(&program, "y", shape);
    op =
        AddOp(&program, type, {{"X", {"x"}}}, {{out, {"y"}}}, std::move(attrs));
  }
  void Param(const std::string& slot, const std::string& name, Shape shape) {
    AddVar(&program, name, shape, true);
    op->SetInput(slot, {name});
    const auto n = static_cast<size_t>(NumElements(shape));
    params[name] = MakeArray(std::move(shape), std::vector<float>(n, 1.0f));
  }
  absl::StatusOr<std::string> Onnx(int opset) const {
    PD_ASSIGN_OR_RETURN(const InferenceModel model,
                        Freeze(program, {{"x"}, {"y"}}, params));
    return ToOnnx(Registry(), model, opset);
  }
  Strings Nodes(int opset) const { return NodeTypes(Parsed(Onnx(opset))); }

  ProgramDesc program;
  OpDesc* op;
  NamedArrays params;
};

TEST(OnnxExport, SavedModelsAtEveryOpset) {
  for (const std::string name : {"lenet", "cifar_resnet"}) {
    const auto model = ReadInferenceModel(DeployData(name));
    ASSERT_TRUE(model.ok()) << model.status();
    for (int opset = kMinOnnxOpset; opset <= kMaxOnnxOpset; ++opset) {
      const onnx::ModelProto onnx = Parsed(ToOnnx(Registry(), *model, opset));
      ASSERT_EQ(onnx.opset_import_size(), 1);
      EXPECT_EQ(onnx.opset_import(0).version(), opset);
      EXPECT_EQ(onnx.producer_name(), "pdkit");
      EXPECT_EQ(onnx.graph().initializer_size() >=
                    static_cast<int>(model->params.size()),
                true);
    }
  }
}

TEST(OnnxExport, InterfaceOfLeNet) {
  const auto model = ReadInferenceModel(DeployData("lenet"));
  ASSERT_TRUE(model.ok()) << model.status();
  const onnx::ModelProto onnx = Parsed(ToOnnx(Registry(), *model, 13));
  EXPECT_EQ(onnx.ir_version(), 7);
  ASSERT_EQ(onnx.graph().input_size(), 1);
  const auto& input = onnx.graph().input(0);
  EXPECT_EQ(input.name(), "x");
  const auto& in_shape = input.type().tensor_type().shape();
  ASSERT_EQ(in_shape.dim_size(), 4);
  EXPECT_EQ(in_shape.dim(0).dim_param(), "batch");
  EXPECT_EQ(in_shape.dim(2).dim_value(), 28);
  ASSERT_EQ(onnx.graph().output_size(), 1);
  const auto& output = onnx.graph().output(0);
  EXPECT_EQ(output.name(), model->names.fetches[0]);
  const auto& out_shape = output.type().tensor_type().shape();
  ASSERT_EQ(out_shape.dim_size(), 2);
  EXPECT_EQ(out_shape.dim(0).dim_param(), "batch");
  EXPECT_EQ(out_shape.dim(1).dim_value(), 10);
  EXPECT_EQ(
      NodeTypes(onnx),
      (Strings{"Conv", "Relu", "MaxPool", "Conv", "Relu", "MaxPool", "Flatten",
               "MatMul", "Add", "MatMul", "Add", "MatMul", "Add", "Identity"}));
  for (const int conv : {0, 3})
    EXPECT_EQ(onnx.graph().node(conv).input_size(), 3);  // with its bias
}

TEST(OnnxExport, IrVersionFollowsTheOpset) {
  const int64_t versions[] = {4, 5, 6, 7, 7, 7, 8, 8, 8};
  for (int opset = kMinOnnxOpset; opset <= kMaxOnnxOpset; ++opset)
    EXPECT_EQ(Parsed(OneOp("relu").Onnx(opset)).ir_version(),
              versions[opset - kMinOnnxOpset]);
}

TEST(OnnxExport, OpsetDifferences) {
  const OneOp hard_swish("hard_swish");
  EXPECT_EQ(hard_swish.Nodes(13), (Strings{"Add", "Clip", "Mul", "Div"}));
  EXPECT_EQ(hard_swish.Nodes(14), Strings{"HardSwish"});

  const OneOp softmax("softmax", {{"axis", int32_t{1}}});
  EXPECT_EQ(softmax.Nodes(12), (Strings{"Transpose", "Softmax", "Transpose"}));
  EXPECT_EQ(softmax.Nodes(13), Strings{"Softmax"});

  OneOp layer_norm("layer_norm", {{"begin_norm_axis", int32_t{2}}}, {-1, 4, 6},
                   "Y");
  layer_norm.Param("Scale", "scale", {6});
  EXPECT_EQ(layer_norm.Nodes(17), Strings{"LayerNormalization"});
  EXPECT_EQ(layer_norm.Nodes(16),
            (Strings{"ReduceMean", "Sub", "Mul", "ReduceMean", "Add", "Sqrt",
                     "Div", "Mul"}));

  const OneOp triangle("tril_triu", {{"diagonal", int32_t{1}}});
  EXPECT_EQ(triangle.Nodes(14), Strings{"Trilu"});
  EXPECT_EQ(triangle.Nodes(13),
            (Strings{"Shape", "Gather", "Range", "Unsqueeze", "Shape", "Gather",
                     "Range", "Sub", "Less", "Where"}));
  EXPECT_EQ(triangle.Onnx(10).status().code(),
            absl::StatusCode::kUnimplemented);

  const OneOp unstack("unstack", {{"axis", int32_t{2}}, {"num", int32_t{1}}},
                      {-1, 4, 1}, "Y");
  EXPECT_EQ(unstack.Nodes(13), Strings{"Gather"});
  EXPECT_EQ(unstack.Nodes(9), Strings{"Gather"});

  // Bounds and axes are attributes first and inputs later.
  for (const char* type : {"relu6", "unsqueeze2", "reduce_sum"}) {
    const OneOp op(type, {{"axes", std::vector<int32_t>{1}},
                          {"dim", std::vector<int32_t>{1}},
                          {"keep_dim", true}});
    const auto before = Parsed(op.Onnx(10)), after = Parsed(op.Onnx(13));
    EXPECT_EQ(before.graph().node(0).input_size(), 1) << type;
    EXPECT_GT(after.graph().node(0).input_size(), 1) << type;
    EXPECT_GT(before.graph().node(0).attribute_size(),
              after.graph().node(0).attribute_size())
        << type;
  }
}

TEST(OnnxExport, DropoutInTestMode) {
  const OneOp older("dropout", {{"dropout_prob", 0.25f}});
  EXPECT_EQ(older.Nodes(13), Strings{"Mul"});
  const OneOp newer(
      "dropout", {{"dropout_prob", 0.25f},
                  {"dropout_implementation", std::string("upscale_in_train")}});
  EXPECT_EQ(newer.Nodes(13), Strings{"Identity"});  // the output has a name
}

// PaddlePaddle puts Y's dimensions at X's from `axis` on.
TEST(OnnxExport, BroadcastAxis) {
  OneOp add("elementwise_add", {{"axis", int32_t{1}}});
  add.Param("Y", "bias", {4});
  const onnx::ModelProto onnx = Parsed(add.Onnx(9));
  ASSERT_EQ(onnx.graph().initializer_size(), 1);
  ASSERT_EQ(onnx.graph().initializer(0).dims_size(), 2);
  EXPECT_EQ(onnx.graph().initializer(0).dims(0), 4);
  EXPECT_EQ(onnx.graph().initializer(0).dims(1), 1);
}

TEST(OnnxExport, AdaptivePoolWithUnevenWindows) {
  const OneOp pool("pool2d",
                   {{"pooling_type", std::string("avg")},
                    {"adaptive", true},
                    {"ksize", std::vector<int32_t>{2, 3}}},
                   {-1, 2, 4, 7});
  const Strings nodes = pool.Nodes(11);
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "Slice"), 5);
  EXPECT_EQ(std::count(nodes.begin(), nodes.end(), "ReduceMean"), 5);
}

// A variable that is written twice gets two values; the last has its name.
TEST(OnnxExport, ValuesHaveOneMaker) {
  OneOp twice("relu");
  AddOp(&twice.program, "tanh", {{"X", {"y"}}}, {{"Out", {"y"}}});
  const onnx::ModelProto onnx = Parsed(twice.Onnx(13));
  ASSERT_EQ(onnx.graph().node_size(), 2);
  EXPECT_NE(onnx.graph().node(0).output(0), "y");
  EXPECT_EQ(onnx.graph().node(1).input(0), onnx.graph().node(0).output(0));
  EXPECT_EQ(onnx.graph().node(1).output(0), "y");
}

TEST(OnnxExport, Refusals) {
  const auto message = [](const absl::StatusOr<std::string>& result) {
    return std::string(result.status().message());
  };
  EXPECT_EQ(message(OneOp("relu").Onnx(8)),
            "opset 8 cannot be written; it must be in [9, 17]");
  EXPECT_EQ(message(OneOp("relu_").Onnx(13)),
            "block 0, op 0 'relu_', which makes 'y': it cannot be exported to "
            "ONNX; 'relu' can");
  // Another op whose name is alike is no help.
  EXPECT_EQ(message(OneOp("crop").Onnx(13)),
            "block 0, op 0 'crop', which makes 'y': it cannot be exported to "
            "ONNX");
  EXPECT_EQ(message(OneOp("softmax_v2").Onnx(13)),
            "block 0, op 0 'softmax_v2', which makes 'y': it cannot be "
            "exported to ONNX; 'softmax' can");
  EXPECT_EQ(
      message(OneOp("cumsum", {{"axis", int32_t{1}}}).Onnx(9)),
      "block 0, op 0 'cumsum', which makes 'y': opset 9 has no CumSum; it "
      "needs opset >= 11");
  OneOp pow("pow", {{"factor", 2.0f}});
  for (VarDesc& var : pow.program.global().vars) var.dtype = DType::kInt32;
  const std::string checker = message(pow.Onnx(9));
  EXPECT_EQ(checker.find("op 'pow': ONNX's checker refuses it: "), 0u)
      << checker;
  EXPECT_NE(checker.find("; it needs opset >= 12"), std::string::npos)
      << checker;
  // An input that no converter asked for is never dropped silently.
  OneOp scale("relu");
  scale.Param("Scale", "s", {1});
  EXPECT_EQ(message(scale.Onnx(13)),
            "block 0, op 0 'relu', which makes 'y': input 'Scale' ('s') has no "
            "counterpart in ONNX");
}

// One line for an op type and reason, and what reads their outputs is not
// blamed.
TEST(OnnxExport, AllRefusalsAtOnce) {
  OneOp ops("crop");
  for (const char* type : {"cumsum", "relu", "crop", "cumsum"})
    AddOp(&ops.program, type, {{"X", {"y"}}}, {{"Out", {"y"}}});
  EXPECT_EQ(ops.Onnx(9).status().message(),
            "4 operators cannot be written as ONNX of opset 9:\n"
            "  block 0, op 0 'crop', which makes 'y' (and 1 more): it cannot "
            "be exported to ONNX\n"
            "  block 0, op 1 'cumsum', which makes 'y' (and 1 more): opset 9 "
            "has no CumSum; it needs opset >= 11");
}

TEST(OnnxExport, FileSurvivesAFailure) {
  const std::string path = EmptyFolder() + "/new/model.onnx";
  const auto model = ReadInferenceModel(DeployData("lenet"));
  ASSERT_TRUE(model.ok());
  ASSERT_TRUE(WriteOnnxModel(Registry(), *model, 13, path).ok());
  const std::string old = Contents(path);
  EXPECT_FALSE(old.empty());
  EXPECT_FALSE(WriteOnnxModel(Registry(), *model, 8, path).ok());
  EXPECT_EQ(Contents(path), old);
}

}  // namespace test_onnx_export
}  // namespace pd
