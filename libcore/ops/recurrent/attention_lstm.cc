// SPDX-License-Identifier: Apache-2.0
// attention_lstm: an LSTM whose input at each step is a mean of its sequence's
// rows, weighted by the cells. For the sequence X [n, m] and the last h, c:
//   score = relu(X * A_x + AttentionBias + c * A_c), [n]
//   score = relu(score * AttentionScalar + AttentionScalarBias), where given
//   x = softmax(score) * X
//   f, i, o, a = h * W_h + x * W_x + LSTMBias: gate, gate, gate, candidate
//   c' = f * c + i * a, h' = o * cell(c')
// AttentionWeight is A_x [m, 1] over A_c [d, 1]; LSTMWeight is W_h [d, 4 * d]
// over W_x [m, 4 * d]. There is no gradient.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/recurrent/rnn_activation.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/sequence/sequence.h"

namespace pd {
namespace {

absl::Status InferAttentionLstm(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const Shape& w = context->Input("LSTMWeight").shape;
  PD_RETURN_IF_ERROR(KnownSequences(x, "X").status());
  if (x.shape.size() != 2 || w.size() != 2)
    return InvalidArgument(
        "'X' has shape %s, 'LSTMWeight' %s; expected matrices",
        ToString(x.shape), ToString(w));
  const int64_t d = w[1] < 0 ? -1 : w[1] / 4;
  TensorMeta out = x;
  out.value = nullptr;
  out.shape = {x.shape[0], d};
  context->SetOutput("Hidden", out);
  context->SetOutput("Cell", std::move(out));
  context->SetOutput("AttentionedX", {x.shape[0], 1}, x.dtype);
  context->SetOutput("AttentionFCOut", {x.shape[0], 1}, x.dtype);
  context->SetOutput("LSTMX", {1, x.shape[1]}, x.dtype);
  context->SetOutput("LSTMOUT", {1, w[1]}, x.dtype);
  return absl::OkStatus();
}

struct AttentionLstm {
  Offsets offsets;
  int64_t m = 0, d = 0;
  RnnActivation gate = RnnActivation::kSigmoid;
  RnnActivation cell = RnnActivation::kTanh, node = RnnActivation::kTanh;
  Tensor *x = nullptr, *c0 = nullptr, *h0 = nullptr;
  Tensor *attention = nullptr, *bias = nullptr;
  Tensor *scalar = nullptr, *scalar_bias = nullptr;
  Tensor *weight = nullptr, *lstm_bias = nullptr;
  Tensor *hidden = nullptr, *cells = nullptr;
};

absl::StatusOr<AttentionLstm> ReadAttentionLstm(BindContext* context) {
  AttentionLstm a;
  a.x = context->Input("X");
  a.c0 = context->Input("C0");
  a.h0 = context->Input("H0");
  a.attention = context->Input("AttentionWeight");
  a.bias = context->Input("AttentionBias");
  a.scalar = context->Input("AttentionScalar");
  a.scalar_bias = context->Input("AttentionScalarBias");
  a.weight = context->Input("LSTMWeight");
  a.lstm_bias = context->Input("LSTMBias");
  a.hidden = context->Output("Hidden");
  a.cells = context->Output("Cell");
  const OpDesc& op = context->op();
  PD_ASSIGN_OR_RETURN(a.gate, ActivationAttr(op, "gate_activation"));
  PD_ASSIGN_OR_RETURN(a.cell, ActivationAttr(op, "cell_activation"));
  PD_ASSIGN_OR_RETURN(a.node, ActivationAttr(op, "candidate_activation"));
  PD_ASSIGN_OR_RETURN(a.offsets, SequencesOf(a.x, "X"));
  const DType dtype = a.x->dtype();
  const int64_t count = static_cast<int64_t>(a.offsets.size()) - 1;
  a.m = a.x->dim(1);
  a.d = a.weight->dim(1) / 4;
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "LSTMWeight", dtype, {a.d + a.m, 4 * a.d}));
  PD_RETURN_IF_ERROR(ExpectElements(*context, "LSTMBias", dtype, 4 * a.d));
  PD_RETURN_IF_ERROR(
      ExpectElements(*context, "AttentionWeight", dtype, a.m + a.d));
  PD_RETURN_IF_ERROR(ExpectInput(*context, "C0", dtype, {count, a.d}));
  PD_RETURN_IF_ERROR(ExpectOptionalInput(*context, "H0", dtype, {count, a.d}));
  for (const char* slot :
       {"AttentionBias", "AttentionScalar", "AttentionScalarBias"})
    if (context->Input(slot) != nullptr)
      PD_RETURN_IF_ERROR(ExpectElements(*context, slot, dtype, 1));
  return a;
}

template <typename T>
T Dot(const T* a, const T* b, int64_t n) {
  T sum = T(0);
  for (int64_t k = 0; k < n; ++k) sum += a[k] * b[k];
  return sum;
}

