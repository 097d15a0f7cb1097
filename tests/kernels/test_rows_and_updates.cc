// SPDX-License-Identifier: Apache-2.0
// The softmax of rows with its loss, inner products with their gradients, relu,
// and parameter updates. Sizes are below, at and above whole vectors, and large
// enough that two threads share the work at an odd place.
#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_rows_and_updates {

TEST(CrossEntropy, Rows) {
  for (const Shape& shape : {Shape{64, 10}, Shape{3, 1}, Shape{5, 16},
                             Shape{7, 17}, Shape{900, 33}, Shape{2, 4, 100}}) {
    KernelCase c;
    Feed(&c, "x", RandomArray(shape, 1));
    Shape labels = shape;
    labels.back() = 1;
    Feed(&c, "label", LabelArray(labels, shape.back(), 2));
    OpDesc op;
    op.type = "softmax_with_cross_entropy";
    op.SetInput("Logits", {"x"});
    op.SetInput("Label", {"label"});
    op.SetOutput("Softmax", {"softmax"});
    op.SetOutput("Loss", {"loss"});
    op.attrs["ignore_index"] = int32_t{0};
    Append(&c, op);
    c.fetches = {"loss", "softmax"};
    c.wrt = {"x"};
    ExpectLikeReference(c,
                        {{"softmax_with_cross_entropy", "cpu:rows"},
                         {"softmax_with_cross_entropy_grad", "cpu:rows"}},
                        1e-6);
  }
}

TEST(CrossEntropy, FarApartAndNotFinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  KernelCase c;
  Feed(&c, "x",
       MakeArray<float>({4, 3}, {500, -500, 0, -300, -301, -302,  //
                                 nan, 1, 2, -inf, 0, 3}));
  Feed(&c, "label", MakeArray<int64_t>({4, 1}, {1, 2, 0, 2}));
  OpDesc op;
  op.type = "softmax_with_cross_entropy";
  op.SetInput("Logits", {"x"});
  op.SetInput("Label", {"label"});
  op.SetOutput("Softmax", {"softmax"});
  op.SetOutput("Loss", {"loss"});
  Append(&c, op);
  c.fetches = {"softmax"};
  ExpectLikeReference(c, {{"softmax_with_cross_entropy", "cpu:rows"}}, 1e-6);
}

TEST(Relu, AnyLayout) {
  KernelCase c;
  Feed(&c, "x", RandomArray({13, 3, 7, 5}, 1));
  Feed(&c, "w", RandomArray({5, 3, 1, 1}, 2));
  OpDesc conv;
  conv.type = "conv2d";
  conv.SetInput("Input", {"x"});
  conv.SetInput("Filter", {"w"});
  conv.SetOutput("Output", {"y"});
  Append(&c, conv);
  OpDesc relu;
  relu.type = "relu";
  relu.SetInput("X", {"y"});
  relu.SetOutput("Out", {"z"});
  Append(&c, relu);
  c.fetches = {"z"};
  c.wrt = {"x", "w"};
  ExpectLikeReference(
      c, {{"relu", "cpu:any_layout"}, {"relu_grad", "cpu:any_layout"}});
}

struct Product {
  Shape x, y;
  bool trans_y = false;
};

class InnerProduct : public ::testing::TestWithParam<Product> {};

OpDesc ProductOp(const char* type, bool trans_y) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {"x"});
  op.SetInput("Y", {"w"});
  op.SetOutput("Out", {"y"});
  op.attrs["trans_y"] = trans_y;
  return op;
}

TEST_P(InnerProduct, MatmulV2) {
  for (bool with_x : {true, false}) {
    KernelCase c;
    Feed(&c, "x", RandomArray(GetParam().x, 1));
    Parameter(&c, "w", RandomArray(GetParam().y, 2));
    Append(&c, ProductOp("matmul_v2", GetParam().trans_y));
    c.fetches = {"y"};
    c.wrt = {"w"};
    if (with_x) c.wrt.push_back("x");
    ExpectLikeReference(c, {{"matmul_v2", "onednn:inner_product"},
                            {"matmul_v2_grad", "onednn:inner_product"}});
  }
}

