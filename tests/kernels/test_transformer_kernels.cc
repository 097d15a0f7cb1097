// SPDX-License-Identifier: Apache-2.0
// The parts of transformers against the reference: products of batches of
// matrices, softmax, layer_norm, gelu, dropout, over sizes that do not fill
// vectors.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/kernels/kernel_test.h"

namespace pd {
namespace test_transformer_kernels {

OpDesc Unary(const char* type) {
  OpDesc op;
  op.type = type;
  op.SetInput("X", {"x"});
  op.SetOutput("Out", {"y"});
  return op;
}

struct Factors {
  Shape x, y;
  bool trans_x = false, trans_y = false;
};

class BatchedMatmul : public ::testing::TestWithParam<Factors> {};

TEST_P(BatchedMatmul, IsTheReferences) {
  const Factors& p = GetParam();
  KernelCase c;
  Feed(&c, "x", RandomArray(p.x, 1));
  Feed(&c, "w", RandomArray(p.y, 2));
  OpDesc op = Unary("matmul_v2");
  op.SetInput("Y", {"w"});
  op.attrs["trans_x"] = p.trans_x;
  op.attrs["trans_y"] = p.trans_y;
  Append(&c, op);
  c.fetches = {"y"};
  c.wrt = {"x", "w"};
  ExpectLikeReference(
      c, {{"matmul_v2", "onednn:matmul"}, {"matmul_v2_grad", "onednn:matmul"}});
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, BatchedMatmul,
    ::testing::Values(Factors{{2, 3, 17, 9}, {2, 3, 9, 21}},
                      Factors{{2, 3, 17, 9}, {2, 3, 21, 9}, false, true},
                      Factors{{2, 3, 9, 17}, {2, 3, 9, 21}, true, false},
                      Factors{{2, 3, 9, 17}, {2, 3, 21, 9}, true, true},
                      Factors{{4, 64, 64}, {4, 64, 64}, false, true},
                      Factors{{5, 1, 3}, {5, 3, 1}},
                      Factors{{40, 7}, {40, 33}, true, false}));

struct FewRows {
  Shape x, y;
};

class FewRowsProduct : public ::testing::TestWithParam<FewRows> {};

// Weights that no plan can bring into blocks: those of a late op, and feeds.
KernelCase ProductWithFed(const FewRows& p, const OpDesc& op) {
  KernelCase c;
  Feed(&c, "x", RandomArray(p.x, 1));
  Feed(&c, "w", RandomArray(p.y, 2));
  Feed(&c, "b", RandomArray({p.y[1]}, 3));
  OpDesc product = op;
  product.SetInput("Y", {"w"});
  Append(&c, product);
  c.fetches = {"y"};
  return c;
}

TEST_P(FewRowsProduct, IsTheReferences) {
  ExpectLikeReference(ProductWithFed(GetParam(), Unary("matmul_v2")),
                      {{"matmul_v2", "cpu:few_rows"}});
  OpDesc mul = Unary("mul");
  mul.attrs["x_num_col_dims"] = static_cast<int32_t>(GetParam().x.size()) - 1;
  ExpectLikeReference(ProductWithFed(GetParam(), mul),
                      {{"mul", "cpu:few_rows"}});
  for (const char* activation : {"none", "relu"}) {
    OpDesc fused = Unary("fused_gemm_epilogue");
    fused.SetInput("Bias", {"b"});
    fused.attrs["activation"] = std::string(activation);
    ExpectLikeReference(ProductWithFed(GetParam(), fused),
                        {{"fused_gemm_epilogue", "cpu:few_rows"}});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, FewRowsProduct,
    ::testing::Values(FewRows{{1, 33}, {33, 17}}, FewRows{{1, 15}, {15, 8}},
                      FewRows{{2, 16}, {16, 64}}, FewRows{{3, 47}, {47, 31}},
                      FewRows{{4, 1}, {1, 5}}, FewRows{{2, 1, 70}, {70, 300}},
                      FewRows{{1, 100}, {100, 2061}},
                      FewRows{{3, 9}, {9, 4100}}));

TEST(Matmul, ProductsOfMoreRowsAndOfTransposedFactorsAreOnednns) {
  ExpectLikeReference(ProductWithFed({{5, 33}, {33, 17}}, Unary("matmul_v2")),
                      {{"matmul_v2", "onednn:inner_product"}});
  KernelCase c;
  Feed(&c, "x", RandomArray({1, 33}, 1));
  Feed(&c, "w", RandomArray({17, 33}, 2));
  OpDesc op = Unary("matmul_v2");
  op.SetInput("Y", {"w"});
  op.attrs["trans_y"] = true;
  Append(&c, op);
  c.fetches = {"y"};
  ExpectLikeReference(c, {{"matmul_v2", "onednn:inner_product"}});
}

TEST(Matmul, BroadcastsABatch) {
  KernelCase c;
  Feed(&c, "x", RandomArray({3, 1, 5, 7}, 1));
  Feed(&c, "w", RandomArray({4, 7, 6}, 2));
  OpDesc op = Unary("matmul_v2");
  op.SetInput("Y", {"w"});
  Append(&c, op);
  c.fetches = {"y"};
  c.wrt = {"x", "w"};
  ExpectLikeReference(
      c, {{"matmul_v2", "onednn:matmul"}, {"matmul_v2_grad", "reference"}});
}

class Rows : public ::testing::TestWithParam<Shape> {};

TEST_P(Rows, Softmax) {
  KernelCase c;
  Feed(&c, "x", RandomArray(GetParam(), 1));
  OpDesc op = Unary("softmax");
  op.attrs["axis"] = int32_t{-1};
  Append(&c, op);
  c.fetches = {"y"};
  c.wrt = {"x"};
  ExpectLikeReference(c,
                      {{"softmax", "cpu:rows"}, {"softmax_grad", "cpu:rows"}});
}

TEST_P(Rows, LogSoftmax) {
  KernelCase c;
  // Differences beyond PaddlePaddle's floor of -64 as well.
  Array x = RandomArray(GetParam(), 1);
  auto* values = const_cast<float*>(x.data<float>());
  for (int64_t i = 0; i < x.size(); i += 3) values[i] -= 70.0f;
  Feed(&c, "x", std::move(x));
  OpDesc op = Unary("log_softmax");
  op.attrs["axis"] = int32_t{-1};
  Append(&c, op);
  c.fetches = {"y"};
  c.wrt = {"x"};
  ExpectLikeReference(
      c, {{"log_softmax", "cpu:rows"}, {"log_softmax_grad", "cpu:rows"}});
}

// Lines apart, fewer and more than vectors, with differences beyond the floor
// and a NaN in one of them.
TEST(Columns, SoftmaxAndItsLogarithm) {
  const std::vector<std::pair<Shape, int32_t>> kCases = {
      {{1, 3, 2}, 1},  {{2, 5, 17}, 1}, {{3, 4, 33, 2}, 1}, {{7, 5, 3}, 0},
      {{2, 9, 8}, -2}, {{2, 1, 40}, 1}, {{4, 21, 150}, 1}};
  for (const auto& [shape, axis] : kCases)
    for (const std::string type : {"softmax", "log_softmax"}) {
      SCOPED_TRACE(type + " " + std::to_string(shape[1]));
      KernelCase c;
      Array x = RandomArray(shape, 1);
      auto* values = const_cast<float*>(x.data<float>());
      for (int64_t i = 0; i < x.size(); i += 3) values[i] -= 70.0f;
      if (x.size() > 1000) values[77] = std::nanf("");
      Feed(&c, "x", std::move(x));
      OpDesc op = Unary(type.c_str());
      op.attrs["axis"] = axis;
      Append(&c, op);
      c.fetches = {"y"};
      c.wrt = {"x"};
      ExpectLikeReference(
          c, {{type, "cpu:columns"}, {type + "_grad", "cpu:columns"}});
    }
}

// Axes that exchange places, alone and within a batch; rows that move whole are
// the reference's.
TEST(Transpose, OfMatrices) {
  const std::vector<std::tuple<Shape, std::vector<int32_t>, bool>> kCases = {
      {{5, 7}, {1, 0}, true},
      {{64, 129}, {1, 0}, true},
      {{3, 2, 5, 7}, {0, 2, 3, 1}, true},
      {{3, 5, 7, 4}, {0, -1, 1, 2}, true},
      {{1, 9, 4}, {2, 0, 1}, true},
      {{2, 3, 5, 4}, {0, 2, 1, 3}, false}};
  for (const auto& [shape, axes, taken] : kCases) {
    SCOPED_TRACE(axes[0] + 10 * axes[1]);
    KernelCase c;
    Feed(&c, "x", RandomArray(shape, 1));
    OpDesc op = Unary("transpose2");
    op.attrs["axis"] = axes;
    op.SetOutput("XShape", {"shape"});
    Append(&c, op);
    c.fetches = {"y"};
    c.wrt = {"x"};
    const std::string label = taken ? "cpu:matrices" : "reference";
    ExpectLikeReference(c, {{"transpose2", label}, {"transpose2_grad", label}},
                        0);
  }
}

TEST_P(Rows, LayerNorm) {
  for (const bool affine : {true, false}) {
    KernelCase c;
    const Shape& shape = GetParam();
    Feed(&c, "x", RandomArray(shape, 1));
    OpDesc op;
    op.type = "layer_norm";
    op.SetInput("X", {"x"});
    c.wrt = {"x"};
    if (affine) {
      Parameter(&c, "scale", RandomArray({shape.back()}, 2));
      Parameter(&c, "bias", RandomArray({shape.back()}, 3));
      op.SetInput("Scale", {"scale"});
      op.SetInput("Bias", {"bias"});
      c.wrt = {"x", "scale", "bias"};
    }
    op.SetOutput("Y", {"y"});
    op.SetOutput("Mean", {"mean"});
    op.SetOutput("Variance", {"variance"});
    op.attrs["begin_norm_axis"] = static_cast<int32_t>(shape.size()) - 1;
    // Rows of one element have no variance: epsilon decides alone.
    op.attrs["epsilon"] = 1e-3f;
    Append(&c, op);
    c.fetches = {"y", "mean", "variance"};
    ExpectLikeReference(
        c, {{"layer_norm", "cpu:rows"}, {"layer_norm_grad", "cpu:rows"}}, 5e-5);
  }
}

TEST_P(Rows, Gelu) {
  for (const bool approximate : {false, true}) {
    KernelCase c;
    Array x = RandomArray(GetParam(), 1);
    Feed(&c, "x", x);
    OpDesc scale = Unary("scale");
    scale.attrs["scale"] = 6.0f;
    scale.SetOutput("Out", {"wide"});
    Append(&c, scale);
    OpDesc op = Unary("gelu");
    op.SetInput("X", {"wide"});
    op.attrs["approximate"] = approximate;
    Append(&c, op);
    c.fetches = {"y"};
    c.wrt = {"x"};
    ExpectLikeReference(
        c, {{"gelu", "cpu:vectors"}, {"gelu_grad", "cpu:vectors"}}, 1e-6);
  }
}

TEST_P(Rows, DropoutDrawsTheSameNumbers) {
  for (const float probability : {0.0f, 0.1f, 0.5f, 1.0f}) {
    for (const char* how : {"upscale_in_train", "downgrade_in_infer"}) {
      KernelCase c;
      Feed(&c, "x", RandomArray(GetParam(), 1));
      OpDesc op = Unary("dropout");
      op.SetOutput("Mask", {"mask"});
      op.attrs["dropout_prob"] = probability;
      op.attrs["dropout_implementation"] = std::string(how);
      Append(&c, op);
      c.fetches = {"y", "mask"};
      c.wrt = {"x"};
      ExpectLikeReference(
          c, {{"dropout", "cpu:vectors"}, {"dropout_grad", "cpu:vectors"}}, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Rows,
                         ::testing::Values(Shape{1, 1}, Shape{3, 7},
                                           Shape{5, 16}, Shape{2, 3, 33},
                                           Shape{64, 768}, Shape{19, 1031}));

// Heads with blocks of one length and of two, fewer than threads, and small and
// large products; the last one's probabilities are too many to be kept.
struct AttentionSize {
  int64_t batch, heads, queries, keys, width, values;
  Shape bias;
};

class Attention : public ::testing::TestWithParam<AttentionSize> {};

TEST_P(Attention, IsTheReferences) {
  const AttentionSize& p = GetParam();
  for (const bool drop : {false, true}) {
    KernelCase c;
    Feed(&c, "q", RandomArray({p.batch, p.heads, p.queries, p.width}, 1));
    Feed(&c, "k", RandomArray({p.batch, p.heads, p.keys, p.width}, 2));
    Feed(&c, "v", RandomArray({p.batch, p.heads, p.keys, p.values}, 3));
    OpDesc op;
    op.type = "scaled_dot_product_attention";
    op.SetInput("query", {"q"});
    op.SetInput("key", {"k"});
    op.SetInput("value", {"v"});
    if (!p.bias.empty()) {
      Feed(&c, "bias", RandomArray(p.bias, 4));
      op.SetInput("bias", {"bias"});
    }
    op.SetOutput("output", {"y"});
    op.SetOutput("logsumexp", {"sums"});
    op.attrs["scale"] = 3.0f;
    c.fetches = {"y", "sums"};
    if (drop) {
      op.SetOutput("mask", {"mask"});
      op.attrs["dropout_prob"] = 0.3f;
      c.fetches.push_back("mask");
    }
    Append(&c, op);
    c.wrt = {"q", "k", "v"};
    ExpectLikeReference(c,
                        {{"scaled_dot_product_attention", "onednn:gemm"},
                         {"scaled_dot_product_attention_grad", "onednn:gemm"}});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, Attention,
    ::testing::Values(AttentionSize{2, 3, 5, 7, 6, 9, {}},
                      AttentionSize{1, 1, 1, 1, 1, 1, {1}},
                      AttentionSize{3, 2, 1, 37, 33, 17, {3, 1, 1, 37}},
                      AttentionSize{2, 2, 19, 16, 32, 40, {2, 19, 1}},
                      AttentionSize{1, 3, 341, 203, 20, 12, {341, 203}},
                      AttentionSize{1, 1, 300, 130, 64, 64, {1, 1, 300, 130}},
                      AttentionSize{1, 4, 128, 128, 64, 64, {}},
                      AttentionSize{2, 1, 1500, 1501, 5, 6, {1501}}));

// The far ends, where 1 + erf(x) has lost its digits, and infinity.
TEST(Gelu, FarFromZero) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> far = {-1e30f, -40.f, -9.f, -5.f, -4.f,    0.f,
                                  -0.f,   4.f,   9.f,  40.f, infinity};
  Array x;
  std::byte* bytes = nullptr;
  x = *NewArray(DType::kFloat32, {static_cast<int64_t>(far.size())}, &bytes);
  std::memcpy(bytes, far.data(), far.size() * sizeof(float));
  KernelCase c;
  Feed(&c, "x", x);
  Append(&c, Unary("gelu"));
  c.fetches = {"y"};
  const KernelResult result = RunCase(c, true);
  EXPECT_EQ(result.labels.at("gelu"), "cpu:vectors");
  const float* y =
      reinterpret_cast<const float*>(result.values.at("y").bytes.get());
  for (size_t i = 0; i < far.size(); ++i) {
    const double v = far[i];
    const double expected = v / 2 * std::erfc(-v / std::sqrt(2.0));
    if (std::isinf(v))
      EXPECT_EQ(y[i], far[i]);
    else
      EXPECT_NEAR(y[i], expected, 1e-5 * std::abs(expected) + 1e-37) << v;
  }
}

}  // namespace test_transformer_kernels
}  // namespace pd
