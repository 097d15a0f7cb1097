// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/linalg/decompose.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <algorithm>
#include <cmath>

#include "libcore/base/error.h"

namespace pd {

LuFactors FactorLu(MatrixXd a, bool pivoting) {
  const Eigen::Index m = a.rows(), n = a.cols(), k = std::min(m, n);
  LuFactors f;
  for (Eigen::Index j = 0; j < k; ++j) {
    Eigen::Index pivot = j;
    for (Eigen::Index i = j + 1; i < m && pivoting; ++i)
      if (std::abs(a(i, j)) > std::abs(a(pivot, j))) pivot = i;
    f.pivots.push_back(static_cast<int32_t>(pivot));
    if (a(pivot, j) == 0) {
      if (f.zero_pivot < 0) f.zero_pivot = static_cast<int32_t>(j);
      continue;
    }
    if (pivot != j) a.row(j).swap(a.row(pivot));
    for (Eigen::Index i = j + 1; i < m; ++i) a(i, j) /= a(j, j);
    for (Eigen::Index c = j + 1; c < n; ++c)
      for (Eigen::Index i = j + 1; i < m; ++i) a(i, c) -= a(i, j) * a(j, c);
  }
  f.lu = std::move(a);
  return f;
}

MatrixXd SolveLu(const LuFactors& factors, const MatrixXd& b) {
  MatrixXd x = b;
  for (size_t i = 0; i < factors.pivots.size(); ++i)
    if (factors.pivots[i] != static_cast<int32_t>(i))
      x.row(static_cast<Eigen::Index>(i)).swap(x.row(factors.pivots[i]));
  return SolveTriangle(factors.lu, true, false,
                       SolveTriangle(factors.lu, false, true, std::move(x)));
}

bool FactorCholesky(const MatrixXd& a, MatrixXd* lower) {
  const Eigen::LLT<MatrixXd> llt(a);
  if (llt.info() != Eigen::Success) return false;
  *lower = Lower(llt.matrixLLT());
  return true;
}

void FactorQr(const MatrixXd& a, Eigen::Index columns, MatrixXd* q,
              MatrixXd* r) {
  const Eigen::HouseholderQR<MatrixXd> qr(a);
  *q = MatrixXd::Identity(a.rows(), columns);
  q->applyOnTheLeft(qr.householderQ());
  *r = Upper(qr.matrixQR().topRows(columns));
}

namespace {

absl::StatusOr<Eigen::BDCSVD<MatrixXd>> Decomposed(const MatrixXd& a,
                                                   unsigned options) {
  if (!a.allFinite())
    return InvalidArgument(
        "a matrix holds a NaN or an infinity; expected "
        "finite elements");
  Eigen::BDCSVD<MatrixXd> svd(a, options);
  if (svd.info() != Eigen::Success)
    return Internal("the singular values of a matrix did not converge");
  return svd;
}

}  // namespace

absl::StatusOr<Svd> FactorSvd(const MatrixXd& a, bool full) {
  if (a.size() == 0)
    return Svd{MatrixXd::Identity(a.rows(), full ? a.rows() : 0),
               MatrixXd::Identity(a.cols(), full ? a.cols() : 0), VectorXd(0)};
  const auto svd =
      Decomposed(a, full ? Eigen::ComputeFullU | Eigen::ComputeFullV
                         : Eigen::ComputeThinU | Eigen::ComputeThinV);
  if (!svd.ok()) return svd.status();
  return Svd{svd->matrixU(), svd->matrixV(), svd->singularValues()};
}

absl::StatusOr<VectorXd> SingularValues(const MatrixXd& a) {
  if (a.size() == 0) return VectorXd(0);
  const auto svd = Decomposed(a, 0);
  if (!svd.ok()) return svd.status();
  return VectorXd(svd->singularValues());
}

}  // namespace pd
