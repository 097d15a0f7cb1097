// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and their gradients: over the last axis a row at a time,
// over others by vectors across lines.
#include <algorithm>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/column_softmax.h"
#include "libcore/kernels/cpu/row_softmax.h"
#include "libcore/ops/common/check.h"

namespace pd {
namespace cpu {
namespace {

struct Matrix {
  int64_t rows = 0, columns = 0;
};

absl::StatusOr<Matrix> LastAxis(const BindContext& context, const Tensor& x) {
  if (x.dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (x.rank() == 0 || x.size() == 0) return Unimplemented("there is no row");
  PD_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(context.Attr<int32_t>("axis"), x.rank()));
  if (axis + 1 != static_cast<int>(x.rank()))
    return Unimplemented("it is for the last axis");
  const int64_t columns = x.shape().back();
  return Matrix{x.size() / columns, columns};
}

absl::StatusOr<ColumnShape> MiddleAxis(const BindContext& context,
                                       const Tensor& x) {
  if (x.dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (x.rank() == 0 || x.size() == 0) return Unimplemented("there is no line");
  PD_ASSIGN_OR_RETURN(const int axis,
                      NormalizeAxis(context.Attr<int32_t>("axis"), x.rank()));
  ColumnShape s{1, x.shape()[static_cast<size_t>(axis)], 1};
  for (int k = 0; k < static_cast<int>(x.rank()); ++k)
    if (k != axis)
      (k < axis ? s.outer : s.inner) *= x.shape()[static_cast<size_t>(k)];
  if (s.inner < 2) return Unimplemented("it is for lines side by side");
  return s;
}

// X@GRAD of Out and Out@GRAD by run(out, dout, shape, dx), where `shape_of`
// tells the shape, or why the op is refused.
template <typename ShapeOf, typename Run>
absl::StatusOr<Step> BindGradient(BindContext* context, const ShapeOf& shape_of,
                                  const Run& run) {
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->In(context->Input("Out"), nullptr));
  PD_ASSIGN_OR_RETURN(const auto shape, shape_of(*context, *out));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", out->dtype(), out->shape()));
  PD_ASSIGN_OR_RETURN(Tensor * dout,
                      context->In(context->Input("Out@GRAD"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * dx,
                      context->Out(context->Output("X@GRAD"), nullptr));
  context->MayShare(dout, dx);
  return Step([out, dout, dx, shape, run](const RunContext&) {
    run(out->data<float>(), dout->data<float>(), shape, dx->data<float>());
    return absl::OkStatus();
  });
}

// A gradient of rows in BindGradient's form.
auto RowGradient(void (*run)(const float* y, const float* dy, int64_t rows,
                             int64_t columns, float* dx)) {
  return [run](const float* y, const float* dy, const Matrix& m, float* dx) {
    run(y, dy, m.rows, m.columns, dx);
  };
}

}  // namespace

absl::StatusOr<Step> BindSoftmax(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  PD_ASSIGN_OR_RETURN(const Matrix m, LastAxis(*context, *x));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), nullptr));
  context->MayShare(x, out);
  return Step([x, out, m](const RunContext&) {
    RowSoftmax(x->data<float>(), m.rows, m.columns, out->data<float>(), nullptr,
               nullptr);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindLogSoftmax(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  PD_ASSIGN_OR_RETURN(const Matrix m, LastAxis(*context, *x));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), nullptr));
  Tensor* sums =
      context->Scratch(static_cast<size_t>(2 * m.rows) * sizeof(float));
  return Step([x, out, sums, m](const RunContext&) {
    const float* in = x->data<float>();
    float *to = out->data<float>(), *maxima = sums->data<float>();
    float* log_sums = maxima + m.rows;
    RowLogSum(in, m.rows, m.columns, maxima, log_sums);
    ParallelFor(m.rows, 1 + 32768 / m.columns, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        for (int64_t i = r * m.columns; i < (r + 1) * m.columns; ++i) {
          // PaddlePaddle's floor, which leaves NaN.
          const float above = in[i] - maxima[r];
          to[i] = (above < -64.0f ? -64.0f : above) - log_sums[r];
        }
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindSoftmaxGrad(BindContext* context) {
  return BindGradient(context, LastAxis, RowGradient(RowSoftmaxGrad));
}

absl::StatusOr<Step> BindLogSoftmaxGrad(BindContext* context) {
  return BindGradient(context, LastAxis, RowGradient(RowLogSoftmaxGrad));
}

absl::StatusOr<Step> BindColumnSoftmax(BindContext* context) {
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  PD_ASSIGN_OR_RETURN(const ColumnShape shape, MiddleAxis(*context, *x));
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), nullptr));
  context->MayShare(x, out);
  const bool log = context->op().type == "log_softmax";
  return Step([x, out, shape, log](const RunContext&) {
    ColumnSoftmax(x->data<float>(), shape, log, out->data<float>());
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindColumnSoftmaxGrad(BindContext* context) {
  const bool log = context->op().type == "log_softmax_grad";
  return BindGradient(
      context, MiddleAxis,
      [log](const float* y, const float* dy, const ColumnShape& shape,
            float* dx) { ColumnSoftmaxGrad(y, dy, shape, log, dx); });
}

}  // namespace cpu
}  // namespace pd
