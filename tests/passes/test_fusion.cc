// SPDX-License-Identifier: Apache-2.0
// The fusion passes: which ops a program has after them, that a second run
// changes nothing, that nothing is fused over what somebody else reads, and
// that a training step gives the same numbers with each pass off.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/exec/session.h"
#include "libcore/passes/pipeline.h"
#include "tests/passes/net.h"

namespace pd {
namespace test_fusion {

const std::map<std::string, Attribute> kChannelAxis = {{"axis", int32_t{1}}};

// conv + bias + relu, linear + relu, linear; a mean as loss.
Net Network() {
  Net net;
  net.Var("x", {8, 3, 6, 6}, false);
  net.Var("w", {5, 3, 3, 3}, true);
  net.Var("b", {5}, true);
  net.Var("w1", {80, 7}, true);
  net.Var("b1", {7}, true);
  net.Var("w2", {7, 2}, true);
  net.Var("b2", {2}, true);
  net.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}});
  net.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"b"}}}, {{"Out", {"a"}}},
         kChannelAxis);
  net.Op("relu", {{"X", {"a"}}}, {{"Out", {"r"}}});
  net.Op("reshape2", {{"X", {"r"}}}, {{"Out", {"f"}}, {"XShape", {"fs"}}},
         {{"shape", std::vector<int32_t>{8, 80}}});
  net.Op("matmul_v2", {{"X", {"f"}}, {"Y", {"w1"}}}, {{"Out", {"m1"}}});
  net.Op("elementwise_add", {{"X", {"m1"}}, {"Y", {"b1"}}}, {{"Out", {"a1"}}});
  net.Op("relu", {{"X", {"a1"}}}, {{"Out", {"r1"}}});
  net.Op("matmul_v2", {{"X", {"r1"}}, {"Y", {"w2"}}}, {{"Out", {"m2"}}});
  net.Op("elementwise_add", {{"X", {"m2"}}, {"Y", {"b2"}}}, {{"Out", {"a2"}}});
  net.Op("reduce_mean", {{"X", {"a2"}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  return net;
}

TEST(Fusion, Inference) {
  Net net = Network();
  net.fetches = {"loss"};
  net.Run();
  EXPECT_EQ(net.Types(),
            "fused_conv2d reshape2 fused_gemm_epilogue fused_gemm_epilogue "
            "reduce_mean");
  EXPECT_EQ(net.program.FindVar(0, "a"), nullptr);
  const std::string once = net.Types();
  net.Run();
  EXPECT_EQ(net.Types(), once);
}

TEST(Fusion, Training) {
  Net net = Network();
  net.Backward("loss");
  net.Run();
  EXPECT_EQ(net.Types(),
            "fused_conv2d reshape2 fused_gemm_epilogue fused_gemm_epilogue "
            "reduce_mean fill_any_like reduce_mean_grad "
            "fused_gemm_epilogue_grad relu_grad fused_gemm_epilogue_grad "
            "reshape2_grad fused_conv2d_grad");
}

// MobileNet's pieces: a filter for each channel, a bounded activation.
Net DepthwiseNet() {
  Net net;
  net.Var("x", {2, 4, 6, 6}, false);
  net.Var("w", {4, 1, 3, 3}, true);
  net.Var("b", {4}, true);
  net.Op("depthwise_conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}},
         {{"Output", {"c"}}}, {{"groups", int32_t{4}}});
  net.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"b"}}}, {{"Out", {"a"}}},
         kChannelAxis);
  net.Op("relu6", {{"X", {"a"}}}, {{"Out", {"r"}}}, {{"threshold", 0.25f}});
  net.Op("reduce_mean", {{"X", {"r"}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  return net;
}

TEST(Fusion, DepthwiseWithABound) {
  NamedArrays values[2];
  for (const bool fuse : {false, true}) {
    Net net = DepthwiseNet();
    net.Backward("loss");
    PassOptions options;
    if (!fuse) options.disabled = {"fuse_conv_bias_act"};
    net.Run(options);
    EXPECT_EQ(net.Types().find("fused_conv2d ") == 0, fuse) << net.Types();
    EXPECT_EQ(net.Types().find("fused_conv2d_grad") != std::string::npos, fuse);
    values[fuse ? 1 : 0] = AnswersOf(net, options);
  }
  ExpectNear(values[0], values[1], 1e-6);
}

// A block of ResNet: the shortcut is a convolution too, or the block's input.
Net ResidualNet(bool projected, const char* activation) {
  Net net;
  net.Var("x", {2, 4, 6, 6}, false);
  net.Var("w", {4, 4, 3, 3}, true);
  net.Var("b", {4}, true);
  net.Var("w1", {4, 4, 1, 1}, true);
  net.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}},
         {{"paddings", std::vector<int32_t>{1, 1}}});
  net.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"b"}}}, {{"Out", {"a"}}},
         kChannelAxis);
  if (projected)
    net.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w1"}}},
           {{"Output", {"p"}}});
  net.Op("elementwise_add", {{"X", {projected ? "p" : "x"}}, {"Y", {"a"}}},
         {{"Out", {"s"}}});
  if (*activation != 0) net.Op(activation, {{"X", {"s"}}}, {{"Out", {"r"}}});
  net.fetches = {*activation != 0 ? "r" : "s"};
  return net;
}

