// SPDX-License-Identifier: Apache-2.0
//   lu: P^T X = L U, L [m, k] with ones on its diagonal, U [k, n], k = min(m,
//     n), both in Out [m, n]; Pivots [k]: row i was exchanged with row
//     Pivots[i], counted from 1; Infos: the first zero on U's diagonal, counted
//     from 1, or 0. Without attr 'pivots' P is the identity.
//     Gradient: with P known, d(L U) = P^T dX. For m <= n, U = [U1 | U2]:
//       phi = tril(L^T dL, -1) + triu(dU U^T) - tril(dU2 U2^T, -1), where dU
//       U^T
//         is that of the square part
//       X@GRAD = P L^-T [phi U1^-T | dU2]
//     and for m > n, L = [L1; L2]:
//       phi = tril(L1^T dL1, -1) + triu(dU U^T) - triu(L2^T dL2)
//       X@GRAD = P [L1^-T phi; dL2] U^-T
//     (by differentiating d(L U) = dL U + L dU and taking triangles, as for
//     Cholesky)
//   lu_unpack: Pmat, L and U of them
//     X@GRAD = tril(L@GRAD, -1) + triu(U@GRAD)
#include <algorithm>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

int64_t Least(const Matrices& m) {
  return m.rows < 0 || m.cols < 0 ? -1 : std::min(m.rows, m.cols);
}

absl::StatusOr<Step> BindLu(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  Tensor* pivots = context->Output("Pivots");
  Tensor* infos = context->Output("Infos");
  const bool pivoting = context->Attr<bool>("pivots");
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, MatricesOf("X", x->shape()));
  const int64_t k = Least(m);
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < m.count(); ++i) {
      const LuFactors f = FactorLu(Load(x, m, i), pivoting);
      Store(f.lu, out, m, i);
      for (int64_t j = 0; j < k && pivots != nullptr; ++j)
        pivots->data<int32_t>()[i * k + j] =
            f.pivots[static_cast<size_t>(j)] + 1;
      if (infos != nullptr) infos->data<int32_t>()[i] = f.zero_pivot + 1;
    }
    return absl::OkStatus();
  });
}

// Row i of P^T X is row rows[i] of X.
absl::StatusOr<std::vector<int64_t>> RowOrder(const int32_t* pivots, int64_t k,
                                              int64_t m) {
  std::vector<int64_t> rows(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i) rows[static_cast<size_t>(i)] = i;
  for (int64_t i = 0; i < k; ++i) {
    const int64_t other = int64_t{pivots[i]} - 1;
    if (other < 0 || other >= m)
      return InvalidArgument("'Pivots' holds %d; expected 1 to %d", pivots[i],
                             m);
    std::swap(rows[static_cast<size_t>(i)], rows[static_cast<size_t>(other)]);
  }
  return rows;
}

MatrixXd UnitLower(const MatrixXd& a) {
  MatrixXd l = Lower(a, 1);
  l.diagonal().setOnes();
  return l;
}

// The gradient of P^T X.
MatrixXd BackwardLu(const MatrixXd& lu, const MatrixXd& g) {
  const Eigen::Index m = lu.rows(), n = lu.cols(), k = std::min(m, n);
  const MatrixXd square = lu.topLeftCorner(k, k);
  const MatrixXd dsquare = g.topLeftCorner(k, k);
  const MatrixXd lt = UnitLower(square).transpose(), u = Upper(square);
  MatrixXd phi = Lower(Times(lt, Lower(dsquare, 1)), 1) +
                 Upper(TimesTranspose(Upper(dsquare), u));
  MatrixXd dx(m, n);
  if (m <= n) {
    const MatrixXd rest = g.rightCols(n - k);
    phi -= Lower(TimesTranspose(rest, lu.rightCols(n - k)), 1);
    // phi U^-T, which is (U^-1 phi^T)^T
    dx << SolveTriangle(u, true, false, phi.transpose()).transpose(), rest;
    return SolveTriangle(lt, true, true, std::move(dx));
  }
  const MatrixXd rest = g.bottomRows(m - k);
  phi -= Upper(TransposeTimes(lu.bottomRows(m - k), rest));
  dx << SolveTriangle(lt, true, true, std::move(phi)), rest;
  return SolveTriangle(u, true, false, dx.transpose()).transpose();
}

