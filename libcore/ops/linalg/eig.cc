// SPDX-License-Identifier: Apache-2.0
// Eigenvalues of general square matrices, complex whatever X is.
//   eig: X V = V diag(w); Eigenvectors are the columns of V, of length 1, the
//     largest entry of each real
//     with M = V^H dV and E[i, j] = w[j] - w[i]:
//     X@GRAD = V^-H (diag(dw) + (M - V^H V real(diag(M))) / conj(E), off the
//       diagonal) V^H; the real part where X is real (Boeddeker et al., "On the
//       computation of complex-valued gradients", 2017; the second term is the
//       length's)
//   eigvals: w alone. No gradient.
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

using Complex = std::complex<double>;

// Turns each column so that its largest entry is real.
void TurnColumns(MatrixXcd* vectors) {
  for (Eigen::Index j = 0; j < vectors->cols(); ++j) {
    Eigen::Index largest = 0;
    for (Eigen::Index i = 1; i < vectors->rows(); ++i)
      if (std::abs((*vectors)(i, j)) > std::abs((*vectors)(largest, j)))
        largest = i;
    const Complex entry = (*vectors)(largest, j);
    if (entry.imag() == 0) continue;
    const Complex turn = std::conj(entry) / std::abs(entry);
    for (Eigen::Index i = 0; i < vectors->rows(); ++i) (*vectors)(i, j) *= turn;
    (*vectors)(largest, j) = std::abs(entry);
  }
}

absl::StatusOr<Step> BindEig(BindContext* context) {
  const bool with_vectors = context->op().type == "eig";
  Tensor* x = context->Input("X");
  Tensor* values = context->Output(with_vectors ? "Eigenvalues" : "Out");
  Tensor* vectors = with_vectors ? context->Output("Eigenvectors") : nullptr;
  PD_RETURN_IF_ERROR(CheckRealOrComplex(x->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("X", x->shape()));
  const Matrices columns{m.batch, m.rows, 1};
  return Step([=](const RunContext&) -> absl::Status {
    for (int64_t i = 0; i < m.count(); ++i) {
      PD_ASSIGN_OR_RETURN(
          GeneralEigen eigen,
          IsComplex(x->dtype())
              ? EigenOf(LoadComplex(x, m, i), vectors != nullptr)
              : EigenOf(Load(x, m, i), vectors != nullptr));
      StoreComplex(eigen.values, values, columns, i);
      if (vectors == nullptr) continue;
      TurnColumns(&eigen.vectors);
      StoreComplex(eigen.vectors, vectors, m, i);
    }
    return absl::OkStatus();
  });
}

// A gradient that the program lacks is zero.
MatrixXcd LoadComplexOrZero(const Tensor* t, const Matrices& m, int64_t i) {
  return t != nullptr ? LoadComplex(t, m, i) : MatrixXcd::Zero(m.rows, m.cols);
}

// The factor between V^-H and V^H in X@GRAD.
MatrixXcd EigInner(const MatrixXcd& v, const MatrixXcd& w, const MatrixXcd& dw,
                   const MatrixXcd& dv) {
  const MatrixXcd vh = v.adjoint();
  MatrixXcd inner = TimesComplex(vh, dv);
  const MatrixXcd overlap = TimesComplex(vh, v);
  for (Eigen::Index j = 0; j < v.cols(); ++j) {
    const double length = inner(j, j).real();
    for (Eigen::Index i = 0; i < v.rows(); ++i)
      inner(i, j) -= overlap(i, j) * length;
  }
  for (Eigen::Index i = 0; i < v.rows(); ++i)
    for (Eigen::Index j = 0; j < v.cols(); ++j)
      inner(i, j) =
          i == j ? dw(i, 0) : inner(i, j) / std::conj(w(j, 0) - w(i, 0));
  return inner;
}

absl::StatusOr<Step> BindEigGrad(BindContext* context) {
  Tensor* values = context->Input("Eigenvalues");
  Tensor* vectors = context->Input("Eigenvectors");
  Tensor* dvalues = context->Input("Eigenvalues@GRAD");
  Tensor* dvectors = context->Input("Eigenvectors@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (Tensor* x = context->Input("X"); x != nullptr) context->NoBuffer(x);
  const DType dtype = vectors->dtype();
  PD_RETURN_IF_ERROR(CheckRealOrComplex(dtype));
  PD_ASSIGN_OR_RETURN(const Matrices m,
                      SquareMatricesOf("Eigenvectors", vectors->shape()));
  const Matrices columns{m.batch, m.rows, 1};
  const Shape of_values = m.With({m.rows});
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Eigenvalues", dtype, of_values));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "Eigenvalues@GRAD", dtype, of_values));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "Eigenvectors@GRAD", dtype,
                                         vectors->shape()));
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < m.count(); ++i) {
      const MatrixXcd v = LoadComplex(vectors, m, i);
      const MatrixXcd inner = EigInner(v, LoadComplex(values, columns, i),
                                       LoadComplexOrZero(dvalues, columns, i),
                                       LoadComplexOrZero(dvectors, m, i));
      StoreComplex(SolveComplex(v.adjoint(), TimesComplex(inner, v.adjoint())),
                   dx, m, i);
    }
    return absl::OkStatus();
  });
}

absl::Status InferEig(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("X", x.shape));
  const DType dtype = ComplexOf(x.dtype);
  context->SetOutput("Out", m.With({m.rows}), dtype);
  context->SetOutput("Eigenvalues", m.With({m.rows}), dtype);
  context->SetOutput("Eigenvectors", x.shape, dtype);
  return absl::OkStatus();
}

// PaddlePaddle's gradient op does not have X: its matrices are taken for real.
absl::Status InferEigGrad(InferContext* context) {
  const TensorMeta& vectors = context->Input("Eigenvectors");
  context->SetOutput("X@GRAD", vectors.shape,
                     context->HasInput("X") ? context->Input("X").dtype
                                            : RealDTypeOf(vectors.dtype));
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterEig(OpRegistry* registry) {
  OpDef eig("eig");
  eig.Input("X").Output("Eigenvalues").Output("Eigenvectors");
  eig.Infer(InferEig).Reference(BindEig);
  eig.Grad(GradSpec{"eig_grad",
                    {"X"},
                    {"Eigenvalues", "Eigenvectors"},
                    {"Eigenvalues", "Eigenvectors"},
                    {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(eig)));

  OpDef grad("eig_grad");
  grad.OptionalInput("X").Input("Eigenvalues").Input("Eigenvectors");
  grad.OptionalInput("Eigenvalues@GRAD").OptionalInput("Eigenvectors@GRAD");
  grad.Output("X@GRAD").Infer(InferEigGrad).NoGrad().Reference(BindEigGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef eigvals("eigvals");
  eigvals.Input("X").Output("Out");
  eigvals.Infer(InferEig).NoGrad().Reference(BindEig);
  return registry->Add(std::move(eigvals));
}

}  // namespace pd
