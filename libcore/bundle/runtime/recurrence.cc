// SPDX-License-Identifier: Apache-2.0
// recurrence: one direction of a layer of a simple recurrence, an LSTM or a
// GRU. Its inputs are the gates' parts that come from the layer's input, with
// their biases, [time, batch, gates * hidden]; the weights of the state in
// panels and their biases; the state, and an LSTM's cells; how long each
// sequence of the batch is, if they differ.
//
// Steps at or after a sequence's end leave its state alone and give zeros.
// Threads share the sequences, so that none waits for another at each step.
#include <algorithm>
#include <cmath>

#include "libcore/bundle/runtime/gemm.h"
#include "libcore/bundle/runtime/kernels.h"

namespace pd_run {
namespace {

enum Input : size_t { kGates, kWeights, kBiases, kState, kMemory, kLengths };
constexpr int64_t kMostHidden = int64_t{1} << 24;

struct Recurrence {
  Cell cell = Cell::kTanh;
  bool reverse = false;
  int64_t time = 0, batch = 0, hidden = 0, gates = 1;

  int64_t width() const { return gates * hidden; }
};

bool ReadRecurrence(Call* call, Recurrence* r) {
  using Ints = RecurrenceInts;
  if (!call->ExpectFloats(kGates, 3) ||
      !call->Within(Ints::kCell, 0, kCells - 1) ||
      !call->Within(Ints::kHidden, 1, kMostHidden))
    return false;
  r->cell = static_cast<Cell>(call->Int(Ints::kCell));
  r->hidden = call->Int(Ints::kHidden);
  r->reverse = call->Int(Ints::kReverse) != 0;
  r->gates = r->cell == Cell::kLstm ? 4 : (r->cell == Cell::kGru ? 3 : 1);
  const Shape& x = call->In(kGates).shape;
  r->time = x[0];
  r->batch = x[1];
  if (x[2] == r->width()) return true;
  return call->Fail("gates of shape %s; expected %lld for each sequence",
                    ToString(x).c_str(), static_cast<long long>(r->width()));
}

bool PrepareRecurrence(Call* call) {
  Recurrence r;
  if (!ReadRecurrence(call, &r)) return false;
  const bool lstm = r.cell == Cell::kLstm;
  if (!call->Has(kBiases) || !call->Has(kState) || call->Has(kMemory) != lstm ||
      call->outputs() != (lstm ? 3u : 2u))
    return call->Fail("its state is missing");
  if (call->Has(kLengths) && (call->In(kLengths).size() != r.batch ||
                              (call->In(kLengths).dtype != DType::kInt32 &&
                               call->In(kLengths).dtype != DType::kInt64)))
    return call->Fail("input %zu is no list of %lld lengths", size_t{kLengths},
                      static_cast<long long>(r.batch));
  int64_t weights = 0, states = 0, scratch = 0;
  if (!Multiply({ColumnPanels(r.width()), kPanelColumns, r.hidden}, &weights) ||
      !Multiply({r.batch, r.hidden}, &states) ||
      !Multiply({RowPanels(r.batch), kPanelRows, r.hidden + r.width()},
                &scratch))
    return call->Fail("it cannot be so large");
  const Shape state = {3, {1, r.batch, r.hidden}};
  return call->ExpectVector(kWeights, weights) &&
         call->ExpectVector(kBiases, r.width()) &&
         call->ExpectVector(kState, states) &&
         call->ExpectVector(kMemory, states) &&
         call->Give(0, DType::kFloat32, {3, {r.time, r.batch, r.hidden}}) &&
         call->Give(1, DType::kFloat32, state) &&
         (!lstm || call->Give(2, DType::kFloat32, state)) &&
         call->NeedScratch(scratch);
}

float SigmoidGate(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// One step of one sequence: x and s are the gates' parts from the input and
// from the state, h the state, c an LSTM's cells.
void StepOf(const Recurrence& r, const float* x, const float* s, float* h,
            float* c) {
  const int64_t n = r.hidden;
  for (int64_t k = 0; k < n; ++k) {
    const auto gate = [&](int64_t i) { return x[i * n + k] + s[i * n + k]; };
    switch (r.cell) {
      case Cell::kLstm:
        c[k] = SigmoidGate(gate(1)) * c[k] +
               SigmoidGate(gate(0)) * std::tanh(gate(2));
        h[k] = SigmoidGate(gate(3)) * std::tanh(c[k]);
        break;
      case Cell::kGru: {
        const float candidate =
            std::tanh(x[2 * n + k] + SigmoidGate(gate(0)) * s[2 * n + k]);
        const float keep = SigmoidGate(gate(1));
        h[k] = (1.0f - keep) * candidate + keep * h[k];
        break;
      }
      case Cell::kRelu:
        h[k] = std::max(gate(0), 0.0f);
        break;
      case Cell::kTanh:
        h[k] = std::tanh(gate(0));
    }
  }
}

int64_t LengthOf(const Call& call, int64_t sequence, int64_t time) {
  if (!call.Has(kLengths)) return time;
  const Tensor& lengths = call.In(kLengths);
  return lengths.dtype == DType::kInt64 ? lengths.as<int64_t>()[sequence]
                                        : lengths.as<int32_t>()[sequence];
}

// All steps of sequences [begin, end).
void RunSequences(const Call& call, const Recurrence& r, int64_t begin,
                  int64_t end, float* memory) {
  const int64_t n = r.hidden, count = end - begin;
  float* const h = call.Out(1).as<float>() + begin * n;
  float* const c =
      r.cell == Cell::kLstm ? call.Out(2).as<float>() + begin * n : nullptr;
  std::copy_n(call.In(kState).as<float>() + begin * n, count * n, h);
  if (c != nullptr)
    std::copy_n(call.In(kMemory).as<float>() + begin * n, count * n, c);
  float* const from_state = memory + RowPanels(count) * kPanelRows * n;
  const PackedColumns columns(call.In(kWeights).as<float>(), n);
  Gemm gemm;
  gemm.a = memory;
  gemm.b = &columns;
  gemm.c = from_state;
  gemm.rows = count;
  gemm.columns = gemm.c_stride = r.width();
  gemm.depth = n;
  gemm.column_bias = call.In(kBiases).as<float>();
  for (int64_t step = 0; step < r.time; ++step) {
    const int64_t t = r.reverse ? r.time - 1 - step : step;
    PackLines(h, count, n, n, 1, kPanelRows, memory);
    gemm.Run(0, ColumnPanels(r.width()), 0, RowPanels(count), nullptr);
    for (int64_t b = 0; b < count; ++b) {
      const int64_t row = t * r.batch + begin + b;
      float* const out = call.Out(0).as<float>() + row * n;
      if (t >= LengthOf(call, begin + b, r.time)) {
        std::fill_n(out, n, 0.0f);
        continue;
      }
      StepOf(r, call.In(kGates).as<float>() + row * r.width(),
             from_state + b * r.width(), h + b * n,
             c == nullptr ? nullptr : c + b * n);
      std::copy_n(h + b * n, n, out);
    }
  }
}

bool RunRecurrence(Call* call) {
  Recurrence r;
  if (!ReadRecurrence(call, &r)) return false;
  call->threads()->For(RowPanels(r.batch), [&](int64_t begin, int64_t end,
                                               int thread) {
    if (begin < end)
      RunSequences(*call, r, begin * kPanelRows,
                   std::min(end * kPanelRows, r.batch), call->Scratch(thread));
  });
  return true;
}

}  // namespace

const Kernel kRecurrence = {
    "recurrence", {4, 6},
    {2, 3},       {RecurrenceInts::kAll, RecurrenceInts::kAll},
    {0, 0},       PrepareRecurrence,
    RunRecurrence};

}  // namespace pd_run
