// SPDX-License-Identifier: Apache-2.0
// The pass expand_fused: the ops that stand in for a fused one, the ops that
// stay, and the same numbers with the pass off. The numbers themselves are
// PaddlePaddle's in test_goldens (fused_transformer.zip).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/passes/net.h"

namespace pd {
namespace test_expand_fused {

const PassOptions kOff = [] {
  PassOptions options;
  options.disabled.insert("expand_fused");
  return options;
}();

// Two halves of a layer, and a mean as loss.
Net Layer() {
  Net net;
  net.Var("x", {2, 3, 6}, false);
  net.Var("qkv", {3, 2, 3, 6}, true);
  net.Var("linear", {6, 6}, true);
  net.Var("w1", {6, 5}, true);
  net.Var("b1", {5}, true);
  net.Var("w2", {5, 6}, true);
  SlotList kept = {{"Y", {"y"}}};
  for (const char* slot :
       {"LnMean", "LnVariance", "LnOut", "QKVOut", "TransposeOut2", "QKOut",
        "QKTVOut", "SoftmaxOut", "AttnDropoutOut", "AttnDropoutMaskOut",
        "FMHAOut", "OutLinearOut", "DropoutMaskOut"})
    kept.push_back({slot, {std::string("kept_") + slot}});
  net.Op("fused_attention",
         {{"X", {"x"}}, {"QKVW", {"qkv"}}, {"OutLinearW", {"linear"}}}, kept,
         {{"attn_dropout_rate", 0.f},
          {"dropout_rate", 0.f},
          {"pre_layer_norm", true}});
  SlotList hidden = {{"Out", {"out"}}};
  for (const char* slot :
       {"Dropout1Mask", "Dropout2Mask", "Linear1Out", "Dropout1Out",
        "Dropout2Out", "Ln2Mean", "Ln2Variance"})
    hidden.push_back({slot, {std::string("hidden_") + slot}});
  net.Op("fused_feedforward",
         {{"X", {"y"}},
          {"Linear1Weight", {"w1"}},
          {"Linear1Bias", {"b1"}},
          {"Linear2Weight", {"w2"}}},
         hidden, {{"dropout1_rate", 0.f}, {"dropout2_rate", 0.f}});
  net.Op("reduce_mean", {{"X", {"out"}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  return net;
}

bool Has(const Net& net, const std::string& type) {
  return (" " + net.Types() + " ").find(" " + type + " ") != std::string::npos;
}

TEST(ExpandFused, InferenceBecomesPlainOpsThatAreFused) {
  Net net = Layer();
  net.fetches = {"loss", "out"};
  const NamedArrays want = AnswersOf(net, kOff);
  ExpectNear(want, AnswersOf(net, {}), 1e-5);
  net.Run();
  EXPECT_FALSE(Has(net, "fused_attention")) << net.Types();
  EXPECT_FALSE(Has(net, "fused_feedforward")) << net.Types();
  EXPECT_TRUE(Has(net, "layer_norm")) << net.Types();
  const std::string once = net.Types();
  net.Run();
  EXPECT_EQ(net.Types(), once);
}

TEST(ExpandFused, TrainingWithItsGradients) {
  Net net = Layer();
  net.Backward("loss");
  ExpectNear(AnswersOf(net, kOff), AnswersOf(net, {}), 1e-5);
  net.Run();
  EXPECT_FALSE(Has(net, "fused_attention_grad")) << net.Types();
  EXPECT_FALSE(Has(net, "fused_feedforward_grad")) << net.Types();
  EXPECT_TRUE(Has(net, "softmax_grad")) << net.Types();
}

// The cache is one variable, in and out.
TEST(ExpandFused, AStepThatWritesItsCacheInPlace) {
  Net net;
  net.Var("x", {2, 1, 6}, false);
  net.Var("qkv", {3, 2, 3, 6}, true);
  net.Var("linear", {6, 6}, true);
  net.Var("w1", {6, 5}, true);
  net.Var("w2", {5, 6}, true);
  net.Var("cache", {2, 2, 2, 4, 3}, true);
  net.Op("fill_constant", {}, {{"Out", {"step"}}},
         {{"shape", std::vector<int64_t>{1}},
          {"value", 2.f},
          {"dtype", static_cast<int32_t>(DType::kInt32)}});
  net.Op("fused_multi_transformer",
         {{"X", {"x"}},
          {"QKVW", {"qkv"}},
          {"OutLinearW", {"linear"}},
          {"FFN1Weight", {"w1"}},
          {"FFN2Weight", {"w2"}},
          {"CacheKV", {"cache"}},
          {"TimeStep", {"step"}}},
         {{"Out", {"out"}}, {"CacheKVOut", {"cache"}}});
  net.fetches = {"out", "cache"};
  ExpectNear(AnswersOf(net, kOff), AnswersOf(net, {}), 1e-5);
  net.Run();
  EXPECT_FALSE(Has(net, "fused_multi_transformer")) << net.Types();
  EXPECT_TRUE(Has(net, "masked_multihead_attention")) << net.Types();
}

TEST(ExpandFused, AnOpWhosePartsCannotBeMadeStays) {
  // A fetch that no part writes.
  Net net = Layer();
  net.fetches = {"out", "hidden_Ln2Mean"};
  for (OpDesc& op : net.program.blocks[0].ops)
    if (op.type == "fused_feedforward") op.attrs["pre_layer_norm"] = true;
  net.Run();
  EXPECT_TRUE(Has(net, "fused_feedforward")) << net.Types();
  // Weights of a shape that does not fit are the plan's to report.
  net = Layer();
  net.program.blocks[0].FindVar("w1")->shape = {7, 5};
  net.fetches = {"out"};
  net.Run();
  EXPECT_TRUE(Has(net, "fused_feedforward")) << net.Types();
}

}  // namespace test_expand_fused
}  // namespace pd
