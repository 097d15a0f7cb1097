// SPDX-License-Identifier: Apache-2.0
// rnn: LSTM, GRU and simple recurrent layers. ONNX has one node for a layer of
// one or two directions; gates stand in another order there, and both
// directions' weights in one tensor.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/deploy/onnx/converters.h"

namespace pd {
namespace {

struct Recurrent {
  const char* onnx_type = "";
  /// The place in PaddlePaddle's order of each of ONNX's gates: i o f c of
  /// i f c o, z r h of r z h.
  std::vector<int64_t> gates;
  int64_t hidden = 0, layers = 1, directions = 1;
  size_t states = 1;

  size_t pairs() const { return static_cast<size_t>(layers * directions); }
};

Recurrent Read(OnnxOp* op) {
  Recurrent r;
  const std::string mode = op->Str("mode");
  if (mode == "LSTM") {
    r.onnx_type = "LSTM";
    r.gates = {0, 3, 1, 2};
    r.states = 2;
  } else if (mode == "GRU") {
    r.onnx_type = "GRU";
    r.gates = {1, 0, 2};
  } else if (mode == "RNN_TANH" || mode == "RNN_RELU") {
    r.onnx_type = "RNN";
    r.gates = {0};
  } else {
    op->Fail(InvalidArgument(
        "attr 'mode' is '%s'; expected RNN_TANH, RNN_RELU, LSTM or GRU", mode));
  }
  r.hidden = op->Int("hidden_size");
  r.layers = op->Int("num_layers");
  r.directions = op->Bool("is_bidirec") ? 2 : 1;
  const size_t weights = op->desc().Input("WeightList").size();
  const size_t states = op->desc().Input("PreState").size();
  if (r.hidden < 1 || r.layers < 1 || weights != 4 * r.pairs() ||
      states != r.states)
    op->Fail(InvalidArgument(
        "there are %d weights and %d states; expected %d and %d for %d layers "
        "of %d directions",
        weights, states, 4 * r.pairs(), r.states, r.layers, r.directions));
  return r;
}

// The blocks of `rows` rows of each array in ONNX's order, arrays one after the
// other, `parts` of them to a row of the result: [arrays / parts, rows, ...].
Array Regated(const Recurrent& r, const std::vector<const Array*>& arrays,
              size_t parts) {
  const Array& first = *arrays[0];
  Shape shape = first.shape;
  shape[0] *= static_cast<int64_t>(parts);
  shape.insert(shape.begin(), static_cast<int64_t>(arrays.size() / parts));
  std::byte* to = nullptr;
  Array all = NewCopy(first.dtype, std::move(shape), &to);
  const size_t block = first.size_bytes() / r.gates.size();
  for (const Array* array : arrays)
    for (const int64_t gate : r.gates) {
      std::memcpy(to, array->bytes.get() + static_cast<size_t>(gate) * block,
                  block);
      to += block;
    }
  return all;
}

// The same by nodes, for weights that the program computes.
std::string RegatedByNodes(OnnxOp* op, const Recurrent& r,
                           const std::vector<std::string>& names,
                           size_t parts) {
  OnnxValues rows;
  for (size_t i = 0; i < names.size(); i += parts) {
    OnnxValues blocks;
    for (size_t k = 0; k < parts; ++k)
      for (const int64_t gate : r.gates)
        blocks.push_back(op->Slice(op->ValueOf(names[i + k]), {0},
                                   {gate * r.hidden}, {(gate + 1) * r.hidden}));
    rows.push_back(
        op->Unsqueeze(op->Emit("Concat", blocks, {{"axis", int64_t{0}}}), {0}));
  }
  return op->Emit("Concat", rows, {{"axis", int64_t{0}}});
}

// The inputs W and R (one array a direction), or B (two, the input's and the
// recurrent one's) out of the variables `names`.
std::string Weights(OnnxOp* op, const Recurrent& r,
                    const std::vector<std::string>& names, size_t parts) {
  std::vector<const Array*> arrays;
  for (const std::string& name : names) {
    const auto param = op->model().params.find(name);
    if (param == op->model().params.end())
      return RegatedByNodes(op, r, names, parts);
    arrays.push_back(&param->second);
  }
  const auto rows = static_cast<int64_t>(r.gates.size()) * r.hidden;
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i]->shape.empty() || arrays[i]->shape[0] != rows ||
        arrays[i]->shape != arrays[0]->shape ||
        arrays[i]->dtype != arrays[0]->dtype) {
      op->Fail(InvalidArgument(
          "weight '%s' has shape %s; expected %d rows, like '%s' of shape %s",
          names[i], ToString(arrays[i]->shape), rows, names[0],
          ToString(arrays[0]->shape)));
      return "";
    }
  return op->ConstArray(Regated(r, arrays, parts));
}

