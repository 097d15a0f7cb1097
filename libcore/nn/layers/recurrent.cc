// SPDX-License-Identifier: Apache-2.0
// rnn, bi_rnn: the steps of a sequence one after the other, each with ops of
// its own, as PaddlePaddle's rnn() runs them. So gradients are those of any
// other layers, and the number of steps must be known.
#include "libcore/nn/layers/recurrent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/output_names.h"

namespace pd {

absl::StatusOr<std::vector<Shape>> StepCell::StateShapes() const {
  if (cell_.has_block()) {
    if (cell_.state_shape().empty())
      return InvalidArgument(
          "'%s' is the block '%s', whose states nothing tells; name the first "
          "ones, or give their shapes with 'state_shape' of '%s'",
          field_, cell_.block().use(), field_);
    std::vector<Shape> shapes;
    for (const job::StateShape& state : cell_.state_shape()) {
      shapes.push_back({-1});
      shapes.back().insert(shapes.back().end(), state.shape().begin(),
                           state.shape().end());
    }
    return shapes;
  }
  const int64_t width = cell_.has_lstm_cell() ? cell_.lstm_cell().hidden_size()
                        : cell_.has_gru_cell()
                            ? cell_.gru_cell().hidden_size()
                            : cell_.simple_rnn_cell().hidden_size();
  return std::vector<Shape>(states(), {-1, width});
}

size_t StepCell::states() const {
  if (cell_.has_block()) return static_cast<size_t>(cell_.state_shape_size());
  return cell_.has_lstm_cell() ? 2 : 1;
}

absl::StatusOr<StepCell::Result> StepCell::Step(
    const std::string& input, const std::vector<std::string>& states) {
  const std::string maker = absl::StrCat("a step of ", c_->Called());
  LayerReads reads;
  reads.inputs.push_back({input, maker});
  for (const std::string& state : states)
    (cell_.has_block() ? reads.inputs : reads.fields["states"])
        .push_back({state, maker});
  if (!cell_.has_block() && !kwargs_.empty())
    return InvalidArgument(
        "'kwargs' names %d; only a cell that is a block reads more than its "
        "input and states",
        kwargs_.size());
  reads.inputs.insert(reads.inputs.end(), kwargs_.begin(), kwargs_.end());
  PD_ASSIGN_OR_RETURN(LayerResults made, c_->Part(field_, std::move(reads)));
  Result result;
  result.output = made.first.variable;
  if (!cell_.has_block())
    made.others.insert(made.others.begin(), {"h", result.output});
  if (made.others.size() != states.size())
    return InvalidArgument(
        "the block '%s' reads %d states and gives %d; 'output' of a cell's "
        "block names what the step gives, then its new states",
        cell_.block().use(), states.size(), made.others.size());
  state_names_.clear();
  for (LayerOutput& state : made.others) {
    result.states.push_back(std::move(state.variable));
    state_names_.push_back(std::move(state.name));
  }
  return result;
}

namespace {

using Names = std::vector<std::string>;

// Most steps of one layer.
constexpr int64_t kMostSteps = 65536;

// The slices of `x` along `axis`, without it.
absl::StatusOr<Names> Unstack(const std::string& x, int axis, int64_t count,
                              LayerContext* c) {
  OpDesc op;
  op.type = "unstack";
  op.SetInput("X", {x});
  op.attrs = {{"axis", int32_t{axis}}, {"num", static_cast<int32_t>(count)}};
  const std::string first = c->main()->UniqueTemporary("unstack");
  Names slices;
  for (int64_t i = 0; i < count; ++i)
    slices.push_back(TemporaryBeside(first, static_cast<size_t>(i)));
  op.SetOutput("Y", slices);
  PD_RETURN_IF_ERROR(c->Append(std::move(op), {}).status());
  return slices;
}

// The layer's input sequence, step by step.
struct Sequence {
  int time_axis = 1, batch_axis = 0;
  Names steps;
  Names kept,
      held;  // [N]: 1 in the sequence, 1 behind it; none without lengths
};

absl::StatusOr<Sequence> ReadSequence(bool time_major, LayerContext* c) {
  Sequence s;
  if (time_major) std::swap(s.time_axis, s.batch_axis);
  const char* const wanted =
      time_major ? "sequences [time, N, ...]" : "sequences [N, time, ...]";
  PD_RETURN_IF_ERROR(c->ExpectRank(2, 8, wanted));
  const int64_t count = c->shape()[static_cast<size_t>(s.time_axis)];
  if (count < 1 || count > kMostSteps)
    return c->Misfit(absl::StrCat(wanted,
                                  " with a known number of steps, 1 to ",
                                  kMostSteps, ", on axis ", s.time_axis));
  PD_ASSIGN_OR_RETURN(
      const std::string lengths,
      SequenceLengths(c->shape()[static_cast<size_t>(s.batch_axis)], c));
  PD_ASSIGN_OR_RETURN(s.steps, Unstack(c->input(), s.time_axis, count, c));
  if (lengths.empty()) return s;
  OpDesc op;
  op.type = "sequence_mask";
  op.SetInput("X", {lengths});
  op.attrs = {{"maxlen", static_cast<int32_t>(count)},
              {"out_dtype", static_cast<int32_t>(DType::kFloat32)}};
  PD_ASSIGN_OR_RETURN(const std::string mask, c->Append(std::move(op), {"Y"}));
  PD_ASSIGN_OR_RETURN(
      const std::string others,
      c->Unary("scale", mask,
               {{"scale", -1.0f}, {"bias", 1.0f}, {"bias_after_scale", true}}));
  PD_ASSIGN_OR_RETURN(s.kept, Unstack(mask, 1, count, c));
  PD_ASSIGN_OR_RETURN(s.held, Unstack(others, 1, count, c));
  return s;
}

// The new state in the sequence, the old one behind it.
absl::StatusOr<std::string> Held(const std::string& old,
                                 const std::string& next, const Sequence& s,
                                 size_t step, LayerContext* c) {
  if (s.kept.empty()) return next;
  if (c->TypeOf(next) != DType::kFloat32)
    return InvalidArgument(
        "a state of the cell is %s; with 'sequence_length' expected float32",
        Name(c->TypeOf(next)));
  PD_ASSIGN_OR_RETURN(const std::string a,
                      c->Binary("elementwise_mul", next, s.kept[step], 0));
  PD_ASSIGN_OR_RETURN(const std::string b,
                      c->Binary("elementwise_mul", old, s.held[step], 0));
  return c->Binary("elementwise_add", a, b);
}

struct Ran {
  std::string outputs;
  Names states, state_names;
};

absl::StatusOr<Ran> Run(StepCell cell, const Sequence& s, Names states,
                        bool reverse, LayerContext* c) {
  const size_t count = s.steps.size();
  Names outputs(count);
  cell.set_kwargs(c->AllNamed("kwargs"));
  for (size_t i = 0; i < count; ++i) {
    const size_t at = reverse ? count - 1 - i : i;
    PD_ASSIGN_OR_RETURN(StepCell::Result made, cell.Step(s.steps[at], states));
    outputs[at] = made.output;
    for (size_t k = 0; k < states.size(); ++k) {
      PD_ASSIGN_OR_RETURN(states[k], Held(states[k], made.states[k], s, at, c));
    }
  }
  OpDesc op;
  op.type = "stack";
  op.SetInput("X", std::move(outputs));
  op.attrs["axis"] = int32_t{s.time_axis};
  Ran ran;
  PD_ASSIGN_OR_RETURN(ran.outputs, c->Append(std::move(op), {"Y"}));
  ran.states = std::move(states);
  ran.state_names = cell.state_names();
  return ran;
}

// Of all cells one after the other: what 'initial_states' names, else zeros.
absl::StatusOr<std::vector<Names>> FirstStates(
    const std::vector<const StepCell*>& cells, const Sequence& s,
    LayerContext* c) {
  const std::vector<LayerInput>& given = c->AllNamed("initial_states");
  std::vector<Names> all(cells.size());
  for (size_t i = 0; given.empty() && i < cells.size(); ++i) {
    PD_ASSIGN_OR_RETURN(const std::vector<Shape> shapes,
                        cells[i]->StateShapes());
    for (const Shape& shape : shapes) {
      PD_ASSIGN_OR_RETURN(std::string zeros, ZeroState(shape, DType::kFloat32,
                                                       s.batch_axis, 0, c));
      all[i].push_back(std::move(zeros));
    }
  }
  if (given.empty()) return all;
  size_t wanted = 0, told = 0;
  for (const StepCell* cell : cells) {
    wanted += cell->states();
    told += cell->states() > 0;
  }
  if (told == 0 && given.size() % cells.size() == 0) wanted = given.size();
  if (given.size() != wanted)
    return InvalidArgument("'initial_states' names %d; %s %d", given.size(),
                           cells.size() > 1 ? "the cells have" : "the cell has",
                           wanted);
  size_t at = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t count =
        told == 0 ? given.size() / cells.size() : cells[i]->states();
    for (size_t k = 0; k < count; ++k) all[i].push_back(given[at++].variable);
  }
  return all;
}

absl::StatusOr<std::string> BuildRnn(LayerContext* c) {
  const job::RNN& p = c->layer().rnn();
  PD_ASSIGN_OR_RETURN(const Sequence s, ReadSequence(p.time_major(), c));
  const StepCell cell("cell", p.cell(), c);
  PD_ASSIGN_OR_RETURN(std::vector<Names> states, FirstStates({&cell}, s, c));
  PD_ASSIGN_OR_RETURN(Ran ran,
                      Run(cell, s, std::move(states[0]), p.is_reverse(), c));
  for (size_t k = 0; k < ran.states.size(); ++k)
    c->AddOutput(ran.state_names[k], ran.states[k]);
  return ran.outputs;
}

absl::StatusOr<std::string> BuildBiRnn(LayerContext* c) {
  const job::BiRNN& p = c->layer().bi_rnn();
  PD_ASSIGN_OR_RETURN(const Sequence s, ReadSequence(p.time_major(), c));
  const StepCell fw("cell_fw", p.cell_fw(), c), bw("cell_bw", p.cell_bw(), c);
  PD_ASSIGN_OR_RETURN(std::vector<Names> states, FirstStates({&fw, &bw}, s, c));
  Names outputs;
  for (size_t i = 0; i < 2; ++i) {
    PD_ASSIGN_OR_RETURN(
        Ran ran, Run(i == 0 ? fw : bw, s, std::move(states[i]), i == 1, c));
    for (size_t k = 0; k < ran.states.size(); ++k)
      c->AddOutput(absl::StrCat(i == 0 ? "fw:" : "bw:", ran.state_names[k]),
                   ran.states[k]);
    outputs.push_back(std::move(ran.outputs));
  }
  OpDesc op;
  op.type = "concat";
  const auto last = static_cast<int32_t>(c->ShapeOf(outputs[0]).size()) - 1;
  op.SetInput("X", std::move(outputs));
  op.attrs["axis"] = last;
  return c->Append(std::move(op), {"Out"});
}

}  // namespace

void AddRecurrentLayers(LayerTable* table) {
  (*table)[job::Layer::kRnn] = {BuildRnn};
  (*table)[job::Layer::kBiRnn] = {BuildBiRnn};
}

}  // namespace pd