TEST(Fusion, TakesTheResidual) {
  for (const bool projected : {false, true})
    for (const char* activation : {"", "relu", "relu6"}) {
      NamedArrays values[2];
      for (const bool fuse : {false, true}) {
        Net net = ResidualNet(projected, activation);
        PassOptions options;
        if (!fuse) options.disabled = {"fuse_conv_residual"};
        net.Run(options);
        if (fuse)
          EXPECT_EQ(net.Types(),
                    projected ? "conv2d fused_conv2d" : "fused_conv2d");
        values[fuse ? 1 : 0] = AnswersOf(net, options);
      }
      ExpectNear(values[0], values[1], 1e-5);
    }
}

TEST(Fusion, LeavesAResidualOfATrainingProgram) {
  Net net = ResidualNet(false, "relu");
  net.Op("reduce_mean", {{"X", {"r"}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  net.Backward("loss");
  net.Run();
  EXPECT_NE(net.Types().find("elementwise_add relu"), std::string::npos)
      << net.Types();
}

// Two layers of a network with batch normalisation.
Net NormNet(const char* activation) {
  Net net;
  net.Var("x", {4, 3, 6, 6}, false);
  std::string in = "x";
  for (const std::string i : {"1", "2"}) {
    net.Var("w" + i, {3, 3, 3, 3}, true);
    for (const char* name : {"scale", "bias", "mean", "variance"})
      net.Var(name + i, {3}, true);
    net.params["variance" + i] = MakeArray<float>({3}, {1, 2, 3});
    net.Op("conv2d", {{"Input", {in}}, {"Filter", {"w" + i}}},
           {{"Output", {"c" + i}}});
    net.Op("batch_norm",
           {{"X", {"c" + i}},
            {"Scale", {"scale" + i}},
            {"Bias", {"bias" + i}},
            {"Mean", {"mean" + i}},
            {"Variance", {"variance" + i}}},
           {{"Y", {"n" + i}},
            {"MeanOut", {"mean" + i}},
            {"VarianceOut", {"variance" + i}},
            {"SavedMean", {"sm" + i}},
            {"SavedVariance", {"sv" + i}}});
    net.Op(activation, {{"X", {"n" + i}}}, {{"Out", {"r" + i}}},
           {{"threshold", 0.5f}});
    in = "r" + i;
  }
  net.Op("reduce_mean", {{"X", {in}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  return net;
}

TEST(Fusion, NormAndActivation) {
  for (const char* activation : {"relu", "relu6"}) {
    NamedArrays values[2];
    for (const bool fuse : {false, true}) {
      Net net = NormNet(activation);
      net.Backward("loss");
      for (const char* name : {"r2", "mean1", "variance2"})
        net.fetches.push_back(name);
      PassOptions options;
      if (!fuse) options.disabled = {"fuse_batch_norm_act"};
      net.Run(options);
      if (fuse)
        EXPECT_EQ(net.Types(),
                  "conv2d fused_batch_norm_act conv2d fused_batch_norm_act "
                  "reduce_mean fill_any_like reduce_mean_grad "
                  "fused_batch_norm_act_grad conv2d_grad "
                  "fused_batch_norm_act_grad conv2d_grad");
      values[fuse ? 1 : 0] = AnswersOf(net, options);
    }
    ExpectNear(values[0], values[1], 1e-5);
  }
}

TEST(Fusion, LeavesANormThatAnotherOpReads) {
  for (const char* name : {"n1", "n1@GRAD"}) {
    Net net = NormNet("relu");
    net.Backward("loss");
    net.fetches.push_back(name);
    net.Run();
    EXPECT_NE(net.Types().find("batch_norm relu"), std::string::npos);
    EXPECT_NE(net.Types().find("relu_grad batch_norm_grad"), std::string::npos);
  }
}

// Rows of two tables and a matrix between them.
Net LookupNet() {
  Net net;
  for (const char* name : {"w1", "w2"}) net.Var(name, {5, 3}, true);
  net.Var("dense", {4, 2}, false);
  for (const char* name : {"i1", "i2"}) {
    net.Var(name, {4}, false);
    net.feeds[name] = MakeArray<int64_t>({4}, {4, 0, 2, 2});
    net.program.global().vars.back().dtype = DType::kInt64;
  }
  net.Op("lookup_table_v2", {{"W", {"w1"}}, {"Ids", {"i1"}}}, {{"Out", {"a"}}});
  net.Op("lookup_table_v2", {{"W", {"w2"}}, {"Ids", {"i2"}}}, {{"Out", {"b"}}},
         {{"padding_idx", int64_t{2}}});
  net.Op("concat", {{"X", {"a", "dense", "b"}}}, {{"Out", {"y"}}},
         {{"axis", int32_t{1}}});
  net.fetches = {"y"};
  return net;
}

TEST(Fusion, LooksUpInManyTables) {
  Net net = LookupNet();
  PassOptions off;
  off.disabled = {"fuse_lookup_concat"};
  const NamedArrays want = AnswersOf(net, off);
  net.Run();
  EXPECT_EQ(net.Types(), "fused_lookup_concat");
  const NamedArrays got = AnswersOf(net, {});
  ExpectNear(want, got, 0);
  // Row 2 of W2 is padding, and its first row is not.
  const float* y = got.at("y").data<float>();
  for (int64_t i = 5; i < 8; ++i) {
    EXPECT_EQ(y[2 * 8 + i], 0);
    EXPECT_EQ(y[8 + i], net.params["w2"].data<float>()[i - 5]);
  }
}

TEST(Fusion, NamesAnIdOutsideItsTable) {
  Net net = LookupNet();
  net.feeds["i2"] = MakeArray<int64_t>({4}, {0, 5, 1, 1});
  Session session(&Registry());
  for (const auto& [name, value] : net.params)
    ASSERT_TRUE(session.scope().Set(name, value).ok());
  const auto values = session.Run(net.program, net.feeds, net.fetches);
  EXPECT_NE(values.status().message().find("fused_lookup_concat"),
            absl::string_view::npos)
      << values.status();
  EXPECT_NE(values.status().message().find("5"), absl::string_view::npos);
}

TEST(Fusion, LeavesLookupsAlone) {
  Net other = LookupNet();  // rows below rows
  other.program.global().ops.back().attrs["axis"] = int32_t{0};
  other.program.global().ops.back().SetInput("X", {"a", "b"});
  other.Run();
  EXPECT_NE(other.Types().find("lookup_table_v2 lookup_table_v2"),
            std::string::npos);
  Net read = LookupNet();
  read.fetches.push_back("b");
  read.Run();
  EXPECT_EQ(read.Types(), "lookup_table_v2 fused_lookup_concat");
}

TEST(Fusion, KeepsWhatIsFetched) {
  for (const char* name : {"c", "a", "c@GRAD", "a@GRAD"}) {
    Net net = Network();
    net.Backward("loss");
    net.fetches.push_back(name);
    net.Run();
    EXPECT_NE(net.program.FindVar(0, name), nullptr);
    EXPECT_EQ(net.Types().find("fused_conv2d_grad") == std::string::npos,
              net.Types().find("fused_conv2d ") == std::string::npos)
        << net.Types();
  }
}

TEST(Fusion, KeepsWhatAnotherOpReads) {
  Net net = Network();
  net.Op("relu", {{"X", {"c"}}}, {{"Out", {"second"}}});
  net.fetches = {"loss", "second"};
  net.Run();
  EXPECT_EQ(net.Types().find("fused_conv2d"), std::string::npos);
}

TEST(Fusion, LeavesABiasOfAnotherAxis) {
  Net net;
  net.Var("x", {2, 3, 5, 5}, false);
  net.Var("w", {5, 3, 1, 1}, true);
  net.Var("b", {5}, true);
  net.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}});
  net.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"b"}}}, {{"Out", {"a"}}});
  net.fetches = {"a"};
  net.Run();
  EXPECT_EQ(net.Types(), "conv2d elementwise_add");
}

