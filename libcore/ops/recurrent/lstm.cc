// SPDX-License-Identifier: Apache-2.0
// An LSTM (lstm_cell.h) over sequences.
//   lstm: Input [rows, 4 * hidden] is the product with the input weights
//   fusion_lstm: X * WeightX takes its place
// Weight is [hidden, 4 * hidden]. Bias has 4 * hidden elements and, with
// use_peepholes, 3 * hidden more, the peepholes. H0 and C0 [sequences, hidden]
// are the state to start from, zeros when absent; is_reverse goes from the last
// row of each sequence to the first. BatchGate and BatchCellPreAct (the active
// cells) are what the gradient needs, in the order of SequenceBatches. As in
// PaddlePaddle no gradient flows back from Cell, only from Hidden.
#include "libcore/ops/recurrent/lstm.h"

#include <cstdint>
#include <string>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/recurrent/fusion_slots.h"
#include "libcore/ops/recurrent/gru_cell.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status InferLstm(InferContext* context) {
  const TensorMeta& x = context->Input(FusedInputSlot(context->op()));
  const Shape& w = context->Input(FusedWeightSlot(context->op())).shape;
  PD_RETURN_IF_ERROR(KnownSequences(x, "Input").status());
  if (x.shape.size() != 2 || w.size() != 2 || w[0] < 0 || w[1] != 4 * w[0])
    return InvalidArgument(
        "the input has shape %s, the weight %s; expected [rows, width] and [n, "
        "4 * n]",
        ToString(x.shape), ToString(w));
  const int64_t rows = x.shape[0], n = w[0];
  const auto set = [&](const char* slot, int64_t width) {
    context->SetOutput(slot, {rows, width}, x.dtype);
  };
  set("BatchGate", 4 * n);
  set("BatchCellPreAct", n);
  set("XX", 4 * n);
  set("BatchedInput", 4 * n);
  set("BatchedHidden", n);
  set("BatchedCell", n);
  for (const char* slot : {"ReorderedH0", "ReorderedC0", "CheckedCell"})
    context->SetOutput(slot, {0, n}, x.dtype);
  TensorMeta hidden = x;
  hidden.value = nullptr;
  hidden.shape = {rows, n};
  context->SetOutput("Cell", hidden);
  context->SetOutput("Hidden", std::move(hidden));
  return absl::OkStatus();
}

absl::Status CheckLstm(BindContext* context, const Lstm& l) {
  const OpDesc& op = context->op();
  const DType dtype = l.x->dtype();
  const int64_t n = l.cell.hidden;
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, FusedWeightSlot(op), dtype, {n, l.gates}));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "Bias", dtype,
                                    l.gates + (l.peepholes ? 3 * n : 0)));
  for (const char* slot : {"H0", "C0"})
    PD_RETURN_IF_ERROR(
        ExpectOptionalInput(*context, slot, dtype, {l.batches.sequences(), n}));
  return IsFusion(op)
             ? ExpectInput(*context, "WeightX", dtype, {l.x->dim(1), l.gates})
             : ExpectInput(*context, "Input", dtype, {l.rows, l.gates});
}

}  // namespace

absl::StatusOr<Lstm> ReadLstm(BindContext* context) {
  const OpDesc& op = context->op();
  Lstm l;
  l.x = context->Input(FusedInputSlot(op));
  l.weight = context->Input(FusedWeightSlot(op));
  l.h0 = context->Input("H0");
  l.c0 = context->Input("C0");
  l.bias = context->Input("Bias");
  if (IsFusion(op)) l.weight_x = context->Input("WeightX");
  PD_ASSIGN_OR_RETURN(const Offsets offsets,
                      SequencesOf(l.x, FusedInputSlot(op)));
  l.batches = BatchesOf(offsets, context->Attr<bool>("is_reverse"));
  l.rows = l.x->dim(0);
  l.peepholes = context->Attr<bool>("use_peepholes");
  PD_ASSIGN_OR_RETURN(l.cell.gate, ActivationAttr(op, "gate_activation"));
  PD_ASSIGN_OR_RETURN(l.cell.cell, ActivationAttr(op, "cell_activation"));
  PD_ASSIGN_OR_RETURN(l.cell.node, ActivationAttr(op, "candidate_activation"));
  if (l.weight->rank() != 2 || l.x->rank() != 2)
    return InvalidArgument(
        "the input has shape %s, the weight %s; expected "
        "matrices",
        ToString(l.x->shape()), ToString(l.weight->shape()));
  l.cell.hidden = l.weight->dim(0);
  l.gates = 4 * l.cell.hidden;
  PD_RETURN_IF_ERROR(CheckLstm(context, l));
  return l;
}

