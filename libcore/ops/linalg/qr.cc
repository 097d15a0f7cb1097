// SPDX-License-Identifier: Apache-2.0
// X = Q R with orthonormal columns Q and upper triangular R, by Householder's
// reflections. X [m, n], k = min(m, n), mode:
//   "reduced": Q [m, k], R [k, n]   "complete": Q [m, m], R [m, n]   "r": R
// Gradient (Roberts and Roberts, "QR and LQ decomposition matrix
// backpropagation algorithms", 2020), m >= n: with M = R dR^T - dQ^T Q,
//   X@GRAD = (dQ + Q (tril(M) + tril(M, -1)^T)) R^-T
// m < n: X = [A | B], R = [U | V]; A as above of (dQ + B dV^T, dU), B@GRAD =
// Q dV. There is none for "r", nor for "complete" when m > n.
#include <algorithm>
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Shapes of Q and R for X [m, n].
struct QrForm {
  bool with_q = true, complete = false;

  int64_t Inner(int64_t m, int64_t n) const {
    if (complete) return m;
    return m < 0 || n < 0 ? -1 : std::min(m, n);
  }
};

absl::StatusOr<QrForm> QrFormOf(const OpDesc& op) {
  const std::string mode = op.Attr<std::string>("mode");
  if (mode == "reduced") return QrForm{true, false};
  if (mode == "complete") return QrForm{true, true};
  if (mode == "r") return QrForm{false, false};
  return InvalidArgument(
      "attr 'mode' is '%s'; expected 'reduced', 'complete' or 'r'", mode);
}

absl::StatusOr<Step> BindQr(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* q = context->Output("Q");
  Tensor* r = context->Output("R");
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const QrForm form, QrFormOf(context->op()));
  PD_ASSIGN_OR_RETURN(const Matrices m, MatricesOf("X", x->shape()));
  const int64_t k = form.Inner(m.rows, m.cols);
  const Matrices of_q{m.batch, m.rows, k}, of_r{m.batch, k, m.cols};
  if (!form.with_q) q = nullptr;
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < m.count() && m.rows > 0; ++i) {
      MatrixXd left = MatrixXd::Identity(m.rows, k), right(k, 0);
      if (m.cols > 0) FactorQr(Load(x, m, i), k, &left, &right);
      if (q != nullptr) Store(left, q, of_q, i);
      if (r != nullptr) Store(right, r, of_r, i);
    }
    return absl::OkStatus();
  });
}

// The gradient of X [m, n] with m >= n.
MatrixXd BackwardTall(const MatrixXd& q, const MatrixXd& r, const MatrixXd& dq,
                      const MatrixXd& dr) {
  const MatrixXd m = TimesTranspose(r, dr) - TransposeTimes(dq, q);
  const MatrixXd inner = Lower(m) + Lower(m, 1).transpose();
  const MatrixXd right = dq + Times(q, inner);
  return SolveTriangle(r, true, false, right.transpose()).transpose();
}

absl::StatusOr<Step> BindQrGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* q = context->Input("Q");
  Tensor* r = context->Input("R");
  Tensor* dq = context->Input("Q@GRAD");
  Tensor* dr = context->Input("R@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const QrForm form, QrFormOf(context->op()));
  PD_ASSIGN_OR_RETURN(const Matrices m, MatricesOf("X", x->shape()));
  if (!form.with_q || (form.complete && m.rows > m.cols))
    return InvalidArgument("there is no gradient of %s for attr 'mode' '%s'",
                           ToString(x->shape()),
                           context->Attr<std::string>("mode"));
  const int64_t k = form.Inner(m.rows, m.cols);
  const Matrices of_q{m.batch, m.rows, k}, of_r{m.batch, k, m.cols};
  const DType dtype = x->dtype();
  for (const char* slot : {"Q", "R"}) {
    const Shape shape = slot[0] == 'Q' ? of_q.All() : of_r.All();
    PD_RETURN_IF_ERROR(ExpectInput(*context, slot, dtype, shape));
    PD_RETURN_IF_ERROR(
        ExpectOptionalInput(*context, GradName(slot), dtype, shape));
  }
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < m.count() && k > 0; ++i) {
      const MatrixXd left = Load(q, of_q, i), right = Load(r, of_r, i);
      MatrixXd dleft = LoadOrZero(dq, of_q, i);
      const MatrixXd dright = LoadOrZero(dr, of_r, i);
      if (m.rows >= m.cols) {
        Store(BackwardTall(left, right, dleft, dright), dx, m, i);
        continue;
      }
      const int64_t rest = m.cols - m.rows;
      const MatrixXd dv = dright.rightCols(rest);
      dleft += TimesTranspose(Load(x, m, i).rightCols(rest), dv);
      MatrixXd g(m.rows, m.cols);
      g << BackwardTall(left, right.leftCols(m.rows), dleft,
                        dright.leftCols(m.rows)),
          Times(left, dv);
      Store(g, dx, m, i);
    }
    return absl::OkStatus();
  });
}

absl::Status InferQr(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const QrForm form, QrFormOf(context->op()));
  PD_ASSIGN_OR_RETURN(const Matrices m, MatricesOf("X", x.shape));
  const int64_t k = form.Inner(m.rows, m.cols);
  context->SetOutput("Q", form.with_q ? m.With({m.rows, k}) : Shape{0},
                     x.dtype);
  context->SetOutput("R", m.With({k, m.cols}), x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterQr(OpRegistry* registry) {
  OpDef qr("qr");
  qr.Input("X").Output("Q").Output("R").Attr("mode", std::string("reduced"));
  qr.Infer(InferQr).Reference(BindQr);
  qr.Grad(GradSpec{"qr_grad", {"X"}, {"Q", "R"}, {"Q", "R"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(qr)));

  OpDef grad("qr_grad");
  grad.Input("X").Input("Q").Input("R").OptionalInput("Q@GRAD");
  grad.OptionalInput("R@GRAD").Output("X@GRAD");
  grad.Attr("mode", std::string("reduced"));
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindQrGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
