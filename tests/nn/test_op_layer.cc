// SPDX-License-Identifier: Apache-2.0
// Any operator as a layer: the op that it appends, what it gives, its gradient,
// and what is said about a call that does not fit the operator's schema.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/nn/build.h"
#include "libcore/nn/job.h"
#include "libcore/program/text_dump.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_op_layer {

absl::StatusOr<BuiltModel> Build(const std::string& text,
                                 const std::vector<std::string>& changes = {}) {
  const auto job = ParseJob(text, "job.pbtxt", changes);
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

// A model of inputs x and y, and these lines, which start at line 4.
std::string Model(const std::string& lines, const std::string& behind = "") {
  return absl::StrCat("model {\n  input { name: \"x\" shape: [-1, 4] }\n",
                      "  input { name: \"y\" shape: [-1, 4] }\n", lines,
                      "\n}\n", behind);
}

std::string ErrorOf(const std::string& lines, const std::string& behind = "") {
  const auto built = Build(Model(lines, behind));
  return built.ok() ? "no error" : std::string(built.status().message());
}

// The layer `said`, reading x.
std::string OpError(const std::string& said) {
  return ErrorOf("layer { name: \"l\" input: \"x\"\nop { " + said + " } }");
}

std::string ProgramOf(const std::string& layer) {
  const auto built = Build(Model(layer));
  return built.ok() ? DumpProgram(built->main)
                    : std::string(built.status().message());
}

// A layer and the same by its operator give the same program, to the last
// attribute: neither costs more than the other.
TEST(OpLayer, AppendsTheOpOfTheTypedLayer) {
  const std::vector<std::pair<std::string, std::string>> kSame = {
      {"erf {}", "op { type: erf }"},
      {"relu {}", "op { type: \"relu\" }"},
      {"scale { scale: 2.5 bias: -1 }",
       "op { type: scale attr { name: scale value: 2.5 } attr { name: bias "
       "value: -1 } }"},
      {"clip { min: -0.5 max: 1 }",
       "op { type: clip attr { name: min value: -0.5 } attr { name: max value: "
       "1.0 } }"},
      {"sum { axis: 1 keepdim: true }",
       "op { type: reduce_sum attr { name: dim value: [1] } attr { name: "
       "keep_dim value: true } }"},
      {"unsqueeze { axis: [0, -1] }",
       "op { type: unsqueeze2 attr { name: axes value: [0, -1] } }"},
      {"topk { k: 2 axis: -1 }",
       "op { type: top_k_v2 attr { name: k value: 2 } attr { name: axis value: "
       "-1 } }"},
      {"cast { dtype: int64 }",
       "op { type: cast attr { name: in_dtype value: float32 } attr { name: "
       "out_dtype value: int64 } }"},
      {"dropout { p: 0.25 }",
       "op { type: dropout attr { name: dropout_prob value: 0.25 } attr { "
       "name: dropout_implementation value: \"upscale_in_train\" } }"},
  };
  for (const auto& [typed, any] : kSame)
    EXPECT_EQ(
        ProgramOf(
            absl::StrCat("layer { name: \"l\" input: \"x\" ", typed, "}")),
        ProgramOf(absl::StrCat("layer { name: \"l\" input: \"x\" ", any, "}")))
        << any;
  for (const auto& [typed, any] :
       {std::make_pair("subtract {}", "op { type: elementwise_sub }"),
        std::make_pair("matmul { transpose_y: true }",
                       "op { type: matmul_v2 attr { name: trans_y value: true "
                       "} }"),
        std::make_pair("stack { axis: 1 }",
                       "op { type: stack attr { name: axis value: 1 } }"),
        std::make_pair("concat { axis: -1 }",
                       "op { type: concat attr { name: axis value: -1 } }")})
    EXPECT_EQ(ProgramOf(absl::StrCat(
                  "layer { input: [\"x\", \"y\"] name: \"l\" ", typed, "}")),
              ProgramOf(absl::StrCat(
                  "layer { input: [\"x\", \"y\"] name: \"l\" ", any, "}")))
        << any;
}

TEST(OpLayer, ReadsTheLayerBeforeIt) {
  const auto built = Build(
      "model { input { name: \"x\" shape: [-1, 4] } layer { relu {} } layer { "
      "op { type: tanh } } }");
  ASSERT_TRUE(built.ok()) << built.status();
  const auto& ops = built->main.global().ops;
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[1].In("X"), ops[0].Out("Out"));
  EXPECT_EQ(built->layers[1].name, "op_0");
  EXPECT_EQ(built->layers[1].kind, "tanh");
}