namespace {

template <typename T>
void StartLstmState(const Lstm& l, const Tensor* from, T* state) {
  const int64_t n = l.cell.hidden;
  if (from != nullptr)
    ToBatch(l.batches.order, n, from->data<T>(), state);
  else
    std::fill_n(state, l.batches.sequences() * n, T(0));
}

// The tensors of a run in the order of the batches.
template <typename T>
struct Batched {
  T *gates, *active, *hidden, *cell;
};

// `scratch`: 6 * sequences * hidden elements.
template <typename T>
void RunLstm(const Lstm& l, const Batched<T>& b, T* scratch) {
  const int64_t n = l.cell.hidden, state = l.batches.sequences() * n;
  T* h = scratch;
  T* c = h + state;
  T* products = c + state;
  StartLstmState(l, l.h0, h);
  StartLstmState(l, l.c0, c);
  AddRowBias(l.rows, l.gates, l.bias->data<T>(), b.gates);
  for (int64_t t = 0; t < l.batches.steps(); ++t) {
    const int64_t at = l.batches.start(t), m = l.batches.count(t);
    Gemm<T>({m, l.gates, n}, OneGemm(), T(1), h, l.weight->data<T>(), products);
    for (int64_t r = 0; r < m; ++r) {
      const int64_t row = at + r;
      T* gates = b.gates + row * l.gates;
      for (int64_t k = 0; k < l.gates; ++k)
        gates[k] += products[r * l.gates + k];
      LstmStep(l.cell, l.Peepholes<T>(), c + r * n, gates, b.cell + row * n,
               b.active + row * n, b.hidden + row * n);
    }
    h = b.hidden + at * n;
    c = b.cell + at * n;
  }
}

absl::StatusOr<Step> BindLstm(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Lstm l, ReadLstm(context));
  const bool fused = IsFusion(context->op());
  const size_t element = SizeOf(l.x->dtype());
  const size_t state = static_cast<size_t>(l.rows * l.cell.hidden) * element;
  const auto out_or_scratch = [&](const char* slot, size_t bytes) {
    Tensor* t = context->Output(slot);
    return t != nullptr ? t : context->Scratch(bytes);
  };
  Tensor* gates =
      out_or_scratch(fused ? "BatchedInput" : "BatchGate", 4 * state);
  Tensor* active = out_or_scratch("BatchCellPreAct", state);
  Tensor* batch_hidden = out_or_scratch("BatchedHidden", state);
  Tensor* batch_cell = out_or_scratch("BatchedCell", state);
  Tensor* xx = fused ? out_or_scratch("XX", 4 * state) : l.x;
  Tensor* hidden = context->Output("Hidden");
  Tensor* cell = context->Output("Cell");
  Tensor* scratch = context->Scratch(
      static_cast<size_t>(6 * l.batches.sequences() * l.cell.hidden) * element);
  return DispatchFloat(l.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      if (fused)
        Gemm<T>({l.rows, l.gates, l.x->dim(1)}, OneGemm(), T(1), l.x->data<T>(),
                l.weight_x->data<T>(), xx->data<T>());
      ToBatch(l.batches.rows, l.gates, xx->data<T>(), gates->data<T>());
      RunLstm<T>(l,
                 {gates->data<T>(), active->data<T>(), batch_hidden->data<T>(),
                  batch_cell->data<T>()},
                 scratch->data<T>());
      const int64_t n = l.cell.hidden;
      FromBatch(l.batches.rows, n, batch_hidden->data<T>(), hidden->data<T>());
      if (cell != nullptr)
        FromBatch(l.batches.rows, n, batch_cell->data<T>(), cell->data<T>());
      return absl::OkStatus();
    });
  });
}

