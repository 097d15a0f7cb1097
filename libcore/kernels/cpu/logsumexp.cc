// SPDX-License-Identifier: Apache-2.0
// logsumexp and its gradient over the last axes: row by row, by row_softmax.cc.
// Formulas: libcore/ops/reduce/logsumexp.cc.
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/row_softmax.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/int_tensors.h"

namespace pd {
namespace cpu {
namespace {

struct SummedRows {
  int64_t rows = 1, columns = 1;
};

absl::StatusOr<SummedRows> SummedRowsOf(const OpDesc& op, const Tensor& x) {
  if (x.dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (x.size() == 0) return Unimplemented("there is nothing to sum");
  const std::vector<int64_t> axes = IntsAttr(op, "axis");
  const bool all = axes.empty() || op.Attr<bool>("reduce_all");
  std::vector<bool> summed(x.rank(), all);
  for (const int64_t axis : all ? std::vector<int64_t>() : axes) {
    if (x.rank() == 0) continue;
    PD_ASSIGN_OR_RETURN(const int a, NormalizeAxis(axis, x.rank()));
    summed[static_cast<size_t>(a)] = true;
  }
  SummedRows s;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!summed[i] && s.columns > 1 && x.dim(i) > 1)
      return Unimplemented("it is for the last axes");
    (summed[i] ? s.columns : s.rows) *= x.dim(i);
  }
  return s;
}

}  // namespace

absl::StatusOr<Step> BindLogsumexp(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const SummedRows s, SummedRowsOf(context->op(), *x));
  return Step([=](const RunContext&) {
    RowLogSumExp(x->data<float>(), s.rows, s.columns, out->data<float>());
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindLogsumexpGrad(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(const SummedRows s, SummedRowsOf(context->op(), *x));
  for (const char* slot : {"Out", "Out@GRAD"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, x->dtype(), s.rows));
  return Step([=](const RunContext&) {
    RowLogSumExpGrad(x->data<float>(), out->data<float>(), dout->data<float>(),
                     s.rows, s.columns, dx->data<float>());
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
