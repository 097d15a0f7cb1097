// SPDX-License-Identifier: Apache-2.0
// recurrent: the StaticRNN of PaddlePaddle 1.x. sub_block runs once for each
// row of `inputs`, from the last one with `reverse`; inside of it an input is
// its row, `ex_states` are the values that `states` had in the run before, at
// first `initial_states`, and `outputs` are the block's, row by row. Where the
// program has the block's gradient, step_scopes keeps the variables of each
// run.
//
// recurrent_grad: runs its sub_block over the kept scopes, from the last to the
// first. In it outputs@GRAD have the row of the run, and the gradient of a
// state is what the later run made of its ex_state, 0 at first, and what
// outputs@GRAD say of it (PaddlePaddle forgets those). parameters@GRAD is the
// sum over the runs, initial_states@GRAD that of the first run's ex_states.
//
// rnn_memory_helper: Out = X, which names a state.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libcore/base/status_macros.h"
#include "libcore/ops/block_runner.h"
#include "libcore/ops/registry.h"
#include "libcore/ops/values.h"

namespace pd {
namespace {

using RecurrentNames = std::vector<std::string>;

RecurrentNames GradNames(const RecurrentNames& names) {
  RecurrentNames gradients;
  for (const std::string& name : names) gradients.push_back(GradName(name));
  return gradients;
}

// The parts that a recurrent op and its gradient share.
struct Recurrent {
  BlockRunner* blocks = nullptr;
  int32_t block = 0;
  bool reverse = false;
  RecurrentNames inputs, outputs, initial, ex_states, states;

  static absl::StatusOr<Recurrent> Of(BindContext* context) {
    Recurrent r;
    const OpDesc& op = context->op();
    r.blocks = context->blocks();
    r.block = context->Attr<BlockRef>("sub_block").index;
    r.reverse = context->Attr<bool>("reverse");
    r.inputs = op.Input("inputs");
    r.initial = op.Input("initial_states");
    r.outputs =
        op.type == "recurrent" ? op.Output("outputs") : op.Input("outputs");
    r.ex_states = context->Attr<RecurrentNames>("ex_states");
    r.states = context->Attr<RecurrentNames>("states");
    if (r.inputs.empty() || r.states.size() != r.ex_states.size() ||
        (!r.states.empty() && r.states.size() != r.initial.size()))
      return InvalidArgument(
          "there are %d inputs, %d states, %d ex_states and %d "
          "initial_states; expected an input, and as many of each",
          r.inputs.size(), r.states.size(), r.ex_states.size(),
          r.initial.size());
    return r;
  }

  Values* values() const { return blocks->values(); }

  absl::StatusOr<Tensor*> Outside(const std::string& name) const {
    const Frame::Variable* variable = blocks->frame()->Find(name);
    if (variable == nullptr || !variable->tensor->has_value())
      return FailedPrecondition("variable '%s' has no value", name);
    return variable->tensor;
  }

  // The rows of a variable around the block.
  absl::StatusOr<std::vector<Tensor>> RowsOf(const std::string& name) const {
    PD_ASSIGN_OR_RETURN(const Tensor* whole, Outside(name));
    if (whole->kind() != VarKind::kLodTensor || whole->rank() == 0)
      return InvalidArgument("'%s' has shape %s; expected rows", name,
                             ToString(whole->shape()));
    const Shape row(whole->shape().begin() + 1, whole->shape().end());
    std::vector<Tensor> like(static_cast<size_t>(whole->dim(0)),
                             Tensor(whole->dtype(), row));
    return values()->Split(*whole, 1, like);
  }

  // The rows of all `names`, which are as many.
  absl::StatusOr<std::vector<std::vector<Tensor>>> AllRows(
      const RecurrentNames& names) const {
    std::vector<std::vector<Tensor>> all;
    for (const std::string& name : names) {
      PD_ASSIGN_OR_RETURN(all.emplace_back(), RowsOf(name));
      if (all.back().size() != all.front().size())
        return InvalidArgument("'%s' has %d rows, '%s' has %d", names.front(),
                               all.front().size(), name, all.back().size());
    }
    return all;
  }

  // Sets a variable around the block.
  absl::Status Give(Tensor value, const std::string& name) const {
    const Frame::Variable* variable = blocks->frame()->Find(name);
    if (variable == nullptr)
      return InvalidArgument("there is no variable '%s'", name);
    if (variable->fixed) return values()->Copy(value, variable->tensor);
    *variable->tensor = std::move(value);
    return absl::OkStatus();
  }

