// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and SimpleRNN: a node of ONNX for each. Gates stand in another
// order there, and a bias of the state's product beside that of the input's.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/deploy/keras_import/call.h"

namespace pd {
namespace {

using Ints = KerasCall::Ints;
using ValueKind = KerasValue::Kind;

struct KerasCell {
  const char* onnx_type;
  Ints gates;  // ONNX's order, by place in Keras'
  bool has_cell = false;
};

const KerasCell* CellOf(const std::string& class_name) {
  static const auto* cells = new std::map<std::string, KerasCell>{
      {"GRU", {"GRU", {0, 1, 2}}},
      {"LSTM", {"LSTM", {0, 3, 1, 2}, /*has_cell=*/true}},
      {"SimpleRNN", {"RNN", {0}}}};
  const auto cell = cells->find(class_name);
  return cell == cells->end() ? nullptr : &cell->second;
}

// One direction, with its configuration and its weights.
struct Direction {
  const KerasValue* config = nullptr;
  size_t first = 0;    // of its weights
  std::string prefix;  // of their names
  bool reverse = false;
};

struct Outputs {
  std::string y;  // [batch, time, units], in the order of computing
  KerasCall::Names states;
};

bool FlagIn(const KerasValue& config, const char* name, bool otherwise) {
  const KerasValue& value = config[name];
  return value.kind == ValueKind::kBool ? value.i != 0 : otherwise;
}

std::string ActivationIn(KerasCall* call, const KerasValue& config,
                         const char* key, const char* otherwise) {
  const KerasValue& value = config[key];
  std::string name = value.kind == ValueKind::kText ? value.text : otherwise;
  if (value.kind == ValueKind::kDict) name = value["config"].text;
  if (name == "hard_sigmoid" && call->keras() < 3) return "HardSigmoid";
  static const auto* names =
      new std::map<std::string, std::string>{{"relu", "Relu"},
                                             {"sigmoid", "Sigmoid"},
                                             {"softplus", "Softplus"},
                                             {"softsign", "Softsign"},
                                             {"tanh", "Tanh"}};
  const auto known = names->find(name);
  if (known != names->end()) return known->second;
  call->Fail(Unimplemented("activation '%s' of a recurrence", name));
  return "";
}

// [rows, gates * units] as [1, gates * units, rows], gates in ONNX's order.
Array GateRows(const Array& weight, const Ints& gates, int64_t units) {
  const int64_t rows = weight.shape[0];
  const int64_t columns = static_cast<int64_t>(gates.size()) * units;
  std::vector<float> out;
  out.reserve(static_cast<size_t>(rows * columns));
  const float* from = weight.data<float>();
  for (const int64_t gate : gates)
    for (int64_t unit = 0; unit < units; ++unit)
      for (int64_t row = 0; row < rows; ++row)
        out.push_back(from[row * columns + gate * units + unit]);
  return MakeArray<float>({1, columns, rows}, out);
}

// The bias of the input's product, and of the state's: Keras has the second
// where a GRU resets after the product alone.
Array GateBias(const Array& bias, const Ints& gates, int64_t units) {
  const int64_t columns = static_cast<int64_t>(gates.size()) * units;
  std::vector<float> out(static_cast<size_t>(2 * columns), 0);
  const float* from = bias.data<float>();
  for (int64_t half = 0; half < bias.size() / columns; ++half)
    for (size_t i = 0; i < gates.size(); ++i)
      std::copy_n(
          from + half * columns + gates[i] * units, units,
          out.begin() + half * columns + static_cast<int64_t>(i) * units);
  return MakeArray<float>({1, 2 * columns}, out);
}

// Rows of `width` numbers of each record, by index.
std::string RowsAt(LayoutGraph* graph, const std::string& x,
                   const std::string& index, int64_t width) {
  const std::vector<int64_t> zeros(static_cast<size_t>(width), 0);
  const std::string places = graph->Emit(
      "Add", {graph->Emit("Unsqueeze", {index, graph->ConstInts({2})}),
              graph->Constant(MakeArray<int64_t>({1, 1, width}, zeros))});
  return graph->Emit("GatherElements", {x, places}, {{"axis", OnnxInt(1)}});
}

// Steps that count stand in front of the others for the recurrence, which ends
// behind them; a step that does not count has the output of the one before.
class PackedSteps {
 public:
  PackedSteps(LayoutGraph* graph, const std::string& mask)
      : graph_(graph), mask_(mask) {
    if (mask.empty()) return;
    const std::string ones = graph->Cast(mask, DType::kInt64);
    const std::string axis = graph->Constant(MakeArray<int64_t>({}, {1}));
    counts_ = graph->Emit("CumSum", {ones, axis});
    lengths_ = graph->Cast(graph->Reduce("ReduceSum", ones, {1}, false),
                           DType::kInt32);
    // Place k has the step at which k + 1 count for the first time.
    const std::string all = graph->Emit(
        "Add", {graph->Emit("Mul", {ones, graph->Scalar(0, DType::kInt64)}),
                graph->Scalar(1, DType::kInt64)});
    const std::string places =
        graph->Emit("CumSum", {all, axis}, {{"exclusive", OnnxInt(1)}});
    const std::string before = graph->Emit(
        "LessOrEqual",
        {graph->Emit("Unsqueeze", {counts_, graph->ConstInts({1})}),
         graph->Emit("Unsqueeze", {places, graph->ConstInts({2})})});
    order_ = graph->Emit(
        "Min", {graph->Reduce("ReduceSum", graph->Cast(before, DType::kInt64),
                              {2}, false),
                graph->Reduce("ReduceMax", places, {1}, true)});
  }

