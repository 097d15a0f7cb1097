// SPDX-License-Identifier: Apache-2.0
//   determinant: Out[i] = det(Input[i])
//     Input@GRAD = Out@GRAD * adj(Input)^T, which is det * Input^-T where there
//     is an inverse; else by the singular values, Input = U S V^T:
//     adj^T = det(U) det(V) U C V^T, C the products of the other values
//   slogdeterminant: Out = [signs, log |det|]; a singular matrix has 0, -inf
//     Input@GRAD = (gradient of log |det|) * Input^-T
// Out has Input's batch axes, slogdeterminant's a 2 before them.
#include <cmath>
#include <limits>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

double SignOfExchanges(const LuFactors& f) {
  double sign = 1;
  for (size_t i = 0; i < f.pivots.size(); ++i)
    if (f.pivots[i] != static_cast<int32_t>(i)) sign = -sign;
  return sign;
}

double Determinant(const MatrixXd& a) {
  const LuFactors f = FactorLu(a);
  double det = SignOfExchanges(f);
  for (Eigen::Index i = 0; i < a.rows(); ++i) det *= f.lu(i, i);
  return det;
}

struct LogDeterminant {
  double sign = 1, log = 0;

  explicit LogDeterminant(const MatrixXd& a) {
    const LuFactors f = FactorLu(a);
    sign = f.zero_pivot < 0 ? SignOfExchanges(f) : 0;
    for (Eigen::Index i = 0; i < a.rows(); ++i) {
      if (f.lu(i, i) < 0) sign = -sign;
      log += std::log(std::abs(f.lu(i, i)));
    }
    if (f.zero_pivot >= 0) log = -std::numeric_limits<double>::infinity();
  }
};

// a^-T; not finite for a singular a.
MatrixXd InverseTransposed(const MatrixXd& a) {
  return SolveLu(FactorLu(a.transpose()),
                 MatrixXd::Identity(a.rows(), a.cols()));
}

absl::StatusOr<MatrixXd> AdjugateTransposed(const MatrixXd& a) {
  const double det = Determinant(a);
  if (det != 0) return MatrixXd(det * InverseTransposed(a));
  PD_ASSIGN_OR_RETURN(const Svd svd, FactorSvd(a));
  MatrixXd u = svd.u;
  for (Eigen::Index i = 0; i < svd.s.size(); ++i)
    for (Eigen::Index j = 0; j < svd.s.size(); ++j)
      if (j != i) u.col(i) *= svd.s(j);
  return MatrixXd(Determinant(svd.u) * Determinant(svd.v) *
                  TimesTranspose(u, svd.v));
}

absl::StatusOr<Step> BindDeterminant(BindContext* context) {
  Tensor* x = context->Input("Input");
  Tensor* out = context->Output("Out");
  const bool log = context->op().type == "slogdeterminant";
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("Input", x->shape()));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=, n = m.count()](const RunContext&) {
      T* result = out->data<T>();
      for (int64_t i = 0; i < n; ++i) {
        const MatrixXd a = Load(x, m, i);
        if (log) {
          const LogDeterminant det(a);
          result[i] = static_cast<T>(det.sign);
          result[n + i] = static_cast<T>(det.log);
        } else {
          result[i] = static_cast<T>(Determinant(a));
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindDeterminantGrad(BindContext* context) {
  Tensor* x = context->Input("Input");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("Input@GRAD");
  const bool log = context->op().type == "slogdeterminant_grad";
  if (Tensor* out = context->Input("Out"); out != nullptr)
    context->NoBuffer(out);
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("Input", x->shape()));
  const int64_t n = m.count();
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", x->dtype(), log ? 2 * n : n));
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      const T* g = dout->data<T>();
      for (int64_t i = 0; i < n; ++i) {
        const MatrixXd a = Load(x, m, i);
        if (log) {
          Store(g[n + i] * InverseTransposed(a), dx, m, i);
        } else {
          PD_ASSIGN_OR_RETURN(const MatrixXd adjugate, AdjugateTransposed(a));
          Store(g[i] * adjugate, dx, m, i);
        }
      }
      return absl::OkStatus();
    });
  });
}

absl::Status InferDeterminant(InferContext* context) {
  const TensorMeta& x = context->Input("Input");
  PD_ASSIGN_OR_RETURN(Matrices m, SquareMatricesOf("Input", x.shape));
  if (context->op().type == "slogdeterminant")
    m.batch.insert(m.batch.begin(), 2);
  context->SetOutput("Out", std::move(m.batch), x.dtype);
  return absl::OkStatus();
}

absl::Status AddDeterminantOp(OpRegistry* registry, const std::string& type) {
  OpDef op(type);
  op.Input("Input").Output("Out");
  op.Infer(InferDeterminant).Reference(BindDeterminant);
  op.Grad(GradSpec{type + "_grad", {"Input"}, {"Out"}, {"Out"}, {"Input"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad(type + "_grad");
  grad.Input("Input").OptionalInput("Out").Input("Out@GRAD");
  grad.Output("Input@GRAD").Infer(InferGradLikeInput).NoGrad();
  grad.Reference(BindDeterminantGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterDeterminant(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddDeterminantOp(registry, "determinant"));
  return AddDeterminantOp(registry, "slogdeterminant");
}

}  // namespace pd
