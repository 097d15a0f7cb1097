// SPDX-License-Identifier: Apache-2.0
// Sparse tensors beyond PaddlePaddle's cases: damaged parts, fetches, sums of
// gradients, masks of attention, and gradients against finite differences where
// PaddlePaddle has none.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "absl/strings/match.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/ops/registry.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace test_sparse_ops {

using Longs = std::vector<int64_t>;

// A program in the making over float64 values that are fed.
class Network {
 public:
  explicit Network(const OpRegistry& registry)
      : registry_(registry), builder_(&registry, Started()) {}

  std::string Feed(const std::string& name, Array array) {
    VarDesc var;
    var.name = name;
    var.dtype = array.dtype;
    var.shape = array.shape;
    builder_.AddVar(var);
    feeds[name] = std::move(array);
    return name;
  }
  // Appends an op; gives the variable of its first output.
  std::string Op(const std::string& type,
                 const std::map<std::string, std::string>& inputs,
                 std::map<std::string, Attribute> attrs = {}) {
    OpDesc op;
    op.type = type;
    op.attrs = std::move(attrs);
    for (const auto& [slot, name] : inputs) op.SetInput(slot, {name});
    std::string first;
    for (const SlotDef& slot : registry_.Find(type)->outputs()) {
      const std::string name = builder_.UniqueTemporary(type);
      if (first.empty()) first = name;
      op.SetOutput(slot.name, {name});
    }
    status.Update(builder_.Append(std::move(op)));
    return first;
  }
  // COO of fed values.
  std::string Coo(const std::string& values, Longs indices, Shape shape) {
    const auto axes = static_cast<int64_t>(shape.size());
    const auto count = static_cast<int64_t>(indices.size()) / axes;
    const std::string at =
        Feed(values + "_at", MakeArray<int64_t>({axes, count}, indices));
    return Op("sparse_sparse_coo_tensor", {{"values", values}, {"indices", at}},
              {{"shape", shape}});
  }

  absl::StatusOr<Array> Run(const std::string& fetch) {
    if (!status.ok()) return status;
    Session session(&registry_, 1);
    auto results = session.Run(program, feeds, {fetch});
    if (!results.ok()) return results.status();
    return results->at(fetch);
  }

  ProgramDesc program;
  NamedArrays feeds;
  absl::Status status;

 private:
  ProgramDesc* Started() {
    program.version = 2006000;
    program.blocks.emplace_back();
    return &program;
  }

  const OpRegistry& registry_;
  BlockBuilder builder_;
};

class SparseOps : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(RegisterAllOps(&registry_).ok()); }

  static Array Doubles(Shape shape, const std::vector<double>& values) {
    return MakeArray(std::move(shape), values);
  }

  // The gradient of the sum of `out` by `input`, against differences.
  void CheckGradient(Network* net, const std::string& out,
                     const std::string& input) {
    const std::string loss =
        net->Op("reduce_sum", {{"X", out}}, {{"reduce_all", true}});
    BackwardOptions options;
    options.targets = {{loss, ""}};
    options.wrt = {input};
    ProgramDesc forward = net->program;
    const auto grads = AppendBackward(registry_, options, &net->program);
    ASSERT_TRUE(grads.ok()) << grads.status();
    const auto got = net->Run(grads->at(input));
    ASSERT_TRUE(got.ok()) << got.status();
    const double step = 1e-5;
    for (int64_t i = 0; i < got->size(); ++i) {
      double sides[2];
      for (const int side : {0, 1}) {
        NamedArrays feeds = net->feeds;
        std::vector<double> values(
            feeds[input].data<double>(),
            feeds[input].data<double>() + feeds[input].size());
        values[static_cast<size_t>(i)] += side == 0 ? -step : step;
        feeds[input] = MakeArray(feeds[input].shape, values);
        Session session(&registry_, 1);
        const auto result = session.Run(forward, feeds, {loss});
        ASSERT_TRUE(result.ok()) << result.status();
        sides[side] = result->at(loss).data<double>()[0];
      }
      EXPECT_NEAR(got->data<double>()[i], (sides[1] - sides[0]) / (2 * step),
                  1e-6)
          << input << "[" << i << "]";
    }
  }

  OpRegistry registry_;
};