  // The same with rows put together.
  absl::Status GiveRows(const std::vector<Tensor>& rows,
                        const std::string& name) const {
    for (const Tensor& row : rows)
      if (row.shape() != rows.front().shape() ||
          row.dtype() != rows.front().dtype() ||
          row.kind() != VarKind::kLodTensor)
        return InvalidArgument("rows %s%s and %s%s of '%s'",
                               Name(rows.front().dtype()),
                               ToString(rows.front().shape()),
                               Name(row.dtype()), ToString(row.shape()), name);
    Shape shape = rows.front().shape();
    shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
    PD_ASSIGN_OR_RETURN(Tensor whole, values()->Join(rows, 1, shape));
    return Give(std::move(whole), name);
  }

  // Number `step` from the first run on is this row of `n`.
  size_t RowOfStep(size_t step, size_t n) const {
    return reverse ? n - 1 - step : step;
  }
};

absl::StatusOr<Tensor> ValueIn(const Frame& frame, const std::string& name) {
  const Frame::Variable* variable = frame.Find(name);
  if (variable == nullptr || !variable->tensor->has_value())
    return FailedPrecondition("the block gives '%s' no value", name);
  return *variable->tensor;
}

absl::Status RunRecurrent(const Recurrent& r, Tensor* scopes, bool keep,
                          const RunContext& run) {
  scopes->set_kind(VarKind::kStepScopes);
  scopes->frames().clear();
  PD_ASSIGN_OR_RETURN(auto rows, r.AllRows(r.inputs));
  const size_t n = rows.front().size();
  if (n == 0) return InvalidArgument("'%s' has no rows", r.inputs.front());
  std::vector<Tensor> states;
  for (const std::string& name : r.initial) {
    PD_ASSIGN_OR_RETURN(const Tensor* state, r.Outside(name));
    PD_ASSIGN_OR_RETURN(states.emplace_back(), r.values()->Clone(*state));
  }
  std::vector<std::vector<Tensor>> results(r.outputs.size(),
                                           std::vector<Tensor>(n));
  for (size_t step = 0; step < n; ++step) {
    const size_t row = r.RowOfStep(step, n);
    auto frame = std::make_shared<Frame>(r.blocks->frame());
    for (size_t i = 0; i < r.inputs.size(); ++i)
      *frame->Make(r.inputs[i]).tensor = std::move(rows[i][row]);
    for (size_t i = 0; i < r.ex_states.size(); ++i)
      *frame->Make(r.ex_states[i]).tensor = states[i];
    PD_RETURN_IF_ERROR(r.blocks->Run(r.block, frame.get(), run));
    for (size_t i = 0; i < r.states.size(); ++i) {
      PD_ASSIGN_OR_RETURN(const Tensor state, ValueIn(*frame, r.states[i]));
      PD_ASSIGN_OR_RETURN(states[i], r.values()->Clone(state));
    }
    for (size_t i = 0; i < r.outputs.size(); ++i) {
      PD_ASSIGN_OR_RETURN(const Tensor out, ValueIn(*frame, r.outputs[i]));
      PD_ASSIGN_OR_RETURN(results[i][row], r.values()->Clone(out));
    }
    if (keep) scopes->frames().push_back(std::move(frame));
  }
  for (size_t i = 0; i < r.outputs.size(); ++i)
    PD_RETURN_IF_ERROR(r.GiveRows(results[i], r.outputs[i]));
  return absl::OkStatus();
}

absl::StatusOr<Step> BindRecurrent(BindContext* context) {
  PD_ASSIGN_OR_RETURN(const Recurrent r, Recurrent::Of(context));
  Tensor* scopes = context->Output("step_scopes");
  const bool keep = r.blocks->HasGradient(r.block);
  return Step([=](const RunContext& run) {
    return RunRecurrent(r, scopes, keep, run);
  });
}

struct RecurrentGrad {
  Recurrent r;
  bool only = false;          // nothing reads the scopes afterwards
  RecurrentNames given;       // outputs@GRAD
  RecurrentNames parameters;  // forward names
  RecurrentNames to_inputs, to_initial, to_parameters;  // may be @EMPTY@

  absl::Status Run(Tensor* scopes, const RunContext& run);

 private:
  absl::Status Begin(size_t row, const Frame& kept, Frame* frame);
  absl::Status End(size_t row, const Frame& frame);
  absl::Status Finish();

