// SPDX-License-Identifier: Apache-2.0
// rnn, bi_rnn: the steps of a sequence one after the other. Where their number
// is known each has ops of its own, as PaddlePaddle's rnn() runs them; where it
// is not they are the runs of a loop.
#include "libcore/nn/layers/recurrent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "libcore/nn/layers/loop.h"
#include "libcore/nn/op_chain.h"
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
    if (state.variable.empty())
      return InvalidArgument(
          "'%s' of the block '%s' is no tensor; a state of a cell is one",
          state.name, cell_.block().use());
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
  Names steps;          // none where their number is not known
  std::string lengths;  // [N]; "" where the sequence has all steps
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
  if (count == 0 || count > kMostSteps)
    return c->Misfit(absl::StrCat(wanted, " with 1 to ", kMostSteps,
                                  " steps, on axis ", s.time_axis));
  PD_ASSIGN_OR_RETURN(
      s.lengths,
      SequenceLengths(c->shape()[static_cast<size_t>(s.batch_axis)], c));
  if (count < 0) return s;
  PD_ASSIGN_OR_RETURN(s.steps, Unstack(c->input(), s.time_axis, count, c));
  if (s.lengths.empty()) return s;
  OpDesc op;
  op.type = "sequence_mask";
  op.SetInput("X", {s.lengths});
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

// The new state in the sequence, the old one behind it; `kept` and `held` are
// of one step.
absl::StatusOr<std::string> Held(const std::string& old,
                                 const std::string& next,
                                 const std::string& kept,
                                 const std::string& held, LayerContext* c) {
  if (c->TypeOf(next) != DType::kFloat32)
    return InvalidArgument(
        "a state of the cell is %s; with 'sequence_length' expected float32",
        Name(c->TypeOf(next)));
  PD_ASSIGN_OR_RETURN(const std::string a,
                      c->Binary("elementwise_mul", next, kept, 0));
  PD_ASSIGN_OR_RETURN(const std::string b,
                      c->Binary("elementwise_mul", old, held, 0));
  return c->Binary("elementwise_add", a, b);
}

struct Ran {
  std::string outputs;
  Names states, state_names;
};

// The steps of a sequence as the runs of a loop.
class OpenRun {
 public:
  OpenRun(StepCell cell, const Sequence& s, bool reverse, LayerContext* c)
      : cell_(std::move(cell)),
        s_(s),
        reverse_(reverse),
        c_(c),
        ops_(c->main()) {}

  absl::StatusOr<Ran> Build(const Names& first) {
    cell_.set_kwargs(c_->AllNamed("kwargs"));
    count_ = ops_.Cast(ops_.Extent(c_->input(), s_.time_axis), DType::kInt64);
    const std::string zero = ops_.Full({1}, DType::kInt64, 0);
    if (!s_.lengths.empty()) {
      kept_ = ops_.SequenceMask(s_.lengths, c_->input(), s_.time_axis);
      held_ = ops_.Scale(kept_, -1, 1);
    }
    const std::string condition = ops_.Binary("less_than", zero, count_);
    PD_RETURN_IF_ERROR(Check());
    VarDesc outputs;
    outputs.name = outputs_ = c_->main()->UniqueTemporary("array");
    outputs.kind = VarKind::kLodTensorArray;
    c_->main()->AddVar(std::move(outputs));
    Loop loop(c_);
    PD_ASSIGN_OR_RETURN(step_, loop.Add(zero, "the number of the step"));
    for (const std::string& state : first) {
      PD_ASSIGN_OR_RETURN(
          std::string variable,
          loop.Add(state,
                   absl::StrCat("state ", states_.size() + 1, " of the cell")));
      states_.push_back(std::move(variable));
    }
    PD_RETURN_IF_ERROR(loop.Build(condition, [this] { return Step(); }));
    return End();
  }

