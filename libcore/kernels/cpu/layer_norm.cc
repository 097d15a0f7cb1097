// SPDX-License-Identifier: Apache-2.0
// layer_norm and its gradient, a row at a time.
#include <algorithm>
#include <cmath>

#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/kernels/cpu/bindings.h"
#include "libcore/kernels/cpu/layer_norm_rows.h"
#include "libcore/ops/common/check.h"

namespace pd {
namespace cpu {
namespace {

absl::StatusOr<NormRows> ReadRows(BindContext* context) {
  const Tensor& x = *context->Input("X");
  if (x.dtype() != DType::kFloat32)
    return Unimplemented("it is for float32 only");
  const int32_t axis = context->Attr<int32_t>("begin_norm_axis");
  if (axis < 1 || axis >= static_cast<int32_t>(x.rank()) || x.size() == 0)
    return Unimplemented("there are no rows");
  NormRows rows;
  rows.epsilon = context->Attr<float>("epsilon");
  rows.rows = NumElements(x.shape(), 0, static_cast<size_t>(axis));
  rows.columns = NumElements(x.shape(), static_cast<size_t>(axis), x.rank());
  for (const char* slot : {"Scale", "Bias"})
    if (context->Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(
          ExpectElements(*context, slot, x.dtype(), rows.columns));
  return rows;
}

float* DataOrNull(Tensor* tensor) {
  return tensor != nullptr ? tensor->data<float>() : nullptr;
}

}  // namespace

absl::StatusOr<Step> BindLayerNorm(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const NormRows rows, ReadRows(context));
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * y, context->Out(context->Output("Y"), nullptr));
  Tensor* scale = context->Input("Scale");
  Tensor* bias = context->Input("Bias");
  Tensor* mean = context->Output("Mean");
  Tensor* variance = context->Output("Variance");
  context->MayShare(x, y);
  return Step([=](const RunContext&) {
    LayerNormRows(rows,
                  {x->data<float>(), DataOrNull(scale), DataOrNull(bias),
                   y->data<float>(), DataOrNull(mean), DataOrNull(variance)});
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindLayerNormGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const NormRows rows, ReadRows(context));
  for (const char* slot : {"Mean", "Variance"})
    PD_RETURN_IF_ERROR(
        ExpectElements(*context, slot, DType::kFloat32, rows.rows));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Y@GRAD", DType::kFloat32,
                                 context->Input("X")->shape()));
  if (context->Input("Bias") != nullptr)
    context->NoBuffer(context->Input("Bias"));
  PD_ASSIGN_OR_RETURN(Tensor * x, context->In(context->Input("X"), nullptr));
  PD_ASSIGN_OR_RETURN(Tensor * dy,
                      context->In(context->Input("Y@GRAD"), nullptr));
  Tensor* dx = context->Output("X@GRAD");
  if (dx != nullptr) {
    PD_ASSIGN_OR_RETURN(dx, context->Out(dx, nullptr));
  }
  Tensor* scale = context->Input("Scale");
  Tensor* mean = context->Input("Mean");
  Tensor* variance = context->Input("Variance");
  Tensor* dscale = context->Output("Scale@GRAD");
  Tensor* dbias = context->Output("Bias@GRAD");
  if (dx != nullptr) context->MayShare(dy, dx);
  Tensor* sums = context->Scratch(NormGradScratch(rows));
  return Step([=](const RunContext&) {
    LayerNormGradRows(rows,
                      {x->data<float>(), dy->data<float>(), DataOrNull(scale),
                       mean->data<float>(), variance->data<float>(),
                       DataOrNull(dx), DataOrNull(dscale), DataOrNull(dbias)},
                      sums->data<float>());
    return absl::OkStatus();
  });
}

}  // namespace cpu
}  // namespace pd