absl::StatusOr<Step> BindLuGrad(BindContext* context) {
  Tensor* out = context->Input("Out");
  Tensor* pivots = context->Input("Pivots");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  if (Tensor* x = context->Input("X"); x != nullptr) context->NoBuffer(x);
  PD_RETURN_IF_ERROR(CheckReal(out->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, MatricesOf("Out", out->shape()));
  const int64_t k = Least(m);
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", out->dtype(), out->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Pivots", DType::kInt32, m.With({k})));
  return Step([=](const RunContext&) -> absl::Status {
    for (int64_t i = 0; i < m.count() && k > 0; ++i) {
      PD_ASSIGN_OR_RETURN(const auto rows,
                          RowOrder(pivots->data<int32_t>() + i * k, k, m.rows));
      const MatrixXd g = BackwardLu(Load(out, m, i), Load(dout, m, i));
      MatrixXd ordered(m.rows, m.cols);
      for (int64_t r = 0; r < m.rows; ++r)
        ordered.row(rows[static_cast<size_t>(r)]) = g.row(r);
      Store(ordered, dx, m, i);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindUnpack(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* pivots = context->Input("Pivots");
  Tensor* p = context->Output("Pmat");
  Tensor* l = context->Output("L");
  Tensor* u = context->Output("U");
  if (!context->Attr<bool>("unpack_pivots")) p = nullptr;
  if (!context->Attr<bool>("unpack_ludata")) l = u = nullptr;
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, MatricesOf("X", x->shape()));
  const int64_t k = Least(m);
  const Matrices of_p{m.batch, m.rows, m.rows}, of_l{m.batch, m.rows, k},
      of_u{m.batch, k, m.cols};
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Pivots", DType::kInt32, m.With({k})));
  return Step([=](const RunContext&) -> absl::Status {
    for (int64_t i = 0; i < m.count(); ++i) {
      const MatrixXd a = Load(x, m, i);
      if (l != nullptr) Store(UnitLower(a.leftCols(k)), l, of_l, i);
      if (u != nullptr) Store(Upper(a.topRows(k)), u, of_u, i);
      if (p == nullptr) continue;
      PD_ASSIGN_OR_RETURN(const auto rows,
                          RowOrder(pivots->data<int32_t>() + i * k, k, m.rows));
      MatrixXd permutation = MatrixXd::Zero(m.rows, m.rows);
      for (int64_t r = 0; r < m.rows; ++r)
        permutation(rows[static_cast<size_t>(r)], r) = 1;
      Store(permutation, p, of_p, i);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindUnpackGrad(BindContext* context) {
  Tensor* dl = context->Input("L@GRAD");
  Tensor* du = context->Input("U@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  for (const char* slot : {"X", "Pivots", "L", "U", "Pmat"})
    if (Tensor* t = context->Input(slot); t != nullptr) context->NoBuffer(t);
  PD_RETURN_IF_ERROR(CheckReal(dx->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, MatricesOf("X", dx->shape()));
  const int64_t k = Least(m);
  const Matrices of_l{m.batch, m.rows, k}, of_u{m.batch, k, m.cols};
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "L@GRAD", dx->dtype(), of_l.All()));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "U@GRAD", dx->dtype(), of_u.All()));
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < m.count(); ++i) {
      MatrixXd g = MatrixXd::Zero(m.rows, m.cols);
      g.leftCols(k) += Lower(LoadOrZero(dl, of_l, i), 1);
      g.topRows(k) += Upper(LoadOrZero(du, of_u, i));
      Store(g, dx, m, i);
    }
    return absl::OkStatus();
  });
}

absl::Status InferLu(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Matrices m, MatricesOf("X", x.shape));
  context->SetOutput("Out", x.shape, x.dtype);
  context->SetOutput("Pivots", m.With({Least(m)}), DType::kInt32);
  context->SetOutput("Infos", m.batch.empty() ? Shape{1} : m.batch,
                     DType::kInt32);
  return absl::OkStatus();
}

absl::Status InferLuGrad(InferContext* context) {
  context->Share("Out", "X@GRAD");
  return absl::OkStatus();
}

absl::Status InferUnpack(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Matrices m, MatricesOf("X", x.shape));
  const int64_t k = Least(m);
  context->SetOutput("Pmat",
                     context->Attr<bool>("unpack_pivots")
                         ? m.With({m.rows, m.rows})
                         : Shape{0},
                     x.dtype);
  const bool data = context->Attr<bool>("unpack_ludata");
  context->SetOutput("L", data ? m.With({m.rows, k}) : Shape{0}, x.dtype);
  context->SetOutput("U", data ? m.With({k, m.cols}) : Shape{0}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterLu(OpRegistry* registry) {
  OpDef lu("lu");
  lu.Input("X").Output("Out").Output("Pivots").Output("Infos");
  lu.Attr("pivots", true).Infer(InferLu).Reference(BindLu);
  lu.Grad(GradSpec{"lu_grad", {"X"}, {"Out", "Pivots"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(lu)));

  OpDef lu_grad("lu_grad");
  lu_grad.OptionalInput("X").Input("Out").Input("Pivots").Input("Out@GRAD");
  lu_grad.Output("X@GRAD").Attr("pivots", true);
  lu_grad.Infer(InferLuGrad).NoGrad().Reference(BindLuGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(lu_grad)));

  OpDef unpack("lu_unpack");
  unpack.Input("X").Input("Pivots").Output("Pmat").Output("L").Output("U");
  unpack.Attr("unpack_ludata", true).Attr("unpack_pivots", true);
  unpack.Infer(InferUnpack).Reference(BindUnpack);
  unpack.Grad(GradSpec{"lu_unpack_grad",
                       {"X", "Pivots"},
                       {"L", "U", "Pmat"},
                       {"L", "U"},
                       {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(unpack)));

  OpDef unpack_grad("lu_unpack_grad");
  unpack_grad.Input("X").OptionalInput("Pivots").OptionalInput("L");
  unpack_grad.OptionalInput("U").OptionalInput("Pmat");
  unpack_grad.OptionalInput("L@GRAD").OptionalInput("U@GRAD");
  unpack_grad.Output("X@GRAD");
  unpack_grad.Attr("unpack_ludata", true).Attr("unpack_pivots", true);
  unpack_grad.Infer(InferGradLikeInput).NoGrad().Reference(BindUnpackGrad);
  return registry->Add(std::move(unpack_grad));
}

}  // namespace pd