// Two layers; the first has a large parameter that the third uses too.
Net LargeNet() {
  Net net;
  net.Var("x", {2, 512}, false);
  net.Var("w", {512, 512}, true);
  net.Var("v", {512, 512}, true);
  net.Var("small", {512, 1}, true);
  net.Var("rate", {1}, true);
  net.Op("matmul_v2", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"a"}}});
  net.Op("matmul_v2", {{"X", {"a"}}, {"Y", {"v"}}}, {{"Out", {"b"}}});
  net.Op("matmul_v2", {{"X", {"b"}}, {"Y", {"w"}}}, {{"Out", {"c"}}});
  net.Op("matmul_v2", {{"X", {"c"}}, {"Y", {"small"}}}, {{"Out", {"d"}}});
  net.Op("reduce_mean", {{"X", {"d"}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  net.Backward("loss");
  for (const std::string p : {"small", "v", "w"})
    net.Op(
        "sgd",
        {{"Param", {p}}, {"Grad", {p + "@GRAD"}}, {"LearningRate", {"rate"}}},
        {{"ParamOut", {p}}});
  net.fetches = {"loss", "small", "v", "w"};
  return net;
}

TEST(Fusion, UpdatesWhereTheGradientIsReady) {
  Net net = LargeNet();
  PassOptions off;
  off.disabled = {"advance_updates"};
  const NamedArrays want = AnswersOf(net, off);
  net.Run();
  // `v` as soon as its gradient is there; `w`, whose gradient is a sum over
  // two uses, behind the last; `small` stays.
  const std::string types = net.Types();
  EXPECT_NE(types.find("matmul_v2_grad sgd matmul_v2_grad sum merged_sgd"),
            std::string::npos)
      << types;
  std::vector<std::string> params;
  for (const OpDesc& op : net.program.global().ops)
    for (const std::string& param : op.Input("Param")) params.push_back(param);
  EXPECT_EQ(params, (std::vector<std::string>{"v", "w", "small"}));
  ExpectNear(want, AnswersOf(net, off), 0);
}

// An op that changes a gradient after the backward pass (a clip) comes first.
TEST(Fusion, UpdatesWaitForWhatTheyRead) {
  Net net = LargeNet();
  std::vector<OpDesc>& ops = net.program.global().ops;
  const std::vector<OpDesc> updates(ops.end() - 3, ops.end());
  ops.erase(ops.end() - 3, ops.end());
  net.Op("scale", {{"X", {"w@GRAD"}}}, {{"Out", {"v@GRAD"}}});
  ops.insert(ops.end(), updates.begin(), updates.end());
  net.Run();
  EXPECT_NE(net.Types().find("sum sgd scale merged_sgd"), std::string::npos)
      << net.Types();
}

TEST(Fusion, SameNumbersWithEachPassOff) {
  Net net = Network();
  net.Backward("loss");
  PassOptions none;
  for (const Pass& pass : AllPasses()) none.disabled.insert(pass.name);
  const NamedArrays want = AnswersOf(net, none);
  std::vector<PassOptions> choices(1);
  for (const Pass& pass : AllPasses()) {
    choices.emplace_back();
    choices.back().disabled.insert(pass.name);
  }
  for (const PassOptions& options : choices) {
    const NamedArrays got = AnswersOf(net, options);
    for (const auto& [name, value] : want)
      for (int64_t i = 0; i < value.size(); ++i)
        EXPECT_NEAR(got.at(name).data<float>()[i], value.data<float>()[i],
                    1e-5 * (1 + std::fabs(value.data<float>()[i])))
            << name;
  }
}

// The arguments that an observer gets: label, pass, types of the ops.
std::vector<std::string> Shown(Net net, std::set<std::string> disabled) {
  std::vector<std::string> shown;
  PassOptions options;
  options.disabled = std::move(disabled);
  options.observer = [&](const std::string& label, const std::string& pass,
                         const ProgramDesc& program) {
    net.program = program;
    shown.push_back(absl::StrCat(label, "/", pass, ": ", net.Types()));
    return absl::OkStatus();
  };
  Session session(&Registry());
  session.set_pass_options(options);
  for (const auto& [name, value] : net.params)
    EXPECT_TRUE(session.scope().Set(name, value).ok());
  const ProgramDesc program = net.program;
  const auto ran = session.Run(program, net.feeds, net.fetches, "net");
  EXPECT_TRUE(ran.ok()) << ran.status();
  return shown;
}

TEST(Fusion, IsObserved) {
  Net net = Network();
  net.fetches = {"loss"};
  const std::string plain = net.Types();
  const std::string conv =
      "fused_conv2d reshape2 matmul_v2 elementwise_add relu matmul_v2 "
      "elementwise_add reduce_mean";
  const std::string both =
      "fused_conv2d reshape2 fused_gemm_epilogue fused_gemm_epilogue "
      "reduce_mean";
  EXPECT_EQ(
      Shown(net, {}),
      (std::vector<std::string>{
          "net/: " + plain, "net/expand_fused: " + plain,
          "net/flatten_biases: " + plain, "net/fold_batch_norms: " + plain,
          "net/int8_chains: " + plain, "net/int8_dynamic: " + plain,
          "net/fuse_conv_bias_act: " + conv, "net/fuse_conv_residual: " + conv,
          "net/fuse_batch_norm_act: " + conv, "net/fuse_attention: " + conv,
          "net/fuse_gemm_epilogue: " + both, "net/fuse_add_act: " + both,
          "net/fuse_lookup_concat: " + both, "net/advance_updates: " + both,
          "net/merge_updates: " + both}));
  EXPECT_EQ(
      Shown(net, {"expand_fused", "flatten_biases", "fold_batch_norms",
                  "int8_chains", "int8_dynamic", "fuse_conv_residual",
                  "fuse_batch_norm_act", "fuse_attention", "fuse_gemm_epilogue",
                  "fuse_add_act", "fuse_lookup_concat", "advance_updates",
                  "merge_updates"}),
      (std::vector<std::string>{"net/: " + plain,
                                "net/fuse_conv_bias_act: " + conv}));
}

// A file may leave out attributes that are as their defaults: passes find the
// schema's, so that they do the same.
TEST(Fusion, ReadsDefaultsOfTheSchema) {
  const auto types = [](const Net& net) {
    Session session(&Registry());
    for (const auto& [name, value] : net.params)
      EXPECT_TRUE(session.scope().Set(name, value).ok());
    std::vector<FeedSpec> feeds;
    for (const auto& [name, value] : net.feeds)
      feeds.push_back({name, value.dtype, value.shape});
    const auto plan = session.Compile(net.program, feeds, net.fetches);
    EXPECT_TRUE(plan.ok()) << plan.status();
    std::string all;
    if (plan.ok())
      for (const StepInfo& step : (*plan)->steps()) all += step.op_type + " ";
    return all;
  };
  Net net = Network();
  net.fetches = {"loss"};
  const std::string fused = types(net);
  EXPECT_NE(fused.find("fused_conv2d"), std::string::npos) << fused;
  size_t erased = 0;
  for (OpDesc& op : net.program.global().ops)
    for (const AttrDef& attr : Registry().Find(op.type)->attrs()) {
      const Attribute* value = op.FindAttr(attr.name);
      if (value == nullptr || !attr.default_value.has_value() ||
          !(*value == *attr.default_value))
        continue;
      op.attrs.erase(attr.name);
      ++erased;
    }
  EXPECT_GT(erased, 10u);
  EXPECT_EQ(types(net), fused);
}

// Of a program with sub-blocks the passes are shown that are for such.
TEST(Fusion, ShowsPassesThatKnowSubBlocks) {
  Net net = Network();
  net.fetches = {"loss"};
  net.program.blocks.emplace_back();
  net.program.blocks.back().idx = 1;
  net.program.blocks.back().parent_idx = 0;
  size_t known = 1;  // the program itself
  for (const Pass& pass : AllPasses())
    known += pass.blocks != InBlocks::kOnly ? 1 : 0;
  const std::vector<std::string> shown = Shown(net, {});
  EXPECT_EQ(shown.size(), known);
  EXPECT_LT(known, AllPasses().size() + 1);
  EXPECT_NE(shown.back().find("fused_conv2d reshape2 fused_gemm_epilogue"),
            std::string::npos)
      << shown.back();
}

TEST(Fusion, ErrorOfTheObserverEndsIt) {
  Net net = Network();
  PassContext context;
  context.registry = &Registry();
  PassOptions options;
  options.observer = [](const std::string&, const std::string& pass,
                        const ProgramDesc&) {
    return pass.empty() ? absl::OkStatus() : absl::DataLossError("disk full");
  };
  EXPECT_EQ(RunPasses(context, options, &net.program).message(), "disk full");
}

TEST(Fusion, NamesTheNearestPass) {
  Net net = Network();
  PassContext context;
  context.registry = &Registry();
  PassOptions options;
  options.disabled = {"fuse_conv_bias_ac"};
  const absl::Status status = RunPasses(context, options, &net.program);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "there is no pass 'fuse_conv_bias_ac', did you mean "
            "'fuse_conv_bias_act'?");
}

}  // namespace test_fusion
}  // namespace pd
