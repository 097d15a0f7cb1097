// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/reduce/ranked.h"

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/axis_view.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/indices.h"

namespace pd {

absl::StatusOr<Step> BindPickedGrad(BindContext* context) {
  if (Tensor* x = context->Input("X")) context->NoBuffer(x);
  Tensor* indices = context->Input("Indices");
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* dx = context->Output("X@GRAD");
  PD_ASSIGN_OR_RETURN(
      const AxisView view,
      ViewAxis(dx->shape(), context->op().AttrOr<int32_t>("axis", -1)));
  const int64_t k = view.lines() > 0 ? dout->size() / view.lines() : 0;
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Out@GRAD", dx->dtype(), k * view.lines()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Indices", DType::kInt64, dout->size()));
  return DispatchNumeric(dx->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      PD_RETURN_IF_ERROR(CheckIndices("Indices", *indices, 0, view.n));
      std::fill_n(dx->data<T>(), dx->size(), T(0));
      for (int64_t line = 0; line < view.lines(); ++line) {
        const int64_t from =
            line / view.inner * k * view.inner + line % view.inner;
        T* to = dx->data<T>() + view.Start(line);
        for (int64_t j = 0; j < k; ++j) {
          const int64_t i = from + j * view.inner;
          to[indices->data<int64_t>()[i] * view.inner] += dout->data<T>()[i];
        }
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace pd