TEST(OpLayer, SlotsByName) {
  const auto built = Build(Model(
      "layer { name: \"w\" op { type: where input { slot: \"Y\" from: \"y\" } "
      "input { slot: Condition from: \"c\" } } input: \"x\" }"));
  // Nothing is called 'c'.
  ASSERT_FALSE(built.ok());
  EXPECT_EQ(built.status().message().substr(0, 20), "job.pbtxt:4:1: 'inpu");
  const auto right = Build(
      Model("layer { name: \"c\" input: [\"x\", \"y\"] less_than {} }\n"
            "layer { name: \"w\" op { type: where input { slot: \"Y\" from: "
            "\"y\" } input { slot: Condition from: \"c\" } } input: \"x\" }"));
  ASSERT_TRUE(right.ok()) << right.status();
  const OpDesc& op = right->main.global().ops.back();
  EXPECT_EQ(op.In("X"), "x");
  EXPECT_EQ(op.In("Y"), "y");
  EXPECT_EQ(op.In("Condition"), right->main.global().ops[0].Out("Out"));
}

// Every output is read by its slot, lists by their numbers.
TEST(OpLayer, OutputsByName) {
  const auto built = Build(Model(
      "layer { name: \"t\" input: \"x\" op { type: top_k_v2 attr { name: k "
      "value: 2 } output { slot: Indices } } }\n"
      "layer { name: \"s\" input: \"y\" op { type: split attr { name: num "
      "value: 2 } attr { name: axis value: 1 } output { slot: Out count: 2 } } "
      "}\n"
      "layer { name: \"sum\" input: [\"t:Out\", \"s:Out.1\"] add {} }\n"
      "output: [\"t\", \"s\", \"sum\"]"));
  ASSERT_TRUE(built.ok()) << built.status();
  Session session(&ReferenceRegistry(), 1);
  const NamedArrays feeds = {
      {"x", MakeArray({1, 4}, std::vector<float>{3, 7, 1, 5})},
      {"y", MakeArray({1, 4}, std::vector<float>{10, 20, 30, 40})}};
  const auto results = session.Run(built->main, feeds, built->outputs);
  ASSERT_TRUE(results.ok()) << results.status();
  const Array& places = results->at(built->outputs[0]);
  ASSERT_EQ(places.dtype, DType::kInt64);
  EXPECT_EQ(places.data<int64_t>()[0], 1);
  EXPECT_EQ(places.data<int64_t>()[1], 3);
  EXPECT_EQ(results->at(built->outputs[1]).data<float>()[1], 20);
  EXPECT_EQ(results->at(built->outputs[2]).data<float>()[0], 37);
  EXPECT_EQ(results->at(built->outputs[2]).data<float>()[1], 45);
}

