// SPDX-License-Identifier: Apache-2.0
// Ops by which clipping by norm treats gradients, on whatever layout comes:
// squared_l2_norm, and elementwise_mul with one number. Padding is zero and
// stays so.
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/selected_rows.h"
#include "libcore/ops/common/sum_of_squares.h"

namespace pd {
namespace cpu {
namespace {

constexpr int64_t kClipGrain = 16384;  // elements per thread at least

}  // namespace

absl::StatusOr<Step> BindSquaredL2Norm(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  const int64_t n = x->physical_size();
  Tensor* sums = context->Scratch(sizeof(double) * SquaresParts(n));
  return Step([=](const RunContext&) {
    *out->data<float>() = static_cast<float>(
        SumOfSquares(x->data<float>(), n, sums->data<double>()));
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindMulByNumber(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* y = context->Input("Y");
  if (x->dtype() != DType::kFloat32 || y->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  if (IsSelectedRows(x)) return Unimplemented("it has no sparse form");
  if (y->size() != 1 || y->rank() > 1 || x->rank() == 0 || x->size() == 1)
    return Unimplemented("Y is not one number");
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), x->layout()));
  context->MayShare(x, out);
  return Step([x, y, out, n = x->physical_size()](const RunContext&) {
    const float factor = *y->data<float>();
    const float* in = x->data<float>();
    float* result = out->data<float>();
    ParallelFor(n, kClipGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) result[i] = in[i] * factor;
    });
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