 private:
  absl::Status Check() const {
    return Annotate(ops_.Give("").status(), c_->Described());
  }

  // x at `place` of an axis, without the axis.
  std::string At(const std::string& x, const std::string& place, int axis) {
    return ops_.Squeeze(ops_.Op("gather", {{"X", x}, {"Index", place}}, {"Out"},
                                {{"axis", int32_t{axis}}}),
                        axis);
  }

  absl::StatusOr<Loop::Run> Step() {
    const std::string next = ops_.Scale(step_, 1, 1);
    const std::string at = reverse_ ? ops_.Sub(count_, next) : step_;
    const std::string x = At(c_->input(), at, s_.time_axis);
    PD_RETURN_IF_ERROR(Check());
    PD_ASSIGN_OR_RETURN(StepCell::Result made, cell_.Step(x, states_));
    if (!kept_.empty()) {
      const std::string kept = At(kept_, at, 1), held = At(held_, at, 1);
      PD_RETURN_IF_ERROR(Check());
      for (size_t k = 0; k < states_.size(); ++k) {
        PD_ASSIGN_OR_RETURN(made.states[k],
                            Held(states_[k], made.states[k], kept, held, c_));
      }
    }
    OpDesc write;
    write.type = "write_to_array";
    write.SetInput("X", {made.output});
    write.SetInput("I", {at});
    write.SetOutput("Out", {outputs_});
    PD_RETURN_IF_ERROR(c_->main()->Append(std::move(write)));
    shape_ = c_->ShapeOf(made.output);
    dtype_ = c_->TypeOf(made.output);
    Loop::Run run;
    run.condition = ops_.Binary("less_than", next, count_);
    PD_RETURN_IF_ERROR(Check());
    run.values = {next};
    run.values.insert(run.values.end(), made.states.begin(), made.states.end());
    return run;
  }

  absl::StatusOr<Ran> End() {
    VarDesc* array = c_->main()->MutableVar(outputs_);
    array->shape = shape_;
    array->dtype = dtype_;
    OpDesc join;
    join.type = "tensor_array_to_tensor";
    join.SetInput("X", {outputs_});
    join.attrs = {{"axis", int32_t{s_.time_axis}}, {"use_stack", true}};
    Ran ran;
    PD_ASSIGN_OR_RETURN(ran.outputs,
                        c_->Append(std::move(join), {"Out", "OutIndex"}));
    shape_.insert(shape_.begin() + s_.time_axis, -1);
    c_->main()->MutableVar(ran.outputs)->shape = shape_;
    ran.states = states_;
    ran.state_names = cell_.state_names();
    return ran;
  }

  StepCell cell_;
  const Sequence& s_;
  const bool reverse_;
  LayerContext* c_;
  OpChain ops_;
  std::string count_, step_;  // int64 [1]
  std::string kept_, held_;   // [N, time]: see Sequence
  std::string outputs_;       // the array of the cell's outputs
  Names states_;
  Shape shape_;  // of an output
  DType dtype_ = DType::kFloat32;
};

absl::StatusOr<Ran> Run(StepCell cell, const Sequence& s, Names states,
                        bool reverse, LayerContext* c) {
  const size_t count = s.steps.size();
  if (count == 0) return OpenRun(std::move(cell), s, reverse, c).Build(states);
  Names outputs(count);
  cell.set_kwargs(c->AllNamed("kwargs"));
  for (size_t i = 0; i < count; ++i) {
    const size_t at = reverse ? count - 1 - i : i;
    PD_ASSIGN_OR_RETURN(StepCell::Result made, cell.Step(s.steps[at], states));
    outputs[at] = made.output;
    for (size_t k = 0; k < states.size(); ++k) {
      if (s.kept.empty()) {
        states[k] = made.states[k];
        continue;
      }
      PD_ASSIGN_OR_RETURN(states[k], Held(states[k], made.states[k], s.kept[at],
                                          s.held[at], c));
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
