// SPDX-License-Identifier: Apache-2.0
// Patterns: which ops a name is bound to, what ends a match, that gradient ops
// come with it all or not at all, and that a fused op never reads or writes a
// variable at another time than somebody can see.
#include "libcore/passes/pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/passes/net.h"

namespace pd {
namespace test_pattern {

// scale [-> relu] -> tanh
const Pattern& Chain() {
  static const auto* const kChain =
      new Pattern{PatternOp{"scale", {"scale"}, {"X"}, "Out"},
                  PatternOp{"relu", {"relu", "relu6"}, {"X"}, "Out"}.Optional(),
                  PatternOp{"tanh", {"tanh"}, {"X"}, "Out"}};
  return *kChain;
}

Net ChainNet(bool with_relu) {
  Net net;
  net.Var("x", {2, 3}, true);
  net.Op("scale", {{"X", {"x"}}}, {{"Out", {"s"}}}, {{"scale", 2.0f}});
  if (with_relu) net.Op("relu", {{"X", {"s"}}}, {{"Out", {"r"}}});
  net.Op("tanh", {{"X", {with_relu ? "r" : "s"}}}, {{"Out", {"t"}}});
  net.fetches = {"t"};
  return net;
}

std::optional<Match> MatchIn(const OpGraph& graph, const Pattern& pattern,
                             size_t first) {
  return Matcher(&graph, {&pattern}).MatchAt(pattern, first);
}

// The number of ops that match, from op 0 on; 0 for no match. Gradient ops
// count too.
size_t SizeOfMatch(Net net, const Pattern& pattern) {
  PassContext context;
  context.keep.insert(net.fetches.begin(), net.fetches.end());
  const OpGraph graph(context, &net.program);
  const auto match = MatchIn(graph, pattern, 0);
  return match ? match->Forward().size() + match->Backward().size() : 0;
}

TEST(Pattern, BindsNames) {
  for (const bool with_relu : {false, true}) {
    Net net = ChainNet(with_relu);
    PassContext context;
    const OpGraph graph(context, &net.program);
    const auto match = MatchIn(graph, Chain(), 0);
    ASSERT_TRUE(match.has_value());
    EXPECT_EQ(match->Has("relu"), with_relu);
    EXPECT_EQ(match->op("scale").type, "scale");
    EXPECT_EQ(match->at("tanh"), with_relu ? 2u : 1u);
    EXPECT_EQ(match->slot("tanh"), "X");
    EXPECT_EQ(&match->last(), &match->op("tanh"));
    EXPECT_EQ(match->Forward().size(), with_relu ? 3u : 2u);
    EXPECT_FALSE(match->HasGradients());
    EXPECT_EQ(match->grad("tanh"), nullptr);
    EXPECT_TRUE(match->IsPrivate("s"));
    EXPECT_FALSE(MatchIn(graph, Chain(), 1).has_value());
  }
}

TEST(Pattern, EndsAtWhatOthersNeed) {
  const Net net = ChainNet(true);
  EXPECT_EQ(SizeOfMatch(net, Chain()), 3u);
  for (const char* name : {"s", "r"}) {
    Net fetched = net;
    fetched.fetches.push_back(name);
    EXPECT_EQ(SizeOfMatch(fetched, Chain()), 0u) << name;
    Net read = net;
    read.Op("tanh", {{"X", {name}}}, {{"Out", {"other"}}});
    EXPECT_EQ(SizeOfMatch(read, Chain()), 0u) << name;
    Net kept = net;
    kept.program.global().FindVar(name)->persistable = true;
    EXPECT_EQ(SizeOfMatch(kept, Chain()), 0u) << name;
    Net twice = net;
    twice.Op("tanh", {{"X", {"x"}}}, {{"Out", {name}}});
    EXPECT_EQ(SizeOfMatch(twice, Chain()), 0u) << name;
  }
}

TEST(Pattern, LooksAtAttributesAndSlots) {
  Pattern chain = Chain();
  chain[0].Attr("scale", 2.0f).Without("ScaleTensor");
  Net net = ChainNet(false);
  EXPECT_EQ(SizeOfMatch(net, chain), 2u);
  OpDesc& scale = net.program.global().ops[0];
  scale.attrs["scale"] = 3.0f;
  EXPECT_EQ(SizeOfMatch(net, chain), 0u);
  chain[0].Attr("scale", 1.0f);
  scale.attrs["scale"] = 2.0f;
  EXPECT_EQ(SizeOfMatch(net, chain), 0u);  // both must hold
  chain = Chain();
  chain[1].Attr("scale", 2.0f);  // its type has no such attribute
  EXPECT_EQ(SizeOfMatch(net, chain), 2u);
  Net tensor = ChainNet(false);
  tensor.Var("by", {1}, false);
  tensor.program.global().ops[0].SetInput("ScaleTensor", {"by"});
  Pattern plain = Chain();
  EXPECT_EQ(SizeOfMatch(tensor, plain), 2u);
  plain[0].Without("ScaleTensor");
  EXPECT_EQ(SizeOfMatch(tensor, plain), 0u);
}

// An op that reads the variable in two slots is another computation.
TEST(Pattern, ReadsAVariableOnce) {
  const Pattern sum = {
      PatternOp{"tanh", {"tanh"}, {"X"}, "Out"},
      PatternOp{"add", {"elementwise_add"}, {"X", "Y"}, "Out"}};
  for (const bool twice : {false, true}) {
    Net net;
    net.Var("x", {2}, false);
    net.Op("tanh", {{"X", {"x"}}}, {{"Out", {"t"}}});
    net.Op("elementwise_add", {{"X", {twice ? "t" : "x"}}, {"Y", {"t"}}},
           {{"Out", {"y"}}});
    net.fetches = {"y"};
    EXPECT_EQ(SizeOfMatch(net, sum), twice ? 0u : 2u);
  }
}

// relu -> tanh -> relu6, trained: the gradient ops mirror the chain.
Net TrainedNet() {
  Net net;
  net.Var("x", {2, 3}, true);
  net.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}});
  net.Op("tanh", {{"X", {"a"}}}, {{"Out", {"b"}}});
  net.Op("relu6", {{"X", {"b"}}}, {{"Out", {"c"}}});
  net.Op("reduce_mean", {{"X", {"c"}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  net.Backward("loss");
  return net;
}

const Pattern& TrainedChain() {
  static const auto* const kChain =
      new Pattern{PatternOp{"first", {"relu"}, {"X"}, "Out"},
                  PatternOp{"second", {"tanh"}, {"X"}, "Out"},
                  PatternOp{"third", {"relu6"}, {"X"}, "Out"}};
  return *kChain;
}

TEST(Pattern, BindsAllGradientsOrNone) {
  const Net net = TrainedNet();
  PassContext context;
  Net copy = net;
  const OpGraph graph(context, &copy.program);
  const auto match = MatchIn(graph, TrainedChain(), 0);
  ASSERT_TRUE(match.has_value());
  ASSERT_TRUE(match->HasGradients());
  EXPECT_EQ(match->grad("first")->type, "relu_grad");
  EXPECT_EQ(match->grad("second")->type, "tanh_grad");
  EXPECT_TRUE(
      std::is_sorted(match->Backward().begin(), match->Backward().end()));
  EXPECT_EQ(match->Backward().size(), 3u);
  for (const char* type : {"relu_grad", "tanh_grad", "relu6_grad"}) {
    Net part = net;
    auto& ops = part.program.global().ops;
    ops.erase(std::find_if(ops.begin(), ops.end(),
                           [&](const OpDesc& op) { return op.type == type; }));
    EXPECT_EQ(SizeOfMatch(part, TrainedChain()), 0u) << type;
    Net several = net;
    auto& all = several.program.global().ops;
    all.push_back(*std::find_if(all.begin(), all.end(), [&](const OpDesc& op) {
      return op.type == type;
    }));
    all.back().SetOutput("X@GRAD", {"another"});
    EXPECT_EQ(SizeOfMatch(several, TrainedChain()), 0u) << type;
  }
  for (const char* name : {"a@GRAD", "b@GRAD"}) {
    Net fetched = net;
    fetched.fetches.push_back(name);
    EXPECT_EQ(SizeOfMatch(fetched, TrainedChain()), 0u) << name;
  }
  Net outside = net;  // the gradient that comes in may be read by others
  outside.fetches.push_back("c@GRAD");
  EXPECT_EQ(SizeOfMatch(outside, TrainedChain()), 6u);
}

TEST(Pattern, LeavesAGradientThatStays) {
  Pattern chain = TrainedChain();
  chain[2].KeepsGradient();
  EXPECT_EQ(SizeOfMatch(TrainedNet(), chain), 5u);
}

// y = c * relu(x): the gradient of a scale is a scale by the same number.
TEST(Pattern, KnowsGradientsOfTheirOwnType) {
  Net net;
  net.Var("x", {2, 3}, true);
  net.Op("relu", {{"X", {"x"}}}, {{"Out", {"a"}}});
  net.Op("scale", {{"X", {"a"}}}, {{"Out", {"b"}}}, {{"scale", 3.0f}});
  net.Op("tanh", {{"X", {"b"}}}, {{"Out", {"c"}}});
  net.Op("reduce_mean", {{"X", {"c"}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  net.Backward("loss");
  const Pattern chain = {
      PatternOp{"relu", {"relu"}, {"X"}, "Out"},
      PatternOp{"scale", {"scale"}, {"X"}, "Out"}.GradientIsItself("scale"),
      PatternOp{"tanh", {"tanh"}, {"X"}, "Out"}};
  EXPECT_EQ(SizeOfMatch(net, chain), 6u);
  for (OpDesc& op : net.program.global().ops)
    if (op.type == "scale" && op.Out("Out") == "a@GRAD")
      op.attrs["scale"] = 2.0f;
  EXPECT_EQ(SizeOfMatch(net, chain), 0u);
}

// The first of the ops of `x`, `y`, ... is fused with the last: scale -> tanh
// becomes one op (a relu6, which serves as well) at the place that is asked
// for, if that is possible.
std::string Fuse(Net* net, FusedAt where) {
  PassContext context;
  context.keep.insert(net->fetches.begin(), net->fetches.end());
  const auto fuse = [&](const Match& match, Fusion* fusion) {
    fusion->forward.type = "relu6";
    fusion->forward.SetInput("X", match.op("scale").Input("X"));
    fusion->forward.SetOutput("Out", match.last().Output("Out"));
    fusion->forward_at = where;
    return true;
  };
  const Pattern chain = Chain();
  EXPECT_TRUE(FuseMatches(context, {&chain}, fuse, &net->program).ok());
  return net->Types();
}

TEST(Fuse, StandsWhereNobodySeesIt) {
  // Between the two an op writes what the first reads: only there.
  const auto rewritten = [] {
    Net net = ChainNet(false);
    net.Op("relu", {{"X", {"x"}}}, {{"Out", {"x"}}});
    auto& ops = net.program.global().ops;
    std::swap(ops[1], ops[2]);
    return net;
  };
  for (const auto& [where, types] :
       {std::make_pair(FusedAt::kFirst, "relu6 relu"),
        std::make_pair(FusedAt::kLast, "scale relu tanh"),
        std::make_pair(FusedAt::kLastOrFirst, "relu6 relu")}) {
    Net net = rewritten();
    EXPECT_EQ(Fuse(&net, where), types);
  }
  // An op reads what the last writes, from before: only there.
  const auto read_before = [] {
    Net net = ChainNet(false);
    net.Op("relu", {{"X", {"t"}}}, {{"Out", {"old"}}});
    net.fetches.push_back("old");
    auto& ops = net.program.global().ops;
    std::swap(ops[1], ops[2]);
    return net;
  };
  for (const auto& [where, types] :
       {std::make_pair(FusedAt::kFirst, "scale relu tanh"),
        std::make_pair(FusedAt::kLast, "relu relu6"),
        std::make_pair(FusedAt::kLastOrFirst, "relu relu6")}) {
    Net net = read_before();
    EXPECT_EQ(Fuse(&net, where), types);
  }
}

TEST(Fuse, LooksAtEachOpOnce) {
  Net net;
  net.Var("x", {2}, false);
  constexpr int kChains = 300;
  for (int i = 0; i < kChains; ++i) {  // all read one variable
    net.Op("scale", {{"X", {"x"}}}, {{"Out", {absl::StrCat("s", i)}}});
    net.Op("tanh", {{"X", {absl::StrCat("s", i)}}},
           {{"Out", {absl::StrCat("t", i)}}});
    net.fetches.push_back(absl::StrCat("t", i));
  }
  Pattern chain = Chain();
  int looks = 0;
  for (PatternOp& op : chain)
    op.If([&](const Match&, const OpDesc&) { return ++looks > 0; });
  PassContext context;
  const auto none = [](const Match&, Fusion*) { return false; };
  ASSERT_TRUE(FuseMatches(context, {&chain}, none, &net.program).ok());
  EXPECT_EQ(looks, 2 * kChains);
}

}  // namespace test_pattern
}  // namespace pd
