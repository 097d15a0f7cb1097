// SPDX-License-Identifier: Apache-2.0
// rnn in all its modes against the reference.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_recurrent_kernels {

struct Network {
  const char* mode;
  int64_t gates;
  int64_t time, batch, input, hidden, layers;
  bool two_ways = false, lengths = false;
  float dropout = 0;
};

class Rnn : public ::testing::TestWithParam<Network> {};

// The op's weights and states as variables of the case.
OpDesc RnnOp(const Network& n, KernelCase* c) {
  const int64_t directions = n.two_ways ? 2 : 1;
  OpDesc op;
  op.type = "rnn";
  Feed(c, "x", RandomArray({n.time, n.batch, n.input}, 1));
  op.SetInput("Input", {"x"});
  std::vector<std::string> states, weights, last;
  for (int i = 0; i < (n.gates == 4 ? 2 : 1); ++i) {
    states.push_back(absl::StrCat("state", i));
    last.push_back(absl::StrCat("last", i));
    Feed(c, states.back(),
         RandomArray({n.layers * directions, n.batch, n.hidden}, 2 + i));
  }
  const auto add = [&](const std::string& name, const Shape& shape) {
    weights.push_back(name);
    Parameter(c, name, RandomArray(shape, 10 + weights.size()));
  };
  const int64_t width = n.gates * n.hidden;
  for (int64_t i = 0; i < n.layers * directions; ++i) {
    const int64_t in = i < directions ? n.input : directions * n.hidden;
    add(absl::StrCat("w_ih", i), {width, in});
    add(absl::StrCat("w_hh", i), {width, n.hidden});
  }
  for (int64_t i = 0; i < n.layers * directions; ++i) {
    add(absl::StrCat("b_ih", i), {width});
    add(absl::StrCat("b_hh", i), {width});
  }
  op.SetInput("PreState", states);
  op.SetInput("WeightList", weights);
  if (n.lengths) {
    std::byte* bytes = nullptr;
    Array lengths = *NewArray(DType::kInt32, {n.batch}, &bytes);
    for (int64_t b = 0; b < n.batch; ++b)
      reinterpret_cast<int32_t*>(bytes)[b] =
          static_cast<int32_t>(1 + b % n.time);
    Feed(c, "lengths", lengths);
    op.SetInput("SequenceLength", {"lengths"});
  }
  op.SetOutput("Out", {"y"});
  op.SetOutput("State", last);
  op.SetOutput("Reserve", {"reserve"});
  op.SetOutput("DropoutState", {"mask"});
  op.attrs["mode"] = std::string(n.mode);
  op.attrs["hidden_size"] = static_cast<int32_t>(n.hidden);
  op.attrs["input_size"] = static_cast<int32_t>(n.input);
  op.attrs["num_layers"] = static_cast<int32_t>(n.layers);
  op.attrs["is_bidirec"] = n.two_ways;
  op.attrs["dropout_prob"] = n.dropout;
  c->wrt = weights;
  c->wrt.insert(c->wrt.end(), states.begin(), states.end());
  c->wrt.push_back("x");
  c->fetches = {"y"};
  c->fetches.insert(c->fetches.end(), last.begin(), last.end());
  return op;
}

TEST_P(Rnn, IsTheReferences) {
  KernelCase c;
  Append(&c, RnnOp(GetParam(), &c));
  ExpectLikeReference(c, {{"rnn", "onednn:gemm"}, {"rnn_grad", "onednn:gemm"}});
}

INSTANTIATE_TEST_SUITE_P(
    Modes, Rnn,
    ::testing::Values(Network{"LSTM", 4, 5, 3, 7, 9, 1},
                      Network{"LSTM", 4, 6, 20, 32, 40, 2},
                      Network{"LSTM", 4, 5, 4, 7, 16, 2, true, true},
                      Network{"LSTM", 4, 4, 3, 8, 11, 2, false, false, 0.5f},
                      Network{"GRU", 3, 5, 3, 7, 9, 1},
                      Network{"GRU", 3, 5, 4, 7, 33, 2, true, true},
                      Network{"RNN_TANH", 1, 5, 3, 7, 9, 2},
                      Network{"RNN_RELU", 1, 5, 3, 7, 17, 2, true, true},
                      Network{"LSTM", 4, 1, 1, 1, 1, 1}));

}  // namespace test_recurrent_kernels
}  // namespace pd
