// SPDX-License-Identifier: Apache-2.0
// simple_rnn, lstm, gru: PaddlePaddle's rnn op between two transpositions. The
// cells: one step, of the ops that paddle.nn's cells make.
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/recurrent.h"

namespace pd {
namespace {

using Names = std::vector<std::string>;

// Extents are equal or not known.
bool Fits(const Shape& shape, const Shape& wanted) {
  bool fits = shape.size() == wanted.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] < 0 || wanted[i] < 0 || shape[i] == wanted[i];
  return fits;
}

// The differences between the kinds of recurrent layers.
struct RnnKind {
  const char* mode;  // of the rnn op
  const char* cell;  // the kind by which unnamed parameters count
  int gates;
  size_t states;  // h, and c of LSTM
};

constexpr RnnKind kTanh = {"RNN_TANH", "simple_rnn_cell", 1, 1};
constexpr RnnKind kRelu = {"RNN_RELU", "simple_rnn_cell", 1, 1};
constexpr RnnKind kLstm = {"LSTM", "lstm_cell", 4, 2};
constexpr RnnKind kGru = {"GRU", "gru_cell", 3, 1};

struct CellParameters {
  std::string weight_ih, weight_hh, bias_ih, bias_hh;
};

job::Initializer UniformInitializer(double limit) {
  job::Initializer initializer;
  initializer.mutable_uniform()->set_low(-limit);
  initializer.mutable_uniform()->set_high(limit);
  return initializer;
}

// A bias, or zeros that stay.
absl::StatusOr<std::string> CellBias(const job::ParamAttr& attr, bool wanted,
                                     int64_t width,
                                     const job::Initializer& initializer,
                                     const std::string& member,
                                     LayerContext* c) {
  if (wanted) return c->Bias(attr, {width}, initializer, member.c_str());
  job::ParamAttr fixed;
  fixed.set_trainable(false);
  return c->Bias(fixed, {width}, ConstantInitializer(0), member.c_str());
}

// The parameters of one layer and direction, "weight_ih" + suffix and so on.
template <typename Message>
absl::StatusOr<CellParameters> MakeCell(const Message& p, const RnnKind& kind,
                                        int64_t inputs,
                                        const std::string& suffix,
                                        LayerContext* c) {
  const LayerContext::Sublayer cell(c, kind.cell);
  const job::Initializer initializer =
      UniformInitializer(1 / std::sqrt(static_cast<double>(p.hidden_size())));
  const int64_t width = kind.gates * p.hidden_size();
  CellParameters made;
  PD_ASSIGN_OR_RETURN(made.weight_ih,
                      c->Weight(p.weight_ih_attr(), {width, inputs},
                                initializer, ("weight_ih" + suffix).c_str()));
  PD_ASSIGN_OR_RETURN(made.weight_hh,
                      c->Weight(p.weight_hh_attr(), {width, p.hidden_size()},
                                initializer, ("weight_hh" + suffix).c_str()));
  PD_ASSIGN_OR_RETURN(
      made.bias_ih, CellBias(p.bias_ih_attr(), p.bias_ih(), width, initializer,
                             "bias_ih" + suffix, c));
  PD_ASSIGN_OR_RETURN(
      made.bias_hh, CellBias(p.bias_hh_attr(), p.bias_hh(), width, initializer,
                             "bias_hh" + suffix, c));
  return made;
}

// The states that `field` names, checked, else zeros.
absl::StatusOr<Names> States(const char* field, const RnnKind& kind,
                             const Shape& wanted, int batch, int batch_at,
                             LayerContext* c) {
  Names states;
  const std::vector<LayerInput>& given = c->AllNamed(field);
  if (given.empty()) {
    for (size_t i = 0; i < kind.states; ++i) {
      PD_ASSIGN_OR_RETURN(const std::string zeros,
                          ZeroState(wanted, c->dtype(), batch, batch_at, c));
      states.push_back(zeros);
    }
    return states;
  }
  if (given.size() != kind.states)
    return InvalidArgument(
        "'%s' names %d; %s has %s", field, given.size(), c->kind(),
        kind.states == 1 ? "one state, h" : "two states, h and c");
  for (const LayerInput& state : given) {
    if (c->TypeOf(state.variable) != c->dtype() ||
        !Fits(c->ShapeOf(state.variable), wanted))
      return c->Misfit(absl::StrCat(Name(c->dtype()), " ", ToString(wanted),
                                    " for '", field, "'"),
                       state);
    states.push_back(state.variable);
  }
  return states;
}

absl::Status ExpectFloat(const LayerContext& c) {
  if (c.dtype() == DType::kFloat32) return absl::OkStatus();
  return c.Misfit(absl::StrCat("float32, not ", Name(c.dtype())));
}

absl::StatusOr<std::string> SwapBatchAndTime(const std::string& x,
                                             LayerContext* c) {
  OpDesc op;
  op.type = "transpose2";
  op.SetInput("X", {x});
  op.attrs["axis"] = std::vector<int32_t>{1, 0, 2};
  return c->Append(std::move(op), {"Out", "XShape"});
}

// The op's weights: those of all layers and directions, then the biases.
template <typename Message>
absl::StatusOr<Names> MakeWeights(const Message& p, const RnnKind& kind,
                                  int64_t inputs, int directions,
                                  LayerContext* c) {
  Names weights, biases;
  for (int layer = 0; layer < p.num_layers(); ++layer) {
    const int64_t width = layer == 0 ? inputs : directions * p.hidden_size();
    for (int direction = 0; direction < directions; ++direction) {
      const std::string suffix =
          absl::StrCat("_l", layer, direction == 1 ? "_reverse" : "");
      PD_ASSIGN_OR_RETURN(CellParameters cell,
                          MakeCell(p, kind, width, suffix, c));
      weights.insert(weights.end(), {cell.weight_ih, cell.weight_hh});
      biases.insert(biases.end(), {cell.bias_ih, cell.bias_hh});
    }
  }
  weights.insert(weights.end(), biases.begin(), biases.end());
  return weights;
}

template <typename Message>
absl::StatusOr<std::string> BuildRnn(const Message& p, const RnnKind& kind,
                                     LayerContext* c) {
  PD_RETURN_IF_ERROR(c->ExpectRank(3, 3,
                                   p.time_major()
                                       ? "sequences [time, N, input_size]"
                                       : "sequences [N, time, input_size]"));
  PD_RETURN_IF_ERROR(ExpectFloat(*c));
  const int64_t given = p.input_size();
  PD_ASSIGN_OR_RETURN(const int64_t inputs,
                      c->Extent(2, p.has_input_size() ? &given : nullptr,
                                "input features", "input_size"));
  const int directions = p.direction() == job::Direction::forward ? 1 : 2;
  const int batch_axis = p.time_major() ? 1 : 0;
  const int64_t batch = c->shape()[static_cast<size_t>(batch_axis)];
  PD_ASSIGN_OR_RETURN(const std::string lengths, SequenceLengths(batch, c));
  PD_ASSIGN_OR_RETURN(Names states, States("initial_states", kind,
                                           {p.num_layers() * directions, batch,
                                            p.hidden_size()},
                                           batch_axis, 1, c));
  PD_ASSIGN_OR_RETURN(Names weights,
                      MakeWeights(p, kind, inputs, directions, c));
  std::string x = c->input();
  if (!p.time_major()) {
    PD_ASSIGN_OR_RETURN(x, SwapBatchAndTime(x, c));
  }
  OpDesc op;
  op.type = "rnn";
  op.SetInput("Input", {x});
  op.SetInput("WeightList", std::move(weights));
  op.SetInput("PreState", std::move(states));
  if (!lengths.empty()) op.SetInput("SequenceLength", {lengths});
  op.attrs = {{"dropout_prob", static_cast<float>(p.dropout())},
              {"is_bidirec", directions == 2},
              {"input_size", static_cast<int32_t>(inputs)},
              {"hidden_size", static_cast<int32_t>(p.hidden_size())},
              {"num_layers", p.num_layers()},
              {"mode", std::string(kind.mode)},
              {"is_test", false}};
  Names last;
  for (size_t i = 0; i < kind.states; ++i)
    last.push_back(absl::StrCat(c->main()->UniqueTemporary("rnn"), ".state"));
  op.SetOutput("State", last);
  PD_ASSIGN_OR_RETURN(
      std::string out,
      c->Append(std::move(op), {"Out", "Reserve", "DropoutState"}));
  c->AddOutput("h", last[0]);
  if (kind.states > 1) c->AddOutput("c", last[1]);
  return p.time_major() ? out : SwapBatchAndTime(out, c);
}

absl::StatusOr<std::string> BuildSimpleRnn(LayerContext* c) {
  const job::SimpleRNN& p = c->layer().simple_rnn();
  return BuildRnn(p, p.activation() == job::SimpleRNN::relu ? kRelu : kTanh, c);
}

absl::StatusOr<std::string> BuildLstm(LayerContext* c) {
  return BuildRnn(c->layer().lstm(), kLstm, c);
}

absl::StatusOr<std::string> BuildGru(LayerContext* c) {
  return BuildRnn(c->layer().gru(), kGru, c);
}

// One step's ops.
class Cell {
 public:
  Cell(const RnnKind& kind, LayerContext* c) : kind_(kind), c_(c) {}