TEST_F(SparseOps, PartsThatDoNotFitAreRefused) {
  const auto message = [&](Array values, Array indices, Shape shape) {
    Network net(registry_);
    net.Feed("v", std::move(values));
    net.Feed("i", std::move(indices));
    const std::string x =
        net.Op("sparse_sparse_coo_tensor", {{"values", "v"}, {"indices", "i"}},
               {{"shape", shape}});
    return std::string(
        net.Run(net.Op("sparse_to_dense", {{"x", x}})).status().message());
  };
  const Array two = Doubles({2}, {1, 2});
  EXPECT_TRUE(
      absl::StrContains(message(two, MakeArray<int64_t>({1, 2}, {0, 3}), {3}),
                        "index 3 along axis 0 is outside [0, 3)"));
  EXPECT_TRUE(
      absl::StrContains(message(two, MakeArray<int64_t>({1, 2}, {0, -1}), {3}),
                        "index -1 along axis 0"));
  EXPECT_TRUE(absl::StrContains(
      message(two, MakeArray<int64_t>({1, 3}, {0, 1, 2}), {3}),
      "expected [sparse_dim, nnz]"));
  EXPECT_TRUE(absl::StrContains(
      message(two, MakeArray<int64_t>({2, 2}, {0, 1, 0, 1}), {3}),
      "do not fit the shape [3]"));
  EXPECT_TRUE(
      absl::StrContains(message(two, MakeArray<float>({1, 2}, {0, 1}), {3}),
                        "expected int32 or int64"));
}

TEST_F(SparseOps, ASparseTensorIsNoDenseOne) {
  Network net(registry_);
  net.Feed("v", Doubles({2}, {1, 2}));
  const std::string x = net.Coo("v", {0, 2}, {3});
  EXPECT_TRUE(
      absl::StrContains(net.Run(x).status().message(), "is no dense tensor"));
  const std::string y =
      net.Op("reduce_sum", {{"X", net.Op("relu", {{"X", x}})}},
             {{"reduce_all", true}});
  EXPECT_TRUE(absl::StrContains(net.Run(y).status().message(), "is no tensor"))
      << net.Run(y).status();
}

TEST_F(SparseOps, GradientsOfOneTensorAddUp) {
  Network net(registry_);
  net.Feed("v", Doubles({3}, {0.5, -1, 2}));
  const std::string x = net.Coo("v", {0, 1, 2, 1, 0, 1}, {3, 2});
  const std::string square = net.Op("sparse_square", {{"x", x}});
  const std::string both = net.Op("sparse_multiply", {{"x", x}, {"y", square}});
  const std::string sum = net.Op("sparse_add", {{"x", both}, {"y", x}});
  CheckGradient(&net, net.Op("sparse_to_dense", {{"x", sum}}), "v");
}

TEST_F(SparseOps, GradientsOfDifferentPlaces) {
  for (const char* type :
       {"sparse_add", "sparse_subtract", "sparse_multiply"}) {
    for (const char* input : {"v", "w"}) {
      Network net(registry_);
      net.Feed("v", Doubles({2}, {0.5, -1}));
      net.Feed("w", Doubles({3}, {3, 4, -2}));
      const std::string x = net.Coo("v", {2, 0, 0, 1}, {3, 2});
      const std::string y = net.Coo("w", {0, 1, 2, 1, 0, 1}, {3, 2});
      const std::string both = net.Op(type, {{"x", x}, {"y", y}});
      const std::string dense = net.Op("sparse_to_dense", {{"x", both}});
      CheckGradient(&net, net.Op("square", {{"X", dense}}), input);
    }
  }
}

