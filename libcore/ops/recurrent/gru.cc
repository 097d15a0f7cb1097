// SPDX-License-Identifier: Apache-2.0
// A GRU (gru_cell.h) over sequences.
//   gru: Input [rows, 3 * hidden] is the product with the input weights
//   fusion_gru: X * WeightX takes its place
// Bias is added to it. H0 [sequences, hidden] is the state to start from, zeros
// when absent; is_reverse goes from the last row of each sequence to the first.
// fusion_gru heeds origin_mode only with use_mkldnn: PaddlePaddle has it in
// that kernel alone. BatchGate, BatchResetHiddenPrev and BatchHidden are what
// the gradient needs, in the order of SequenceBatches.
#include "libcore/ops/recurrent/gru.h"

#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/recurrent/fusion_slots.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferGru(InferContext* context) {
  const TensorMeta& x = context->Input(FusedInputSlot(context->op()));
  const TensorMeta& weight = context->Input(FusedWeightSlot(context->op()));
  PD_RETURN_IF_ERROR(KnownSequences(x, "Input").status());
  const Shape& w = weight.shape;
  if (x.shape.size() != 2 || w.size() != 2 || w[0] < 0 || w[1] != 3 * w[0])
    return InvalidArgument(
        "the input has shape %s, the weight %s; expected [rows, width] and [n, "
        "3 * n]",
        ToString(x.shape), ToString(w));
  const int64_t rows = x.shape[0], n = w[0];
  const auto set = [&](const char* slot, int64_t width) {
    context->SetOutput(slot, {rows, width}, x.dtype);
  };
  set("BatchGate", 3 * n);
  set("BatchResetHiddenPrev", n);
  set("BatchHidden", n);
  set("XX", 3 * n);
  set("BatchedInput", 3 * n);
  set("BatchedOut", n);
  context->SetOutput("ReorderedH0", {0, n}, x.dtype);
  TensorMeta hidden = x;
  hidden.value = nullptr;
  hidden.shape = {rows, n};
  context->SetOutput("Hidden", std::move(hidden));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Gru> ReadGru(BindContext* context) {
  const OpDesc& op = context->op();
  Gru g;
  g.x = context->Input(FusedInputSlot(op));
  g.weight = context->Input(FusedWeightSlot(op));
  g.h0 = context->Input("H0");
  g.bias = context->Input("Bias");
  PD_ASSIGN_OR_RETURN(const Offsets offsets,
                      SequencesOf(g.x, FusedInputSlot(op)));
  g.batches = BatchesOf(offsets, context->Attr<bool>("is_reverse"));
  g.rows = g.x->dim(0);
  g.cell.origin = context->Attr<bool>("origin_mode") &&
                  (!IsFusion(op) || op.AttrOr<bool>("use_mkldnn", false));
  PD_ASSIGN_OR_RETURN(g.cell.node, ActivationAttr(op, "activation"));
  PD_ASSIGN_OR_RETURN(g.cell.gate, ActivationAttr(op, "gate_activation"));
  if (g.weight->rank() != 2 || g.x->rank() != 2)
    return InvalidArgument(
        "the input has shape %s, the weight %s; expected "
        "matrices",
        ToString(g.x->shape()), ToString(g.weight->shape()));
  const DType dtype = g.x->dtype();
  const int64_t n = g.cell.hidden = g.weight->dim(0);
  g.gates = 3 * n;
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, FusedWeightSlot(op), dtype, {n, g.gates}));
  if (IsFusion(op)) {
    g.weight_x = context->Input("WeightX");
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "WeightX", dtype, {g.x->dim(1), g.gates}));
  } else {
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "Input", dtype, {g.rows, g.gates}));
  }
  if (g.bias != nullptr)
    PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", dtype, g.gates));
  if (g.h0 != nullptr)
    PD_RETURN_IF_ERROR(
        ExpectInput(*context, "H0", dtype, {g.batches.sequences(), n}));
  return g;
}

