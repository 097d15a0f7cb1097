// SPDX-License-Identifier: Apache-2.0
// Linear systems; batches of X and Y broadcast, gradients are summed.
//   solve: Out = X^-1 Y, X [..., n, n], Y [..., n, k]; Y of rank 1, or of X's
//     shape without its last axis, is vectors
//     Y@GRAD = X^-T Out@GRAD,  X@GRAD = -Y@GRAD Out^T
//   triangular_solve: the same with a triangle of X (`upper`), transposed with
//     `transpose`, with ones for its diagonal with `unitriangular`
//     X@GRAD is that triangle (transposed back), without the diagonal of ones
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct System {
  MatrixPairs pairs;
  bool vectors = false;  // Y and Out lack the last axis

  Shape Out() const {
    Shape shape = pairs.batch;
    shape.push_back(pairs.y.rows);
    if (!vectors) shape.push_back(pairs.y.cols);
    return shape;
  }
};

absl::StatusOr<System> SolveSystemOf(const OpDesc& op, const Shape& x,
                                     const Shape& y) {
  System s;
  PD_ASSIGN_OR_RETURN(const Matrices a, SquareMatricesOf("X", x));
  const bool general = op.type == "solve" || op.type == "solve_grad";
  s.vectors = general && (y.size() == 1 || y == Shape(x.begin(), x.end() - 1));
  Shape columns = y;
  if (s.vectors) columns.push_back(1);
  PD_ASSIGN_OR_RETURN(const Matrices b, MatricesOf("Y", columns));
  if (a.rows != b.rows && a.rows >= 0 && b.rows >= 0)
    return InvalidArgument(
        "'X' has shape %s, 'Y' has shape %s; expected as many rows",
        ToString(x), ToString(y));
  PD_ASSIGN_OR_RETURN(s.pairs, PairUp(a, b));
  return s;
}

// How X is understood.
struct SolveForm {
  bool general = true, upper = true, transpose = false, unit = false;

  explicit SolveForm(const OpDesc& op)
      : general(op.type == "solve" || op.type == "solve_grad"),
        upper(general || op.Attr<bool>("upper")),
        transpose(!general && op.Attr<bool>("transpose")),
        unit(!general && op.Attr<bool>("unitriangular")) {}

  // op(x)^-1 b, or op(x)^-T b.
  absl::StatusOr<MatrixXd> Solve(const MatrixXd& x, bool transposed,
                                 int64_t index, const MatrixXd& b) const {
    return transpose != transposed ? SolveAs(x.transpose(), !upper, index, b)
                                   : SolveAs(x, upper, index, b);
  }

  // X's share of the gradient `g` of op(X).
  MatrixXd ForX(const MatrixXd& g) const {
    if (general) return g;
    const MatrixXd of_x = transpose ? MatrixXd(g.transpose()) : g;
    const int shift = unit ? 1 : 0;
    return upper ? Upper(of_x, shift) : Lower(of_x, shift);
  }

 private:
  absl::StatusOr<MatrixXd> SolveAs(const MatrixXd& x, bool is_upper,
                                   int64_t index, const MatrixXd& b) const {
    if (!general) return SolveTriangle(x, is_upper, unit, b);
    const LuFactors factors = FactorLu(x);
    if (factors.zero_pivot >= 0)
      return InvalidArgument("matrix %d of 'X' is singular", index);
    return SolveLu(factors, b);
  }
};

absl::StatusOr<Step> BindSolve(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Output("Out");
  const SolveForm form(context->op());
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const System s,
                      SolveSystemOf(context->op(), x->shape(), y->shape()));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y", x->dtype(), y->shape()));
  return Step([=, pairs = s.pairs](const RunContext&) -> absl::Status {
    for (size_t i = 0; i < pairs.of_x.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      PD_ASSIGN_OR_RETURN(const MatrixXd solution,
                          form.Solve(Load(x, pairs.x, pairs.of_x[i]), false, at,
                                     Load(y, pairs.y, pairs.of_y[i])));
      Store(solution, out, pairs.y, at);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindSolveGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* dy = context->Output("Y@GRAD");
  context->NoBuffer(y);
  const SolveForm form(context->op());
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  PD_ASSIGN_OR_RETURN(const System s,
                      SolveSystemOf(context->op(), x->shape(), y->shape()));
  for (const char* slot : {"Out", "Out@GRAD"})
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slot, x->dtype(), NumElements(s.Out())));
  return Step([=, pairs = s.pairs](const RunContext&) -> absl::Status {
    for (Tensor* t : {dx, dy})
      if (t != nullptr) Clear(t);
    for (size_t i = 0; i < pairs.of_x.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      PD_ASSIGN_OR_RETURN(const MatrixXd g,
                          form.Solve(Load(x, pairs.x, pairs.of_x[i]), true, at,
                                     Load(dout, pairs.y, at)));
      if (dy != nullptr) Add(g, dy, pairs.y, pairs.of_y[i]);
      if (dx != nullptr)
        Add(form.ForX(-TimesTranspose(g, Load(out, pairs.y, at))), dx, pairs.x,
            pairs.of_x[i]);
    }
    return absl::OkStatus();
  });
}

absl::Status InferSolve(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(const System s, SolveSystemOf(context->op(), x.shape,
                                                    context->Input("Y").shape));
  context->SetOutput("Out", s.Out(), x.dtype);
  return absl::OkStatus();
}

absl::Status AddSolveOp(OpRegistry* registry, const std::string& type) {
  OpDef op(type), grad(type + "_grad");
  for (OpDef* def : {&op, &grad}) {
    def->Input("X").Input("Y");
    if (type == "solve") continue;
    def->Attr("upper", true).Attr("transpose", false);
    def->Attr("unitriangular", false);
  }
  op.Output("Out").Infer(InferSolve).Reference(BindSolve);
  op.Grad(GradSpec{type + "_grad", {"X", "Y"}, {"Out"}, {"Out"}, {"X", "Y"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  grad.Input("Out").Input("Out@GRAD");
  grad.OptionalOutput("X@GRAD").OptionalOutput("Y@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindSolveGrad);
  return registry->Add(std::move(grad));
}

}  // namespace

absl::Status RegisterSolve(OpRegistry* registry) {
  PD_RETURN_IF_ERROR(AddSolveOp(registry, "solve"));
  return AddSolveOp(registry, "triangular_solve");
}

}  // namespace pd
