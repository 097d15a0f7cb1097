// SPDX-License-Identifier: Apache-2.0
// gru_unit: one step of a GRU (gru_cell.h) for each row of Input [batch,
// 3 * hidden], which is the product with the input weights; Bias is added to
// it. Gate and ResetHiddenPrev are what its gradient needs.
#include <cstdint>
#include <cstring>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/recurrent/gru.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferGruUnit(InferContext* context) {
  const TensorMeta& x = context->Input("Input");
  const TensorMeta& h = context->Input("HiddenPrev");
  const TensorMeta& weight = context->Input("Weight");
  if (x.shape.size() != 2 || h.shape.size() != 2 || weight.shape.size() != 2 ||
      weight.shape[1] != 3 * weight.shape[0] || weight.shape[0] < 0 ||
      (h.shape[1] >= 0 && h.shape[1] != weight.shape[0]) ||
      (x.shape[1] >= 0 && x.shape[1] != weight.shape[1]))
    return InvalidArgument(
        "'Input' has shape %s, 'HiddenPrev' %s, 'Weight' %s; expected [batch, "
        "3 * n], [batch, n] and [n, 3 * n]",
        ToString(x.shape), ToString(h.shape), ToString(weight.shape));
  const int64_t batch = h.shape[0] < 0 ? x.shape[0] : h.shape[0];
  const int64_t n = weight.shape[0];
  context->SetOutput("Gate", {batch, 3 * n}, x.dtype);
  context->SetOutput("ResetHiddenPrev", {batch, n}, x.dtype);
  context->SetOutput("Hidden", {batch, n}, x.dtype);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GruUnit> ReadGruUnit(BindContext* context) {
  GruUnit u;
  u.x = context->Input("Input");
  u.h = context->Input("HiddenPrev");
  u.weight = context->Input("Weight");
  u.bias = context->Input("Bias");
  if (u.h->rank() != 2)
    return InvalidArgument("'HiddenPrev' has shape %s; expected [batch, n]",
                           ToString(u.h->shape()));
  u.batch = u.h->dim(0);
  u.cell.hidden = u.h->dim(1);
  u.cell.origin = context->Attr<bool>("origin_mode");
  PD_ASSIGN_OR_RETURN(u.cell.node, ActivationAttr(context->op(), "activation"));
  PD_ASSIGN_OR_RETURN(u.cell.gate,
                      ActivationAttr(context->op(), "gate_activation"));
  const DType dtype = u.h->dtype();
  const int64_t n = u.cell.hidden;
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Input", dtype, {u.batch, 3 * n}));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "Weight", dtype, {n, 3 * n}));
  if (u.bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", dtype, 3 * n));
  return u;
}

namespace {

absl::StatusOr<Step> BindGruUnit(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const GruUnit u, ReadGruUnit(context));
  const size_t state = u.h->bytes();
  Tensor* gate = context->Output("Gate");
  Tensor* reset = context->Output("ResetHiddenPrev");
  Tensor* hidden = context->Output("Hidden");
  if (gate == nullptr) gate = context->Scratch(3 * state);
  if (reset == nullptr) reset = context->Scratch(state);
  Tensor* scratch = context->Scratch(2 * state);
  return DispatchFloat(u.h->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* gates = gate->data<T>();
      std::copy_n(u.x->data<T>(), u.x->size(), gates);
      if (u.bias != nullptr)
        AddRowBias(u.batch, 3 * u.cell.hidden, u.bias->data<T>(), gates);
      GruStep(u.cell, u.batch, u.weight->data<T>(), u.h->data<T>(), gates,
              reset->data<T>(), hidden->data<T>(), scratch->data<T>());
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindGruUnitGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const GruUnit u, ReadGruUnit(context));
  Tensor* gate = context->Input("Gate");
  Tensor* reset = context->Input("ResetHiddenPrev");
  Tensor* dhidden = context->Input("Hidden@GRAD");
  Tensor* dx = context->Output("Input@GRAD");
  Tensor* dh = context->Output("HiddenPrev@GRAD");
  Tensor* dweight = context->Output("Weight@GRAD");
  Tensor* dbias = context->Output("Bias@GRAD");
  const DType dtype = u.h->dtype();
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Gate", dtype, u.x->size()));
  for (const char* slot : {"ResetHiddenPrev", "Hidden@GRAD"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, dtype, u.h->size()));
  Tensor* scratch = context->Scratch(8 * u.h->bytes());
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const int64_t size = u.batch * u.cell.hidden;
      T* d_ur = scratch->data<T>();
      T* d_c = d_ur + 2 * size;
      T* const to_h = dh != nullptr ? dh->data<T>() : d_c + 2 * size;
      GruStepGrad(u.cell, u.batch, u.weight->data<T>(), u.h->data<T>(),
                  gate->data<T>(), dhidden->data<T>(),
                  GruGradients<T>{d_ur, d_c, to_h, d_c + size});
      T* joined = dx != nullptr ? dx->data<T>() : d_c + 2 * size;
      JoinGates(u.cell, u.batch, d_ur, d_c, joined);
      if (dbias != nullptr)
        ColumnSums(u.batch, 3 * u.cell.hidden, joined, dbias->data<T>());
      if (dweight != nullptr)
        GruWeightGrad(u.cell, u.batch, u.h->data<T>(), reset->data<T>(), d_ur,
                      d_c, dweight->data<T>());
      return absl::OkStatus();
    });
  });
}

void AddGruUnitAttrs(OpDef* op) {
  op->Attr("activation", int32_t{2}).Attr("gate_activation", int32_t{1});
  op->Attr("origin_mode", false);
}

}  // namespace

absl::Status RegisterGruUnit(OpRegistry* registry) {
  OpDef op("gru_unit");
  op.Input("Input").Input("HiddenPrev").Input("Weight").OptionalInput("Bias");
  op.IntermediateOutput("Gate").IntermediateOutput("ResetHiddenPrev");
  op.Output("Hidden");
  AddGruUnitAttrs(&op);
  op.Infer(InferGruUnit).Reference(BindGruUnit);
  op.Grad(GradSpec{"gru_unit_grad",
                   {"Input", "HiddenPrev", "Weight", "Bias"},
                   {"Gate", "ResetHiddenPrev"},
                   {"Hidden"},
                   {"Input", "HiddenPrev", "Weight", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("gru_unit_grad");
  grad.Input("Input").Input("HiddenPrev").Input("Weight");
  grad.OptionalInput("Bias").Input("Gate").Input("ResetHiddenPrev");
  grad.OptionalInput("Hidden").Input("Hidden@GRAD");
  grad.Output("Input@GRAD").Output("HiddenPrev@GRAD").Output("Weight@GRAD");
  grad.Output("Bias@GRAD");
  AddGruUnitAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindGruUnitGrad);
  return registry->Add(std::move(grad));
}

}  // namespace pd
