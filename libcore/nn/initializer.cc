// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/initializer.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/op_chain.h"
#include "libcore/nn/output_names.h"

namespace pd {
namespace {

double Gain(const job::Kaiming& k) {
  switch (k.nonlinearity()) {
    case job::Kaiming::relu:
      return std::sqrt(2.0);
    case job::Kaiming::leaky_relu:
      return std::sqrt(2.0 / (1 + k.negative_slope() * k.negative_slope()));
    case job::Kaiming::tanh:
      return 5.0 / 3;
    case job::Kaiming::selu:
      return 0.75;
    default:
      return 1;
  }
}

OpDesc Start(const char* type, const Shape& shape, DType dtype) {
  OpDesc op;
  op.type = type;
  op.attrs["shape"] = std::vector<int64_t>(shape);
  op.attrs["dtype"] = static_cast<int32_t>(dtype);
  return op;
}

OpDesc Constant(double value, const Shape& shape, DType dtype) {
  OpDesc op = Start("fill_constant", shape, dtype);
  op.attrs["value"] = static_cast<float>(value);
  op.attrs["str_value"] = absl::StrCat(value);
  return op;
}

OpDesc Normal(double mean, double std, const Shape& shape, DType dtype) {
  OpDesc op = Start("gaussian_random", shape, dtype);
  op.attrs["mean"] = static_cast<float>(mean);
  op.attrs["std"] = static_cast<float>(std);
  op.attrs["seed"] = int32_t{0};
  return op;
}

OpDesc Uniform(double low, double high, const Shape& shape, DType dtype) {
  OpDesc op = Start("uniform_random", shape, dtype);
  op.attrs["min"] = static_cast<float>(low);
  op.attrs["max"] = static_cast<float>(high);
  op.attrs["seed"] = int32_t{0};
  return op;
}

OpDesc TruncatedNormal(const job::Normal& normal, const Shape& shape,
                       DType dtype) {
  OpDesc op = Normal(normal.mean(), normal.std(), shape, dtype);
  op.type = "truncated_gaussian_random";
  op.attrs["shape"] = std::vector<int32_t>(shape.begin(), shape.end());
  return op;
}

absl::StatusOr<OpDesc> Assign(const job::Assign& assign,
                              const std::string& name, const Shape& shape,
                              DType dtype) {
  if (assign.value_size() != NumElements(shape))
    return InvalidArgument(
        "'assign' holds %d values; parameter '%s' has shape %s",
        assign.value_size(), name, ToString(shape));
  OpDesc op = Start("assign_value", shape, dtype);
  op.attrs["shape"] = std::vector<int32_t>(shape.begin(), shape.end());
  op.attrs["fp32_values"] =
      std::vector<float>(assign.value().begin(), assign.value().end());
  return op;
}

// An op that gives its result another shape; the caller names its output.
OpDesc Shaped(const std::string& x, const Shape& shape) {
  OpDesc op;
  op.type = "reshape2";
  op.SetInput("X", {x});
  op.attrs["shape"] = std::vector<int32_t>(shape.begin(), shape.end());
  return op;
}

// Ones at flat places of zeros, as PaddlePaddle's Dirac puts them.
absl::StatusOr<OpDesc> Dirac(const job::Dirac& dirac, const std::string& name,
                             const Shape& shape, DType dtype,
                             BlockBuilder* startup) {
  if (shape.size() < 3 || shape.size() > 5)
    return InvalidArgument(
        "'dirac' is for filters of 3 to 5 axes; parameter '%s' has shape %s",
        name, ToString(shape));
  if (shape[0] % dirac.groups() != 0)
    return InvalidArgument("'groups' is %d; parameter '%s' has %d filters",
                           dirac.groups(), name, shape[0]);
  const int64_t per_group = shape[0] / dirac.groups();
  const int64_t window = NumElements(shape, 2, shape.size());
  int64_t centre = 0;
  for (size_t k = 2; k < shape.size(); ++k)
    centre = centre * shape[k] + shape[k] / 2;
  std::vector<double> places;
  for (int64_t group = 0; group < dirac.groups(); ++group)
    for (int64_t j = 0; j < std::min(per_group, shape[1]); ++j)
      places.push_back(static_cast<double>(
          ((group * per_group + j) * shape[1] + j) * window + centre));
  OpChain chain(startup);
  const Shape count = {static_cast<int64_t>(places.size())};
  const std::string flat =
      chain.Op("scatter",
               {{"X", chain.Full({NumElements(shape)}, dtype, 0)},
                {"Ids", chain.Values(count, DType::kInt64, places)},
                {"Updates", chain.Full(count, dtype, 1)}},
               {"Out"}, {{"overwrite", true}});
  PD_RETURN_IF_ERROR(chain.Give("").status());
  OpDesc op = Shaped(flat, shape);
  op.SetOutput("XShape", {startup->UniqueTemporary("reshape2")});
  return op;
}

// PaddlePaddle's numbers: its row is not rounded down.
absl::StatusOr<OpDesc> Bilinear(const std::string& name, const Shape& shape,
                                DType dtype) {
  if (shape.size() != 4 || shape[2] != shape[3])
    return InvalidArgument(
        "'bilinear' is for square filters [out, in, K, K]; parameter '%s' has "
        "shape %s",
        name, ToString(shape));
  const auto size = static_cast<double>(shape[3]);
  const double f = std::ceil(size / 2);
  const double c = (2 * f - 1 - std::fmod(f, 2)) / (2 * f);
  job::Assign values;
  for (int64_t i = 0; i < NumElements(shape); ++i) {
    const double x = std::fmod(static_cast<double>(i), size);
    const double y = std::fmod(static_cast<double>(i) / size, size);
    values.add_value((1 - std::abs(x / f - c)) * (1 - std::abs(y / f - c)));
  }
  return Assign(values, name, shape, dtype);
}

// Q of the QR decomposition of random numbers, R's diagonal made positive.
absl::StatusOr<OpDesc> Orthogonal(double gain, const std::string& name,
                                  const Shape& shape, DType dtype,
                                  BlockBuilder* startup) {
  if (shape.size() < 2)
    return InvalidArgument(
        "'orthogonal' is for parameters of 2 axes or more; '%s' has shape %s",
        name, ToString(shape));
  const int64_t rows = shape[0], columns = NumElements(shape, 1, shape.size());
  OpChain chain(startup);
  OpDesc normal =
      Normal(0, 1, {std::max(rows, columns), std::min(rows, columns)}, dtype);
  const std::string random =
      chain.Op("gaussian_random", {}, {"Out"}, std::move(normal.attrs));
  const std::string q = chain.Op("qr", {{"X", random}}, {"Q", "R"},
                                 {{"mode", std::string("reduced")}});
  const std::string r = TemporaryBeside(q, 1);
  const std::string sign = chain.Unary(
      "sign", chain.Unary("diag_v2", r,
                          {{"offset", int32_t{0}}, {"padding_value", 0.0f}}));
  std::string matrix = chain.Scale(chain.Mul(q, sign), gain);
  if (rows < columns)
    matrix = chain.Op("transpose2", {{"X", matrix}}, {"Out", "XShape"},
                      {{"axis", std::vector<int32_t>{1, 0}}});
  PD_RETURN_IF_ERROR(chain.Give("").status());
  OpDesc op = Shaped(matrix, shape);
  op.SetOutput("XShape", {startup->UniqueTemporary("reshape2")});
  return op;
}

}  // namespace

Fans FansOf(const Shape& shape) {
  if (shape.empty()) return {};
  if (shape.size() == 1)
    return {static_cast<double>(shape[0]), static_cast<double>(shape[0])};
  if (shape.size() == 2)
    return {static_cast<double>(shape[0]), static_cast<double>(shape[1])};
  const double window =
      static_cast<double>(NumElements(shape, 2, shape.size()));
  return {static_cast<double>(shape[1]) * window,
          static_cast<double>(shape[0]) * window};
}

absl::Status AppendInitializer(const job::Initializer& initializer,
                               const std::string& name, const Shape& shape,
                               DType dtype, BlockBuilder* startup) {
  Fans fans = FansOf(shape);
  const auto xavier = [&](const job::Xavier& x) {
    if (x.has_fan_in()) fans.in = x.fan_in();
    if (x.has_fan_out()) fans.out = x.fan_out();
    return 1 / (fans.in + fans.out);
  };
  const auto kaiming = [&](const job::Kaiming& k) {
    return Gain(k) / std::sqrt(k.has_fan_in() ? k.fan_in() : fans.in);
  };
  absl::StatusOr<OpDesc> op = OpDesc();
  switch (initializer.kind_case()) {
    case job::Initializer::kConstant:
      op = Constant(initializer.constant().value(), shape, dtype);
      break;
    case job::Initializer::kNormal:
      op = Normal(initializer.normal().mean(), initializer.normal().std(),
                  shape, dtype);
      break;
    case job::Initializer::kTruncatedNormal:
      op = TruncatedNormal(initializer.truncated_normal(), shape, dtype);
      break;
    case job::Initializer::kUniform:
      op = Uniform(initializer.uniform().low(), initializer.uniform().high(),
                   shape, dtype);
      break;
    case job::Initializer::kXavierNormal:
      op = Normal(0, std::sqrt(2 * xavier(initializer.xavier_normal())), shape,
                  dtype);
      break;
    case job::Initializer::kXavierUniform: {
      const double limit = std::sqrt(6 * xavier(initializer.xavier_uniform()));
      op = Uniform(-limit, limit, shape, dtype);
      break;
    }
    case job::Initializer::kKaimingNormal:
      op = Normal(0, kaiming(initializer.kaiming_normal()), shape, dtype);
      break;
    case job::Initializer::kKaimingUniform: {
      const double limit =
          std::sqrt(3.0) * kaiming(initializer.kaiming_uniform());
      op = Uniform(-limit, limit, shape, dtype);
      break;
    }
    case job::Initializer::kAssign:
      op = Assign(initializer.assign(), name, shape, dtype);
      break;
    case job::Initializer::kDirac:
      op = Dirac(initializer.dirac(), name, shape, dtype, startup);
      break;
    case job::Initializer::kBilinear:
      op = Bilinear(name, shape, dtype);
      break;
    case job::Initializer::kOrthogonal:
      op = Orthogonal(initializer.orthogonal().gain(), name, shape, dtype,
                      startup);
      break;
    case job::Initializer::KIND_NOT_SET:
      return InvalidArgument("the initializer does not say which kind it is");
  }
  if (!op.ok()) return op.status();
  op->SetOutput("Out", {name});
  return startup->Append(*std::move(op));
}

job::Initializer ConstantInitializer(double value) {
  job::Initializer initializer;
  initializer.mutable_constant()->set_value(value);
  return initializer;
}

job::Initializer NormalInitializer(double std) {
  job::Initializer initializer;
  initializer.mutable_normal()->set_std(std);
  return initializer;
}

job::Initializer XavierUniformInitializer() {
  job::Initializer initializer;
  initializer.mutable_xavier_uniform();
  return initializer;
}

}  // namespace pd