  template <typename Message>
  absl::Status Make(const Message& p) {
    PD_RETURN_IF_ERROR(c_->ExpectRank(2, 2, "one step [N, input_size]"));
    PD_RETURN_IF_ERROR(ExpectFloat(*c_));
    const int64_t given = p.input_size();
    PD_ASSIGN_OR_RETURN(const int64_t inputs,
                        c_->Extent(1, p.has_input_size() ? &given : nullptr,
                                   "input features", "input_size"));
    PD_ASSIGN_OR_RETURN(
        states_,
        States("states", kind_, {c_->shape()[0], p.hidden_size()}, 0, 0, c_));
    PD_ASSIGN_OR_RETURN(parameters_, MakeCell(p, kind_, inputs, "", c_));
    return absl::OkStatus();
  }

  // x W^T + b
  absl::StatusOr<std::string> Affine(const std::string& x,
                                     const std::string& weight,
                                     const std::string& bias) {
    OpDesc op;
    op.type = "matmul_v2";
    op.SetInput("X", {x});
    op.SetInput("Y", {weight});
    op.attrs = {{"trans_x", false}, {"trans_y", true}};
    PD_ASSIGN_OR_RETURN(const std::string product,
                        c_->Append(std::move(op), {"Out"}));
    return c_->Binary("elementwise_add", product, bias, 1);
  }
  absl::StatusOr<std::string> OfInput() {
    return Affine(c_->input(), parameters_.weight_ih, parameters_.bias_ih);
  }
  absl::StatusOr<std::string> OfState() {
    return Affine(states_[0], parameters_.weight_hh, parameters_.bias_hh);
  }

