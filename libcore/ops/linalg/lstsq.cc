// SPDX-License-Identifier: Apache-2.0
// Least squares: Solution minimises |X Solution - Y|, of the least norm where
// there are several. X [..., m, n], Y [..., m, k]. Attr 'driver' is LAPACK's:
//   gels: X has full rank; Rank and SingularValues are empty
//   gelsy, gelsd, gelss: values up to rcond * the greatest count as 0; Rank is
//     how many are left, SingularValues (not of gelsy) all of them
// Residuals [..., k]: the squared lengths of the columns of X Solution - Y;
// empty unless m > n. No gradient.
#include <algorithm>
#include <limits>
#include <string>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct LstsqForm {
  Matrices x, y;
  bool with_rank = false, with_values = false, with_residuals = false;
  int64_t values = 0;
};

absl::StatusOr<LstsqForm> LstsqFormOf(const OpDesc& op, const Shape& x,
                                      const Shape& y) {
  LstsqForm f;
  PD_ASSIGN_OR_RETURN(f.x, MatricesOf("X", x));
  PD_ASSIGN_OR_RETURN(f.y, MatricesOf("Y", y));
  if (f.x.batch.size() != f.y.batch.size() ||
      (f.x.rows != f.y.rows && f.x.rows >= 0 && f.y.rows >= 0))
    return InvalidArgument(
        "'X' has shape %s, 'Y' has shape %s; expected one batch, and as many "
        "rows",
        ToString(x), ToString(y));
  const std::string driver = op.Attr<std::string>("driver");
  if (driver != "gels" && driver != "gelsy" && driver != "gelsd" &&
      driver != "gelss")
    return InvalidArgument(
        "attr 'driver' is '%s'; expected 'gels', 'gelsy', "
        "'gelsd' or 'gelss'",
        driver);
  f.with_rank = driver != "gels";
  f.with_values = driver == "gelsd" || driver == "gelss";
  f.with_residuals = f.x.rows > f.x.cols;
  f.values = f.x.rows < 0 || f.x.cols < 0 ? -1 : std::min(f.x.rows, f.x.cols);
  return f;
}

double Epsilon(DType dtype) {
  return dtype == DType::kFloat32 ? std::numeric_limits<float>::epsilon()
                                  : std::numeric_limits<double>::epsilon();
}

absl::StatusOr<Step> BindLstsq(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  Tensor* solution = context->Output("Solution");
  Tensor* residuals = context->Output("Residuals");
  Tensor* rank = context->Output("Rank");
  Tensor* values = context->Output("SingularValues");
  const double rcond = context->Attr<float>("rcond");
  PD_ASSIGN_OR_RETURN(const LstsqForm f,
                      LstsqFormOf(context->op(), x->shape(), y->shape()));
  if (f.x.batch != f.y.batch || y->dtype() != x->dtype())
    return InvalidArgument("'X' is %s %s, 'Y' is %s %s", Name(x->dtype()),
                           ToString(x->shape()), Name(y->dtype()),
                           ToString(y->shape()));
  if (!f.with_residuals) residuals = nullptr;
  if (!f.with_rank) rank = nullptr;
  if (!f.with_values) values = nullptr;
  PD_RETURN_IF_ERROR(CheckReal(x->dtype()));
  const Matrices of_solution{f.x.batch, f.x.cols, f.y.cols},
      of_values{f.x.batch, f.values, 1}, of_residuals{f.x.batch, 1, f.y.cols};
  const double threshold =
      f.with_rank && rcond >= 0 ? rcond : Epsilon(x->dtype());
  return Step([=](const RunContext&) -> absl::Status {
    for (int64_t i = 0; i < f.x.count(); ++i) {
      const MatrixXd a = Load(x, f.x, i), b = Load(y, f.y, i);
      PD_ASSIGN_OR_RETURN(const Svd svd, FactorSvd(a));
      // V diag(1 / s) U^T b, without the values that count as 0.
      MatrixXd projected = MatrixXd::Zero(svd.s.size(), f.y.cols);
      if (svd.s.size() > 0) projected = TransposeTimes(svd.u, b);
      int32_t found = 0;
      for (Eigen::Index j = 0; j < svd.s.size(); ++j) {
        const bool counts = svd.s(j) > threshold * svd.s(0);
        found += counts ? 1 : 0;
        for (Eigen::Index c = 0; c < projected.cols(); ++c)
          projected(j, c) = counts ? projected(j, c) / svd.s(j) : 0;
      }
      MatrixXd result = MatrixXd::Zero(f.x.cols, f.y.cols);
      if (svd.s.size() > 0) result = Times(svd.v, projected);
      Store(result, solution, of_solution, i);
      if (values != nullptr) Store(svd.s, values, of_values, i);
      if (rank != nullptr) rank->data<int32_t>()[i] = found;
      if (residuals == nullptr) continue;
      const MatrixXd error = Times(a, result) - b;
      Store(error.colwise().squaredNorm(), residuals, of_residuals, i);
    }
    return absl::OkStatus();
  });
}

absl::Status InferLstsq(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  PD_ASSIGN_OR_RETURN(
      const LstsqForm f,
      LstsqFormOf(context->op(), x.shape, context->Input("Y").shape));
  context->SetOutput("Solution", f.x.With({f.x.cols, f.y.cols}), x.dtype);
  context->SetOutput(
      "Residuals", f.with_residuals ? f.x.With({f.y.cols}) : Shape{0}, x.dtype);
  context->SetOutput("Rank", f.with_rank ? f.x.batch : Shape{0}, DType::kInt32);
  context->SetOutput("SingularValues",
                     f.with_values ? f.x.With({f.values}) : Shape{0}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterLstsq(OpRegistry* registry) {
  OpDef op("lstsq");
  op.Input("X").Input("Y").Output("Solution").OptionalOutput("Residuals");
  op.Output("Rank").Output("SingularValues");
  op.Attr("rcond", 0.0f).Attr("driver", std::string("gels"));
  op.Infer(InferLstsq).NoGrad().Reference(BindLstsq);
  return registry->Add(std::move(op));
}

}  // namespace pd