TEST_P(InnerProduct, FusedGemmEpilogue) {
  for (const char* activation : {"none", "relu"}) {
    KernelCase c;
    Feed(&c, "x", RandomArray(GetParam().x, 1));
    Parameter(&c, "w", RandomArray(GetParam().y, 2));
    Parameter(&c, "b",
              RandomArray({GetParam().y[GetParam().trans_y ? 0 : 1]}, 3));
    OpDesc op = ProductOp("fused_gemm_epilogue", GetParam().trans_y);
    op.SetInput("Bias", {"b"});
    op.attrs["activation"] = std::string(activation);
    Append(&c, op);
    c.fetches = {"y"};
    c.wrt = {"x", "w", "b"};
    ExpectLikeReference(c,
                        {{"fused_gemm_epilogue", "onednn:inner_product"},
                         {"fused_gemm_epilogue_grad", "onednn:inner_product"}});
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, InnerProduct,
                         ::testing::Values(Product{{64, 400}, {400, 120}},
                                           Product{{7, 84}, {84, 10}},
                                           Product{{1, 33}, {33, 17}},
                                           Product{{128, 64}, {64, 256}},
                                           Product{{3, 5, 20}, {20, 31}},
                                           Product{{9, 40}, {65, 40}, true}));

// Two parameters, one of a size that fills no vector; two steps of one plan
// would need a loop, so one step from random states.
KernelCase UpdateCase(const std::vector<std::string>& states) {
  KernelCase c;
  Parameter(&c, "rate", MakeArray<float>({1}, {0.01f}));
  for (int i = 0; i < 2; ++i) {
    const std::string n = std::to_string(i);
    const Shape shape = i == 0 ? Shape{37, 11} : Shape{101, 251};
    Parameter(&c, "p" + n, RandomArray(shape, 10 + i));
    Feed(&c, "g" + n, RandomArray(shape, 20 + i));
    for (const std::string& state : states) {
      Array value = RandomArray(shape, 30 + i);
      auto* data = const_cast<float*>(value.data<float>());
      for (int64_t k = 0; k < value.size(); ++k) data[k] *= data[k];
      Parameter(&c, state + n, value);
    }
    Parameter(&c, "b1" + n, MakeArray<float>({1}, {0.81f}));
    Parameter(&c, "b2" + n, MakeArray<float>({1}, {0.998f}));
  }
  return c;
}

void Bind(OpDesc* op, const std::string& slot,
          const std::vector<std::string>& names) {
  op->SetInput(slot, names);
  op->SetOutput(slot + "Out", names);
}

TEST(Updates, Adam) {
  for (const std::string type :
       {"adam", "adamw", "merged_adam", "merged_adamw"}) {
    KernelCase c = UpdateCase({"m", "v"});
    const bool merged = type.substr(0, 6) == "merged";
    for (int i = 0; i < (merged ? 1 : 2); ++i) {
      const auto names = [&](const std::string& base) {
        if (merged) return std::vector<std::string>{base + "0", base + "1"};
        return std::vector<std::string>{base + std::to_string(i)};
      };
      OpDesc op;
      op.type = type;
      op.SetInput("Grad", names("g"));
      op.SetInput("LearningRate", {"rate"});
      Bind(&op, "Param", names("p"));
      Bind(&op, "Moment1", names("m"));
      Bind(&op, "Moment2", names("v"));
      Bind(&op, "Beta1Pow", names("b1"));
      Bind(&op, "Beta2Pow", names("b2"));
      if (type == "adamw") op.attrs["with_decay"] = true;
      if (type == "merged_adamw") {
        op.attrs["coeff"] = std::vector<float>{0.1f, 0.0f};
        op.attrs["lr_ratio"] = std::vector<float>{0.5f, 1.0f};
      }
      Append(&c, op);
    }
    ExpectLikeReference(c, {{type, "cpu:any_layout"}}, 1e-6);
  }
}

TEST(Updates, MomentumAndSgd) {
  for (bool nesterov : {false, true}) {
    KernelCase c = UpdateCase({"v"});
    OpDesc op;
    op.type = "momentum";
    op.SetInput("Grad", {"g0"});
    op.SetInput("LearningRate", {"rate"});
    Bind(&op, "Param", {"p0"});
    Bind(&op, "Velocity", {"v0"});
    op.attrs["mu"] = 0.9f;
    op.attrs["use_nesterov"] = nesterov;
    op.attrs["regularization_method"] = std::string("l2_decay");
    op.attrs["regularization_coeff"] = 0.1f;
    Append(&c, op);
    OpDesc sgd;
    sgd.type = "sgd";
    sgd.SetInput("Grad", {"g1"});
    sgd.SetInput("LearningRate", {"rate"});
    Bind(&sgd, "Param", {"p1"});
    Append(&c, sgd);
    ExpectLikeReference(
        c, {{"momentum", "cpu:any_layout"}, {"sgd", "cpu:any_layout"}}, 1e-6);
  }
}

// Adagrad, and the clipping that goes before an update, on a weight matrix that
// the product keeps in blocks.
TEST(Updates, AdagradOfClippedGradients) {
  KernelCase c;
  Feed(&c, "x", RandomArray({9, 33}, 1));
  Parameter(&c, "w", RandomArray({33, 50}, 2));
  Parameter(&c, "moment",
            MakeArray<float>({33, 50}, std::vector<float>(1650, 0.1f)));
  Parameter(&c, "rate", MakeArray<float>({1}, {0.5f}));
  Append(&c, ProductOp("matmul_v2", false));
  // A gradient of the weights' shape that takes part in the product's layout.
  OpDesc product;
  product.type = "matmul_v2_grad";
  product.SetInput("X", {"x"});
  product.SetInput("Y", {"w"});
  product.SetInput("Out@GRAD", {"y"});
  product.SetOutput("Y@GRAD", {"dw"});
  Append(&c, product);
  OpDesc norm;
  norm.type = "squared_l2_norm";
  norm.SetInput("X", {"dw"});
  norm.SetOutput("Out", {"norm"});
  Append(&c, norm);
  OpDesc scaled;
  scaled.type = "elementwise_mul";
  scaled.SetInput("X", {"dw"});
  scaled.SetInput("Y", {"rate"});
  scaled.SetOutput("Out", {"clipped"});
  Append(&c, scaled);
  OpDesc adagrad;
  adagrad.type = "adagrad";
  adagrad.SetInput("Param", {"w"});
  adagrad.SetInput("Grad", {"clipped"});
  adagrad.SetInput("Moment", {"moment"});
  adagrad.SetInput("LearningRate", {"rate"});
  adagrad.SetOutput("ParamOut", {"w"});
  adagrad.SetOutput("MomentOut", {"moment"});
  Append(&c, adagrad);
  c.fetches = {"norm"};
  ExpectLikeReference(c, {{"squared_l2_norm", "cpu:any_layout"},
                          {"elementwise_mul", "cpu:any_layout"},
                          {"adagrad", "cpu:any_layout"}});
}

// The rows that a sparse lookup touched, some of them several times; 7 and 19
// columns fill no vector, 16 do.
TEST(Updates, AdagradOfSelectedRows) {
  for (int64_t width : {1, 7, 16, 19}) {
    KernelCase c;
    Parameter(&c, "table", RandomArray({40, width}, 1));
    Parameter(&c, "moment",
              MakeArray<float>(
                  {40, width},
                  std::vector<float>(static_cast<size_t>(40 * width), 0.1f)));
    Parameter(&c, "rate", MakeArray<float>({1}, {0.5f}));
    Feed(&c, "ids", MakeArray<int64_t>({9}, {3, 39, 3, 0, 17, 18, 3, 39, 20}));
    Feed(&c, "dy", RandomArray({9, width}, 2));
    OpDesc lookup;
    lookup.type = "lookup_table_v2_grad";
    lookup.SetInput("W", {"table"});
    lookup.SetInput("Ids", {"ids"});
    lookup.SetInput("Out@GRAD", {"dy"});
    lookup.SetOutput("W@GRAD", {"rows"});
    lookup.attrs["is_sparse"] = true;
    Append(&c, lookup);
    OpDesc adagrad;
    adagrad.type = "adagrad";
    adagrad.SetInput("Param", {"table"});
    adagrad.SetInput("Grad", {"rows"});
    adagrad.SetInput("Moment", {"moment"});
    adagrad.SetInput("LearningRate", {"rate"});
    adagrad.SetOutput("ParamOut", {"table"});
    adagrad.SetOutput("MomentOut", {"moment"});
    Append(&c, adagrad);
    ExpectLikeReference(c, {{"adagrad", "cpu:any_layout"}}, 1e-6);
  }
}

TEST(Updates, MergedSgdAndAdagrad) {
  for (const std::string type : {"merged_sgd", "merged_adagrad"}) {
    KernelCase c = UpdateCase({"m"});
    OpDesc op;
    op.type = type;
    op.SetInput("Grad", {"g0", "g1"});
    op.SetInput("LearningRate", {"rate"});
    Bind(&op, "Param", {"p0", "p1"});
    if (type == "merged_adagrad") Bind(&op, "Moment", {"m0", "m1"});
    Append(&c, op);
    ExpectLikeReference(c, {{type, "cpu:any_layout"}}, 1e-6);
  }
}

TEST(Updates, MergedMomentum) {
  KernelCase c = UpdateCase({"v"});
  OpDesc op;
  op.type = "merged_momentum";
  op.SetInput("Grad", {"g0", "g1"});
  op.SetInput("LearningRate", {"rate"});
  Bind(&op, "Param", {"p0", "p1"});
  Bind(&op, "Velocity", {"v0", "v1"});
  op.attrs["mu"] = 0.9f;
  op.attrs["rescale_grad"] = 0.5f;
  op.attrs["regularization_method"] = std::vector<std::string>{"l2_decay", ""};
  op.attrs["regularization_coeff"] = std::vector<float>{0.1f, 0.0f};
  Append(&c, op);
  ExpectLikeReference(c, {{"merged_momentum", "cpu:any_layout"}}, 1e-6);
}

}  // namespace test_rows_and_updates
}  // namespace pd