namespace {

template <typename T>
void StartGruState(const Gru& g, T* h) {
  const int64_t n = g.cell.hidden;
  if (g.h0 != nullptr)
    ToBatch(g.batches.order, n, g.h0->data<T>(), h);
  else
    std::fill_n(h, g.batches.sequences() * n, T(0));
}

// Gate, reset state and state of all steps, in the order of the batches.
template <typename T>
void RunGru(const Gru& g, T* gates, T* reset, T* hidden, T* scratch) {
  const int64_t n = g.cell.hidden;
  T* h = scratch;  // the state before a step
  StartGruState(g, h);
  T* products = h + g.batches.sequences() * n;
  const T* last = h;
  for (int64_t t = 0; t < g.batches.steps(); ++t) {
    const int64_t at = g.batches.start(t);
    GruStep(g.cell, g.batches.count(t), g.weight->data<T>(), last,
            gates + at * g.gates, reset + at * n, hidden + at * n, products);
    last = hidden + at * n;
  }
}

absl::StatusOr<Step> BindGru(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Gru g, ReadGru(context));
  const size_t element = SizeOf(g.x->dtype());
  const size_t state = static_cast<size_t>(g.rows * g.cell.hidden) * element;
  const auto out_or_scratch = [&](const char* slot, size_t bytes) {
    Tensor* t = context->Output(slot);
    return t != nullptr ? t : context->Scratch(bytes);
  };
  const bool fused = IsFusion(context->op());
  Tensor* gates =
      out_or_scratch(fused ? "BatchedInput" : "BatchGate", 3 * state);
  Tensor* reset = fused ? context->Scratch(state)
                        : out_or_scratch("BatchResetHiddenPrev", state);
  Tensor* batch_hidden =
      out_or_scratch(fused ? "BatchedOut" : "BatchHidden", state);
  Tensor* xx = fused ? out_or_scratch("XX", 3 * state) : g.x;
  Tensor* hidden = context->Output("Hidden");
  Tensor* scratch = context->Scratch(
      static_cast<size_t>(3 * g.batches.sequences() * g.cell.hidden) * element);
  return DispatchFloat(g.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (fused)
        Gemm<T>({g.rows, g.gates, g.x->dim(1)}, OneGemm(), T(1), g.x->data<T>(),
                g.weight_x->data<T>(), xx->data<T>());
      ToBatch(g.batches.rows, g.gates, xx->data<T>(), gates->data<T>());
      if (g.bias != nullptr)
        AddRowBias(g.rows, g.gates, g.bias->data<T>(), gates->data<T>());
      RunGru(g, gates->data<T>(), reset->data<T>(), batch_hidden->data<T>(),
             scratch->data<T>());
      FromBatch(g.batches.rows, g.cell.hidden, batch_hidden->data<T>(),
                hidden->data<T>());
      return absl::OkStatus();
    });
  });
}

// Where a gradient goes; null: nobody wants it.
template <typename T>
struct GruGrads {
  T *x, *h0, *weight, *bias;
};

// 9 * rows * hidden + 2 * sequences * hidden elements of scratch.
template <typename T>
void RunGruGrad(const Gru& g, const T* gates, const T* reset, const T* hidden,
                const T* dhidden, T* scratch, const GruGrads<T>& to) {
  const int64_t n = g.cell.hidden, size = g.rows * n;
  T* h0 = scratch;
  T* dlast = h0 + g.batches.sequences() * n;  // of the state before a step
  T* dnext = dlast + g.batches.sequences() * n;
  T* before = dnext + size;
  T* d_ur = before + size;
  T* d_c = d_ur + 2 * size;
  T* batched = d_c + size;
  T* products = batched + 3 * size;
  StartGruState(g, h0);
  ToBatch(g.batches.rows, n, dhidden, dnext);
  std::fill_n(dlast, g.batches.sequences() * n, T(0));
  for (int64_t t = g.batches.steps(); t-- > 0;) {
    const int64_t at = g.batches.start(t), m = g.batches.count(t);
    const T* h = t == 0 ? h0 : hidden + g.batches.start(t - 1) * n;
    std::copy_n(h, m * n, before + at * n);
    for (int64_t i = 0; i < m * n; ++i) dnext[at * n + i] += dlast[i];
    GruStepGrad(
        g.cell, m, g.weight->data<T>(), h, gates + at * g.gates, dnext + at * n,
        GruGradients<T>{d_ur + at * 2 * n, d_c + at * n, dlast, products});
  }
  JoinGates(g.cell, g.rows, d_ur, d_c, batched);
  if (to.x != nullptr) FromBatch(g.batches.rows, g.gates, batched, to.x);
  if (to.h0 != nullptr) FromBatch(g.batches.order, n, dlast, to.h0);
  if (to.bias != nullptr) ColumnSums(g.rows, g.gates, batched, to.bias);
  if (to.weight != nullptr)
    GruWeightGrad(g.cell, g.rows, before, reset, d_ur, d_c, to.weight);
}