  absl::StatusOr<Names> Split(const std::string& gates) {
    OpDesc op;
    op.type = "split";
    op.SetInput("X", {gates});
    op.attrs = {{"num", int32_t{kind_.gates}}, {"axis", int32_t{1}}};
    const std::string stem = c_->main()->UniqueTemporary("split");
    Names parts;
    for (int i = 0; i < kind_.gates; ++i)
      parts.push_back(absl::StrCat(stem.substr(0, stem.size() - 1), i));
    op.SetOutput("Out", parts);
    PD_RETURN_IF_ERROR(c_->Append(std::move(op), {}).status());
    return parts;
  }

  // function(x + y)
  absl::StatusOr<std::string> OfSum(const char* function, const std::string& x,
                                    const std::string& y) {
    PD_ASSIGN_OR_RETURN(const std::string sum,
                        c_->Binary("elementwise_add", x, y));
    return c_->Unary(function, sum);
  }

  const std::string& state(size_t i) const { return states_[i]; }

 private:
  const RnnKind& kind_;
  LayerContext* c_;
  Names states_;
  CellParameters parameters_;
};

absl::StatusOr<std::string> BuildSimpleRnnCell(LayerContext* c) {
  const job::SimpleRNNCell& p = c->layer().simple_rnn_cell();
  Cell cell(kTanh, c);
  PD_RETURN_IF_ERROR(cell.Make(p));
  PD_ASSIGN_OR_RETURN(const std::string x, cell.OfInput());
  PD_ASSIGN_OR_RETURN(const std::string h, cell.OfState());
  return cell.OfSum(p.activation() == job::SimpleRNN::relu ? "relu" : "tanh", x,
                    h);
}

absl::StatusOr<std::string> BuildLstmCell(LayerContext* c) {
  Cell cell(kLstm, c);
  PD_RETURN_IF_ERROR(cell.Make(c->layer().lstm_cell()));
  PD_ASSIGN_OR_RETURN(const std::string x, cell.OfInput());
  PD_ASSIGN_OR_RETURN(const std::string h, cell.OfState());
  PD_ASSIGN_OR_RETURN(const std::string sum,
                      c->Binary("elementwise_add", x, h));
  PD_ASSIGN_OR_RETURN(const Names gates, cell.Split(sum));
  PD_ASSIGN_OR_RETURN(const std::string i, c->Unary("sigmoid", gates[0]));
  PD_ASSIGN_OR_RETURN(const std::string f, c->Unary("sigmoid", gates[1]));
  PD_ASSIGN_OR_RETURN(const std::string o, c->Unary("sigmoid", gates[3]));
  PD_ASSIGN_OR_RETURN(const std::string g, c->Unary("tanh", gates[2]));
  PD_ASSIGN_OR_RETURN(const std::string kept,
                      c->Binary("elementwise_mul", f, cell.state(1)));
  PD_ASSIGN_OR_RETURN(const std::string added,
                      c->Binary("elementwise_mul", i, g));
  PD_ASSIGN_OR_RETURN(const std::string next,
                      c->Binary("elementwise_add", kept, added));
  PD_ASSIGN_OR_RETURN(const std::string squashed, c->Unary("tanh", next));
  c->AddOutput("c", next);
  return c->Binary("elementwise_mul", o, squashed);
}

absl::StatusOr<std::string> BuildGruCell(LayerContext* c) {
  Cell cell(kGru, c);
  PD_RETURN_IF_ERROR(cell.Make(c->layer().gru_cell()));
  PD_ASSIGN_OR_RETURN(const std::string x_gates, cell.OfInput());
  PD_ASSIGN_OR_RETURN(const std::string h_gates, cell.OfState());
  PD_ASSIGN_OR_RETURN(const Names x, cell.Split(x_gates));
  PD_ASSIGN_OR_RETURN(const Names h, cell.Split(h_gates));
  PD_ASSIGN_OR_RETURN(const std::string r, cell.OfSum("sigmoid", x[0], h[0]));
  PD_ASSIGN_OR_RETURN(const std::string z, cell.OfSum("sigmoid", x[1], h[1]));
  // The reset gate stands behind the product.
  PD_ASSIGN_OR_RETURN(const std::string reset,
                      c->Binary("elementwise_mul", r, h[2]));
  PD_ASSIGN_OR_RETURN(const std::string next, cell.OfSum("tanh", x[2], reset));
  PD_ASSIGN_OR_RETURN(const std::string change,
                      c->Binary("elementwise_sub", cell.state(0), next));
  PD_ASSIGN_OR_RETURN(const std::string kept,
                      c->Binary("elementwise_mul", change, z));
  return c->Binary("elementwise_add", kept, next);
}

}  // namespace

