// SPDX-License-Identifier: Apache-2.0
// X = U diag(S) VH with S descending. X [m, n], k = min(m, n): U [m, k], VH
// [k, n]; U [m, m], VH [n, n] with full_matrices. Which signs the vectors have
// is open.
// Gradient (Townsend, "Differentiating the singular value decomposition",
// 2016) over the first k vectors: with F[i, j] = 1 / (S[j]^2 - S[i]^2) off the
// diagonal (0 where equal), V = VH^T:
//   X@GRAD = [U ((U^T dU - dU^T U) * F) diag(S) + (I - U U^T) dU diag(1/S)] VH
//     + U diag(dS) VH
//     + U [diag(S) ((V^T dV - dV^T V) * F) VH + diag(1/S) dV^T (I - V V^T)]
#include <algorithm>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Parts {
  Matrices x, u, s, vh;
  int64_t k = 0;
};

absl::StatusOr<Parts> PartsOf(const Shape& x, bool full) {
  Parts p;
  PD_ASSIGN_OR_RETURN(p.x, MatricesOf("X", x));
  p.k = p.x.rows < 0 || p.x.cols < 0 ? -1 : std::min(p.x.rows, p.x.cols);
  p.u = {p.x.batch, p.x.rows, full ? p.x.rows : p.k};
  p.s = {p.x.batch, p.k, 1};
  p.vh = {p.x.batch, full ? p.x.cols : p.k, p.x.cols};
  return p;
}

absl::StatusOr<Step> BindSvd(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* u = context->Output("U");
  Tensor* s = context->Output("S");
  Tensor* vh = context->Output("VH");
  const bool full = context->Attr<bool>("full_matrices");
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const Parts p, PartsOf(x->shape(), full));
  return Step([=](const RunContext&) -> absl::Status {
    for (int64_t i = 0; i < p.x.count(); ++i) {
      PD_ASSIGN_OR_RETURN(const Svd svd, FactorSvd(Load(x, p.x, i), full));
      Store(svd.u, u, p.u, i);
      Store(svd.s, s, p.s, i);
      Store(svd.v.transpose(), vh, p.vh, i);
    }
    return absl::OkStatus();
  });
}

// (a - a^T) * F
MatrixXd Rotation(const MatrixXd& a, const MatrixXd& s) {
  MatrixXd r = a - a.transpose();
  for (Eigen::Index i = 0; i < r.rows(); ++i)
    for (Eigen::Index j = 0; j < r.cols(); ++j) {
      const double gap = (s(j, 0) - s(i, 0)) * (s(j, 0) + s(i, 0));
      r(i, j) = gap == 0 ? 0 : r(i, j) / gap;
    }
  return r;
}

// Column j times factors(j), or its inverse.
MatrixXd ScaleColumns(MatrixXd a, const MatrixXd& factors, bool inverse) {
  for (Eigen::Index j = 0; j < a.cols(); ++j)
    for (Eigen::Index i = 0; i < a.rows(); ++i)
      a(i, j) = inverse ? a(i, j) / factors(j, 0) : a(i, j) * factors(j, 0);
  return a;
}

// The share of X's gradient, without what stands at the other side, of the
// vectors v (columns) and their gradient.
MatrixXd VectorTerm(const MatrixXd& v, const MatrixXd& s, const MatrixXd& dv) {
  const MatrixXd inner = TransposeTimes(v, dv);
  MatrixXd term = ScaleColumns(Times(v, Rotation(inner, s)), s, false);
  if (v.rows() > v.cols()) term += ScaleColumns(dv - Times(v, inner), s, true);
  return term;
}

absl::StatusOr<Step> BindSvdGrad(BindContext* context) {
  Tensor* u = context->Input("U");
  Tensor* s = context->Input("S");
  Tensor* vh = context->Input("VH");
  Tensor* du = context->Input("U@GRAD");
  Tensor* ds = context->Input("S@GRAD");
  Tensor* dvh = context->Input("VH@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  context->NoBuffer(context->Input("X"));
  PD_RETURN_IF_ERROR(CheckReal(dx->dtype()));
  PD_ASSIGN_OR_RETURN(
      const Parts p,
      PartsOf(dx->shape(), context->Attr<bool>("full_matrices")));
  const DType dtype = dx->dtype();
  const Shape of_s = p.x.With({p.k}), of_u = p.u.All(), of_vh = p.vh.All();
  PD_RETURN_IF_ERROR(ExpectInput(*context, "U", dtype, of_u));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "S", dtype, of_s));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "VH", dtype, of_vh));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "U@GRAD", dtype, of_u));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "S@GRAD", dtype, of_s));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "VH@GRAD", dtype, of_vh));
  return Step([=, k = p.k](const RunContext&) {
    for (int64_t i = 0; i < p.x.count() && k > 0; ++i) {
      const MatrixXd left = Load(u, p.u, i).leftCols(k);
      const MatrixXd right = Load(vh, p.vh, i).topRows(k).transpose();
      const MatrixXd values = Load(s, p.s, i);
      MatrixXd inner = ScaleColumns(left, LoadOrZero(ds, p.s, i), false);
      if (du != nullptr)
        inner += VectorTerm(left, values, Load(du, p.u, i).leftCols(k));
      MatrixXd g = TimesTranspose(inner, right);
      if (dvh != nullptr) {
        const MatrixXd dv = Load(dvh, p.vh, i).topRows(k).transpose();
        g += TimesTranspose(left, VectorTerm(right, values, dv));
      }
      Store(g, dx, p.x, i);
    }
    return absl::OkStatus();
  });
}

absl::Status InferSvd(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const Parts p,
                      PartsOf(x.shape, context->Attr<bool>("full_matrices")));
  context->SetOutput("U", p.u.All(), x.dtype);
  context->SetOutput("S", p.x.With({p.k}), x.dtype);
  context->SetOutput("VH", p.vh.All(), x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterSvd(OpRegistry* registry) {
  OpDef svd("svd");
  svd.Input("X").Output("U").Output("S").Output("VH");
  svd.Attr("full_matrices", false).Infer(InferSvd).Reference(BindSvd);
  svd.Grad(
      GradSpec{"svd_grad", {"X"}, {"U", "S", "VH"}, {"U", "S", "VH"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(svd)));

  OpDef grad("svd_grad");
  grad.Input("X").Input("U").Input("S").Input("VH").OptionalInput("U@GRAD");
  grad.OptionalInput("S@GRAD").OptionalInput("VH@GRAD").Output("X@GRAD");
  grad.Attr("full_matrices", false).Infer(InferGradLikeInput).NoGrad();
  grad.Reference(BindSvdGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
