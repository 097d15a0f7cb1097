// SPDX-License-Identifier: Apache-2.0
// The decompositions of one matrix that several ops use. They are compiled in
// one place: Eigen's templates are slow to compile. InvalidArgument for a
// matrix with a NaN or an infinity where an iteration might not end.
#ifndef PD_LIBCORE_OPS_LINALG_DECOMPOSE_H_
#define PD_LIBCORE_OPS_LINALG_DECOMPOSE_H_

#include "libcore/ops/linalg/linalg.h"

namespace pd {

/// P^T a = L U in one matrix, with row exchanges.
struct LuFactors {
  MatrixXd lu;
  std::vector<int32_t> pivots;  ///< row i was exchanged with row pivots[i]
  int32_t zero_pivot = -1;      ///< the first zero on U's diagonal
};
/// Of any m x n matrix. Without `pivoting` no rows are exchanged.
LuFactors FactorLu(MatrixXd a, bool pivoting = true);
/// The solution of a x = b for factors of a square a without a zero pivot.
MatrixXd SolveLu(const LuFactors& factors, const MatrixXd& b);

/// a^-1 b for a square complex a; not finite when it is singular.
MatrixXcd SolveComplex(const MatrixXcd& a, const MatrixXcd& b);

/// L with L L^T = a of the lower triangle of a; false when there is none.
bool FactorCholesky(const MatrixXd& a, MatrixXd* lower);

/// a = Q R, Q with `columns` columns.
void FactorQr(const MatrixXd& a, Eigen::Index columns, MatrixXd* q,
              MatrixXd* r);

/// a = u diag(s) v^T, s descending; min(m, n) columns, or all with `full`.
struct Svd {
  MatrixXd u, v;
  VectorXd s;
};
absl::StatusOr<Svd> FactorSvd(const MatrixXd& a, bool full = false);
/// The singular values alone.
absl::StatusOr<VectorXd> SingularValues(const MatrixXd& a);

/// Eigenvalues (ascending) and orthonormal eigenvectors of a Hermitian matrix,
/// of which the lower triangle is read.
struct HermitianEigen {
  VectorXd values;
  MatrixXcd vectors;
};
absl::StatusOr<HermitianEigen> EigenOfHermitian(const MatrixXcd& a);
/// The same of a real matrix.
struct SymmetricEigen {
  VectorXd values;
  MatrixXd vectors;
};
absl::StatusOr<SymmetricEigen> EigenOfSymmetric(const MatrixXd& a);

/// Eigenvalues and eigenvectors of length 1 of any square matrix.
struct GeneralEigen {
  VectorXcd values;
  MatrixXcd vectors;  ///< empty unless asked for
};
absl::StatusOr<GeneralEigen> EigenOf(const MatrixXd& a, bool with_vectors);
absl::StatusOr<GeneralEigen> EigenOf(const MatrixXcd& a, bool with_vectors);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_LINALG_DECOMPOSE_H_
