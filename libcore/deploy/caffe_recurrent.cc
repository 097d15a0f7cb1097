// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/caffe_recurrent.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/deploy/onnx_attrs.h"

namespace pd {
namespace {

using Names = std::vector<std::string>;
using Attrs = std::map<std::string, OnnxFileAttr>;

// Nodes of a graph, or of the graph inside of one.
class Nodes {
 public:
  Nodes(std::string layer, std::set<std::string>* taken, OnnxFileGraph* graph)
      : layer_(std::move(layer)), taken_(taken), graph_(graph) {}

  std::string NewName() {
    std::string name;
    do {
      name = absl::StrCat(layer_, "/", next_++);
    } while (!taken_->insert(name).second);
    return name;
  }

  Names Emit(const char* type, Names inputs, size_t outputs, Attrs attrs = {}) {
    Names made;
    for (size_t i = 0; i < outputs; ++i) made.push_back(NewName());
    Append(type, std::move(inputs), made, std::move(attrs));
    return made;
  }
  std::string Emit(const char* type, Names inputs) {
    return Emit(type, std::move(inputs), 1)[0];
  }
  void Append(const char* type, Names inputs, Names outputs, Attrs attrs = {}) {
    OnnxFileNode node;
    node.name = layer_;
    node.op_type = type;
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attrs = std::move(attrs);
    graph_->nodes.push_back(std::move(node));
  }

  std::string Ints(const std::vector<int64_t>& values) {
    const std::string name = NewName();
    graph_->initializers[name] =
        MakeArray<int64_t>({static_cast<int64_t>(values.size())}, values);
    return name;
  }
  // x times the transposed weight.
  std::string Product(const std::string& x, const std::string& weight) {
    return Emit("MatMul", {x, Emit("Transpose", {weight})});
  }
  std::string AddInput() {
    OnnxFileValue value;
    value.name = NewName();
    value.is_tensor = true;
    graph_->inputs.push_back(value);
    return value.name;
  }
  void AddOutput(const std::string& name) {
    OnnxFileValue value;
    value.name = name;
    value.is_tensor = true;
    graph_->outputs.push_back(std::move(value));
  }

