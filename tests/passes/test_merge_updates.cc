// SPDX-License-Identifier: Apache-2.0
// The pass merge_updates: every kind of update that it merges gives the bits
// that it gives alone, what it may not merge stays, and the lists of the merged
// op follow its parameters.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/passes/net.h"

namespace pd {
namespace test_merge_updates {

// The state that an update keeps beside the parameter, and its attributes.
struct UpdateKind {
  std::string type;
  std::vector<std::string> moments;
  std::vector<std::string> powers;
  std::map<std::string, Attribute> attrs, own;  // `own`: of the first alone
};

std::vector<UpdateKind> UpdateKinds() {
  return {
      {"sgd", {}, {}, {}, {}},
      {"momentum",
       {"Velocity"},
       {},
       {{"mu", 0.9f}},
       {{"regularization_method", std::string("l2_decay")},
        {"regularization_coeff", 0.1f}}},
      {"adam", {"Moment1", "Moment2"}, {"Beta1Pow", "Beta2Pow"}, {}, {}},
      {"adamw",
       {"Moment1", "Moment2"},
       {"Beta1Pow", "Beta2Pow"},
       {{"coeff", 0.1f}},
       {{"with_decay", true}, {"lr_ratio", 0.5f}}},
      {"adagrad", {"Moment"}, {}, {}, {}},
      {"rmsprop",
       {"MeanSquare", "Moment", "MeanGrad"},
       {},
       {{"epsilon", 0.5f}, {"centered", true}, {"momentum", 0.9f}},
       {}},
  };
}

// Two parameters of sizes that fill no vector.
Net UpdateNet(const UpdateKind& kind, bool skip) {
  Net net;
  net.Var("rate", {1}, true);
  for (const std::string p : {"p", "q"}) {
    const Shape shape = p == "p" ? Shape{37, 5} : Shape{7};
    net.Var(p, shape, true);
    net.Var(p + "_g", shape, false);
    SlotList inputs = {
        {"Param", {p}}, {"Grad", {p + "_g"}}, {"LearningRate", {"rate"}}};
    SlotList outputs = {{"ParamOut", {p}}};
    const auto state = [&](const std::string& slot, const Shape& of) {
      net.Var(p + slot, of, true);
      Array positive = net.params[p + slot];
      auto* data = const_cast<float*>(positive.data<float>());
      for (int64_t i = 0; i < positive.size(); ++i) data[i] *= data[i];
      inputs.push_back({slot, {p + slot}});
      outputs.push_back({slot + "Out", {p + slot}});
      net.fetches.push_back(p + slot);
    };
    for (const std::string& slot : kind.moments) state(slot, shape);
    for (const std::string& slot : kind.powers) state(slot, {1});
    net.fetches.push_back(p);
    if (skip) {
      net.Op("less_than", {{"X", {"rate"}}, {"Y", {"rate"}}},
             {{"Out", {"no_" + p}}});
      inputs.push_back({"SkipUpdate", {"no_" + p}});
    }
    std::map<std::string, Attribute> attrs = kind.attrs;
    if (p == "p") attrs.insert(kind.own.begin(), kind.own.end());
    net.Op(kind.type, inputs, outputs, attrs);
  }
  return net;
}

TEST(MergeUpdates, GivesTheSameBits) {
  PassOptions off;
  off.disabled = {"merge_updates"};
  for (const UpdateKind& kind : UpdateKinds()) {
    SCOPED_TRACE(kind.type);
    Net net = UpdateNet(kind, /*skip=*/false);
    const NamedArrays before = net.params;
    const NamedArrays want = AnswersOf(net, off);
    ExpectNear(want, AnswersOf(net, {}), 0);
    EXPECT_NE(want.at("q").data<float>()[0], before.at("q").data<float>()[0]);
    net.Run();
    EXPECT_EQ(net.Types(), "merged_" + kind.type);
  }
}

// Updates merge only if they skip together, by one and the same variable.
TEST(MergeUpdates, WhatSkipsTogether) {
  Net net = UpdateNet(UpdateKinds()[3], /*skip=*/true);
  Net apart = net;
  apart.Run();
  EXPECT_EQ(apart.Types(), "less_than adamw less_than adamw");
  std::vector<OpDesc>& ops = net.program.global().ops;
  ops[3].SetInput("SkipUpdate", {"no_p"});
  ops.erase(ops.begin() + 2);
  for (const char* compare : {"less_than", "equal"}) {
    ops[0].type = compare;
    PassOptions off;
    off.disabled = {"merge_updates"};
    const NamedArrays want = AnswersOf(net, off);
    const bool skips =
        want.at("p").data<float>()[0] == net.params.at("p").data<float>()[0];
    EXPECT_EQ(skips, std::string(compare) == "equal");
    ExpectNear(want, AnswersOf(net, {}), 0);
  }
  net.Run();
  EXPECT_EQ(net.Types(), "equal merged_adamw");
  EXPECT_EQ(net.program.global().ops[1].Input("SkipUpdate"),
            std::vector<std::string>{"no_p"});
}

// An attribute that all must share keeps them apart; one of their own becomes a
// list.
TEST(MergeUpdates, Attributes) {
  Net net = UpdateNet(UpdateKinds()[3], /*skip=*/false);
  Net apart = net;
  apart.program.global().ops[0].attrs["epsilon"] = 0.5f;
  apart.Run();
  EXPECT_EQ(apart.Types(), "adamw adamw");
  net.Run();
  const OpDesc& op = net.program.global().ops[0];
  EXPECT_EQ(op.Input("Moment2"),
            (std::vector<std::string>{"pMoment2", "qMoment2"}));
  EXPECT_EQ(op.AttrOr("coeff", std::vector<float>()),
            (std::vector<float>{0.1f, 0.0f}));
  EXPECT_EQ(op.AttrOr("lr_ratio", std::vector<float>()),
            (std::vector<float>{0.5f, 1.0f}));
}

}  // namespace test_merge_updates
}  // namespace pd
