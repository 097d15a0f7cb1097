// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN of several layers: a node of ONNX for each. Gates stand in
// another order there.
#include "libcore/base/error.h"
#include "libcore/deploy/torch_import/call.h"

namespace pd {
namespace {

using Ints = TorchCall::Ints;
using Names = TorchCall::Names;

constexpr int64_t kMostLayers = 1000;

struct Cell {
  const char* onnx_type;
  Ints gates;  // ONNX's order, by place in PyTorch's
  bool has_cell = false;
  TorchCall::Attrs attrs = {};
};

std::string SliceRows(TorchCall* call, const std::string& x, int64_t start,
                      int64_t end) {
  return call->Emit("Slice", {x, call->ConstInts({start}),
                              call->ConstInts({end}), call->ConstInts({0})});
}

// The rows of a weight or bias, gate by gate in ONNX's order, as one of a list.
std::string Ordered(TorchCall* call, const Cell& cell, const std::string& x) {
  std::string rows = x;
  if (cell.gates.size() > 1) {
    const Names parts = call->EmitMany(
        "Split", {x}, cell.gates.size(),
        {{"axis", OnnxInt(0)},
         {"num_outputs", OnnxInt(static_cast<int64_t>(cell.gates.size()))}});
    Names ordered;
    for (const int64_t gate : cell.gates)
      ordered.push_back(parts[static_cast<size_t>(gate)]);
    rows = call->Emit("Concat", ordered, {{"axis", OnnxInt(0)}});
  }
  return call->Emit("Unsqueeze", {rows, call->ConstInts({0})});
}

std::string Joined(TorchCall* call, const Names& xs, int64_t axis) {
  return xs.size() == 1 ? xs[0]
                        : call->Emit("Concat", xs, {{"axis", OnnxInt(axis)}});
}

void Import(TorchCall* call, const Cell& cell) {
  const Names states =
      cell.has_cell ? call->Tensors("hx") : Names{call->Tensor("hx")};
  const Names params = call->Tensors("params");
  const bool biases = call->Int("has_biases", 1) != 0;
  const bool batch_first = call->Int("batch_first", 0) != 0;
  const int64_t layers = call->Int("num_layers", 1);
  const int64_t directions = call->Int("bidirectional", 0) != 0 ? 2 : 1;
  const size_t each = biases ? 4 : 2;
  if (call->ok() &&
      (layers < 1 || layers > kMostLayers || call->Rank("input") != 3 ||
       states.size() != (cell.has_cell ? 2u : 1u) ||
       params.size() != each * static_cast<size_t>(layers) *
                            static_cast<size_t>(directions)))
    call->Fail(Unimplemented("%d weights for %d layers over %s", params.size(),
                             layers, ToString(call->ShapeOf("input"))));
  const Shape& out_shape = call->OutShape();
  if (call->ok() && (out_shape.size() != 3 || out_shape[2] < directions))
    call->Fail(Unimplemented("an output of %s", ToString(out_shape)));
  if (!call->ok()) return;
  const int64_t width = out_shape[2] / directions;
  std::string x = call->Tensor("input");
  if (batch_first) x = call->Transpose(x, {1, 0, 2});
  Names hidden, cells;
  size_t next = 0;
  for (int64_t layer = 0; layer < layers; ++layer) {
    Names w, r, b;
    for (int64_t i = 0; i < directions; ++i) {
      w.push_back(Ordered(call, cell, params[next]));
      r.push_back(Ordered(call, cell, params[next + 1]));
      if (biases)
        b.push_back(call->Emit("Concat",
                               {Ordered(call, cell, params[next + 2]),
                                Ordered(call, cell, params[next + 3])},
                               {{"axis", OnnxInt(1)}}));
      next += each;
    }
    TorchCall::Attrs attrs = cell.attrs;
    attrs["hidden_size"] = OnnxInt(width);
    attrs["direction"] =
        OnnxText(directions == 2 ? "bidirectional" : "forward");
    if (directions == 2 && attrs.count("activations") > 0) {
      auto& names = attrs["activations"].strings;
      names.push_back(names[0]);
    }
    const int64_t first = layer * directions;
    Names inputs = {x, Joined(call, w, 0), Joined(call, r, 0),
                    biases ? Joined(call, b, 0) : "", ""};
    for (const std::string& state : states)
      inputs.push_back(SliceRows(call, state, first, first + directions));
    const Names out =
        call->EmitMany(cell.onnx_type, inputs, cell.has_cell ? 3 : 2, attrs);
    // [time, direction, batch, width] to [time, batch, both directions].
    x = call->Emit("Reshape", {call->Transpose(out[0], {0, 2, 1, 3}),
                               call->ConstInts({0, 0, directions * width})});
    hidden.push_back(out[1]);
    if (cell.has_cell) cells.push_back(out[2]);
  }
  call->Give(batch_first ? call->Transpose(x, {1, 0, 2}) : x);
  if (call->outputs().size() > 1) call->Give(Joined(call, hidden, 0), 1);
  if (call->outputs().size() > 2) call->Give(Joined(call, cells, 0), 2);
}

void ImportLstm(TorchCall* call) {
  Import(call, {"LSTM", {0, 3, 1, 2}, /*has_cell=*/true});
}

void ImportGru(TorchCall* call) {
  Import(call,
         {"GRU", {1, 0, 2}, false, {{"linear_before_reset", OnnxInt(1)}}});
}

void ImportRnn(TorchCall* call) {
  OnnxFileAttr activations;
  activations.kind = OnnxFileAttr::Kind::kStrings;
  activations.strings = {call->onnx_type()};
  Import(call, {"RNN", {0}, false, {{"activations", activations}}});
}

}  // namespace

TorchImportEntries TorchRecurrentImports() {
  return {
      {"gru.input", ImportGru},
      {"lstm.input", ImportLstm},
      {"rnn_relu.input", ImportRnn, "Relu"},
      {"rnn_tanh.input", ImportRnn, "Tanh"},
  };
}

}  // namespace pd
