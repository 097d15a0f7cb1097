// SPDX-License-Identifier: Apache-2.0
// The tensor functions that sources of operators call, against the standard
// library's functions and results that can be seen by eye.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "paddle/extension.h"

namespace test_plugin_functions {

using paddle::DataType;
using paddle::Tensor;

template <typename T>
Tensor Of(std::vector<int64_t> shape, std::vector<T> values) {
  Tensor tensor = paddle::empty(shape, phi::CppTypeToDataType<T>::Type());
  std::copy(values.begin(), values.end(), tensor.template data<T>());
  return tensor;
}
Tensor F(std::vector<int64_t> shape, std::vector<float> values) {
  return Of<float>(std::move(shape), std::move(values));
}
Tensor I(std::vector<int64_t> shape, std::vector<int64_t> values) {
  return Of<int64_t>(std::move(shape), std::move(values));
}

template <typename T>
void ExpectValues(const Tensor& tensor, const std::vector<int64_t>& shape,
                  const std::vector<T>& values) {
  EXPECT_EQ(tensor.shape(), shape);
  ASSERT_EQ(tensor.numel(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(static_cast<double>(tensor.data<T>()[i]),
                static_cast<double>(values[i]), 1e-5)
        << i;
}
void ExpectF(const Tensor& tensor, const std::vector<int64_t>& shape,
             const std::vector<float>& values) {
  ExpectValues<float>(tensor, shape, values);
}
void ExpectI(const Tensor& tensor, const std::vector<int64_t>& shape,
             const std::vector<int64_t>& values) {
  ExpectValues<int64_t>(tensor, shape, values);
}
void ExpectB(const Tensor& tensor, const std::vector<bool>& values) {
  ASSERT_EQ(tensor.numel(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(tensor.data<bool>()[i], values[i]) << i;
}

TEST(PluginFunctions, OfOneTensor) {
  struct Case {
    const char* name;
    Tensor (*ours)(const Tensor&);
    double (*theirs)(double);
  };
  const Case cases[] = {
      {"abs", paddle::abs, std::fabs},
      {"acos", paddle::acos, std::acos},
      {"asin", paddle::asin, std::asin},
      {"asinh", paddle::asinh, std::asinh},
      {"atan", paddle::atan, std::atan},
      {"atanh", paddle::atanh, std::atanh},
      {"ceil", paddle::ceil, std::ceil},
      {"cos", paddle::cos, std::cos},
      {"cosh", paddle::cosh, std::cosh},
      {"erf", paddle::erf, std::erf},
      {"exp", paddle::exp, std::exp},
      {"expm1", paddle::expm1, std::expm1},
      {"floor", paddle::floor, std::floor},
      {"lgamma", paddle::lgamma, std::lgamma},
      {"log", paddle::log, std::log},
      {"log10", paddle::log10, std::log10},
      {"log1p", paddle::log1p, std::log1p},
      {"log2", paddle::log2, std::log2},
      {"round", paddle::round, std::round},
      {"sin", paddle::sin, std::sin},
      {"sinh", paddle::sinh, std::sinh},
      {"sqrt", paddle::sqrt, std::sqrt},
      {"tan", paddle::experimental::tan, std::tan},
      {"tanh", paddle::tanh, std::tanh},
      {"reciprocal", paddle::reciprocal, [](double x) { return 1 / x; }},
      {"relu", paddle::relu, [](double x) { return x > 0 ? x : 0; }},
      {"rsqrt", paddle::rsqrt, [](double x) { return 1 / std::sqrt(x); }},
      {"sign", paddle::sign, [](double x) { return x > 0 ? 1. : -1.; }},
      {"silu", paddle::silu, [](double x) { return x / (1 + std::exp(-x)); }},
      {"square", paddle::square, [](double x) { return x * x; }},
      {"conj", paddle::conj, [](double x) { return x; }},
      {"erf(erfinv)",
       [](const Tensor& x) { return paddle::erf(paddle::erfinv(x)); },
       [](double x) { return x; }},
      {"cosh(acosh)",
       [](const Tensor& x) { return paddle::cosh(paddle::acosh(x + 1)); },
       [](double x) { return x + 1; }},
      // digamma(x + 1) = digamma(x) + 1 / x
      {"digamma",
       [](const Tensor& x) {
         return paddle::digamma(x + 1) - paddle::digamma(x);
       },
       [](double x) { return 1 / x; }},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    const std::vector<float> x = {0.25f, 0.5f, 0.75f};
    std::vector<float> want;
    for (const float v : x) want.push_back(static_cast<float>(one.theirs(v)));
    ExpectF(one.ours(F({3}, x)), {3}, want);
  }
  const Tensor odd = F({3}, {1, NAN, INFINITY});
  ExpectB(paddle::isfinite(odd), {true, false, false});
  ExpectB(paddle::isnan(odd), {false, true, false});
  ExpectB(paddle::isinf(odd), {false, false, true});
  ExpectB(paddle::is_empty(odd), {false});
  const Tensor z = Of<paddle::complex64>({1}, {{3, -4}});
  ExpectF(paddle::real(z), {1}, {3});
  ExpectF(paddle::imag(z), {1}, {-4});
  EXPECT_EQ(paddle::conj(z).data<paddle::complex64>()->imag, 4);
  ExpectF(paddle::bernoulli(F({2}, {0, 1})), {2}, {0, 1});
  EXPECT_GE(*paddle::poisson(F({1}, {4})).data<float>(), 0);
  ExpectF(paddle::reshape(paddle::det(F({2, 2}, {1, 2, 3, 5})), {1}), {1},
          {-1});
}

TEST(PluginFunctions, OfTwoTensors) {
  const Tensor x = F({2}, {6, -7}), y = F({2}, {4, 2});
  ExpectF(paddle::add(x, y), {2}, {10, -5});
  ExpectF(paddle::subtract(x, y), {2}, {2, -9});
  ExpectF(paddle::multiply(x, y), {2}, {24, -14});
  ExpectF(paddle::divide(x, y), {2}, {1.5f, -3.5f});
  ExpectF(paddle::maximum(x, y), {2}, {6, 2});
  ExpectF(paddle::minimum(x, y), {2}, {4, -7});
  ExpectF(paddle::atan2(x, y), {2},
          {std::atan2(6.f, 4.f), std::atan2(-7.f, 2.f)});
  ExpectI(paddle::floor_divide(I({1}, {7}), I({1}, {2})), {1}, {3});
  EXPECT_EQ(*paddle::dot(x, y).data<float>(), 10);
  ExpectB(paddle::equal_all(x, x), {true});
  ExpectF(paddle::kron(F({2}, {1, 2}), F({2}, {3, 4})), {4}, {3, 4, 6, 8});
  ExpectF(paddle::mv(F({2, 2}, {1, 2, 3, 4}), F({2}, {1, 10})), {2}, {21, 43});
  ExpectB(paddle::experimental::greater_than(x, y), {true, false});
  ExpectB(paddle::allclose(x, x, 1e-5, 1e-8, false), {true});
  ExpectB(paddle::isclose(x, y, 1e-5, 1e-8, false), {false, false});
  ExpectF(paddle::lerp(F({1}, {2}), F({1}, {4}), F({1}, {0.5f})), {1}, {3});
  EXPECT_NEAR(*paddle::dist(x, y, 1).data<float>(), 11, 1e-5);
  ExpectF(paddle::cross(F({1, 3}, {1, 0, 0}), F({1, 3}, {0, 1, 0})), {1, 3},
          {0, 0, 1});
  ExpectF(x + 1, {2}, {7, -6});
  ExpectF(1 - x, {2}, {-5, 8});
  ExpectF(2.5 * x, {2}, {15, -17.5f});
  ExpectF(x / y, {2}, {1.5f, -3.5f});
  ExpectF(-x, {2}, {-6, 7});
  ExpectB(x < y, {false, true});
  ExpectF(x.add(y), {2}, {10, -5});
  ExpectF(x.pow(2), {2}, {36, 49});
  EXPECT_EQ(*x.sum().data<float>(), -1);
}

TEST(PluginFunctions, WithParameters) {
  const Tensor x = F({3}, {-1, 0.5f, 2});
  ExpectF(paddle::clip(x, -0.5, 1), {3}, {-0.5f, 0.5f, 1});
  ExpectF(paddle::elu(x, 1), {3}, {std::exp(-1.f) - 1, 0.5f, 2});
  ExpectF(paddle::gelu(F({1}, {1}), false), {1}, {0.8413447f});
  ExpectF(paddle::selu(x, 2, 3), {3}, {6 * (std::exp(-1.f) - 1), 1, 4});
  ExpectF(paddle::thresholded_relu(x, 1), {3}, {0, 0, 2});
  ExpectF(paddle::logit(F({1}, {0.75f})), {1}, {std::log(3.f)});
  ExpectF(paddle::increment(F({1}, {1}), 2), {1}, {3});
  ExpectF(paddle::label_smooth(F({1, 2}, {0, 1}), paddle::none, 0.2f), {1, 2},
          {0.1f, 0.9f});
  ExpectF(paddle::maxout(F({1, 2, 1, 1}, {3, 5}), 2, 1), {1, 1, 1, 1}, {5});
  EXPECT_EQ(paddle::gumbel_softmax(x, 1, true, -1).numel(), 3);
  ExpectI(paddle::multinomial(F({2}, {0, 1}), 1, false), {1}, {1});
  const auto loss = paddle::nll_loss(F({1, 2}, {-1, -3}), I({1}, {1}),
                                     paddle::none, -100, "mean");
  EXPECT_EQ(*std::get<0>(loss).data<float>(), 3);
  EXPECT_EQ(*std::get<1>(loss).data<float>(), 1);
  const Tensor sum = paddle::experimental::sum(F({2, 2}, {1, 2, 3, 4}), {0});
  ExpectF(sum, {2}, {4, 6});
  ExpectI(paddle::experimental::cast(x, DataType::INT64), {3}, {-1, 0, 2});
}

TEST(PluginFunctions, ThatArrange) {
  const Tensor m = F({2, 3}, {1, 2, 3, 4, 5, 6});
  ExpectF(paddle::full({2}, "-3.5"), {2}, {-3.5f, -3.5f});
  ExpectF(paddle::full_like(m, 1).slice(0, 1), {1, 3}, {1, 1, 1});
  EXPECT_EQ(paddle::empty_like(m, DataType::INT32).dtype(), DataType::INT32);
  ExpectF(paddle::reshape(m, {3, -1}), {3, 2}, {1, 2, 3, 4, 5, 6});
  ExpectF(std::get<0>(paddle::flatten(m, 0, 1)), {6}, {1, 2, 3, 4, 5, 6});
  ExpectF(std::get<0>(paddle::unsqueeze(F({1}, {1}), {0})), {1, 1}, {1});
  ExpectF(paddle::expand(F({1}, {2}), {2, 2}), {2, 2}, {2, 2, 2, 2});
  ExpectF(paddle::tile(F({1}, {2}), {3}), {3}, {2, 2, 2});
  ExpectF(paddle::flip(m, {1}), {2, 3}, {3, 2, 1, 6, 5, 4});
  ExpectF(paddle::roll(F({3}, {1, 2, 3}), {1}, {0}), {3}, {3, 1, 2});
  ExpectF(paddle::concat({m, m}, 0).slice(2, 3), {1, 3}, {1, 2, 3});
  ExpectF(paddle::stack({F({1}, {1}), F({1}, {2})}, 0), {2, 1}, {1, 2});
  ExpectF(paddle::split(m, {1, 2}, 1)[1], {2, 2}, {2, 3, 5, 6});
  EXPECT_EQ(paddle::split(m, {3}, 1).size(), 3u);
  ExpectF(paddle::unbind(m, 0)[1], {3}, {4, 5, 6});
  ExpectF(paddle::strided_slice(m, {1}, {0}, {3}, {2}), {2, 2}, {1, 3, 4, 6});
  ExpectF(paddle::gather(m, I({1}, {1})), {1, 3}, {4, 5, 6});
  ExpectF(paddle::gather_nd(m, I({1, 2}, {1, 0})), {1}, {4});
  ExpectF(paddle::index_sample(m, I({2, 1}, {2, 0})), {2, 1}, {3, 4});
  ExpectF(
      paddle::masked_select(F({3}, {1, 2, 3}),
                            Of<uint8_t>({3}, {1, 0, 1}).cast(DataType::BOOL)),
      {2}, {1, 3});
  const Tensor more = m > paddle::full({1}, 3);
  ExpectF(paddle::where(more, m, paddle::full_like(m, 0)), {2, 3},
          {0, 0, 0, 4, 5, 6});
  ExpectF(
      paddle::scatter(m, I({1}, {0}), F({1, 3}, {7, 8, 9}), true).slice(0, 1),
      {1, 3}, {7, 8, 9});
  ExpectF(paddle::scatter_nd_add(F({2}, {1, 2}), I({1, 1}, {1}), F({1}, {5})),
          {2}, {1, 7});
  const auto sorted = paddle::argsort(F({3}, {3, 1, 2}), 0, false);
  ExpectF(std::get<0>(sorted), {3}, {1, 2, 3});
  ExpectI(std::get<1>(sorted), {3}, {1, 2, 0});
  ExpectF(std::get<0>(paddle::kthvalue(F({3}, {3, 1, 2}), 2, 0, true)), {1},
          {2});
  ExpectF(std::get<0>(paddle::mode(F({3}, {1, 2, 2}), 0, true)), {1}, {2});
  const auto unique =
      paddle::unique(I({3}, {5, 2, 5}), true, true, true, {}, DataType::INT64);
  ExpectI(std::get<0>(unique), {2}, {2, 5});
  ExpectI(std::get<1>(unique), {3}, {1, 0, 1});
  ExpectI(std::get<2>(unique), {2}, {1, 2});
  ExpectF(paddle::one_hot(I({1}, {1}), 3), {1, 3}, {0, 1, 0});
  ExpectF(paddle::pixel_shuffle(F({1, 4, 1, 1}, {1, 2, 3, 4}), 2, "NCHW"),
          {1, 1, 2, 2}, {1, 2, 3, 4});
  ExpectF(paddle::diag(F({2}, {1, 2}), 0, 9), {2, 2}, {1, 9, 9, 2});
  ExpectF(paddle::diagonal(m, 1, 0, 1), {2}, {2, 6});
  ExpectF(paddle::reshape(paddle::trace(m, 0, 0, 1), {1}), {1}, {6});
}

TEST(PluginFunctions, OfMatrices) {
  const Tensor a = F({2, 2}, {4, 2, 2, 5}), b = F({2, 1}, {8, 12});
  ExpectF(paddle::matmul(a, b), {2, 1}, {56, 76});
  ExpectF(paddle::matmul(b, a, true), {1, 2}, {56, 76});
  ExpectF(paddle::matrix_power(a, 2), {2, 2}, {20, 18, 18, 29});
  ExpectF(paddle::multi_dot({a, a}), {2, 2}, {20, 18, 18, 29});
  const Tensor lower = paddle::cholesky(a, false);
  ExpectF(lower, {2, 2}, {2, 0, 1, 2});
  ExpectF(paddle::matmul(a, paddle::cholesky_solve(b, lower, false)), {2, 1},
          {8, 12});
  ExpectF(paddle::triangular_solve(lower, b, false, false, false), {2, 1},
          {4, 4});
  const auto qr = paddle::qr(a, "reduced");
  ExpectF(paddle::matmul(std::get<0>(qr), std::get<1>(qr)), {2, 2},
          {4, 2, 2, 5});
}

TEST(PluginFunctions, ErrorsNameTheOperator) {
  try {
    paddle::matmul(F({2}, {1, 2}), F({3}, {1, 2, 3}));
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("op 'matmul_v2'"),
              std::string::npos)
        << error.what();
  }
}

TEST(PluginTensor, SharesCopiesAndSlices) {
  Tensor a = F({2, 2}, {1, 2, 3, 4}), b = a, c = a.slice(1, 2);
  b.data<float>()[2] = 9;
  ExpectF(c, {1, 2}, {9, 4});
  EXPECT_EQ(a.copy_to(paddle::CPUPlace(), true).data<float>()[2], 9);
  EXPECT_THROW(a.data<double>(), phi::enforce::EnforceNotMet);
  EXPECT_THROW(a.slice(1, 3), phi::enforce::EnforceNotMet);
  EXPECT_THROW(a.reshape({3}), phi::enforce::EnforceNotMet);
  EXPECT_TRUE(a.place() == paddle::PlaceType::kCPU);
  EXPECT_EQ(a.strides(), (std::vector<int64_t>{2, 1}));
  Tensor old(paddle::PlaceType::kCPU, {2});
  EXPECT_FALSE(old.initialized());
  old.mutable_data<double>(paddle::PlaceType::kCPU)[1] = 1;
  EXPECT_EQ(old.type(), DataType::FLOAT64);
  EXPECT_EQ(paddle::Scalar(F({1}, {2.5f})).to<int>(), 2);
  EXPECT_EQ(paddle::IntArray(I({2}, {3, 4})).GetData(),
            (std::vector<int64_t>{3, 4}));
}

TEST(PluginFunctions, OfLaterReleases) {
  namespace exp = paddle::experimental;
  const Tensor x = F({2, 2}, {1, -2, 3, 4});
  ExpectF(exp::add_n({x, x, x}), {2, 2}, {3, -6, 9, 12});
  ExpectI(exp::argmax(x, 1), {2}, {0, 1});
  ExpectF(exp::bmm(F({1, 1, 2}, {1, 2}), F({1, 2, 1}, {3, 4})), {1, 1, 1},
          {11});
  ExpectF(exp::cumsum(x, 0), {2, 2}, {1, -2, 4, 2});
  ExpectF(exp::embedding(I({1}, {1}), x), {1, 2}, {3, 4});
  ExpectF(paddle::frame(F({4}, {1, 2, 3, 4}), 2, 1), {2, 3},
          {1, 2, 3, 2, 3, 4});
  ExpectF(paddle::overlap_add(F({2, 2}, {1, 2, 3, 4}), 1), {3}, {1, 5, 4});
  ExpectF(paddle::hardswish(F({3}, {-4, 0, 3})), {3}, {0, 0, 3});
  ExpectF(paddle::hardtanh(F({3}, {-4, 1, 30})), {3}, {0, 1, 24});
  ExpectF(exp::index_select(x, I({1}, {1}), 1), {2, 1}, {-2, 4});
  ExpectF(exp::layer_norm(F({1, 2}, {1, 3}), paddle::none, paddle::none, 0.0f),
          {1, 2}, {-1, 1});
  ExpectF(exp::leaky_relu(F({2}, {-2, 2}), 0.5f), {2}, {-1, 2});
  ExpectF(exp::log_softmax(F({2}, {1, 1})), {2},
          {-std::log(2.0f), -std::log(2.0f)});
  const auto grids = paddle::meshgrid({F({2}, {1, 2}), F({1}, {3})});
  ExpectF(grids.at(0), {2, 1}, {1, 2});
  ExpectF(grids.at(1), {2, 1}, {3, 3});
  ExpectF(paddle::npu_identity(x), {2, 2}, {1, -2, 3, 4});
  ExpectF(exp::p_norm(F({2}, {3, 4})), {}, {5});
  ExpectF(paddle::put_along_axis(x, I({1, 2}, {1, 0}), F({1, 2}, {7, 8}), 0),
          {2, 2}, {1, 8, 7, 4});
  const Tensor from = I({3}, {0, 1, 1}), to = I({3}, {1, 0, 1});
  ExpectF(paddle::send_u_recv(x, from, to), {2, 2}, {3, 4, 4, 2});
  ExpectF(paddle::send_ue_recv(x, F({3, 1}, {1, 2, 3}), from, to), {2, 2},
          {5, 6, 8, 6});
  ExpectF(paddle::send_uv(x, x, from, to, "MUL"), {3, 2},
          {3, -8, 3, -8, 9, 16});
  ExpectF(exp::slice(x, {1}, {1}, {2}), {2, 1}, {-2, 4});
  ExpectF(exp::softplus(F({1}, {0})), {1}, {std::log(2.0f)});
  ExpectF(exp::squeeze(F({1, 2, 1}, {1, 2}), {0}), {2, 1}, {1, 2});
  ExpectF(paddle::swish(F({2}, {0, 1})), {2}, {0, 1 / (1 + std::exp(-1.0f))});
  ExpectF(exp::take_along_axis(x, I({1, 2}, {1, 0}), 0), {1, 2}, {3, -2});
  const auto largest = exp::topk(x, 1);
  ExpectF(std::get<0>(largest), {2, 1}, {1, 4});
  ExpectI(std::get<1>(largest), {2, 1}, {0, 1});
  ExpectF(paddle::tril(x), {2, 2}, {1, 0, 3, 4});
  ExpectF(exp::triu(x), {2, 2}, {1, -2, 0, 4});
}

TEST(PluginFunctions, OfTheInternalNamespace) {
  namespace exp = paddle::experimental;
  const Tensor x = F({2, 2}, {1, -2, 3, 4});
  ExpectF(exp::amax(x, {0}), {2}, {3, 4});
  ExpectF(exp::amin(x, {1}, true), {2, 1}, {-2, 3});
  ExpectF(exp::prod(x, {0}, false, false), {2}, {3, -8});
  ExpectF(exp::prod(x, {}, false, true), {}, {-24});
  ExpectF(exp::logsumexp(F({1, 2}, {0, 0}), {1}, false, false), {1},
          {std::log(2.0f)});
  ExpectF(exp::logsigmoid(F({1}, {0})), {1}, {-std::log(2.0f)});
  ExpectF(exp::softsign(x), {2, 2}, {0.5f, -2.0f / 3, 0.75f, 0.8f});
  ExpectF(exp::trunc(F({2}, {-1.5f, 2.5f})), {2}, {-1, 2});
  ExpectF(exp::mean_all(x), {}, {1.5f});
  ExpectI(exp::nonzero(F({2, 2}, {0, 5, 0, 6})), {2, 2}, {0, 1, 1, 1});
  ExpectF(exp::inverse(F({2, 2}, {2, 0, 0, 4})), {2, 2}, {0.5f, 0, 0, 0.25f});
  ExpectI(exp::argmin(x, 1), {2}, {1, 0});
  const Tensor small = exp::argmax(x, 1, false, false, DataType::INT32);
  EXPECT_EQ(small.dtype(), DataType::INT32);
  ExpectValues<int32_t>(small, {2}, {0, 1});
  ExpectF(exp::arange(F({1}, {1}), F({1}, {7}), F({1}, {2}), DataType::FLOAT32),
          {3}, {1, 3, 5});
  ExpectI(exp::eye(2, 3, DataType::INT64), {2, 3}, {1, 0, 0, 0, 1, 0});
  ExpectF(exp::expand_as(F({1, 2}, {1, 2}), x), {2, 2}, {1, 2, 1, 2});
  // One result as in later releases, two as in 2.3.
  const Tensor flat = exp::flatten(x, 0, -1);
  ExpectF(flat, {4}, {1, -2, 3, 4});
  ExpectF(exp::add(exp::unsqueeze(x, {0}), x), {1, 2, 2}, {2, -4, 6, 8});
  EXPECT_EQ(exp::unsqueeze(x, {0}).shape().size(), 3u);
  Tensor first, second;
  std::tie(first, second) = exp::flatten(x, 0, 1);
  ExpectF(first, {4}, {1, -2, 3, 4});
  const auto [one, shape] = exp::unsqueeze(x, {2});
  EXPECT_EQ(one.shape(), (std::vector<int64_t>{2, 2, 1}));
  ExpectF(std::get<0>(exp::unsqueeze(x, {2})), {2, 2, 1}, {1, -2, 3, 4});
  const std::tuple<Tensor, Tensor> both = exp::flatten(x, 0, 1);
  EXPECT_EQ(std::get<0>(both).numel(), 4);
  const auto halves = exp::split_with_num(x, 2, 1);
  ExpectF(halves.at(1), {2, 1}, {-2, 4});
  const auto rows = exp::unstack(x, -2);
  ASSERT_EQ(rows.size(), 2u);
  ExpectF(rows[1], {2}, {3, 4});
}

// Types beside floats and complex numbers, by enumerators of any spelling.
TEST(PluginDispatch, TakesFurtherTypes) {
  const auto bytes = [](const Tensor& x) {
    return PD_DISPATCH_FLOATING_AND_COMPLEX_AND_2_TYPES(
        paddle::DataType::FLOAT16, DataType::BFLOAT16, x.type(), "bytes",
        ([&] { return sizeof(data_t); }));
  };
  const auto more = [](const Tensor& x) {
    return PD_DISPATCH_FLOATING_AND_COMPLEX_AND_1_TYPE(
        paddle::DataType::INT8, x.dtype(), "more",
        ([&] { return sizeof(data_t); }));
  };
  EXPECT_EQ(bytes(paddle::empty({1}, DataType::FLOAT16)), 2u);
  EXPECT_EQ(bytes(paddle::empty({1}, DataType::BFLOAT16)), 2u);
  EXPECT_EQ(bytes(paddle::empty({1}, DataType::COMPLEX128)), 16u);
  EXPECT_EQ(more(paddle::empty({1}, DataType::INT8)), 1u);
  EXPECT_THROW(more(paddle::empty({1}, DataType::INT16)), std::exception);
}

}  // namespace test_plugin_functions
