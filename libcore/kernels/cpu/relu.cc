// SPDX-License-Identifier: Apache-2.0
// relu and its gradient on whatever layout comes: element by element, padding
// included. The loops are simple enough for the compiler, which must be told
// that in and out may be the same bytes but never overlap otherwise.
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/ops/check.h"

namespace pd {
namespace cpu {
namespace {

constexpr int64_t kGrain = 16384;  // elements per thread at least

}  // namespace

absl::StatusOr<Step> BindRelu(BindContext* context) {
  Tensor* x = context->Input("X");
  if (x->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  PD_ASSIGN_OR_RETURN(Tensor * out,
                      context->Out(context->Output("Out"), x->layout()));
  context->MayShare(x, out);
  return Step([x, out, n = x->physical_size()](const RunContext&) {
    const float* in = x->data<float>();
    float* result = out->data<float>();
    ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i)
        result[i] = in[i] < 0.0f ? 0.0f : in[i];
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindReluGrad(BindContext* context) {
  Tensor* out = context->Input("Out");
  Tensor* dout = context->Input("Out@GRAD");
  if (out->dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", out->dtype(), out->shape()));
  PD_ASSIGN_OR_RETURN(dout, context->In(dout, out->layout()));
  PD_ASSIGN_OR_RETURN(Tensor * dx,
                      context->Out(context->Output("X@GRAD"), out->layout()));
  context->MayShare(dout, dx);
  return Step([out, dout, dx, n = out->physical_size()](const RunContext&) {
    const float* y = out->data<float>();
    const float* dy = dout->data<float>();
    float* result = dx->data<float>();
    ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) {
        const float g = dy[i];
        result[i] = y[i] > 0.0f ? g : 0.0f;
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