// A parameter is that of the typed layer, under the slot's name: the same
// gradient, one learning rate, one initial value.
TEST(OpLayer, ParametersLearn) {
  const auto job = [](const std::string& layer) {
    return absl::StrCat(
        "model { input { name: \"x\" shape: [-1, 3] dtype: int64 } layer { "
        "name: \"words\" ",
        layer, " } } loss { value { reduction: sum } }");
  };
  const auto any = Build(
      job("op { type: lookup_table_v2 parameter { slot: W shape: [5, 2] attr { "
          "initializer { constant { value: 2 } } learning_rate: 0.5 } } }"));
  const auto typed = Build(
      job("embedding { num_embeddings: 5 embedding_dim: 2 weight_attr { name: "
          "\"words.W\" initializer { constant { value: 2 } } learning_rate: "
          "0.5 } }"));
  ASSERT_TRUE(any.ok()) << any.status();
  ASSERT_TRUE(typed.ok()) << typed.status();
  EXPECT_EQ(DumpProgram(any->startup), DumpProgram(typed->startup));
  ASSERT_EQ(any->parameters.size(), 1u);
  EXPECT_EQ(any->parameters[0].name, "words.W");
  EXPECT_EQ(any->parameters[0].learning_rate, 0.5);
  ProgramDesc main = any->main;
  BackwardOptions options;
  options.targets[any->loss] = "";
  const auto gradients = AppendBackward(ReferenceRegistry(), options, &main);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  Session session(&ReferenceRegistry(), 1);
  ASSERT_TRUE(session.RunOnce(any->startup).ok());
  const std::string gradient = gradients->at("words.W");
  const auto results = session.Run(
      main, {{"x", MakeArray({1, 3}, std::vector<int64_t>{4, 0, 4})}},
      {gradient, any->loss});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at(any->loss).data<float>()[0], 12);  // 6 numbers of 2
  const float* rows = results->at(gradient).data<float>();
  EXPECT_EQ(std::vector<float>(rows, rows + 10),
            (std::vector<float>{1, 1, 0, 0, 0, 0, 0, 0, 2, 2}));
}

// d/dx sum(log(1 + x^2)) through two operators without a layer of their own.
TEST(OpLayer, GradientsComeWithTheOperator) {
  auto built = Build(
      "model { input { name: \"x\" shape: [-1, 2] } layer { name: \"l\" op { "
      "type: logit attr { name: eps value: 0.0 } } } }");
  ASSERT_TRUE(built.ok()) << built.status();
  BackwardOptions options;
  options.targets[built->outputs[0]] = "";
  options.wrt = {"x"};
  const auto gradients =
      AppendBackward(ReferenceRegistry(), options, &built->main);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  Session session(&ReferenceRegistry(), 1);
  const std::string y = built->outputs[0], dx = gradients->at("x");
  const auto results = session.Run(
      built->main, {{"x", MakeArray({1, 2}, std::vector<float>{0.25f, 0.9f})}},
      {y, dx});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_NEAR(results->at(y).data<float>()[0], std::log(1.0 / 3), 1e-5);
  EXPECT_NEAR(results->at(dx).data<float>()[0], 1 / (0.25 * 0.75), 1e-4);
  EXPECT_NEAR(results->at(dx).data<float>()[1], 1 / (0.9 * 0.1), 1e-4);
}

TEST(OpLayer, InABlockWithArguments) {
  const std::string text =
      "model { input { name: \"x\" shape: [-1, 4] } block { name: \"b\" "
      "argument { name: \"factor\" sets: \"s.op.attr[scale].value\" } argument "
      "{ name: \"rows\" sets: \"w.op.parameter[0].shape\" } layer { name: "
      "\"s\" op { type: scale attr { name: scale value: 2.0 } } } layer { "
      "name: \"w\" op { type: matmul_v2 parameter { slot: Y shape: [4, 4] } } "
      "} } layer { name: \"u\" block { use: \"b\" set: \"factor=3\" set: "
      "\"rows=[4, 7]\" } } }";
  const auto built = Build(text);
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->main.global().ops[0].AttrOr("scale", 0.0f), 3.0f);
  ASSERT_EQ(built->parameters.size(), 1u);
  EXPECT_EQ(built->parameters[0].name, "u.w.Y");
  EXPECT_EQ(ToString(built->main.global().FindVar("u.w.Y")->shape), "[4, 7]");
}

TEST(OpLayer, ChangesAndTheEffectiveText) {
  const std::string text = Model(
      "layer { name: \"l\" input: \"x\" op { type: scale attr { name: scale "
      "value: -2 } } }");
  const auto job = ParseJob(text, "job.pbtxt",
                            {"model.layer[l].op.attr[scale].value=-1.5e1"});
  ASSERT_TRUE(job.ok()) << job.status();
  const auto again = ParseJob(job->EffectiveText(), "run/job.pbtxt");
  ASSERT_TRUE(again.ok()) << again.status();
  for (const LoadedJob* one : {&*job, &*again}) {
    const auto built = BuildModel(*one, ReferenceRegistry());
    ASSERT_TRUE(built.ok()) << built.status();
    EXPECT_EQ(built->main.global().ops[0].AttrOr("scale", 0.0f), -15.0f);
  }
}

