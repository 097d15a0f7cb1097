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
namespace {

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

}  // namespace
}  // namespace pd
