// SPDX-License-Identifier: Apache-2.0
//   inverse: Output = Input^-1
//     Input@GRAD = -Output^T Output@GRAD Output^T
//   matrix_power: Out = X^n, of the inverse where n < 0
//     with B = X (X^-1 for n < 0) and k = |n|:
//     dB = sum over i < k of (B^T)^i Out@GRAD (B^T)^(k - 1 - i)
//     X@GRAD = dB, or -B^T dB B^T
#include <cstdlib>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<MatrixXd> Inverse(const MatrixXd& a, int64_t index) {
  const LuFactors factors = FactorLu(a);
  if (factors.zero_pivot >= 0)
    return InvalidArgument("matrix %d is singular: it has no inverse", index);
  return SolveLu(factors, MatrixXd::Identity(a.rows(), a.cols()));
}

absl::StatusOr<Step> BindInverse(BindContext* context) {
  Tensor* x = context->Input("Input");
  Tensor* out = context->Output("Output");
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("Input", x->shape()));
  return Step([=](const RunContext&) -> absl::Status {
    for (int64_t i = 0; i < m.count(); ++i) {
      PD_ASSIGN_OR_RETURN(const MatrixXd inverse, Inverse(Load(x, m, i), i));
      Store(inverse, out, m, i);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindInverseGrad(BindContext* context) {
  Tensor* out = context->Input("Output");
  Tensor* dout = context->Input("Output@GRAD");
  Tensor* dx = context->Output("Input@GRAD");
  PD_RETURN_IF_ERROR(CheckReal(out->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m,
                      SquareMatricesOf("Output", out->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Output@GRAD", out->dtype(), out->shape()));
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < m.count(); ++i) {
      const MatrixXd b = Load(out, m, i).transpose();
      Store(-Times(Times(b, Load(dout, m, i)), b), dx, m, i);
    }
    return absl::OkStatus();
  });
}

MatrixXd Power(MatrixXd base, int64_t k) {
  MatrixXd result = MatrixXd::Identity(base.rows(), base.cols());
  for (; k > 0; k >>= 1) {
    if (k & 1) result = Times(result, base);
    if (k > 1) base = Times(base, base);
  }
  return result;
}

// X, or its inverse.
absl::StatusOr<MatrixXd> Base(const Tensor* x, const Matrices& m, int64_t i,
                              int64_t n) {
  MatrixXd base = Load(x, m, i);
  return n < 0 ? Inverse(base, i) : base;
}

absl::StatusOr<Step> BindMatrixPower(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const int64_t n = context->Attr<int32_t>("n");
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("X", x->shape()));
  return Step([=](const RunContext&) -> absl::Status {
    for (int64_t i = 0; i < m.count(); ++i) {
      PD_ASSIGN_OR_RETURN(MatrixXd base, Base(x, m, i, n));
      Store(Power(std::move(base), std::abs(n)), out, m, i);
    }
    return absl::OkStatus();
  });
}

// The sum over i < k of b^i g b^(k - 1 - i), in about 4 log(k) products: with
// S(k) that sum, S(2k) = S(k) b^k + b^k S(k) and S(k + 1) = S(k) b + b^k g.
MatrixXd PowerSum(const MatrixXd& b, const MatrixXd& g, int64_t k) {
  MatrixXd sum = MatrixXd::Zero(b.rows(), b.cols());
  MatrixXd power = MatrixXd::Identity(b.rows(), b.cols());  // b^(terms)
  int bit = 62;
  while (bit >= 0 && ((k >> bit) & 1) == 0) --bit;
  for (; bit >= 0; --bit) {
    sum = Times(sum, power) + Times(power, sum);
    power = Times(power, power);
    if (((k >> bit) & 1) == 0) continue;
    sum = Times(sum, b) + Times(power, g);
    power = Times(power, b);
  }
  return sum;
}

absl::StatusOr<Step> BindMatrixPowerGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const int64_t n = context->Attr<int32_t>("n");
  if (Tensor* out = context->Input("Out"); out != nullptr)
    context->NoBuffer(out);
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("X", x->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Out@GRAD", x->dtype(), x->shape()));
  return Step([=](const RunContext&) -> absl::Status {
    for (int64_t i = 0; i < m.count(); ++i) {
      PD_ASSIGN_OR_RETURN(MatrixXd base, Base(x, m, i, n));
      base.transposeInPlace();
      MatrixXd sum = PowerSum(base, Load(dout, m, i), std::abs(n));
      if (n < 0) sum = -Times(Times(base, sum), base);
      Store(sum, dx, m, i);
    }
    return absl::OkStatus();
  });
}

absl::Status InferInverse(InferContext* context) {
  PD_RETURN_IF_ERROR(
      SquareMatricesOf("Input", context->Input("Input").shape).status());
  context->Share("Input", "Output");
  return absl::OkStatus();
}

absl::Status InferInverseGrad(InferContext* context) {
  context->Share("Output", "Input@GRAD");
  return absl::OkStatus();
}

absl::Status InferMatrixPower(InferContext* context) {
  PD_RETURN_IF_ERROR(SquareMatricesOf("X", context->Input("X").shape).status());
  return InferUnary(context);
}

}  // namespace

absl::Status RegisterInverse(OpRegistry* registry) {
  OpDef inverse("inverse");
  inverse.Input("Input").Output("Output");
  inverse.Infer(InferInverse).Reference(BindInverse);
  inverse.Grad(GradSpec{"inverse_grad", {}, {"Output"}, {"Output"}, {"Input"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(inverse)));

  OpDef inverse_grad("inverse_grad");
  inverse_grad.Input("Output").Input("Output@GRAD").Output("Input@GRAD");
  inverse_grad.Infer(InferInverseGrad).NoGrad().Reference(BindInverseGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(inverse_grad)));

  OpDef power("matrix_power");
  power.Input("X").Output("Out").RequiredAttr("n", AttrType::kInt);
  power.Infer(InferMatrixPower).Reference(BindMatrixPower);
  power.Grad(GradSpec{"matrix_power_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(power)));

  OpDef power_grad("matrix_power_grad");
  power_grad.Input("X").OptionalInput("Out").Input("Out@GRAD");
  power_grad.Output("X@GRAD").RequiredAttr("n", AttrType::kInt);
  power_grad.Infer(InferGradLikeInput).NoGrad().Reference(BindMatrixPowerGrad);
  return registry->Add(std::move(power_grad));
}

}  // namespace pd