TEST(OpLayer, SaysWhatDoesNotFit) {
  EXPECT_EQ(OpError("type: \"ft_c2c\""),
            "job.pbtxt:4:1: unknown operator 'ft_c2c', did you mean "
            "'fft_c2c'?");
  EXPECT_EQ(OpError("type: softmax\nattr { name: axi value: 1 }"),
            "job.pbtxt:6:1: operator 'softmax' has no attribute 'axi', did you "
            "mean 'axis'?");
  EXPECT_EQ(OpError("type: softmax\nattr { name: axis value: 1.5 }"),
            "job.pbtxt:6:1: attribute 'axis' takes an integer; got '1.5'");
  EXPECT_EQ(OpError("type: softmax attr { name: axis value: 1 }\n"
                    "attr { name: axis value: 1 }"),
            "job.pbtxt:6:1: attribute 'axis' is given twice");
  EXPECT_EQ(OpError("type: softmax attr { name: axis value: [1, 2] }"),
            "job.pbtxt:5:20: attribute 'axis' takes an integer; got '1', '2'");
  EXPECT_EQ(OpError("type: reduce_sum attr { name: keep_dim value: 2 }"),
            "job.pbtxt:5:23: attribute 'keep_dim' takes true or false; got "
            "'2'");
  EXPECT_EQ(OpError("type: cast attr { name: out_dtype value: float31 } attr "
                    "{ name: in_dtype value: float32 }"),
            "job.pbtxt:5:17: attribute 'out_dtype' takes an element type, like "
            "float32, or its number; got 'float31'");
  EXPECT_EQ(OpError("type: softmax\ninput { slot: \"Y\" from: \"y\" }"),
            "job.pbtxt:6:1: operator 'softmax' has no input 'Y', did you mean "
            "'X'?");
  EXPECT_EQ(OpError("type: softmax\ninput { slot: X from: [\"x\", \"y\"] }"),
            "job.pbtxt:6:1: input 'X' takes one layer; 'from' names 2");
  EXPECT_EQ(OpError("type: softmax\noutput { slot: Result }"),
            "job.pbtxt:6:1: operator 'softmax' has no output 'Result'; it has "
            "'Out'");
  EXPECT_EQ(OpError("type: softmax\noutput { slot: Out count: 2 }"),
            "job.pbtxt:6:1: output 'Out' gives one result; 'count' is 2");
  EXPECT_EQ(OpError("type: softmax input { slot: X from: \"y\" }"),
            "job.pbtxt:4:1: operator 'softmax' has no slot for input 'x'; the "
            "layer names 1 inputs for 0 open slots");
  EXPECT_EQ(OpError("type: elementwise_sub"),
            "job.pbtxt:4:1: operator 'elementwise_sub' needs inputs for 'X', "
            "'Y'; the layer names 1");
  EXPECT_EQ(OpError("type: one_hot_v2 input { slot: X from: \"z\" }"),
            "job.pbtxt:4:1: 'input[0].from' of layer 'l' reads 'z'; no layer "
            "before it and no input has that name, did you mean 'x'?");
  EXPECT_EQ(OpError("type: matmul_v2\nparameter { slot: X shape: [4, 4] } "
                    "parameter { slot: X shape: 4 }"),
            "job.pbtxt:6:37: input 'X' is given twice");
}

// An error of the operator's own inference names layer and shapes.
TEST(OpLayer, SaysWhatTheOperatorFinds) {
  const std::string error =
      OpError("type: matmul_v2\nparameter { slot: Y shape: [5, 2] }");
  const std::string begins =
      "job.pbtxt:4:1: layer 'l' (matmul_v2) reads [-1, 4] of input 'x': op";
  EXPECT_EQ(error.substr(0, begins.size()), begins);
}