// Where a gradient goes; null: nobody wants it.
template <typename T>
struct LstmGrads {
  T *x, *h0, *c0, *weight, *bias;
};

// `scratch`: 8 * rows * hidden + 5 * sequences * hidden + 3 * hidden elements.
// The gates and the active cells of `b` are given; the rest is filled in here.
template <typename T>
void RunLstmGrad(const Lstm& l, Batched<T> b, const Tensor& hidden,
                 const Tensor& cell, const Tensor& dhidden, T* scratch,
                 const LstmGrads<T>& to) {
  const int64_t n = l.cell.hidden, size = l.rows * n;
  const int64_t state = l.batches.sequences() * n;
  T* h0 = scratch;
  T* c0 = h0 + state;
  T* dc = c0 + state;
  T* dlast = dc + state;
  T* peepholes = dlast + state;  // as many as a state, or 3 * n
  b.hidden = peepholes + std::max(state, 3 * n);
  b.cell = b.hidden + size;
  T* before = b.cell + size;
  T* dh = before + size;
  T* dgates = dh + size;
  StartLstmState(l, l.h0, h0);
  StartLstmState(l, l.c0, c0);
  ToBatch(l.batches.rows, n, hidden.data<T>(), b.hidden);
  ToBatch(l.batches.rows, n, cell.data<T>(), b.cell);
  ToBatch(l.batches.rows, n, dhidden.data<T>(), dh);
  std::fill_n(dc, state, T(0));
  std::fill_n(dlast, state, T(0));
  std::fill_n(peepholes, 3 * n, T(0));
  for (int64_t t = l.batches.steps(); t-- > 0;) {
    const int64_t at = l.batches.start(t), m = l.batches.count(t);
    const int64_t last = t == 0 ? 0 : l.batches.start(t - 1) * n;
    const T* h = t == 0 ? h0 : b.hidden + last;
    const T* c = t == 0 ? c0 : b.cell + last;
    std::copy_n(h, m * n, before + at * n);
    for (int64_t r = 0; r < m; ++r) {
      const int64_t row = (at + r) * n;
      for (int64_t k = 0; k < n; ++k) dh[row + k] += dlast[r * n + k];
      const LstmValues<T> values = {c + r * n, b.gates + 4 * row, b.cell + row,
                                    b.active + row};
      LstmStepGrad(l.cell, l.Peepholes<T>(), values, dh + row,
                   LstmGradients<T>{dc + r * n, dgates + 4 * row,
                                    l.peepholes ? peepholes : nullptr});
    }
    Gemm<T>({m, n, l.gates, false, true}, OneGemm(), T(1),
            dgates + at * l.gates, l.weight->data<T>(), dlast);
  }
  if (to.x != nullptr) FromBatch(l.batches.rows, l.gates, dgates, to.x);
  if (to.h0 != nullptr) FromBatch(l.batches.order, n, dlast, to.h0);
  if (to.c0 != nullptr) FromBatch(l.batches.order, n, dc, to.c0);
  if (to.weight != nullptr)
    Gemm<T>({n, l.gates, l.rows, true, false}, OneGemm(), T(1), before, dgates,
            to.weight);
  if (to.bias == nullptr) return;
  ColumnSums(l.rows, l.gates, dgates, to.bias);
  if (l.peepholes) std::copy_n(peepholes, 3 * n, to.bias + l.gates);
}

