// SPDX-License-Identifier: Apache-2.0
// An LSTM over a sequence as a node of ONNX. TFLite keeps the last state for
// the next call; here each call begins with zeros, as the first one does there.
#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/tflite_import/call.h"

namespace pd {
namespace {

using Ints = TfliteCall::Ints;

// Float constants below each other as [1, rows, ...], those of `inputs` in
// order; zeros in the place of biases that are absent.
absl::StatusOr<Array> StackedGates(TfliteCall* call, const Ints& inputs,
                                   const Shape& each) {
  Shape shape = each;
  shape[0] *= static_cast<int64_t>(inputs.size());
  shape.insert(shape.begin(), 1);
  std::byte* bytes = nullptr;
  PD_ASSIGN_OR_RETURN(Array out,
                      NewArray(DType::kFloat32, std::move(shape), &bytes));
  auto* to = reinterpret_cast<float*>(bytes);
  const int64_t count = NumElements(each);
  for (const int64_t i : inputs) {
    const auto input = static_cast<size_t>(i);
    if (i < 0 || !call->Has(input)) {
      std::fill_n(to, count, 0.0f);
    } else {
      const Array* known = call->Known(input);
      if (known == nullptr || known->dtype != DType::kFloat32 ||
          known->shape != each)
        return InvalidArgument("input %d is no constant of float32%s", input,
                               ToString(each));
      std::copy_n(known->data<float>(), count, to);
    }
    to += count;
  }
  return out;
}

const Shape& WeightShape(TfliteCall* call, size_t i) {
  const Array* known = call->Known(i);
  static const auto* none = new Shape;
  if (known != nullptr && known->shape.size() == 2) return known->shape;
  call->Fail(InvalidArgument("input %d is no constant of two axes", i));
  return *none;
}

std::string Sequence(TfliteCall* call, bool time_major) {
  call->WantRank(0, 3);
  const std::string x = call->X();
  return time_major ? x : call->graph().Transpose(x, {1, 0, 2});
}

// The output [steps, 1, batch, units] of one direction.
void GiveSequence(TfliteCall* call, const std::string& y, bool time_major) {
  LayoutGraph& graph = call->graph();
  const std::string steps = graph.Emit("Squeeze", {y, graph.ConstInts({1})});
  call->Give(time_major ? steps : graph.Transpose(steps, {1, 0, 2}));
}

// Inputs: 1 to 4 weights of the input by gate (input, forget, cell, output), 5
// to 8 of the state, 9 to 11 of the cell (input, forget, output), 12 to 15
// biases, 16 and 17 a projection, 18 and 19 the states, 20 to 23 coefficients
// of norms. ONNX's gates are input, output, forget, cell.
void ImportTfliteLstm(TfliteCall* call) {
  constexpr int kTanh = 4;
  const bool time_major = call->Byte(3) != 0;
  for (const size_t i : {16, 17, 20, 21, 22, 23})
    if (call->Has(i))
      return call->Fail(
          Unimplemented("an LSTM with a projection or with norms"));
  call->WantRank(0, 3);
  if (!call->ok()) return;
  // A cell grows by less than 1 in a step, and so reaches no limit in fewer.
  const int64_t steps = call->In(0).shape[time_major ? 0 : 1];
  const double limit = call->Float(1);
  const bool limited =
      limit != 0 && !(steps >= 0 && static_cast<double>(steps) <= limit);
  if (!call->Has(1) || call->Byte(0) != kTanh || limited || call->Float(2) != 0)
    return call->Fail(Unimplemented(
        "an LSTM without an input gate, with another activation than tanh or "
        "with a limit of %g over %d steps",
        limit, steps));
  for (size_t i = 2; i <= 8; ++i)
    if (!call->Has(i)) return call->Fail(DataLoss("it has no weight %d", i));
  const Shape of_input = WeightShape(call, 2), of_state = WeightShape(call, 6);
  if (!call->ok()) return;
  const int64_t units = of_input[0];
  LayoutGraph& graph = call->graph();
  const auto weight = [&](size_t i, const char* name, const Ints& inputs,
                          const Shape& each) {
    return call->Param(i, name, StackedGates(call, inputs, each));
  };
  const std::string w = weight(2, "W", {1, 4, 2, 3}, of_input);
  const std::string r = weight(6, "R", {5, 8, 6, 7}, of_state);
  const std::string b =
      weight(2, "B", {12, 15, 13, 14, -1, -1, -1, -1}, {units});
  const bool peeps = call->Has(9) || call->Has(10) || call->Has(11);
  const std::string p = peeps ? weight(2, "P", {9, 11, 10}, {units}) : "";
  LayoutGraph::Names inputs = {Sequence(call, time_major), w, r, b};
  if (peeps) inputs.insert(inputs.end(), {"", "", "", p});
  GiveSequence(call,
               graph.Emit("LSTM", inputs, {{"hidden_size", OnnxInt(units)}}),
               time_major);
}

}  // namespace

TfliteImportEntries TfliteRecurrentImports() {
  return {
      {44, "UNIDIRECTIONAL_SEQUENCE_LSTM", ImportTfliteLstm},
  };
}

}  // namespace pd