TEST_F(SparseOps, GradientsOfAxesOfValues) {
  const auto check = [&](const std::function<std::string(Network*,
                                                         std::string)>& make) {
    Network net(registry_);
    net.Feed("v", Doubles({3, 2}, {0.5, -1, 2, 3, 0.25, -2}));
    const std::string at =
        net.Feed("at", MakeArray<int64_t>({1, 3}, {2, 0, 3}));
    const std::string x =
        net.Op("sparse_sparse_coo_tensor", {{"values", "v"}, {"indices", at}},
               {{"shape", Longs{4, 2}}});
    const std::string dense = net.Op("sparse_to_dense", {{"x", make(&net, x)}});
    CheckGradient(&net, net.Op("square", {{"X", dense}}), "v");
  };
  check([](Network* net, const std::string& x) {
    return net->Op("sparse_slice", {{"x", x}},
                   {{"axes", Longs{0, 1}},
                    {"starts", Longs{1, 1}},
                    {"ends", Longs{4, 2}}});
  });
  check([](Network* net, const std::string& x) {
    return net->Op("sparse_sum", {{"x", x}}, {{"axis", Longs{1}}});
  });
  check([](Network* net, const std::string& x) {
    return net->Op("sparse_sum", {{"x", x}}, {{"axis", Longs{0}}});
  });
}

// Sums over the rows of a batch of CSR matrices: PaddlePaddle's answer depends
// on the width there.
TEST_F(SparseOps, SumsOfABatchOfRows) {
  Network net(registry_);
  net.Feed("v", Doubles({4}, {1, 2, 3, 4}));
  const std::string x =
      net.Coo("v", {0, 0, 1, 1, 0, 0, 1, 1, 0, 3, 2, 1}, {2, 2, 4});
  const std::string csr = net.Op("sparse_to_sparse_csr", {{"x", x}});
  const std::string sum = net.Op("sparse_sum", {{"x", csr}},
                                 {{"axis", Longs{-1}}, {"keepdim", true}});
  const std::string dense = net.Op("sparse_to_dense", {{"x", sum}});
  const auto got = net.Run(dense);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->shape, (Shape{2, 2, 1}));
  const double want[] = {3, 0, 0, 7};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got->data<double>()[i], want[i]);
  CheckGradient(&net, net.Op("square", {{"X", dense}}), "v");
}

// The places of the mask, fewer those that the other two leave out.
TEST_F(SparseOps, AttentionLeavesOutWhatMasksSay) {
  for (const char* input : {"q", "k", "value"}) {
    Network net(registry_);
    std::vector<double> numbers(12);
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = std::sin(static_cast<double>(i + 1));
    for (const char* name : {"q", "k", "value"})
      net.Feed(name, Doubles({1, 2, 3, 2}, numbers));
    net.Feed("m", Doubles({9}, {1, 1, 1, 1, 1, 1, 1, 1, 1}));
    const std::string mask =
        net.Op("sparse_to_sparse_csr",
               {{"x", net.Coo("m", {0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 2, 2,
                                    0, 1, 2, 2, 0, 1, 1, 0, 2, 0, 1, 0, 2},
                              {2, 3, 3})}});
    net.Feed("padding", Doubles({1, 3}, {1, 1, 0}));
    net.Feed("attn", Doubles({3, 3}, {1, 0, 1, 1, 1, 1, 1, 1, 1}));
    const std::string out =
        net.Op("sparse_fused_attention", {{"query", "q"},
                                          {"key", "k"},
                                          {"value", "value"},
                                          {"sparse_mask", mask},
                                          {"key_padding_mask", "padding"},
                                          {"attn_mask", "attn"}});
    const auto got = net.Run(out);
    ASSERT_TRUE(got.ok()) << got.status();
    // Row 0 of the first head has places 0 and 1, of which 1 is left out.
    EXPECT_DOUBLE_EQ(got->data<double>()[0], numbers[0]);
    EXPECT_DOUBLE_EQ(got->data<double>()[1], numbers[1]);
    // Row 2 of the first head has places 0 and 2, of which 2 is padding.
    EXPECT_DOUBLE_EQ(got->data<double>()[4], numbers[0]);
    // Row 2 of the second head has 0 and 2: place 0 stays.
    EXPECT_DOUBLE_EQ(got->data<double>()[10], numbers[6]);
    CheckGradient(&net, net.Op("square", {{"X", out}}), input);
  }
}

}  // namespace test_sparse_ops
}  // namespace pd
