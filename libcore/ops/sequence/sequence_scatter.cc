// SPDX-License-Identifier: Apache-2.0
// Out = X, and Out[i, Ids[j]] += Updates[j] for every j of sequence i of Ids.
// X@GRAD = Out@GRAD, Updates@GRAD[j] = Out@GRAD[i, Ids[j]].
#include "libcore/ops/sequence/sequence_scatter.h"

#include <cstdint>
#include <cstring>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/common/labels.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferScatter(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& ids = context->Input("Ids");
  const TensorMeta& updates = context->Input("Updates");
  if (x.shape.size() != 2)
    return InvalidArgument("'X' has shape %s; expected [sequences, width]",
                           ToString(x.shape));
  PD_RETURN_IF_ERROR(CheckLabelType("Ids", ids.dtype));
  PD_RETURN_IF_ERROR(KnownSequences(ids, "Ids").status());
  if (updates.dtype != x.dtype)
    return InvalidArgument("'Updates' is %s; 'X' is %s", Name(updates.dtype),
                           Name(x.dtype));
  context->Share("X", "Out");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ScatterPlaces> ReadScatterPlaces(BindContext* context,
                                                const Shape& x) {
  ScatterPlaces p;
  p.ids = context->Input("Ids");
  PD_RETURN_IF_ERROR(CheckLabelType("Ids", p.ids->dtype()));
  PD_ASSIGN_OR_RETURN(p.offsets, SequencesOf(p.ids, "Ids"));
  if (x.size() != 2 || static_cast<int64_t>(p.offsets.size()) - 1 > x[0] ||
      p.ids->size() != p.ids->dim(0))
    return InvalidArgument(
        "'Ids' has shape %s and %d sequences; 'X' has shape %s",
        ToString(p.ids->shape()), p.offsets.size() - 1, ToString(x));
  p.width = x[1];
  return p;
}

namespace {

// body(j, place in X) for every id.
template <typename Body>
void ForEachPlace(const ScatterPlaces& p, const Body& body) {
  for (size_t i = 0; i + 1 < p.offsets.size(); ++i)
    for (int64_t j = p.offsets[i]; j < p.offsets[i + 1]; ++j)
      body(j, static_cast<int64_t>(i) * p.width + LabelAt(*p.ids, j));
}

absl::StatusOr<Step> BindScatter(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* updates = context->Input("Updates");
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const ScatterPlaces p,
                      ReadScatterPlaces(context, x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Updates", x->dtype(), p.ids->size()));
  return DispatchTypes<float, double, int32_t, int64_t>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) -> absl::Status {
          PD_RETURN_IF_ERROR(CheckLabels("Ids", *p.ids, p.width, 0));
          if (out->bytes() > 0) std::memcpy(out->raw(), x->raw(), x->bytes());
          const T* u = updates->data<T>();
          T* result = out->data<T>();
          ForEachPlace(p, [&](int64_t j, int64_t at) { result[at] += u[j]; });
          return absl::OkStatus();
        });
      });
}

absl::StatusOr<Step> BindScatterGrad(BindContext* context) {
  Tensor* dout = context->Input("Out@GRAD");
  Tensor* updates = context->Input("Updates");
  Tensor* dx = context->Output("X@GRAD");
  Tensor* du = context->Output("Updates@GRAD");
  context->NoBuffer(updates);
  PD_ASSIGN_OR_RETURN(const ScatterPlaces p,
                      ReadScatterPlaces(context, dout->shape()));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "Updates", dout->dtype(), p.ids->size()));
  return DispatchTypes<float, double, int32_t, int64_t>(
      dout->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([=](const RunContext&) -> absl::Status {
          PD_RETURN_IF_ERROR(CheckLabels("Ids", *p.ids, p.width, 0));
          const T* dy = dout->data<T>();
          if (dx != nullptr && dx->bytes() > 0)
            std::memcpy(dx->raw(), dy, dout->bytes());
          if (du == nullptr) return absl::OkStatus();
          T* grad = du->data<T>();
          ForEachPlace(p, [&](int64_t j, int64_t at) { grad[j] = dy[at]; });
          return absl::OkStatus();
        });
      });
}

absl::Status InferScatterGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  context->Share("Updates", "Updates@GRAD");
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterSequenceScatter(OpRegistry* registry) {
  OpDef op("sequence_scatter");
  op.Input("X").Input("Ids").Input("Updates").Output("Out");
  op.Infer(InferScatter).Reference(BindScatter);
  op.Grad(GradSpec{"sequence_scatter_grad",
                   {"Ids", "Updates"},
                   {},
                   {"Out"},
                   {"X", "Updates"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("sequence_scatter_grad");
  grad.Input("Ids").Input("Updates").Input("Out@GRAD");
  grad.Output("X@GRAD").Output("Updates@GRAD");
  grad.Infer(InferScatterGrad).NoGrad().Reference(BindScatterGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