 private:
  std::string layer_;
  std::set<std::string>* taken_;
  OnnxFileGraph* graph_;
  int next_ = 0;
};

// How a layer's bottoms and weights are arranged. Weights: of the input, its
// bias, of an input that is the same in all steps, of the state; RNN: of the
// output, its bias.
struct RecurrentParts {
  bool lstm = false, fixed = false, exposed = false;
  int64_t units = 0;
  size_t states = 1;
  size_t hidden = 2;  // which weight is the state's
};

absl::StatusOr<RecurrentParts> PartsOfRecurrence(const CaffeRecurrent& r) {
  const auto param = [&](const char* name) {
    const auto found = r.layer->params.find(name);
    return found == r.layer->params.end() || found->second.empty()
               ? 0.0
               : found->second[0];
  };
  RecurrentParts p;
  p.lstm = r.layer->type == "LSTM";
  p.states = p.lstm ? 2 : 1;
  p.exposed = param("expose_hidden") != 0;
  const size_t last = p.lstm ? 1 : 3;  // weights from the state's on
  const size_t given = r.bottoms.size() - (p.exposed ? p.states : 0);
  if (given != 2 && given != 3)
    return DataLoss(
        "it has %d bottoms; expected the steps, cont, perhaps an "
        "input that stays%s",
        r.bottoms.size(), p.exposed ? " and the states" : "");
  p.fixed = given == 3;
  p.hidden = p.fixed ? 3 : 2;
  if (r.weights.empty())
    return FailedPrecondition(
        "it has no weights; expected those of a .caffemodel");
  if (r.weights.size() != p.hidden + last ||
      r.tops.size() != 1 + (p.exposed ? p.states : 0))
    return DataLoss("it has %d weights and %d tops; expected %d and %d",
                    r.weights.size(), r.tops.size(), p.hidden + last,
                    1 + (p.exposed ? p.states : 0));
  const double units = param("num_output");
  if (!(units >= 1 && units <= (1 << 24)))
    return DataLoss("num_output is %g", units);
  p.units = static_cast<int64_t>(units);
  const int64_t rows = p.lstm ? 4 * p.units : p.units;
  for (size_t i = 0; i < r.weights.size(); ++i) {
    const Shape& shape = r.weight_shapes[i];
    const bool bias = i == 1 || i == p.hidden + 2;
    const bool of_state = i == p.hidden || i == p.hidden + 1;
    if (shape.size() != (bias ? 1 : 2) || shape[0] != rows ||
        (!bias && of_state && shape[1] != p.units))
      return DataLoss("weight %d has shape %s; num_output is %d", i,
                      ToString(shape), p.units);
  }
  return p;
}

// A step's states and output from those before and what the input adds.
struct CaffeStep {
  Names states;
  std::string output;
};

// Gates are input, forget, output and new cell; a step at which cont is 0
// forgets state and cell.
CaffeStep LstmStep(const CaffeRecurrent& r, const RecurrentParts& p,
                   const Names& states, const std::string& from_input,
                   const std::string& cont, Nodes* n) {
  const std::string kept = n->Emit("Mul", {states[0], cont});
  const std::string sum =
      n->Emit("Add", {n->Product(kept, r.weights[p.hidden]), from_input});
  const Names gates = n->Emit(
      "Split", {sum}, 4, {{"axis", OnnxInt(1)}, {"num_outputs", OnnxInt(4)}});
  const std::string forget =
      n->Emit("Mul", {cont, n->Emit("Sigmoid", {gates[1]})});
  const std::string cell =
      n->Emit("Add", {n->Emit("Mul", {forget, states[1]}),
                      n->Emit("Mul", {n->Emit("Sigmoid", {gates[0]}),
                                      n->Emit("Tanh", {gates[3]})})});
  const std::string state =
      n->Emit("Mul", {n->Emit("Sigmoid", {gates[2]}), n->Emit("Tanh", {cell})});
  return {{state, cell}, n->Emit("Identity", {state})};
}

CaffeStep RnnStep(const CaffeRecurrent& r, const RecurrentParts& p,
                  const Names& states, const std::string& from_input,
                  const std::string& cont, Nodes* n) {
  const std::string kept = n->Emit("Mul", {states[0], cont});
  const std::string state = n->Emit(
      "Tanh",
      {n->Emit("Add", {n->Product(kept, r.weights[p.hidden]), from_input})});
  const std::string sum = n->Emit(
      "Add",
      {n->Product(state, r.weights[p.hidden + 1]), r.weights[p.hidden + 2]});
  return {{state}, n->Emit("Tanh", {sum})};
}

// States before the first step, [records, units].
Names FirstStates(const CaffeRecurrent& r, const RecurrentParts& p, Nodes* n) {
  Names states;
  for (size_t i = 0; p.exposed && i < p.states; ++i)
    states.push_back(n->Emit(
        "Squeeze", {r.bottoms[r.bottoms.size() - p.states + i], n->Ints({0})}));
  if (p.exposed) return states;
  const std::string records = n->Emit(
      "Slice", {n->Emit("Shape", {r.bottoms[0]}), n->Ints({1}), n->Ints({2})});
  const std::string shape = n->Emit("Concat", {records, n->Ints({p.units})}, 1,
                                    {{"axis", OnnxInt(0)}})[0];
  return Names(p.states, n->Emit("ConstantOfShape", {shape}));
}

}  // namespace

bool IsCaffeRecurrent(const std::string& type) {
  return type == "LSTM" || type == "RNN";
}

absl::Status AddCaffeRecurrent(const CaffeRecurrent& r,
                               std::set<std::string>* names,
                               OnnxFileGraph* graph) {
  PD_ASSIGN_OR_RETURN(const RecurrentParts p, PartsOfRecurrence(r));
  Nodes n(r.layer->name, names, graph);
  const std::string steps =
      n.Emit("Reshape", {r.bottoms[0], n.Ints({0, 0, -1})});
  std::string from_input =
      n.Emit("Add", {n.Product(steps, r.weights[0]), r.weights[1]});
  if (p.fixed)
    from_input = n.Emit(
        "Add", {from_input,
                n.Product(n.Emit("Reshape", {r.bottoms[2], n.Ints({0, -1})}),
                          r.weights[2])});
  const std::string cont = n.Emit("Reshape", {r.bottoms[1], n.Ints({0, 0, 1})});
  Names inputs = FirstStates(r, p, &n);
  inputs.push_back(from_input);
  inputs.push_back(cont);

  OnnxFileAttr body;
  body.kind = OnnxFileAttr::Kind::kGraph;
  body.graph.emplace_back();
  Nodes inner(absl::StrCat(r.layer->name, "/step"), names, &body.graph[0]);
  Names states;
  for (size_t i = 0; i < p.states; ++i) states.push_back(inner.AddInput());
  const std::string step_input = inner.AddInput(), step_cont = inner.AddInput();
  const CaffeStep step = (p.lstm ? LstmStep : RnnStep)(r, p, states, step_input,
                                                       step_cont, &inner);
  for (const std::string& state : step.states) inner.AddOutput(state);
  inner.AddOutput(step.output);
  Names outputs = n.Emit("Scan", inputs, p.states,
                         {{"num_scan_inputs", OnnxInt(2)}, {"body", body}});
  // The last states come first.
  graph->nodes.back().outputs.push_back(r.tops[0]);
  for (size_t i = 0; p.exposed && i < p.states; ++i)
    n.Append("Unsqueeze", {outputs[i], n.Ints({0})}, {r.tops[i + 1]});
  return absl::OkStatus();
}

}  // namespace pd
