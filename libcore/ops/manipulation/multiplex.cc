// SPDX-License-Identifier: Apache-2.0
// Out[i] = X[Ids[i]][i]: each row from one of several tensors.
// X[k]@GRAD[i] = Out@GRAD[i] where Ids[i] is k, else 0.
#include <cstring>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/common/indices.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferMultiplex(InferContext* context) {
  const TensorMeta& first = context->Input("X");
  const TensorMeta& ids = context->Input("Ids");
  PD_RETURN_IF_ERROR(CheckIndexType("Ids", ids.dtype));
  if (first.shape.empty()) return InvalidArgument("X has rank 0");
  for (size_t i = 1; i < context->InputCount("X"); ++i) {
    const TensorMeta& x = context->Input("X", i);
    if (x.dtype != first.dtype ||
        (!IsDynamic(x.shape) && !IsDynamic(first.shape) &&
         x.shape != first.shape))
      return InvalidArgument("X[0] is %s %s, X[%d] is %s %s; expected the same",
                             Name(first.dtype), ToString(first.shape), i,
                             Name(x.dtype), ToString(x.shape));
  }
  TensorMeta out = first;
  out.value = nullptr;
  if (!ids.shape.empty() && ids.shape[0] >= 0) {
    if (out.shape[0] >= 0 && ids.shape[0] > out.shape[0])
      return InvalidArgument("Ids has shape %s; X has %s", ToString(ids.shape),
                             ToString(out.shape));
    out.shape[0] = ids.shape[0];
  }
  context->SetOutput("Out", std::move(out));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindMultiplex(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* out = context->Output("Out");
  std::vector<Tensor*> xs;
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    xs.push_back(context->Input("X", i));
  const size_t row =
      static_cast<size_t>(NumElements(out->shape(), 1, out->rank())) *
      SizeOf(out->dtype());
  if (ids->size() != out->dim(0))
    return InvalidArgument("there are %d ids for %d rows", ids->size(),
                           out->dim(0));
  return Step([=](const RunContext&) {
    PD_RETURN_IF_ERROR(
        CheckIndices("Ids", *ids, 0, static_cast<int64_t>(xs.size())));
    for (int64_t i = 0; i < ids->size() && row > 0; ++i) {
      const size_t at = static_cast<size_t>(i) * row;
      const Tensor* x = xs[static_cast<size_t>(LabelAt(*ids, i))];
      std::memcpy(out->data<char>() + at, x->data<char>() + at, row);
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> BindMultiplexGrad(BindContext* context) {
  Tensor* ids = context->Input("Ids");
  Tensor* dout = context->Input("Out@GRAD");
  std::vector<Tensor*> dxs;
  for (size_t i = 0; i < context->OutputCount("X@GRAD"); ++i) {
    dxs.push_back(context->Output("X@GRAD", i));
    const Tensor* dx = dxs.back();
    if (i < context->InputCount("X")) context->NoBuffer(context->Input("X", i));
    if (dx != nullptr &&
        (dx->dtype() != dout->dtype() || dx->bytes() < dout->bytes()))
      return InvalidArgument("Out@GRAD has shape %s; X[%d] has %s",
                             ToString(dout->shape()), i, ToString(dx->shape()));
  }
  if (dout->rank() == 0 || ids->size() != dout->dim(0))
    return InvalidArgument("there are %d ids; Out@GRAD has shape %s",
                           ids->size(), ToString(dout->shape()));
  const size_t row =
      static_cast<size_t>(NumElements(dout->shape(), 1, dout->rank())) *
      SizeOf(dout->dtype());
  return Step([=](const RunContext&) {
    PD_RETURN_IF_ERROR(
        CheckIndices("Ids", *ids, 0, static_cast<int64_t>(dxs.size())));
    for (Tensor* dx : dxs)
      if (dx != nullptr && dx->bytes() > 0)
        std::memset(dx->raw(), 0, dx->bytes());
    for (int64_t i = 0; i < ids->size() && row > 0; ++i) {
      const size_t at = static_cast<size_t>(i) * row;
      Tensor* dx = dxs[static_cast<size_t>(LabelAt(*ids, i))];
      if (dx != nullptr)
        std::memcpy(dx->data<char>() + at, dout->data<char>() + at, row);
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::Status RegisterMultiplex(OpRegistry* registry) {
  OpDef op("multiplex");
  op.Inputs("X").Input("Ids").Output("Out");
  op.Infer(InferMultiplex).Reference(BindMultiplex);
  op.Grad(GradSpec{"multiplex_grad", {"X", "Ids"}, {}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("multiplex_grad");
  grad.Inputs("X").Input("Ids").Input("Out@GRAD").Outputs("X@GRAD");
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindMultiplexGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