  // The state of one call of Run.
  std::vector<std::vector<Tensor>> given_rows_, input_rows_;
  std::vector<Tensor> states_, sums_;
};

// Puts the gradients that a run of the block begins with into its frame.
absl::Status RecurrentGrad::Begin(size_t row, const Frame& kept, Frame* frame) {
  for (size_t i = 0; i < given.size(); ++i)
    if (!given_rows_[i].empty())
      *frame->Make(given[i]).tensor = given_rows_[i][row];
  for (size_t i = 0; i < r.states.size(); ++i) {
    Tensor* gradient = frame->Make(GradName(r.states[i])).tensor;
    if (states_[i].has_value()) {
      PD_RETURN_IF_ERROR(r.values()->Accumulate(states_[i], gradient));
    } else if (!gradient->has_value()) {
      PD_ASSIGN_OR_RETURN(const Tensor state, ValueIn(kept, r.states[i]));
      PD_RETURN_IF_ERROR(r.values()->ZerosLike(state, gradient));
    }
  }
  return absl::OkStatus();
}

// Takes the gradients that it has made.
absl::Status RecurrentGrad::End(size_t row, const Frame& frame) {
  const auto made = [&frame](const std::string& name) -> const Tensor* {
    const Frame::Variable* variable = frame.FindLocal(GradName(name));
    return variable == nullptr || !variable->tensor->has_value()
               ? nullptr
               : variable->tensor;
  };
  for (size_t i = 0; i < r.ex_states.size(); ++i) {
    states_[i] = Tensor();
    if (const Tensor* gradient = made(r.ex_states[i])) {
      PD_ASSIGN_OR_RETURN(states_[i], r.values()->Clone(*gradient));
    }
  }
  for (size_t i = 0; i < parameters.size(); ++i)
    if (const Tensor* gradient = made(parameters[i]);
        gradient != nullptr && to_parameters[i] != kEmptyVar)
      PD_RETURN_IF_ERROR(r.values()->Accumulate(*gradient, &sums_[i]));
  for (size_t i = 0; i < r.inputs.size(); ++i)
    if (const Tensor* gradient = made(r.inputs[i]);
        gradient != nullptr && to_inputs[i] != kEmptyVar) {
      PD_ASSIGN_OR_RETURN(input_rows_[i][row], r.values()->Clone(*gradient));
    }
  return absl::OkStatus();
}

// Writes the gradients around the block; what nothing has made is 0.
absl::Status RecurrentGrad::Finish() {
  const auto give = [this](const Tensor& made, const std::string& of,
                           const std::string& name) -> absl::Status {
    if (name == kEmptyVar) return absl::OkStatus();
    if (made.has_value()) return r.Give(made, name);
    PD_ASSIGN_OR_RETURN(const Tensor* value, r.Outside(of));
    Tensor zeros;
    PD_RETURN_IF_ERROR(r.values()->ZerosLike(*value, &zeros));
    return r.Give(std::move(zeros), name);
  };
  for (size_t i = 0; i < r.initial.size(); ++i)
    PD_RETURN_IF_ERROR(give(i < states_.size() ? states_[i] : Tensor(),
                            r.initial[i], to_initial[i]));
  for (size_t i = 0; i < parameters.size(); ++i)
    PD_RETURN_IF_ERROR(give(sums_[i], parameters[i], to_parameters[i]));
  for (size_t i = 0; i < r.inputs.size(); ++i) {
    std::vector<Tensor>& rows = input_rows_[i];
    const bool all = !rows.empty() &&
                     std::all_of(rows.begin(), rows.end(),
                                 [](const auto& t) { return t.has_value(); });
    if (all && to_inputs[i] != kEmptyVar)
      PD_RETURN_IF_ERROR(r.GiveRows(rows, to_inputs[i]));
    else
      PD_RETURN_IF_ERROR(give(Tensor(), r.inputs[i], to_inputs[i]));
  }
  return absl::OkStatus();
}

absl::Status RecurrentGrad::Run(Tensor* scopes, const RunContext& run) {
  auto& frames = scopes->frames();
  const size_t n = frames.size();
  PD_ASSIGN_OR_RETURN(const std::vector<Tensor> rows,
                      r.RowsOf(r.inputs.front()));
  if (rows.size() != n)
    return FailedPrecondition("'step_scopes' keeps %d runs; '%s' has %d rows",
                              n, r.inputs.front(), rows.size());
  given_rows_.assign(given.size(), {});
  for (size_t i = 0; i < given.size(); ++i) {
    const Frame::Variable* variable =
        given[i] == kEmptyVar ? nullptr : r.blocks->frame()->Find(given[i]);
    if (variable == nullptr || !variable->tensor->has_value()) continue;
    PD_ASSIGN_OR_RETURN(given_rows_[i], r.RowsOf(given[i]));
    if (given_rows_[i].size() != n)
      return InvalidArgument("'%s' has %d rows; expected %d", given[i],
                             given_rows_[i].size(), n);
  }
  input_rows_.assign(r.inputs.size(), std::vector<Tensor>(n));
  states_.assign(r.states.size(), Tensor());
  sums_.assign(parameters.size(), Tensor());
  for (size_t step = n; step-- > 0;) {
    Frame* kept = frames[step].get();
    kept->set_parent(r.blocks->frame());
    // Gradients in a frame of their own: a second gradient block finds the kept
    // variables alone.
    Frame frame(kept);
    PD_RETURN_IF_ERROR(Begin(r.RowOfStep(step, n), *kept, &frame));
    PD_RETURN_IF_ERROR(r.blocks->Run(r.block, &frame, run));
    PD_RETURN_IF_ERROR(End(r.RowOfStep(step, n), frame));
  }
  if (only) frames.clear();
  return Finish();
}

absl::StatusOr<Step> BindRecurrentGrad(BindContext* context) {
  RecurrentGrad grad;
  PD_ASSIGN_OR_RETURN(grad.r, Recurrent::Of(context));
  const OpDesc& op = context->op();
  grad.only = grad.r.blocks->IsOnlyGradient(grad.r.block);
  grad.given = op.Input("outputs@GRAD");
  grad.parameters = op.Input("parameters");
  const auto fit = [&op](const char* slot, const RecurrentNames& of,
                         RecurrentNames* names) {
    *names = op.Output(slot);
    if (names->empty()) names->assign(of.size(), std::string(kEmptyVar));
    return names->size() == of.size();
  };
  if (!fit("inputs@GRAD", grad.r.inputs, &grad.to_inputs) ||
      !fit("initial_states@GRAD", grad.r.initial, &grad.to_initial) ||
      !fit("parameters@GRAD", grad.parameters, &grad.to_parameters))
    return InvalidArgument("there are not as many gradients as inputs");
  Tensor* scopes = context->Input("step_scopes");
  if (scopes == nullptr)
    return InvalidArgument(
        "'step_scopes' has no value: the recurrent op did not run");
  return Step([grad, scopes](const RunContext& run) mutable {
    return grad.Run(scopes, run);
  });
}

absl::StatusOr<Step> BindMemoryHelper(BindContext* context) {
  context->Alias(context->Input("X"), context->Output("Out"));
  return Step();
}

absl::StatusOr<Step> BindMemoryHelperGrad(BindContext* context) {
  context->Alias(context->Input("Out@GRAD"), context->Output("X@GRAD"));
  return Step();
}

absl::Status InferMemoryHelperGrad(InferContext* context) {
  context->Share("Out@GRAD", "X@GRAD");
  return absl::OkStatus();
}

void AddRecurrentAttrs(OpDef* op) {
  op->Inputs("inputs").OptionalInputs("initial_states");
  op->OptionalInputs("parameters");
  op->RequiredAttr("sub_block", AttrType::kBlock);
  op->Attr("has_states", false).Attr("reverse", false).Attr("is_train", true);
  for (const char* name : {"ex_states", "states", "skip_eager_deletion_vars"})
    op->Attr(name, RecurrentNames());
  op->RunsBlocks().NoGrad();
}

}  // namespace

absl::Status RegisterRecurrent(OpRegistry* registry) {
  OpDef op("recurrent");
  AddRecurrentAttrs(&op);
  op.Outputs("outputs").Output("step_scopes");
  op.Infer(InferNothing).Reference(BindRecurrent);
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));

  OpDef grad("recurrent_grad");
  AddRecurrentAttrs(&grad);
  grad.OptionalInputs("outputs").OptionalInputs("outputs@GRAD");
  grad.Input("step_scopes").OptionalInput("step_scopes@GRAD");
  for (const char* slot :
       {"inputs@GRAD", "initial_states@GRAD", "parameters@GRAD"})
    grad.OptionalOutputs(slot);
  grad.Infer(InferGradLikeInput).Reference(BindRecurrentGrad);
  PD_RETURN_IF_ERROR(registry->Add(std::move(grad)));

  OpDef helper("rnn_memory_helper");
  helper.Input("X").Output("Out").Attr("dtype", int32_t{5});
  helper.Infer(InferUnary).Reference(BindMemoryHelper);
  helper.Grad(
      GradSpec{"rnn_memory_helper_grad", {"X"}, {"Out"}, {"Out"}, {"X"}});
  PD_RETURN_IF_ERROR(registry->Add(std::move(helper)));

  OpDef helper_grad("rnn_memory_helper_grad");
  helper_grad.OptionalInput("X").OptionalInput("Out").Input("Out@GRAD");
  helper_grad.Output("X@GRAD").Attr("dtype", int32_t{5});
  helper_grad.Infer(InferMemoryHelperGrad).NoGrad();
  return registry->Add(std::move(helper_grad.Reference(BindMemoryHelperGrad)));
}

}  // namespace pd
