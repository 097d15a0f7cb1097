// SPDX-License-Identifier: Apache-2.0
// Eigenvalues, of decompose.h.
#include "libcore/ops/linalg/decompose.h"

#include <Eigen/Eigenvalues>
#include <Eigen/LU>

#include "libcore/base/error.h"

namespace pd {
namespace {

template <typename Matrix>
absl::Status CheckFinite(const Matrix& a) {
  if (a.allFinite()) return absl::OkStatus();
  return InvalidArgument(
      "a matrix holds a NaN or an infinity; expected finite "
      "elements");
}

template <typename Result, typename Matrix>
absl::StatusOr<Result> OfSelfAdjoint(const Matrix& a) {
  if (a.rows() == 0) return Result{VectorXd(0), a};
  if (absl::Status status = CheckFinite(a); !status.ok()) return status;
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(a);
  if (solver.info() != Eigen::Success)
    return Internal("the eigenvalues of a matrix did not converge");
  return Result{solver.eigenvalues(), solver.eigenvectors()};
}

template <typename Solver, typename Matrix>
absl::StatusOr<GeneralEigen> OfGeneral(const Matrix& a, bool with_vectors) {
  if (a.rows() == 0) return GeneralEigen{VectorXcd(0), MatrixXcd(0, 0)};
  if (absl::Status status = CheckFinite(a); !status.ok()) return status;
  const Solver solver(a, with_vectors);
  if (solver.info() != Eigen::Success)
    return Internal("the eigenvalues of a matrix did not converge");
  GeneralEigen result;
  result.values = solver.eigenvalues();
  if (with_vectors) result.vectors = solver.eigenvectors();
  return result;
}

}  // namespace

MatrixXcd SolveComplex(const MatrixXcd& a, const MatrixXcd& b) {
  if (a.rows() == 0) return b;
  return a.partialPivLu().solve(b);
}

absl::StatusOr<HermitianEigen> EigenOfHermitian(const MatrixXcd& a) {
  return OfSelfAdjoint<HermitianEigen>(a);
}

absl::StatusOr<SymmetricEigen> EigenOfSymmetric(const MatrixXd& a) {
  return OfSelfAdjoint<SymmetricEigen>(a);
}

absl::StatusOr<GeneralEigen> EigenOf(const MatrixXd& a, bool with_vectors) {
  return OfGeneral<Eigen::EigenSolver<MatrixXd>>(a, with_vectors);
}

absl::StatusOr<GeneralEigen> EigenOf(const MatrixXcd& a, bool with_vectors) {
  return OfGeneral<Eigen::ComplexEigenSolver<MatrixXcd>>(a, with_vectors);
}

}  // namespace pd
