// SPDX-License-Identifier: Apache-2.0
// How many singular values of X (of a `hermitian` one: absolute eigenvalues)
// are above a tolerance: attr 'tol', or TolTensor, which broadcasts with X's
// batch; with use_default_tol not below max(rows, columns) * epsilon * the
// greatest value. Out int32. No gradient.
#include <algorithm>
#include <limits>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/linalg/decompose.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

// Absolute eigenvalues, or singular values.
absl::StatusOr<VectorXd> Values(const MatrixXd& a, bool hermitian) {
  if (!hermitian) return SingularValues(a);
  PD_ASSIGN_OR_RETURN(const SymmetricEigen eigen, EigenOfSymmetric(a));
  return VectorXd(eigen.values.cwiseAbs());
}

struct MatrixRankForm {
  Matrices x;
  Broadcast batch;  // of X's batch and TolTensor
};

absl::StatusOr<MatrixRankForm> MatrixRankFormOf(const OpDesc& op,
                                                const Shape& x,
                                                const Shape& tolerance) {
  MatrixRankForm f;
  const bool hermitian = op.Attr<bool>("hermitian");
  PD_ASSIGN_OR_RETURN(
      f.x, hermitian ? SquareMatricesOf("X", x) : MatricesOf("X", x));
  PD_ASSIGN_OR_RETURN(f.batch, BroadcastShapes(f.x.batch, tolerance, -1));
  return f;
}

absl::StatusOr<Step> BindMatrixRank(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* tolerances = context->Input("TolTensor");
  Tensor* out = context->Output("Out");
  const bool hermitian = context->Attr<bool>("hermitian");
  const bool by_default = context->Attr<bool>("use_default_tol");
  const double tol = by_default ? 0.0 : context->Attr<float>("tol");
  const Shape of_tolerances =
      tolerances != nullptr ? tolerances->shape() : Shape{};
  PD_ASSIGN_OR_RETURN(
      const MatrixRankForm f,
      MatrixRankFormOf(context->op(), x->shape(), of_tolerances));
  PD_RETURN_IF_ERROR(
      ExpectOptionalInput(*context, "TolTensor", x->dtype(), of_tolerances));
  const auto loop = BroadcastLoop(f.batch);
  return DispatchFloat(x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) -> absl::Status {
      const double relative =
          by_default ? static_cast<double>(std::numeric_limits<T>::epsilon()) *
                           static_cast<double>(std::max(f.x.rows, f.x.cols))
                     : 0.0;
      std::vector<VectorXd> values;
      for (int64_t i = 0; i < f.x.count(); ++i) {
        PD_ASSIGN_OR_RETURN(VectorXd of_one,
                            Values(Load(x, f.x, i), hermitian));
        values.push_back(std::move(of_one));
      }
      int32_t* result = out->data<int32_t>();
      loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
        const auto strides = loop.row_strides();
        for (int64_t j = 0; j < n; ++j) {
          const VectorXd& v =
              values[static_cast<size_t>(at[0] + j * strides[0])];
          double limit = tolerances != nullptr
                             ? tolerances->data<T>()[at[1] + j * strides[1]]
                             : tol;
          if (v.size() > 0) limit = std::max(limit, relative * v.maxCoeff());
          result[at[2] + j * strides[2]] =
              static_cast<int32_t>((v.array() > limit).count());
        }
      });
      return absl::OkStatus();
    });
  });
}

absl::Status InferMatrixRank(InferContext* context) {
  const Shape tolerances = context->HasInput("TolTensor")
                               ? context->Input("TolTensor").shape
                               : Shape{};
  PD_ASSIGN_OR_RETURN(
      MatrixRankForm f,
      MatrixRankFormOf(context->op(), context->Input("X").shape, tolerances));
  context->SetOutput("Out", std::move(f.batch.out), DType::kInt32);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterMatrixRank(OpRegistry* registry) {
  OpDef op("matrix_rank");
  op.Input("X").OptionalInput("TolTensor").Output("Out");
  op.Attr("tol", 0.0f).Attr("hermitian", false).Attr("use_default_tol", true);
  op.Infer(InferMatrixRank).NoGrad().Reference(BindMatrixRank);
  return registry->Add(std::move(op));
}

}  // namespace pd
