// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of Hermitian matrices, real and ascending, X V = V diag(w). Only
// the triangle that attr 'UPLO' names is read ("L", "U").
//   eigh: w and V; with M = V^H dV, H = (M - M^H) / 2, E[i, j] = w[j] - w[i]:
//     X@GRAD = V (diag(dw) + H / E off the diagonal) V^H, which is Hermitian
//     (0 where two eigenvalues are equal)
//   eigvalsh: w; V too unless is_test, for the gradient V diag(dw) V^H
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::StatusOr<bool> IsUpper(const OpDesc& op) {
  const std::string uplo = op.Attr<std::string>("UPLO");
  if (uplo == "L" || uplo == "U") return uplo == "U";
  return InvalidArgument("attr 'UPLO' is '%s'; expected 'L' or 'U'", uplo);
}

absl::StatusOr<Step> BindEigh(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* values = context->Output("Eigenvalues");
  const bool values_only =
      context->op().type == "eigvalsh" && context->op().Attr<bool>("is_test");
  Tensor* vectors = values_only ? nullptr : context->Output("Eigenvectors");
  PD_RETURN_IF_ERROR(CheckRealOrComplex(x->dtype()));
  PD_ASSIGN_OR_RETURN(const bool upper, IsUpper(context->op()));
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("X", x->shape()));
  const Matrices columns{m.batch, m.rows, 1};
  return Step([=](const RunContext&) -> absl::Status {
    for (int64_t i = 0; i < m.count(); ++i) {
      // The lower triangle is what is read.
      if (IsComplex(x->dtype())) {
        const MatrixXcd a = LoadComplex(x, m, i);
        PD_ASSIGN_OR_RETURN(const HermitianEigen eigen,
                            EigenOfHermitian(upper ? a.adjoint() : a));
        Store(eigen.values, values, columns, i);
        if (vectors != nullptr) StoreComplex(eigen.vectors, vectors, m, i);
      } else {
        const MatrixXd a = Load(x, m, i);
        PD_ASSIGN_OR_RETURN(
            const SymmetricEigen eigen,
            EigenOfSymmetric(upper ? MatrixXd(a.transpose()) : a));
        Store(eigen.values, values, columns, i);
        if (vectors != nullptr) Store(eigen.vectors, vectors, m, i);
      }
    }
    return absl::OkStatus();
  });
}

// The factor between V and V^H in X@GRAD; `projected` is V^H dV.
MatrixXcd EighInner(const MatrixXd& w, const MatrixXd& dw,
                    const MatrixXcd& projected) {
  MatrixXcd inner = 0.5 * (projected - projected.adjoint());
  for (Eigen::Index i = 0; i < inner.rows(); ++i)
    for (Eigen::Index j = 0; j < inner.cols(); ++j) {
      const double gap = w(j, 0) - w(i, 0);
      inner(i, j) = gap == 0 ? 0 : inner(i, j) / gap;
    }
  for (Eigen::Index i = 0; i < inner.rows(); ++i) inner(i, i) = dw(i, 0);
  return inner;
}

absl::StatusOr<Step> BindEighGrad(BindContext* context) {
  Tensor* values = context->Input("Eigenvalues");
  Tensor* vectors = context->Input("Eigenvectors");
  Tensor* dvalues = context->Input("Eigenvalues@GRAD");
  Tensor* dvectors = context->Input("Eigenvectors@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const DType dtype = vectors->dtype(), real = RealDTypeOf(dtype);
  PD_RETURN_IF_ERROR(CheckRealOrComplex(dtype));
  PD_ASSIGN_OR_RETURN(const Matrices m,
                      SquareMatricesOf("Eigenvectors", vectors->shape()));
  const Matrices columns{m.batch, m.rows, 1};
  const Shape of_values = m.With({m.rows});
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "Eigenvalues", real, of_values));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "Eigenvalues@GRAD", real, of_values));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "Eigenvectors@GRAD", dtype,
                                         vectors->shape()));
  if (dvectors != nullptr && values == nullptr)
    return InvalidArgument("'Eigenvalues' is missing");
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < m.count(); ++i) {
      const MatrixXcd v = LoadComplex(vectors, m, i);
      MatrixXcd projected = MatrixXcd::Zero(m.rows, m.cols);
      if (dvectors != nullptr)
        projected = TimesComplex(v.adjoint(), LoadComplex(dvectors, m, i));
      const MatrixXcd inner =
          EighInner(LoadOrZero(values, columns, i),
                    LoadOrZero(dvalues, columns, i), projected);
      StoreComplex(TimesComplex(TimesComplex(v, inner), v.adjoint()), dx, m, i);
    }
    return absl::OkStatus();
  });
}

absl::Status InferEigh(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_RETURN_IF_ERROR(IsUpper(context->op()).status());
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("X", x.shape));
  context->SetOutput("Eigenvalues", m.With({m.rows}), RealDTypeOf(x.dtype));
  context->SetOutput("Eigenvectors", x.shape, x.dtype);
  return absl::OkStatus();
}

absl::Status InferEighGrad(InferContext* context) {
  context->Share("Eigenvectors", "X@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterEigh(OpRegistry* registry) {
  OpDef eigh("eigh");
  eigh.Input("X").Output("Eigenvalues").Output("Eigenvectors");
  eigh.Attr("UPLO", std::string("L")).Infer(InferEigh).Reference(BindEigh);
  eigh.Grad(GradSpec{"eigh_grad",
                     {},
                     {"Eigenvalues", "Eigenvectors"},
                     {"Eigenvalues", "Eigenvectors"},
                     {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(eigh)));

  OpDef eigvalsh("eigvalsh");
  eigvalsh.Input("X").Output("Eigenvalues").OptionalOutput("Eigenvectors");
  eigvalsh.Attr("UPLO", std::string("L")).Attr("is_test", false);
  eigvalsh.Infer(InferEigh).Reference(BindEigh);
  eigvalsh.Grad(
      GradSpec{"eigvalsh_grad", {}, {"Eigenvectors"}, {"Eigenvalues"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(eigvalsh)));

  for (const char* type : {"eigh_grad", "eigvalsh_grad"}) {
    OpDef grad(type);
    grad.OptionalInput("Eigenvalues").Input("Eigenvectors");
    grad.OptionalInput("Eigenvalues@GRAD").OptionalInput("Eigenvectors@GRAD");
    grad.Output("X@GRAD").Attr("UPLO", std::string("L"));
    grad.Infer(InferEighGrad).NoGrad().Reference(BindEighGrad);
    PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  }
  return absl::OkStatus();
}

}  // namespace pd
