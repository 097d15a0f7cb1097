// SPDX-License-Identifier: Apache-2.0
// A sum and its ReLU as one op on a GPU, forward and backward: which ops a
// program has after the pass, what it leaves alone, and that the references of
// the new ops give the numbers of the old ones.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/passes/net.h"

namespace pd {
namespace test_fuse_add_act {

// The end of a block of ResNet, where the shortcut is x or a repeated row.
Net SumNet(const char* activation, const Shape& shortcut = {4, 6}) {
  Net net;
  net.on_gpu = true;
  net.Var("x", shortcut, true);
  net.Var("y", {4, 6}, true);
  net.Op("tanh", {{"X", {"y"}}}, {{"Out", {"t"}}});
  net.Op("elementwise_add", {{"X", {"t"}}, {"Y", {"x"}}}, {{"Out", {"s"}}});
  net.Op(activation, {{"X", {"s"}}}, {{"Out", {"r"}}});
  net.Op("reduce_mean", {{"X", {"r"}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  return net;
}

TEST(FuseAddAct, SumAndReluOnAGpu) {
  const std::string fused = "tanh fused_elemwise_activation reduce_mean";
  Net inference = SumNet("relu");
  inference.fetches = {"loss"};
  inference.Run();
  EXPECT_EQ(inference.Types(), fused);
  Net net = SumNet("relu");
  net.Backward("loss");
  const NamedArrays want = AnswersOf(net, {});
  net.Run();
  EXPECT_EQ(net.Types(), fused +
                             " fill_any_like reduce_mean_grad relu_grad "
                             "elementwise_add_grad tanh_grad");
  EXPECT_EQ(net.program.FindVar(0, "s"), nullptr);
  EXPECT_EQ(want.size(), 3u);
  ExpectNear(want, AnswersOf(net, {}), 0);
}

TEST(FuseAddAct, LeavesASumAndARelu) {
  const auto stays = [](Net net) {
    net.fetches.push_back("loss");
    net.Run();
    return net.Types().find("elementwise_add relu") != std::string::npos;
  };
  EXPECT_FALSE(stays(SumNet("relu")));
  Net on_cpu = SumNet("relu");
  on_cpu.on_gpu = false;
  EXPECT_TRUE(stays(on_cpu));
  EXPECT_TRUE(stays(SumNet("relu6")));
  EXPECT_TRUE(stays(SumNet("relu", {6})));
  Net fetched = SumNet("relu");
  fetched.fetches = {"s"};
  EXPECT_TRUE(stays(fetched));
  Net read = SumNet("relu");
  read.Op("exp", {{"X", {"s"}}}, {{"Out", {"e"}}});
  EXPECT_TRUE(stays(read));
}

// Two readers of each ReLU's result, as the blocks of ResNet have.
Net TwoBlocks(int readers) {
  Net net;
  net.on_gpu = true;
  net.Var("x", {4, 6}, true);
  net.Var("y", {4, 6}, true);
  std::string in = "x";
  for (const std::string i : {"1", "2"}) {
    net.Op("elementwise_add", {{"X", {"y"}}, {"Y", {in}}},
           {{"Out", {"s" + i}}});
    net.Op("relu", {{"X", {"s" + i}}}, {{"Out", {"r" + i}}});
    std::string joined = "r" + i;
    for (int k = 1; k < readers; ++k) {
      const std::string n = absl::StrCat(i, "_", k);
      net.Op("tanh", {{"X", {"r" + i}}}, {{"Out", {"t" + n}}});
      net.Op("elementwise_mul", {{"X", {"t" + n}}, {"Y", {joined}}},
             {{"Out", {"m" + n}}});
      joined = "m" + n;
    }
    in = joined;
  }
  net.Op("reduce_mean", {{"X", {in}}}, {{"Out", {"loss"}}},
         {{"reduce_all", true}});
  net.Backward("loss");
  return net;
}

int CountOf(const std::string& type, const Net& net) {
  int count = 0;
  for (const OpDesc& op : net.program.global().ops) count += op.type == type;
  return count;
}

TEST(FuseAddAct, SumOfGradientsAndReluGradOnAGpu) {
  Net net = TwoBlocks(2);
  const NamedArrays want = AnswersOf(net, {});
  net.Run();
  EXPECT_EQ(CountOf("fused_elemwise_activation", net), 2) << net.Types();
  EXPECT_EQ(CountOf("sum_relu_grad", net), 2) << net.Types();
  EXPECT_EQ(CountOf("relu_grad", net), 0) << net.Types();
  EXPECT_EQ(want.size(), 3u);
  ExpectNear(want, AnswersOf(net, {}), 0);
}

TEST(FuseAddAct, LeavesASumOfGradientsAndAReluGrad) {
  const auto fused = [](Net net) {
    net.Run();
    return CountOf("sum_relu_grad", net);
  };
  EXPECT_EQ(fused(TwoBlocks(1)), 0);  // no sum
  EXPECT_EQ(fused(TwoBlocks(3)), 0);  // of three
  Net on_cpu = TwoBlocks(2);
  on_cpu.on_gpu = false;
  EXPECT_EQ(fused(on_cpu), 0);
  Net fetched = TwoBlocks(2);
  fetched.fetches.push_back("r1@GRAD");
  EXPECT_EQ(fused(fetched), 1);
  Net read = TwoBlocks(2);
  read.Op("exp", {{"X", {"r2@GRAD"}}}, {{"Out", {"e"}}});
  EXPECT_EQ(fused(read), 1);
}

}  // namespace test_fuse_add_act
}  // namespace pd