  const std::string& lengths() const { return lengths_; }  // "": all steps

  std::string Packed(const std::string& x, int64_t width) {
    return lengths_.empty() ? x : RowsAt(graph_, x, order_, width);
  }

  std::string Unpacked(const std::string& y, int64_t width, bool zeros) {
    if (lengths_.empty()) return y;
    const std::string last = graph_->Emit(
        "Max",
        {graph_->Emit("Sub", {counts_, graph_->Scalar(1, DType::kInt64)}),
         graph_->Scalar(0, DType::kInt64)});
    const std::string any =
        zeros ? mask_
              : graph_->Emit("Greater",
                             {counts_, graph_->Scalar(0, DType::kInt64)});
    return graph_->Emit(
        "Where", {graph_->Emit("Unsqueeze", {any, graph_->ConstInts({2})}),
                  RowsAt(graph_, y, last, width), graph_->Scalar(0)});
  }

 private:
  LayoutGraph* graph_;
  std::string mask_, counts_, order_, lengths_;
};

Outputs Run(KerasCall* call, const KerasCell& cell, const Direction& direction,
            std::string x, const KerasCall::Names& states) {
  const KerasValue& config = *direction.config;
  const bool biased = FlagIn(config, "use_bias", true);
  const bool after = FlagIn(config, "reset_after", false);
  if (FlagIn(config, "stateful", false) || FlagIn(config, "time_major", false))
    call->Fail(Unimplemented("a recurrence that is stateful or time_major"));
  const Array& kernel = call->Weight(direction.first, 2);
  const Array& recurrent = call->Weight(direction.first + 1, 2);
  if (!call->ok()) return {};
  const int64_t units = recurrent.shape[0];
  const auto count = static_cast<int64_t>(cell.gates.size());
  const KerasTensor& in = call->In();
  const bool floats =
      kernel.dtype == DType::kFloat32 && recurrent.dtype == DType::kFloat32;
  if (!floats || units < 1 || kernel.shape[1] != count * units ||
      recurrent.shape[1] != count * units || kernel.shape[0] != in.shape[2])
    call->Fail(DataLoss("kernels of %s and %s for an input of %s",
                        ToString(kernel.shape), ToString(recurrent.shape),
                        ToString(in.shape)));
  if (!call->ok()) return {};
  LayoutGraph& graph = call->graph();
  const auto param = [&](const char* name, const Array& array) {
    return call->Param(absl::StrCat(direction.prefix, name).c_str(), array);
  };
  const bool turns = direction.reverse;
  PackedSteps steps(
      &graph, turns && !in.mask.empty() ? graph.Flip(in.mask, 1) : in.mask);
  KerasCall::Names inputs = {
      graph.Transpose(steps.Packed(turns ? graph.Flip(x, 1) : x, in.shape[2]),
                      {1, 0, 2}),
      param("kernel", GateRows(kernel, cell.gates, units)),
      param("recurrent_kernel", GateRows(recurrent, cell.gates, units))};
  if (biased) {
    const Array& bias = call->Weight(direction.first + 2, -1);
    if (!call->ok()) return {};
    const int64_t halves = cell.gates.size() == 3 && after ? 2 : 1;
    if (bias.dtype != DType::kFloat32 || bias.size() != halves * count * units)
      call->Fail(DataLoss("a bias of %s", ToString(bias.shape)));
    if (!call->ok()) return {};
    inputs.push_back(param("bias", GateBias(bias, cell.gates, units)));
  }
  if (!states.empty() || !steps.lengths().empty()) {
    inputs.resize(5);
    inputs[4] = steps.lengths();
    for (const std::string& state : states)
      inputs.push_back(graph.Emit("Unsqueeze", {state, graph.ConstInts({0})}));
  }
  KerasCall::Attrs attrs = {{"hidden_size", OnnxInt(units)}};
  OnnxFileAttr& names = attrs["activations"];
  names.kind = OnnxFileAttr::Kind::kStrings;
  if (count > 1)
    names.strings.push_back(
        ActivationIn(call, config, "recurrent_activation", "sigmoid"));
  names.strings.push_back(ActivationIn(call, config, "activation", "tanh"));
  if (cell.has_cell) names.strings.push_back(names.strings.back());
  if (count == 3) attrs["linear_before_reset"] = OnnxInt(after ? 1 : 0);
  const KerasCall::Names out =
      graph.EmitMany(cell.onnx_type, inputs, cell.has_cell ? 3 : 2, attrs);
  Outputs outputs;
  outputs.y = steps.Unpacked(
      graph.Transpose(graph.Emit("Squeeze", {out[0], graph.ConstInts({1})}),
                      {1, 0, 2}),
      units, FlagIn(config, "zero_output_for_mask", false));
  for (size_t i = 1; i < out.size(); ++i)
    outputs.states.push_back(
        graph.Emit("Squeeze", {out[i], graph.ConstInts({0})}));
  return outputs;
}

// States that are given: behind the input, or by name.
KerasCall::Names GivenStates(KerasCall* call) {
  KerasCall::Names states;
  for (size_t i = 1; i < call->inputs(); ++i) states.push_back(call->X(i));
  for (const auto& [name, tensors] : call->arguments().named) {
    if (name != "initial_state")
      call->Fail(Unimplemented("argument '%s'", name));
    for (KerasTensor* x : tensors) states.push_back(call->graph().Plain(x));
  }
  return states;
}

void ImportRecurrent(KerasCall* call) {
  call->WantRank(3);
  const KerasCell* cell = CellOf(call->layer().class_name);
  PD_INVARIANT(cell != nullptr);
  const KerasCall::Names states = GivenStates(call);
  if (!states.empty() && states.size() != (cell->has_cell ? 2u : 1u))
    call->Fail(InvalidArgument("%d states are given", states.size()));
  const bool biased = call->Flag("use_bias", true);
  call->WantWeights(biased ? 3 : 2);
  if (!call->ok()) return;
  Direction direction;
  direction.config = &call->layer().config;
  direction.reverse = call->Flag("go_backwards", false);
  const Outputs out = Run(call, *cell, direction, call->X(), states);
  if (!call->ok()) return;
  const int64_t units = call->Weight(1, 2).shape[0];
  const Shape& in = call->In().shape;
  if (call->Flag("return_sequences", false)) {
    call->Give(out.y, {in[0], in[1], units});
    call->outputs().back().mask = call->In().mask;
  } else
    call->Give(out.states[0], {in[0], units});
  if (call->Flag("return_state", false))
    for (const std::string& state : out.states)
      call->Give(state, {in[0], units});
}

std::string Joined(KerasCall* call, const std::string& mode,
                   const std::string& a, const std::string& b) {
  LayoutGraph& graph = call->graph();
  if (mode == "concat")
    return graph.Emit("Concat", {a, b}, {{"axis", OnnxInt(-1)}});
  if (mode == "sum") return graph.Emit("Add", {a, b});
  if (mode == "mul") return graph.Emit("Mul", {a, b});
  if (mode == "ave") return graph.Emit("Mean", {a, b});
  call->Fail(Unimplemented("merge_mode '%s'", mode));
  return "";
}

void ImportBidirectional(KerasCall* call) {
  call->WantRank(3);
  const KerasValue& layer = call->Config("layer");
  const KerasValue& config = layer["config"];
  const KerasCell* cell = CellOf(layer["class_name"].text);
  if (cell == nullptr)
    call->Fail(
        Unimplemented("a layer of class '%s'", layer["class_name"].text));
  if (!GivenStates(call).empty()) call->Fail(Unimplemented("given states"));
  const KerasValue& other = call->Config("backward_layer");
  const bool biased = FlagIn(config, "use_bias", true);
  const size_t each = biased ? 3 : 2;
  call->WantWeights(2 * each);
  if (!call->ok()) return;
  Direction directions[2];
  directions[0].config = &config;
  directions[0].reverse = FlagIn(config, "go_backwards", false);
  directions[0].prefix = "forward_";
  directions[1].config =
      other.kind == ValueKind::kDict ? &other["config"] : &config;
  directions[1].first = each;
  directions[1].reverse = !directions[0].reverse;
  directions[1].prefix = "backward_";
  if (FlagIn(*directions[1].config, "use_bias", true) != biased ||
      (other.kind == ValueKind::kDict &&
       other["class_name"].text != layer["class_name"].text))
    call->Fail(Unimplemented("directions that are not alike"));
  const bool whole = FlagIn(config, "return_sequences", false);
  const std::string x = call->X();
  std::string ys[2];
  KerasCall::Names states;
  int64_t units[2] = {1, 1};
  for (size_t i = 0; i < 2; ++i) {
    Outputs out = Run(call, *cell, directions[i], x, {});
    if (!call->ok()) return;
    units[i] = call->Weight(i * each + 1, 2).shape[0];
    ys[i] = whole ? out.y : out.states[0];
    // So that steps of both lie beside each other.
    if (whole && i == 1) ys[i] = call->graph().Flip(ys[i], 1);
    states.insert(states.end(), out.states.begin(), out.states.end());
  }
  if (units[0] != units[1])
    call->Fail(Unimplemented("directions that are not alike"));
  if (!call->ok()) return;
  const std::string mode = call->Text("merge_mode", "");
  Shape shape = {call->In().shape[0]};
  if (whole) shape.push_back(call->In().shape[1]);
  shape.push_back(mode == "concat" ? 2 * units[0] : units[0]);
  if (mode.empty())  // None: both as they are
    for (const std::string& y : ys) call->Give(y, shape);
  else
    call->Give(Joined(call, mode, ys[0], ys[1]), shape);
  if (whole)
    for (KerasTensor& y : call->outputs()) y.mask = call->In().mask;
  if (FlagIn(config, "return_state", false))
    for (const std::string& state : states)
      call->Give(state, {shape[0], units[0]});
}

// Steps whose elements are all of one value do not count, and become 0.
void ImportMasking(KerasCall* call) {
  call->WantRank(3);
  const double value = call->Number("mask_value", 0);
  if (!call->ok()) return;
  LayoutGraph& graph = call->graph();
  const std::string other = graph.Cast(
      graph.Emit("Not",
                 {graph.Emit("Equal", {call->X(), graph.Scalar(value)})}),
      DType::kFloat32);
  const std::string any = graph.Reduce("ReduceMax", other, {2}, true);
  call->Give(graph.Emit("Mul", {call->X(), any}), call->In().shape);
  call->outputs().back().mask = graph.Cast(
      graph.Emit("Squeeze", {any, graph.ConstInts({2})}), DType::kBool);
}

}  // namespace

KerasImportEntries KerasRecurrentImports() {
  return {
      {"Bidirectional", ImportBidirectional},
      {"GRU", ImportRecurrent},
      {"LSTM", ImportRecurrent},
      {"Masking", ImportMasking},
      {"SimpleRNN", ImportRecurrent},
  };
}

}  // namespace pd
