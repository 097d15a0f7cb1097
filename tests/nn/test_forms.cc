// SPDX-License-Identifier: Apache-2.0
// Layers and losses in one form of the network (`when`), and parameter groups.
#include "libcore/nn/forms.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_forms {

absl::StatusOr<BuiltModel> Build(const std::string& lines,
                                 const std::string& rest = "") {
  const auto job =
      ParseJob(absl::StrCat("model { input { name: \"x\" shape: [-1, 2] }\n",
                            lines, "\n}\n", rest),
               "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

std::string ErrorOf(const std::string& lines, const std::string& rest = "") {
  const auto built = Build(lines, rest);
  return built.ok() ? "no error" : std::string(built.status().message());
}

std::string Types(const ProgramDesc& program) {
  std::vector<std::string> types;
  for (const OpDesc& op : program.global().ops) types.push_back(op.type);
  return absl::StrJoin(types, " ");
}

std::vector<float> RunFor(const ProgramDesc& program, const std::string& fetch,
                          const NamedArrays& feeds, Session* session) {
  const auto results = session->Run(program, feeds, {fetch});
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) return {};
  const Array& array = results->at(fetch);
  return std::vector<float>(array.data<float>(),
                            array.data<float>() + NumElements(array.shape));
}

// w = 3 and 5 by `assign`: training gives 10 * 3x + 5x, evaluation 3x - 5x.
TEST(Forms, EachHasItsLayersAndOneSetOfParameters) {
  const std::string linear =
      "linear { out_features: 1 bias: false weight_attr "
      "{ initializer { constant { value: ";
  const auto built = Build(
      absl::StrCat(
          "layer { ", linear, "3 } } } } }\n",
          "layer { name: \"a\" when: train scale { scale: 10 } }\n"
          "layer { name: \"a\" when: eval identity {} }\n"
          "layer { name: \"b\" input: \"x\" ",
          linear, "5 } } } } }\n",
          "layer { when: train input: [\"a\", \"b\"] name: \"c\" add {} }\n"
          "layer { when: eval input: [\"a\", \"b\"] name: \"c\" subtract {} }"),
      "loss { mse_loss {} }\nloss { when: train weight: 2 l1_loss {} }");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(Types(built->main),
            "matmul_v2 scale matmul_v2 elementwise_add elementwise_sub square "
            "reduce_mean elementwise_sub abs reduce_mean scale sum assign "
            "assign");
  EXPECT_EQ(Types(built->test),
            "matmul_v2 matmul_v2 elementwise_sub elementwise_sub square "
            "reduce_mean assign assign");
  EXPECT_EQ(built->parameters.size(), 2u);
  Session session(&ReferenceRegistry(), 1);
  ASSERT_TRUE(session.RunOnce(built->startup).ok());
  const NamedArrays feeds = {
      {"x", MakeArray({1, 2}, std::vector<float>{1, 1})},
      {"label", MakeArray({1, 1}, std::vector<float>{0})}};
  EXPECT_EQ(RunFor(built->main, built->outputs[0], feeds, &session),
            std::vector<float>{70});
  EXPECT_EQ(RunFor(built->main, built->loss, feeds, &session),
            std::vector<float>{4900 + 2 * 70});
  EXPECT_EQ(RunFor(built->test, built->outputs[0], feeds, &session),
            std::vector<float>{-4});
  EXPECT_EQ(RunFor(built->test, built->loss, feeds, &session),
            std::vector<float>{16});
}

// A job without `when` is built as ever: the result needs no other name.
TEST(Forms, CostNothingWhereThereIsOne) {
  const auto built = Build("layer { linear { out_features: 1 } }");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(Types(built->main), "matmul_v2 elementwise_add");
  EXPECT_EQ(Types(built->test), "matmul_v2 elementwise_add");
}

TEST(Forms, SayWhatIsMissingWhere) {
  EXPECT_EQ(
      ErrorOf("layer { when: train name: \"a\" relu {} }\n"
              "layer { input: \"a\" relu {} }"),
      "job.pbtxt:3:1: layer 'relu_1' reads 'a'; no layer before it and no "
      "input has that name, did you mean 'x'? (in the network's form for "
      "evaluation)");
  EXPECT_EQ(ErrorOf("layer { when: eval name: \"a\" linear { out_features: 2 } "
                    "}\nlayer { relu {} }"),
            "job.pbtxt:1:1: 'a' has 'a.weight' in evaluation only, where "
            "nothing trains it; with weight_attr { name: ... }, or the name of "
            "a layer, it is one that training has");
  EXPECT_EQ(ErrorOf("layer { relu {} }", "loss { when: eval mse_loss {} }"),
            "job.pbtxt:4:1: no loss is left where 'when' leaves them out; at "
            "least one must be (in the network's form for training)");
}

// Layers without a name keep the numbers of their parameters.
TEST(Forms, NumberParametersAlike) {
  const auto built = Build(
      "layer { when: train linear { out_features: 2 } }\n"
      "layer { linear { out_features: 2 } }");
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->parameters.size(), 4u);
  EXPECT_EQ(built->test.global().ops[0].In("Y"), "linear_1.w_0");
}