absl::StatusOr<Step> BindLstmGrad(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Lstm l, ReadLstm(context));
  const DType dtype = l.x->dtype();
  const int64_t n = l.cell.hidden, size = l.rows * n;
  Tensor* gates = context->Input("BatchGate");
  Tensor* active = context->Input("BatchCellPreAct");
  Tensor* hidden = context->Input("Hidden");
  Tensor* cell = context->Input("Cell");
  Tensor* dhidden = context->Input("Hidden@GRAD");
  PD_RETURN_IF_ERROR(ExpectElements(*context, "BatchGate", dtype, 4 * size));
  for (const char* slot : {"BatchCellPreAct", "Hidden", "Cell", "Hidden@GRAD"})
    PD_RETURN_IF_ERROR(ExpectElements(*context, slot, dtype, size));
  Tensor* scratch = context->Scratch(
      static_cast<size_t>(8 * size + 5 * l.batches.sequences() * n + 3 * n) *
      SizeOf(dtype));
  Tensor* dx = context->Output("Input@GRAD");
  Tensor* dh0 = l.h0 != nullptr ? context->Output("H0@GRAD") : nullptr;
  Tensor* dc0 = l.c0 != nullptr ? context->Output("C0@GRAD") : nullptr;
  Tensor* dweight = context->Output("Weight@GRAD");
  Tensor* dbias = context->Output("Bias@GRAD");
  return DispatchFloat(dtype, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      const auto data = [](Tensor* t) {
        return t != nullptr ? t->data<T>() : nullptr;
      };
      RunLstmGrad<T>(
          l, {gates->data<T>(), active->data<T>(), nullptr, nullptr}, *hidden,
          *cell, *dhidden, scratch->data<T>(),
          {data(dx), data(dh0), data(dc0), data(dweight), data(dbias)});
      return absl::OkStatus();
    });
  });
}

void AddLstmAttrs(OpDef* op) {
  op->Attr("use_peepholes", true).Attr("is_reverse", false);
  op->Attr("gate_activation", std::string("sigmoid"));
  op->Attr("cell_activation", std::string("tanh"));
  op->Attr("candidate_activation", std::string("tanh"));
}

absl::Status AddLstmFused(OpRegistry* registry) {
  OpDef op("fusion_lstm");
  op.Input("X").Input("WeightX").Input("WeightH").Input("Bias");
  op.OptionalInput("H0").OptionalInput("C0").Output("Hidden").Output("Cell");
  for (const char* slot : {"XX", "BatchedInput", "BatchedHidden", "BatchedCell",
                           "ReorderedH0", "ReorderedC0", "CheckedCell"})
    op.IntermediateOutput(slot);
  AddLstmAttrs(&op);
  op.Infer(InferLstm).NoGrad().Reference(BindLstm);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterLstm(OpRegistry* registry) {
  OpDef op("lstm");
  op.Input("Input").OptionalInput("H0").OptionalInput("C0").Input("Weight");
  op.Input("Bias").Output("Hidden").Output("Cell");
  op.IntermediateOutput("BatchGate").IntermediateOutput("BatchCellPreAct");
  AddLstmAttrs(&op);
  op.Attr("is_test", false).Infer(InferLstm).Reference(BindLstm);
  op.Grad(GradSpec{"lstm_grad",
                   {"Input", "H0", "C0", "Weight", "Bias"},
                   {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"},
                   {"Hidden"},
                   {"Input", "H0", "C0", "Weight", "Bias"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("lstm_grad");
  grad.Input("Input").OptionalInput("H0").OptionalInput("C0").Input("Weight");
  grad.Input("Bias").Input("Hidden").Input("Cell").Input("BatchGate");
  grad.Input("BatchCellPreAct").Input("Hidden@GRAD");
  for (const char* slot :
       {"Input@GRAD", "H0@GRAD", "C0@GRAD", "Weight@GRAD", "Bias@GRAD"})
    grad.Output(slot);
  AddLstmAttrs(&grad);
  grad.Infer(InferGradLikeInput).NoGrad().Reference(BindLstmGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));
  return AddLstmFused(registry);
}

}  // namespace pd
