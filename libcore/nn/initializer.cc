// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/initializer.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"

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
