// SPDX-License-Identifier: Apache-2.0
// A bias that is reshaped before it is added.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/passes/net.h"

namespace pd {
namespace test_flatten_biases {

// The ops that PaddlePaddle 2.6 saves for a convolution with a bias.
Net ReshapedBias(bool last, int32_t channels) {
  Net net;
  net.Var("x", last ? Shape{2, 6, 5, 4} : Shape{2, 4, 6, 5}, false);
  net.Var("w", {channels, 4, 3, 3}, true);
  net.Var("b", {channels}, true);
  const std::string format = last ? "NHWC" : "NCHW";
  net.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}},
         {{"data_format", format}});
  net.Op("reshape2", {{"X", {"b"}}}, {{"Out", {"v"}}, {"XShape", {"vs"}}},
         {{"shape", last ? std::vector<int32_t>{1, 1, 1, -1}
                         : std::vector<int32_t>{1, -1, 1, 1}}});
  net.Op("elementwise_add", {{"X", {"c"}}, {"Y", {"v"}}}, {{"Out", {"a"}}},
         {{"axis", int32_t{-1}}});
  net.fetches = {"a"};
  return net;
}

TEST(FlattenBiases, OfAConvolution) {
  for (const bool last : {false, true})
    for (const int32_t channels : {1, 7}) {
      NamedArrays values[2];
      for (const bool flat : {false, true}) {
        Net net = ReshapedBias(last, channels);
        PassOptions options;
        if (!flat) options.disabled = {"flatten_biases"};
        net.Run(options);
        // One number is added along axis 1, where NHWC has no channels.
        EXPECT_EQ(net.Types(), !flat ? "conv2d reshape2 elementwise_add"
                               : last && channels == 1
                                   ? "conv2d elementwise_add"
                                   : "fused_conv2d");
        values[flat ? 1 : 0] = AnswersOf(net, options);
      }
      ExpectNear(values[0], values[1], 1e-5);
    }
}

TEST(FlattenBiases, LeavesOneThatIsReadOrSpreadOtherwise) {
  Net read = ReshapedBias(false, 7);
  read.fetches.push_back("v");
  read.Run();
  EXPECT_EQ(read.Types(), "conv2d reshape2 elementwise_add");
  Net spread = ReshapedBias(false, 4);  // along the rows
  spread.program.global().ops[1].attrs["shape"] =
      std::vector<int32_t>{1, 1, 4, 1};
  for (VarDesc& var : spread.program.global().vars)
    if (var.name == "v") var.shape = {1, 1, 4, 1};
  spread.Run();
  EXPECT_EQ(spread.Types(), "conv2d elementwise_add");
  Net trained = ReshapedBias(false, 7);
  trained.Op("reduce_mean", {{"X", {"a"}}}, {{"Out", {"loss"}}},
             {{"reduce_all", true}});
  trained.Backward("loss");
  trained.Run();
  EXPECT_NE(trained.Types().find("reshape2"), std::string::npos);
}

}  // namespace test_flatten_biases
}  // namespace pd