absl::StatusOr<std::string> ZeroState(const Shape& shape, DType dtype,
                                      int batch, int batch_at,
                                      LayerContext* c) {
  OpDesc op;
  op.type = "fill_constant_batch_size_like";
  op.SetInput("Input", {c->input()});
  op.attrs = {{"shape", std::vector<int32_t>(shape.begin(), shape.end())},
              {"dtype", static_cast<int32_t>(dtype)},
              {"value", 0.0f},
              {"str_value", std::string("0")},
              {"input_dim_idx", int32_t{batch}},
              {"output_dim_idx", int32_t{batch_at}}};
  return c->Append(std::move(op), {"Out"});
}

absl::StatusOr<std::string> SequenceLengths(int64_t batch, LayerContext* c) {
  const LayerInput* lengths = c->Named("sequence_length");
  if (lengths == nullptr) return std::string();
  const DType dtype = c->TypeOf(lengths->variable);
  const Shape shape = c->ShapeOf(lengths->variable);
  if ((dtype != DType::kInt64 && dtype != DType::kInt32) ||
      (!Fits(shape, {batch}) && !Fits(shape, {batch, 1})))
    return c->Misfit(absl::StrCat("integers ", ToString(Shape{batch}),
                                  " for 'sequence_length', not ", Name(dtype)),
                     *lengths);
  if (shape.size() == 1) return lengths->variable;
  OpDesc op;
  op.type = "squeeze2";
  op.SetInput("X", {lengths->variable});
  op.attrs["axes"] = std::vector<int32_t>{1};
  return c->Append(std::move(op), {"Out", "XShape"});
}

void AddRnnLayers(LayerTable* table) {
  (*table)[job::Layer::kSimpleRnn] = {BuildSimpleRnn};
  (*table)[job::Layer::kLstm] = {BuildLstm};
  (*table)[job::Layer::kGru] = {BuildGru};
  (*table)[job::Layer::kSimpleRnnCell] = {BuildSimpleRnnCell};
  (*table)[job::Layer::kLstmCell] = {BuildLstmCell};
  (*table)[job::Layer::kGruCell] = {BuildGruCell};
}

}  // namespace pd