TEST(OpLayer, RefusesWhatIsNoLayer) {
  const std::string at = "job.pbtxt:4:1: operator '";
  for (const auto& [type, reason] :
       {std::make_pair("while", "runs or chooses blocks"),
        std::make_pair("conditional_block", "runs or chooses blocks"),
        std::make_pair("feed", "reads or writes outside"),
        std::make_pair("save_combine", "reads or writes outside"),
        std::make_pair("print", "reads or writes outside"),
        std::make_pair("write_to_array", "works on tensor arrays"),
        std::make_pair("sequence_pool", "works on sequences with LoD"),
        std::make_pair("relu_grad", "is the gradient of another"),
        std::make_pair("adam", "updates its input 'Param'"),
        std::make_pair("batch_norm", "updates its input 'Mean'"),
        std::make_pair("int8_conv2d", "computes in 8 bits")}) {
    const std::string start =
        absl::StrCat(at, type, "' cannot be a layer: it ", reason);
    EXPECT_EQ(OpError(absl::StrCat("type: ", type)).substr(0, start.size()),
              start);
  }
}

TEST(OpLayer, WithoutAGradientOnTheWayToTheLoss) {
  const std::string head =
      "layer { name: \"fc\" input: \"x\" linear { out_features: 3 } }\n";
  const std::string tail =
      "\nlayer { name: \"out\" linear { out_features: 1 } }";
  const std::string op = "layer { name: \"b\" op { type: bernoulli } }";
  EXPECT_EQ(ErrorOf(head + op + tail, "loss { mse_loss {} }"),
            "job.pbtxt:5:1: layer 'b': operator 'bernoulli' has no gradient, "
            "and the parameter 'fc.weight' reaches the loss through it; put a "
            "layer detach {} before it where nothing is to be learned through "
            "it");
  EXPECT_EQ(
      ErrorOf(head + "layer { name: \"b\" custom { op: bernoulli } }" + tail,
              "loss { mse_loss {} }"),
      ErrorOf(head + op + tail, "loss { mse_loss {} }"));
  EXPECT_EQ(ErrorOf(head + "layer { detach {} }\n" + op + tail,
                    "loss { mse_loss {} }"),
            "no error");
  // No parameter is before it.
  EXPECT_EQ(
      ErrorOf(
          "layer { name: \"b\" input: \"x\" op { type: bernoulli } }" + tail,
          "loss { mse_loss {} }"),
      "no error");
  // The loss is on another way.
  EXPECT_EQ(
      ErrorOf(head + op + "\nlayer { name: \"out\" input: \"fc\" tanh {} }\n" +
                  "output: [\"b\", \"out\"]",
              "loss { input: \"out\" mse_loss {} }"),
      "no error");
  // Whole numbers pass no gradient, whatever makes them.
  EXPECT_EQ(ErrorOf(head +
                        "layer { op { type: arg_max attr { name: axis value: "
                        "1 } } }\nlayer { cast { dtype: float32 } }" +
                        "\nlayer { unsqueeze { axis: 1 } }" + tail,
                    "loss { mse_loss {} }"),
            "no error");
}

// `custom` says the same of an operator, which has to be there.
TEST(OpLayer, CustomIsTheSameOfAPlugInsOperator) {
  EXPECT_EQ(ProgramOf("layer { input: \"x\" custom { op: scale attr { name: "
                      "bias value: 2 } } }"),
            ProgramOf("layer { input: \"x\" op { type: scale attr { name: "
                      "bias value: 2 } } }"));
  EXPECT_EQ(ErrorOf("layer { name: \"l\" input: \"x\"\n"
                    "custom { op: custom_relu } }"),
            "job.pbtxt:4:1: no plug-in has an operator "
            "'custom_relu'; name its library with --plugin");
}

// Of all operators here, each says that it cannot be a layer, or fails with a
// message about the call; none ends the program.
TEST(OpLayer, AnyTypeGivesAnAnswer) {
  for (const OpDef* def : ReferenceRegistry().All()) {
    const auto built = Build(Model(absl::StrCat(
        "layer { name: \"l\" input: [\"x\", \"y\"] op { type: ", def->type(),
        " } }")));
    if (built.ok()) continue;
    EXPECT_TRUE(absl::IsInvalidArgument(built.status()) ||
                absl::IsUnimplemented(built.status()))
        << def->type() << ": " << built.status();
    EXPECT_EQ(built.status().message().substr(0, 14), "job.pbtxt:4:1:")
        << def->type();
  }
}

}  // namespace test_op_layer
}  // namespace pd
