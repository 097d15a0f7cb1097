// SPDX-License-Identifier: Apache-2.0
//   cholesky: Out = L with L L^T = X, lower triangular; with `upper` U = L^T.
//     Only that triangle of X is read, but its gradient is symmetric (Murray,
//     "Differentiation of the Cholesky decomposition", 2016), with P(A) the
//     lower triangle of A, its diagonal halved:
//       S = L^-T P(L^T Out@GRAD) L^-1,  X@GRAD = (S + S^T) / 2
//   cholesky_solve: Out solves A Out = X, A = Y Y^T (Y^T Y with `upper`)
//     X@GRAD = A^-1 Out@GRAD,  C = X@GRAD Out^T
//     Y@GRAD = the triangle of -(C + C^T) Y (-Y (C + C^T) with `upper`)
// Batches of X and Y broadcast; their gradients are summed.
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

MatrixXd Transposed(const MatrixXd& a, bool really) {
  return really ? MatrixXd(a.transpose()) : a;
}

absl::StatusOr<Step> BindCholesky(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  const bool upper = context->Attr<bool>("upper");
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("X", x->shape()));
  return Step([=](const RunContext&) -> absl::Status {
    MatrixXd lower;
    for (int64_t i = 0; i < m.count(); ++i) {
      if (!FactorCholesky(Transposed(Load(x, m, i), upper), &lower))
        return InvalidArgument(
            "matrix %d of 'X' is not positive definite, so it has no Cholesky "
            "factor",
            i);
      Store(Transposed(lower, upper), out, m, i);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindCholeskyGrad(BindContext* context) {
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  const bool upper = context->Attr<bool>("upper");
  PD_RETURN_IF_ERROR(CheckReal(out->dtype()));
  PD_ASSIGN_OR_RETURN(const Matrices m, SquareMatricesOf("Out", out->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", out->dtype(), out->shape()));
  return Step([=](const RunContext&) {
    for (int64_t i = 0; i < m.count(); ++i) {
      const MatrixXd l = Transposed(Load(out, m, i), upper);
      MatrixXd p =
          Lower(TransposeTimes(l, Transposed(Load(dout, m, i), upper)));
      p.diagonal() *= 0.5;
      // L^-T P L^-1 = L^-T (L^-T P^T)^T
      const MatrixXd lt = l.transpose();
      const MatrixXd right = SolveTriangle(lt, true, false, p.transpose());
      const MatrixXd s = SolveTriangle(lt, true, false, right.transpose());
      Store(0.5 * (s + s.transpose()), dx, m, i);
    }
    return absl::OkStatus();
  });
}

// X and Y of cholesky_solve.
absl::StatusOr<MatrixPairs> CholeskySystemOf(const Shape& x, const Shape& y) {
  PD_ASSIGN_OR_RETURN(const Matrices b, MatricesOf("X", x));
  PD_ASSIGN_OR_RETURN(const Matrices a, SquareMatricesOf("Y", y));
  if (a.rows != b.rows && a.rows >= 0 && b.rows >= 0)
    return InvalidArgument(
        "'X' has shape %s, 'Y' has shape %s; expected as many rows",
        ToString(x), ToString(y));
  return PairUp(b, a);
}

// A^-1 b for A = f f^T, or f^T f.
MatrixXd SolveByFactor(const MatrixXd& f, bool upper, MatrixXd b) {
  const MatrixXd l = Transposed(f, upper);
  return SolveTriangle(l.transpose(), true, false,
                       SolveTriangle(l, false, false, std::move(b)));
}

absl::StatusOr<Step> BindCholeskySolve(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  const bool upper = context->Attr<bool>("upper");
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  PD_ASSIGN_OR_RETURN(const MatrixPairs pairs,
                      CholeskySystemOf(x->shape(), y->shape()));
  return Step([=](const RunContext&) {
    for (size_t i = 0; i < pairs.of_x.size(); ++i)
      Store(SolveByFactor(Load(y, pairs.y, pairs.of_y[i]), upper,
                          Load(x, pairs.x, pairs.of_x[i])),
            out, pairs.x, static_cast<int64_t>(i));
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindCholeskySolveGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  context->NoBuffer(x);
  const bool upper = context->Attr<bool>("upper");
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const MatrixPairs pairs,
                      CholeskySystemOf(x->shape(), y->shape()));
  const int64_t elements =
      static_cast<int64_t>(pairs.of_x.size()) * pairs.x.rows * pairs.x.cols;
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  for (const char* slot : {"Out", "Out@GRAD"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, x->dtype(), elements));
  return Step([=](const RunContext&) {
    for (Tensor* t : {dx, dy})
      if (t != nullptr) Clear(t);
    for (size_t i = 0; i < pairs.of_x.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      const MatrixXd f = Load(y, pairs.y, pairs.of_y[i]);
      const MatrixXd g = SolveByFactor(f, upper, Load(dout, pairs.x, at));
      if (dx != nullptr) Add(g, dx, pairs.x, pairs.of_x[i]);
      if (dy == nullptr) continue;
      const MatrixXd half = TimesTranspose(g, Load(out, pairs.x, at));
      const MatrixXd c = half + half.transpose();
      Add(upper ? Upper(-Times(f, c)) : Lower(-Times(c, f)), dy, pairs.y,
          pairs.of_y[i]);
    }
    return absl::OkStatus();
  });
}

absl::Status InferCholesky(InferContext* context) {
  PD_RETURN_IF_ERROR(SquareMatricesOf("X", context->Input("X").shape).status());
  return InferUnary(context);
}

absl::Status InferCholeskyGrad(InferContext* context) {
  context->Share("Out", "X@GRAD");
  return absl::OkStatus();
}

absl::Status InferCholeskySolve(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const MatrixPairs pairs,
                      CholeskySystemOf(x.shape, context->Input("Y").shape));
  Shape shape = pairs.batch;
  shape.push_back(pairs.x.rows);
  shape.push_back(pairs.x.cols);
  context->SetOutput("Out", std::move(shape), x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterCholesky(OpRegistry* registry) {
  OpDef cholesky("cholesky");
  cholesky.Input("X").Output("Out").Attr("upper", false);
  cholesky.Infer(InferCholesky).Reference(BindCholesky);
  cholesky.Grad(GradSpec{"cholesky_grad", {}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(cholesky)));

  OpDef grad("cholesky_grad");
  grad.Input("Out").Input("Out@GRAD").Output("X@GRAD").Attr("upper", false);
  grad.Infer(InferCholeskyGrad).NoGrad().Reference(BindCholeskyGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef solve("cholesky_solve");
  solve.Input("X").Input("Y").Output("Out").Attr("upper", false);
  solve.Infer(InferCholeskySolve).Reference(BindCholeskySolve);
  solve.Grad(GradSpec{
      "cholesky_solve_grad", {"X", "Y"}, {"Out"}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(solve)));

  OpDef solve_grad("cholesky_solve_grad");
  solve_grad.Input("X").Input("Y").Input("Out").Input("Out@GRAD");
  solve_grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  solve_grad.Attr("upper", false).Infer(InferGradLikeInput).NoGrad();
  solve_grad.Reference(BindCholeskySolveGrad);
  return registry->Add(std::move(solve_grad));
}

}  // namespace pd
