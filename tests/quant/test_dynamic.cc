// SPDX-License-Identifier: Apache-2.0
// Dynamic quantization: which ops compute with integers, how near their answers
// are to the float model's, and that a record's answer does not depend on the
// others in its batch. As ONNX they are integers as well: whether ONNX Runtime
// answers so, scripts/check_interop asks it.
#include "libcore/quant/dynamic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/rng.h"
#include "libcore/deploy/onnx_export.h"
#include "libcore/deploy/onnx_import.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/train/train_program.h"
#include "tests/program/small_program.h"

namespace pd {
namespace test_dynamic {

class Dynamic : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(RegisterAllOps(&reference_).ok());
    ASSERT_TRUE(RegisterAllOps(&registry_).ok());
    ASSERT_TRUE(AttachAllKernels(&registry_).ok());
  }

  // A network with its first values.
  void Build(const std::string& shape, const std::string& layers) {
    const auto job =
        ParseJob(absl::StrCat("model { input { name: \"x\" shape: ", shape,
                              " } ", layers, " }"),
                 "job.pbtxt");
    ASSERT_TRUE(job.ok()) << job.status();
    auto program = BuildTestProgram(registry_, *job);
    ASSERT_TRUE(program.ok()) << program.status();
    Session session(&registry_);
    ASSERT_TRUE(session.RunOnce(program->startup).ok());
    NamedArrays params;
    for (const VarDesc& var : program->test.global().vars)
      if (var.persistable) params[var.name] = *session.scope().Get(var.name);
    auto model =
        Freeze(program->test, {program->inputs, program->outputs}, params);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  InferenceModel Quantized(const SkipList& skips = {}) {
    Quantization q;
    const absl::Status status = PlanDynamic(model_, skips, {}, &q);
    EXPECT_TRUE(status.ok()) << status;
    return WithDynamic(model_, q);
  }

  Array Answers(const InferenceModel& model, const Array& x,
                bool integers = true, bool fast = true) {
    Session session(fast ? &registry_ : &reference_);
    PassOptions passes;
    if (!integers) passes.disabled.insert("int8_dynamic");
    passes.observer = [&](const std::string&, const std::string& pass,
                          const ProgramDesc& program) {
      if (pass != "int8_dynamic") return absl::OkStatus();
      ops_.clear();
      for (const OpDesc& op : program.global().ops) ++ops_[op.type];
      return absl::OkStatus();
    };
    session.set_pass_options(passes);
    for (const auto& [name, value] : model.params)
      EXPECT_TRUE(session.scope().Set(name, value).ok());
    const auto results =
        session.Run(model.program, {{"x", x}}, model.names.fetches);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->begin()->second : Array();
  }

  static Array Numbers(const Shape& shape, int64_t skip = 0) {
    std::vector<float> values;
    const Philox random(3, 1);
    for (int64_t i = 0; i < NumElements(shape); ++i)
      values.push_back(
          static_cast<float>(random.Normal(static_cast<uint64_t>(i + skip))));
    return MakeArray<float>(shape, values);
  }

  // The model written as ONNX and read again; `nodes_` gets how many of each
  // type there are.
  InferenceModel ThroughOnnx(const InferenceModel& model) {
    const auto bytes = ToOnnx(registry_, model, 13);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    const auto file = ParseOnnx(*bytes, "");
    EXPECT_TRUE(file.ok()) << file.status();
    nodes_.clear();
    for (const OnnxFileNode& node : file->graph.nodes) ++nodes_[node.op_type];
    auto read = FromOnnx(registry_, *file);
    EXPECT_TRUE(read.ok()) << read.status();
    return *std::move(read);
  }

  // sqrt(sum (a - b)^2 / sum b^2)
  static double Error(const Array& a, const Array& b) {
    EXPECT_EQ(a.size(), b.size());
    double error = 0, all = 0;
    for (int64_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const double want = b.data<float>()[i];
      error += std::pow(a.data<float>()[i] - want, 2);
      all += want * want;
    }
    return std::sqrt(error / all);
  }

  OpRegistry registry_, reference_;
  InferenceModel model_;
  std::map<std::string, int> ops_, nodes_;
};

TEST_F(Dynamic, LinearLayersMultiplyIntegers) {
  Build("[-1, 40]",
        "layer { name: \"a\" linear { out_features: 64 } } layer { relu {} }"
        "layer { name: \"b\" linear { out_features: 10 } }");
  const Array x = Numbers({7, 40});
  const Array want = Answers(model_, x);
  const InferenceModel q = Quantized();
  EXPECT_EQ(q.params.at("a.weight").dtype, DType::kInt8);
  EXPECT_EQ(q.params.at("a.bias").dtype, DType::kFloat32);
  const Array got = Answers(q, x);
  EXPECT_EQ(ops_["int8_dynamic_matmul"], 2);
  EXPECT_EQ(ops_["dequantize_linear"], 0);
  EXPECT_LT(Error(got, want), 0.02);
  // As PaddlePaddle runs it: weights alone are rounded.
  const Array floats = Answers(q, x, false);
  EXPECT_LT(Error(floats, want), 0.01);
  EXPECT_GT(Error(floats, want), 0);
  EXPECT_LT(Error(Answers(q, x, true, false), got), 1e-6);
}

TEST_F(Dynamic, RecordsDoNotSeeEachOther) {
  Build("[-1, 40]", "layer { name: \"a\" linear { out_features: 9 } }");
  const InferenceModel q = Quantized();
  const Array both = Answers(q, Numbers({2, 40}));
  const Array alone = Answers(q, Numbers({1, 40}, 40));
  for (int64_t i = 0; i < 9; ++i)
    EXPECT_EQ(both.data<float>()[9 + i], alone.data<float>()[i]) << i;
}

TEST_F(Dynamic, RecurrentLayersMultiplyIntegers) {
  const char* kinds[] = {"lstm", "gru", "simple_rnn"};
  for (const char* kind : kinds) {
    Build("[-1, -1, 12]",
          absl::StrCat("layer { name: \"r\" ", kind,
                       " { hidden_size: 24 num_layers: 3 direction: "
                       "bidirectional } } layer { name: \"b\" linear { "
                       "out_features: 5 } }"));
    const Array x = Numbers({3, 6, 12});
    const Array want = Answers(model_, x);
    const InferenceModel q = Quantized();
    const Array got = Answers(q, x);
    EXPECT_EQ(ops_["int8_dynamic_rnn"], 1) << kind;
    EXPECT_EQ(ops_["rnn"], 0) << kind;
    EXPECT_EQ(ops_["int8_dynamic_matmul"], 1) << kind;
    EXPECT_LT(Error(got, want), 0.03) << kind;
    EXPECT_GT(Error(got, want), 0) << kind;
    // The cells' functions differ in last bits, which turn roundings.
    EXPECT_LT(Error(Answers(q, x, true, false), got), 0.01) << kind;
  }
}

TEST_F(Dynamic, OnnxMultipliesIntegersToo) {
  Build("[-1, 3, 40]",
        "layer { name: \"a\" linear { out_features: 64 } } layer { relu {} }"
        "layer { name: \"b\" linear { out_features: 10 } }");
  const Array x = Numbers({7, 3, 40});
  const Array want = Answers(model_, x);
  const InferenceModel q = Quantized();
  const InferenceModel read = ThroughOnnx(q);
  EXPECT_EQ(nodes_["DynamicQuantizeLinear"], 2);
  EXPECT_EQ(nodes_["MatMulInteger"], 2);
  EXPECT_EQ(nodes_["MatMul"] + nodes_["DequantizeLinear"], 0);
  const Array got = Answers(read, x);
  EXPECT_EQ(got.shape, want.shape);
  EXPECT_LT(Error(got, want), 0.02);
  EXPECT_GT(Error(got, want), 0);
}

// A layer left in floating point is so in ONNX.
TEST_F(Dynamic, OnnxOfASkippedLayer) {
  Build("[-1, 40]",
        "layer { name: \"a\" linear { out_features: 64 } }"
        "layer { name: \"b\" linear { out_features: 10 } }");
  const InferenceModel read = ThroughOnnx(Quantized({"b.weight"}));
  EXPECT_EQ(nodes_["MatMulInteger"], 1);
  EXPECT_EQ(nodes_["MatMul"], 1);
}

// Every way to say a product: each against the same product in floats.
TEST_F(Dynamic, OnnxOfEveryProduct) {
  struct Case {
    const char* type;
    std::map<std::string, Attribute> attrs;
    bool turned;
    int axis;
  };
  const Case cases[] = {
      {"matmul_v2", {{"trans_y", true}}, true, 0},
      {"matmul_v2", {{"trans_y", true}}, true, -1},
      {"matmul", {{"transpose_Y", true}}, true, 0},
      {"matmul", {}, false, 1},
      {"mul", {{"x_num_col_dims", int32_t{1}}}, false, 1},
      {"mul", {{"x_num_col_dims", int32_t{2}}}, false, -1},
      {"mul", {{"x_num_col_dims", int32_t{3}}}, false, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.type, " ", c.turned, " ", c.axis));
    const auto columns = c.attrs.count("x_num_col_dims") > 0
                             ? std::get<int32_t>(c.attrs.at("x_num_col_dims"))
                             : 3;
    const Shape shape = {2, 3, 4, 5};
    const int64_t depth =
        NumElements(Shape(shape.begin() + columns, shape.end()));
    const auto weight = QuantizeWeight(
        Numbers(c.turned ? Shape{6, depth} : Shape{depth, 6}), c.axis, {});
    ASSERT_TRUE(weight.ok()) << weight.status();
    Shape answer(shape.begin(), shape.begin() + columns);
    answer.push_back(6);
    ProgramDesc program;
    program.blocks.emplace_back();
    AddVar(&program, "x", {-1, 3, 4, 5});
    AddVar(&program, "w", weight->shape, true);
    program.global().vars.back().dtype = DType::kInt8;
    const Shape channels = {static_cast<int64_t>(weight->scales.size())};
    AddVar(&program, "scale", channels, true);
    AddVar(&program, "back", weight->shape);
    answer[0] = -1;
    AddVar(&program, "y", answer);
    AddOp(&program, "dequantize_linear",
          {{"X", {"w"}}, {"Scale", {"scale"}}, {"ZeroPoint", {"scale"}}},
          {{"Y", {"back"}}},
          {{"quant_axis", int32_t{weight->axis}}, {"bit_length", int32_t{8}}});
    OpDesc* product = AddOp(&program, c.type, {{"X", {"x"}}, {"Y", {"back"}}},
                            {{"Out", {"y"}}}, c.attrs);
    product->attrs["quantization_type"] = std::string("dynamic");
    const auto model =
        Freeze(program, {{"x"}, {"y"}},
               {{"w", weight->AsIntegers()},
                {"scale", MakeArray<float>(channels, weight->scales)}});
    ASSERT_TRUE(model.ok()) << model.status();
    const Array x = Numbers(shape);
    const Array want = Answers(*model, x, false);
    const InferenceModel read = ThroughOnnx(*model);
    EXPECT_EQ(nodes_["MatMulInteger"], 1);
    EXPECT_EQ(nodes_["DequantizeLinear"], 0);
    const Array got = Answers(read, x);
    EXPECT_EQ(got.shape, want.shape);
    EXPECT_LT(Error(got, want), 0.02);
    EXPECT_GT(Error(got, want), 0);
  }
}

TEST_F(Dynamic, LeavesWhatIsSkippedAndWhatIsNoLayer) {
  Build("[-1, 1, 8, 8]",
        "layer { name: \"c\" conv2d { out_channels: 4 kernel_size: 3 } }"
        "layer { flatten {} } layer { name: \"a\" linear { out_features: 6 } }"
        "layer { name: \"b\" linear { out_features: 6 } }");
  Quantization q;
  ASSERT_TRUE(PlanDynamic(model_, {"b.weight"}, {}, &q).ok());
  EXPECT_EQ(q.plan.ops.size(), 1u);
  EXPECT_EQ(q.plan.left.size(), 2u);
  const absl::Status none = PlanDynamic(model_, {"matmul_v2"}, {}, &q);
  EXPECT_TRUE(absl::StrContains(none.message(), "no linear")) << none;
}

}  // namespace test_dynamic
}  // namespace pd