const ParameterSettings* Find(const BuiltModel& built,
                              const std::string& name) {
  for (const ParameterSettings& p : built.parameters)
    if (p.name == name) return &p;
  return nullptr;
}

constexpr char kTwo[] =
    "layer { name: \"back.a\" linear { out_features: 2 } }\n"
    "layer { name: \"back.b\" linear { out_features: 2 bias_attr { "
    "learning_rate: 7 initializer { constant { value: 1 } } } } }\n"
    "layer { name: \"head\" linear { out_features: 2 } }\n";

TEST(ParameterGroups, LaterOnesAndAttributesGoFirst) {
  const auto built = Build(absl::StrCat(kTwo, R"(
    parameter_group { match: "back\\..*" trainable: false learning_rate: 0.1
      initializer { constant { value: 4 } } }
    parameter_group { match: ".*\\.bias" learning_rate: 2 need_clip: false
      regularizer { l1_decay { coeff: 0.5 } } }
  )"));
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_FALSE(Find(*built, "back.a.weight")->trainable);
  EXPECT_EQ(Find(*built, "back.a.weight")->learning_rate, 0.1);
  EXPECT_FALSE(Find(*built, "back.a.bias")->trainable);
  EXPECT_EQ(Find(*built, "back.a.bias")->learning_rate, 2);
  EXPECT_EQ(Find(*built, "back.b.bias")->learning_rate, 7);
  EXPECT_EQ(Find(*built, "back.b.bias")->regularizer->coeff, 0.5);
  EXPECT_FALSE(Find(*built, "head.bias")->need_clip);
  EXPECT_TRUE(Find(*built, "head.bias")->trainable);
  EXPECT_EQ(Find(*built, "head.weight")->learning_rate, 1);
  EXPECT_TRUE(Find(*built, "head.weight")->need_clip);
  EXPECT_TRUE(built->main.global().FindVar("back.a.weight")->stop_gradient);
  Session session(&ReferenceRegistry(), 1);
  ASSERT_TRUE(session.RunOnce(built->startup).ok());
  EXPECT_EQ(session.scope().Get("back.a.weight")->data<float>()[0], 4);
  EXPECT_EQ(session.scope().Get("back.b.bias")->data<float>()[0], 1);
}

TEST(ParameterGroups, ExplainWhatMatchesNothing) {
  EXPECT_EQ(ErrorOf(absl::StrCat(kTwo, "parameter_group { match: \"back\" }")),
            "job.pbtxt:5:19: no parameter's whole name matches 'back'; it is a "
            "part of 'back.a.weight', 'back.a.bias', 'back.b.weight', "
            "'back.b.bias'");
  EXPECT_EQ(
      ErrorOf(absl::StrCat(kTwo, "parameter_group { match: \"head.weigt\" }")),
      "job.pbtxt:5:19: no parameter's whole name matches 'head.weigt'; the "
      "nearest is 'head.weight'");
  EXPECT_EQ(ErrorOf(absl::StrCat(kTwo, "parameter_group { match: \"a(\" }")),
            "job.pbtxt:5:19: 'a(' is no regular expression: missing ): a(");
}

}  // namespace test_forms
}  // namespace pd
