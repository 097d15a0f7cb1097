// SPDX-License-Identifier: Apache-2.0
// The recurrences of paddle.nn, op `rnn`. For each layer and direction the
// inputs of all steps go through one product, and a node `recurrence` does what
// depends on the step before.
#include "absl/strings/str_cat.h"
#include "libcore/bundle/lowerings.h"
#include "libcore/bundle/runtime/bundle_format.h"
#include "libcore/ops/recurrent/rnn_dims.h"

namespace pd {
namespace {

using pd_run::kNoValue;

// A rnn op whose weights have been found to fit.
struct Recurrent {
  RnnDims dims;
  pd_run::Cell cell = pd_run::Cell::kTanh;
  std::vector<const Array*> weights;
  uint32_t lengths = kNoValue;
  BundleOp::Inputs states;
};

bool ReadCell(const std::string& mode, Recurrent* r) {
  struct Row {
    const char* name;
    RnnMode mode;
    pd_run::Cell cell;
  };
  for (const Row& row : {Row{"RNN_TANH", RnnMode::kTanh, pd_run::Cell::kTanh},
                         Row{"RNN_RELU", RnnMode::kRelu, pd_run::Cell::kRelu},
                         Row{"LSTM", RnnMode::kLstm, pd_run::Cell::kLstm},
                         Row{"GRU", RnnMode::kGru, pd_run::Cell::kGru}}) {
    if (mode != row.name) continue;
    r->dims.mode = row.mode;
    r->cell = row.cell;
    return true;
  }
  return false;
}

bool ReadRecurrent(BundleOp* op, Recurrent* r) {
  RnnDims& d = r->dims;
  if (!ReadCell(op->Str("mode"), r)) {
    op->Refuse(absl::StrCat("attr 'mode' is '", op->Str("mode"), "'"));
    return false;
  }
  d.hidden = op->Int("hidden_size");
  d.layers = op->Int("num_layers");
  d.directions = op->Bool("is_bidirec") ? 2 : 1;
  const Shape& x = op->ShapeOf("Input");
  r->weights = op->Params("WeightList");
  if (d.hidden < 1 || d.layers < 1 || x.size() != 3 || x[2] < 1 ||
      r->weights.size() != d.weights() ||
      op->desc().Input("PreState").size() != d.states()) {
    op->Refuse("its weights do not fit its sizes");
    return false;
  }
  d.input = x[2];
  for (int64_t layer = 0; layer < d.layers; ++layer)
    for (int64_t direction = 0; direction < d.directions; ++direction) {
      const size_t pair = d.pair(layer, direction);
      const auto fits = [&](size_t i, int64_t n) {
        return r->weights[i]->size() == d.gate_width() * n;
      };
      if (fits(d.w_ih(pair), d.input_width(layer)) &&
          fits(d.w_hh(pair), d.hidden) && fits(d.b_ih(pair), 1) &&
          fits(d.b_hh(pair), 1))
        continue;
      op->Refuse("its weights do not fit its sizes");
      return false;
    }
  return true;
}

// A matrix [columns, depth] of the op, transposed, in panels.
uint32_t PackedWeights(BundleOp* op, const Recurrent& r, size_t i,
                       int64_t depth) {
  return op->Packed(op->desc().Input("WeightList")[i],
                    absl::StrCat("|columns|", depth, "|1|1"), [&] {
                      return PackColumns(*r.weights[i], depth,
                                         r.dims.gate_width(), true, 1);
                    });
}

// The results of one layer and direction: the output, the last state or states.
BundleOp::Inputs LowerDirection(BundleOp* op, const Recurrent& r, uint32_t x,
                                int64_t layer, int64_t direction) {
  const RnnDims& d = r.dims;
  const size_t pair = d.pair(layer, direction);
  const auto weight = [&](size_t i) { return op->Constant(*r.weights[i]); };
  const int64_t depth = d.input_width(layer);
  const uint32_t gates = op->Emit(
      "linear",
      {x, PackedWeights(op, r, d.w_ih(pair), depth), weight(d.b_ih(pair))},
      {depth, d.gate_width(), 2, 0}, NoFunction());
  BundleOp::Inputs inputs = {gates,
                             PackedWeights(op, r, d.w_hh(pair), d.hidden),
                             weight(d.b_hh(pair)),
                             kNoValue,
                             kNoValue,
                             r.lengths};
  const auto at = static_cast<int64_t>(pair);
  for (size_t s = 0; s < r.states.size(); ++s)
    inputs[3 + s] = d.pairs() == 1
                        ? r.states[s]
                        : op->Emit("slice", {r.states[s]}, {0, at, at + 1, 1});
  return op->EmitAll("recurrence", 1 + r.states.size(), std::move(inputs),
                     {static_cast<int64_t>(r.cell), d.hidden, direction});
}

uint32_t Joined(BundleOp* op, const BundleOp::Inputs& parts, int64_t axis) {
  return parts.size() == 1 ? parts[0] : op->Emit("concat", parts, {axis});
}

void LowerRnn(BundleOp* op) {
  op->ExpectFloat("Input");
  Recurrent r;
  uint32_t x = op->In("Input");
  r.states = op->Ins("PreState");
  r.lengths = op->OptionalIn("SequenceLength");
  if (!op->Bool("is_test") && op->Float("dropout_prob") > 0 &&
      op->Int("num_layers") > 1)
    return op->Refuse("it drops elements between its layers");
  if (!ReadRecurrent(op, &r)) return;
  std::vector<BundleOp::Inputs> last(r.states.size());
  for (int64_t layer = 0; layer < r.dims.layers; ++layer) {
    BundleOp::Inputs outs;
    for (int64_t direction = 0; direction < r.dims.directions; ++direction) {
      const BundleOp::Inputs results =
          LowerDirection(op, r, x, layer, direction);
      outs.push_back(results[0]);
      for (size_t s = 0; s < last.size(); ++s)
        last[s].push_back(results[1 + s]);
    }
    x = Joined(op, outs, 2);
  }
  op->Alias("Out", x);
  BundleOp::Inputs states;
  for (const BundleOp::Inputs& parts : last)
    states.push_back(Joined(op, parts, 0));
  op->AliasAll("State", states);
}

}  // namespace

Lowerings RecurrentLowerings() { return {{"rnn", LowerRnn}}; }

}  // namespace pd