absl::StatusOr<Step> BindGruGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Gru g, ReadGru(context));
  const DType dtype = g.x->dtype();
  const int64_t n = g.cell.hidden, size = g.rows * n;
  Tensor* gates = context->Input("BatchGate");
  Tensor* reset = context->Input("BatchResetHiddenPrev");
  Tensor* hidden = context->Input("BatchHidden");
  Tensor* dhidden = context->Input("Hidden@GRAD");
  PD_RETURN_IF_ERROR(ExpectElements(*context, "BatchGate", dtype, 3 * size));
  for (const char* slot :
       {"BatchResetHiddenPrev", "BatchHidden", "Hidden@GRAD"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, dtype, size));
  Tensor* scratch = context->Scratch(
      static_cast<size_t>(9 * size + 2 * g.batches.sequences() * n) *
      SizeOf(dtype));
  Tensor* dx = context->Output("Input@GRAD");
  Tensor* dh0 = g.h0 != nullptr ? context->Output("H0@GRAD") : nullptr;
  Tensor* dweight = context->Output("Weight@GRAD");
  Tensor* dbias = g.bias != nullptr ? context->Output("Bias@GRAD") : nullptr;
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const auto data = [](Tensor* t) {
        return t != nullptr ? t->data<T>() : nullptr;
      };
      RunGruGrad<T>(g, gates->data<T>(), reset->data<T>(), hidden->data<T>(),
                    dhidden->data<T>(), scratch->data<T>(),
                    {data(dx), data(dh0), data(dweight), data(dbias)});
      return absl::OkStatus();
    });
  });
}

void AddGruAttrs(OpDef* op) {
  op->Attr("activation", std::string("tanh"));
  op->Attr("gate_activation", std::string("sigmoid"));
  op->Attr("is_reverse", false).Attr("origin_mode", false);
}

absl::Status AddGruFused(OpRegistry* registry) {
  OpDef op("fusion_gru");
  op.Input("X").OptionalInput("H0").Input("WeightX").Input("WeightH");
  op.OptionalInput("Bias").Output("Hidden");
  for (const char* slot : {"ReorderedH0", "XX", "BatchedInput", "BatchedOut"})
    op.IntermediateOutput(slot);
  AddGruAttrs(&op);
  op.Infer(InferGru).NoGrad().Reference(BindGru);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterGru(OpRegistry* registry) {
  OpDef op("gru");
  op.Input("Input").OptionalInput("H0").Input("Weight").OptionalInput("Bias");
  op.Output("Hidden");
  OpDef grad("gru_grad");
  grad.Input("Input").OptionalInput("H0").Input("Weight");
  grad.OptionalInput("Bias").OptionalInput("Hidden").Input("Hidden@GRAD");
  for (const char* slot :
       {"BatchGate", "BatchResetHiddenPrev", "BatchHidden"}) {
    op.IntermediateOutput(slot);
    grad.Input(slot);
  }
  AddGruAttrs(&op);
  AddGruAttrs(&grad);
  op.Infer(InferGru).Reference(BindGru);
  op.Grad(
      GradSpec{"gru_grad",
               {"Input", "H0", "Weight", "Bias"},
               {"BatchGate", "BatchResetHiddenPrev", "BatchHidden", "Hidden"},
               {"Hidden"},
               {"Input", "H0", "Weight", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  grad.Output("Input@GRAD").Output("H0@GRAD").Output("Weight@GRAD");
  grad.Output("Bias@GRAD").Infer(InferGradLikeInput).NoGrad();
  grad.Reference(BindGruGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  return AddGruFused(registry);
}

}  // namespace pd