// [time, directions, batch, hidden] to [time, batch, directions * hidden].
std::string JoinDirections(OnnxOp* op, const Recurrent& r,
                           const std::string& y) {
  if (r.directions == 1) return op->Squeeze(y, {1});
  return op->Reshape(op->Transpose(y, {0, 2, 1, 3}),
                     {0, 0, r.directions * r.hidden});
}

OnnxAttrs AttrsOf(OnnxOp* op, const Recurrent& r) {
  OnnxAttrs attrs = {{"hidden_size", r.hidden}};
  if (r.directions == 2)
    attrs.emplace_back("direction", std::string("bidirectional"));
  // PaddlePaddle multiplies by the reset gate behind the product.
  if (absl::string_view(r.onnx_type) == "GRU")
    attrs.emplace_back("linear_before_reset", int64_t{1});
  if (op->Str("mode") == "RNN_RELU")
    attrs.emplace_back(
        "activations",
        std::vector<std::string>(static_cast<size_t>(r.directions), "Relu"));
  return attrs;
}

void ConvertRnn(OnnxOp* op) {
  const Recurrent r = Read(op);
  if (!op->status().ok()) return;
  const std::vector<std::string>& names = op->desc().Input("WeightList");
  op->Ignore("WeightList");
  const OnnxValues before = op->Ins("PreState");
  std::string lengths = op->OptionalIn("SequenceLength");
  if (!lengths.empty() && op->TypeOf("SequenceLength") != DType::kInt32)
    lengths = op->Cast(lengths, DType::kInt32);
  std::string x = op->In("Input");
  std::vector<OnnxValues> after(r.states);
  const auto directions = static_cast<size_t>(r.directions);
  for (int64_t layer = 0; layer < r.layers; ++layer) {
    std::vector<std::string> w, h, b;
    const size_t first = static_cast<size_t>(layer) * directions;
    for (size_t pair = first; pair < first + directions; ++pair) {
      w.push_back(names[2 * pair]);
      h.push_back(names[2 * pair + 1]);
      b.push_back(names[2 * r.pairs() + 2 * pair]);
      b.push_back(names[2 * r.pairs() + 2 * pair + 1]);
    }
    OnnxValues inputs = {x, Weights(op, r, w, 1), Weights(op, r, h, 1),
                         Weights(op, r, b, 2), lengths};
    for (const std::string& state : before)
      inputs.push_back(r.layers == 1
                           ? state
                           : op->Slice(state, {0}, {layer * r.directions},
                                       {(layer + 1) * r.directions}));
    const OnnxValues outputs =
        op->EmitSeveral(1 + r.states, r.onnx_type, inputs, AttrsOf(op, r));
    x = JoinDirections(op, r, outputs[0]);
    for (size_t i = 0; i < r.states; ++i) after[i].push_back(outputs[1 + i]);
  }
  op->Alias("Out", x);
  const OnnxValues states = op->NewOuts("State");
  if (states.size() != r.states) {
    op->Fail(InvalidArgument("output 'State' holds %d variables; expected %d",
                             states.size(), r.states));
    return;
  }
  for (size_t i = 0; i < r.states; ++i) {
    if (r.layers == 1)
      op->EmitTo({states[i]}, "Identity", after[i]);
    else
      op->EmitTo({states[i]}, "Concat", after[i], {{"axis", int64_t{0}}});
  }
}

}  // namespace

OnnxConverters RecurrentConverters() { return {{"rnn", ConvertRnn}}; }

}  // namespace pd