// The weights of a sequence's rows, from their scores without the cells.
template <typename T>
void Attend(const AttentionLstm& a, const std::vector<T>& scores, T from_cells,
            std::vector<T>* weights) {
  const auto relu = [](T x) { return std::max(x, T(0)); };
  const T shift = a.scalar_bias != nullptr ? a.scalar_bias->data<T>()[0] : T(0);
  T max = T(0), sum = T(0);  // no score is below 0
  for (size_t r = 0; r < scores.size(); ++r) {
    T score = relu(scores[r] + from_cells);
    if (a.scalar != nullptr)
      score = relu(score * a.scalar->data<T>()[0] + shift);
    (*weights)[r] = score;
    max = std::max(max, score);
  }
  for (T& w : *weights) sum += w = std::exp(w - max);
  for (T& w : *weights) w /= sum;
}

// One step: x is the mean, gates scratch of 4 * d.
template <typename T>
void LstmOfMean(const AttentionLstm& a, const T* x, const T* h, const T* c,
                T* gates, T* next_h, T* next_c) {
  const int64_t d = a.d;
  const T* weight = a.weight->data<T>();
  std::copy_n(a.lstm_bias->data<T>(), 4 * d, gates);
  const auto add = [&](const T* from, int64_t n, const T* rows) {
    for (int64_t k = 0; k < n; ++k)
      for (int64_t j = 0; j < 4 * d; ++j)
        gates[j] += from[k] * rows[k * 4 * d + j];
  };
  if (h != nullptr) add(h, d, weight);
  add(x, a.m, weight + d * 4 * d);
  for (int64_t k = 0; k < d; ++k) {
    const T f = Activate(a.gate, gates[k]);
    const T i = Activate(a.gate, gates[d + k]);
    const T o = Activate(a.gate, gates[2 * d + k]);
    next_c[k] = f * c[k] + i * Activate(a.node, gates[3 * d + k]);
    next_h[k] = o * Activate(a.cell, next_c[k]);
  }
}

template <typename T>
void RunSequence(const AttentionLstm& a, size_t which) {
  const int64_t begin = a.offsets[which], n = a.offsets[which + 1] - begin;
  const int64_t at = static_cast<int64_t>(which) * a.d;
  const T* x = a.x->data<T>() + begin * a.m;
  const T* attention = a.attention->data<T>();
  const T* c = a.c0->data<T>() + at;
  const T* h = a.h0 != nullptr ? a.h0->data<T>() + at : nullptr;
  const T bias = a.bias != nullptr ? a.bias->data<T>()[0] : T(0);
  std::vector<T> scores, weights(static_cast<size_t>(n));
  for (int64_t r = 0; r < n; ++r)
    scores.push_back(Dot(x + r * a.m, attention, a.m) + bias);
  std::vector<T> mean(static_cast<size_t>(a.m));
  std::vector<T> gates(static_cast<size_t>(4 * a.d));
  for (int64_t t = 0; t < n; ++t) {
    Attend(a, scores, Dot(c, attention + a.m, a.d), &weights);
    std::fill(mean.begin(), mean.end(), T(0));
    for (int64_t r = 0; r < n; ++r)
      for (int64_t k = 0; k < a.m; ++k)
        mean[static_cast<size_t>(k)] +=
            weights[static_cast<size_t>(r)] * x[r * a.m + k];
    T* next_h = a.hidden->data<T>() + (begin + t) * a.d;
    T* next_c = a.cells->data<T>() + (begin + t) * a.d;
    LstmOfMean(a, mean.data(), h, c, gates.data(), next_h, next_c);
    h = next_h;
    c = next_c;
  }
}

absl::StatusOr<Step> BindAttentionLstm(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const AttentionLstm a, ReadAttentionLstm(context));
  return DispatchFloat(a.x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([a](const RunContext&) {
      for (size_t i = 0; i + 1 < a.offsets.size(); ++i) RunSequence<T>(a, i);
      return absl::OkStatus();
    });
  });
}

}  // namespace

absl::Status RegisterAttentionLstm(OpRegistry* registry) {
  OpDef op("attention_lstm");
  op.Input("X").Input("C0").OptionalInput("H0").Input("AttentionWeight");
  op.OptionalInput("AttentionBias").OptionalInput("AttentionScalar");
  op.OptionalInput("AttentionScalarBias").Input("LSTMWeight");
  op.Input("LSTMBias").Output("Hidden").Output("Cell");
  for (const char* slot :
       {"AttentionedX", "AttentionFCOut", "LSTMX", "LSTMOUT"})
    op.IntermediateOutput(slot);
  op.Attr("gate_activation", std::string("sigmoid"));
  op.Attr("cell_activation", std::string("tanh"));
  op.Attr("candidate_activation", std::string("tanh"));
  op.Infer(InferAttentionLstm).NoGrad().Reference(BindAttentionLstm);
  return registry->Add(std::move(op));
}

}  // namespace pd
