// SPDX-License-Identifier: Apache-2.0
#include "libcore/inference/engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace inference {
namespace {

std::vector<std::shared_ptr<Variable>> Variables(
    const SharedModel& model, const std::vector<std::string>& names,
    bool inputs) {
  std::vector<std::shared_ptr<Variable>> variables;
  for (const std::string& name : names) {
    const VarDesc* var = model.Declared(name);
    variables.push_back(std::make_shared<Variable>(
        name, inputs, var == nullptr ? DType::kFloat32 : var->dtype));
  }
  return variables;
}

absl::StatusOr<std::shared_ptr<Variable>> Find(
    const std::vector<std::shared_ptr<Variable>>& variables,
    const std::vector<std::string>& names, const char* kind,
    const std::string& name) {
  for (const auto& variable : variables)
    if (variable->name() == name) return variable;
  const std::string nearest = Nearest(name, names);
  return FailedPrecondition(
      "the model has no %s '%s'%s", kind, name,
      nearest.empty() ? "" : absl::StrCat(", did you mean '", nearest, "'?"));
}

// Programs feed int32 where int64 is declared and the other way round, which
// lookups take; every other difference is a mistake that an op would report
// without the input's name.
bool Fits(DType declared, DType given) {
  return declared == given || (IsInteger(declared) && IsInteger(given));
}

// Shows the variables of each step to hooks, and lets a profile see it too.
class Watch : public StepHook {
 public:
  Watch(const Plan* plan, StepHook* times,
        const std::vector<Engine::Hook>* outputs,
        const std::vector<Engine::Hook>* inputs)
      : plan_(plan), times_(times), outputs_(outputs), inputs_(inputs) {}

  void Before(size_t step) override {
    const StepVariables& now = plan_->variables(step);
    if (now.index >= 0) error_ = Show(now.op.type, now.inputs, *inputs_);
    if (times_ != nullptr) times_->Before(step);
  }
  absl::Status After(size_t step) override {
    if (times_ != nullptr) PD_RETURN_IF_ERROR(times_->After(step));
    PD_RETURN_IF_ERROR(error_);
    const StepVariables& now = plan_->variables(step);
    if (now.index < 0) return absl::OkStatus();
    return Show(now.op.type, now.outputs, *outputs_);
  }

 private:
  absl::Status Show(const std::string& type, const StepVariables::List& list,
                    const std::vector<Engine::Hook>& hooks) const {
    if (hooks.empty()) return absl::OkStatus();
    for (const auto& [name, tensor] : list) {
      if (tensor->kind() != VarKind::kLodTensor || tensor->raw() == nullptr)
        continue;
      PD_ASSIGN_OR_RETURN(const Tensor value, plan_->OnHost(*tensor));
      for (const Engine::Hook& hook : hooks) hook(type, name, value);
    }
    return absl::OkStatus();
  }

  const Plan* const plan_;
  StepHook* const times_;
  const std::vector<Engine::Hook>*const outputs_, *const inputs_;
  absl::Status error_;
};

}  // namespace

Engine::Engine(std::shared_ptr<SharedModel> model)
    : model_(std::move(model)),
      inputs_(Variables(*model_, model_->inputs(), true)),
      outputs_(Variables(*model_, model_->outputs(), false)) {
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (model_->needs(i)) fed_.push_back(inputs_[i].get());
  seen_.resize(fed_.size());
}

Engine::~Engine() {
  for (const auto& variable : inputs_) variable->TakeAway();
  for (const auto& variable : outputs_) variable->TakeAway();
  LogProfile();
  for (Compiled& one : compiled_) model_->Forget(std::move(one.plan));
}

absl::Status Engine::CheckStream(const void* stream) const {
  if ((stream != nullptr) == model_->options().external_stream)
    return absl::OkStatus();
  return InvalidArgument(
      "Clone: %s",
      stream == nullptr
          ? "the config had SetExecStream, so a clone needs a stream"
          : "a stream is given, and the config had no SetExecStream");
}

absl::StatusOr<std::shared_ptr<Variable>> Engine::Input(
    const std::string& name) {
  return Find(inputs_, model_->inputs(), "input", name);
}

absl::StatusOr<std::shared_ptr<Variable>> Engine::Output(
    const std::string& name) {
  return Find(outputs_, model_->outputs(), "output", name);
}

absl::Status Engine::Run() {
  if (running_.exchange(true, std::memory_order_acquire))
    return FailedPrecondition(
        "another thread runs this predictor; give each thread a Clone");
  // A hook of the user's may throw.
  struct Done {
    std::atomic<bool>* running;
    ~Done() { running->store(false, std::memory_order_release); }
  } const done{&running_};
  return RunAlone();
}

bool Engine::SameInputs() const {
  if (!chosen_) return false;
  for (size_t i = 0; i < fed_.size(); ++i)
    if (fed_[i]->version() != seen_[i] || !fed_[i]->has_value()) return false;
  return true;
}

absl::StatusOr<std::vector<FeedSpec>> Engine::Feeds() const {
  std::vector<FeedSpec> feeds;
  for (const Variable* input : fed_) {
    if (!input->has_value())
      return FailedPrecondition(
          "input '%s' has no elements; call Reshape and CopyFromCpu before Run",
          input->name());
    const VarDesc* var = model_->Declared(input->name());
    if (var != nullptr && !Fits(var->dtype, input->dtype()))
      return InvalidArgument("input '%s' holds %s; the model declares %s%s",
                             input->name(), Name(input->dtype()),
                             Name(var->dtype), ToString(var->shape));
    const Shape& shape = input->shape();
    for (size_t level = 0; level < input->lod().size(); ++level) {
      const uint64_t end = input->lod()[level].back();
      const uint64_t expected =
          level + 1 < input->lod().size()
              ? input->lod()[level + 1].size() - 1
              : static_cast<uint64_t>(shape.empty() ? 1 : shape[0]);
      if (end != expected)
        return InvalidArgument(
            "input '%s': level %d of its LoD ends at %d; expected %d, what the "
            "shape %s or the next level has",
            input->name(), level, end, expected, ToString(shape));
    }
    feeds.push_back({input->name(), input->dtype(), shape, input->lod()});
  }
  return feeds;
}

absl::Status Engine::ChoosePlan() {
  chosen_ = false;
  PD_ASSIGN_OR_RETURN(std::vector<FeedSpec> feeds, Feeds());
  const auto same = [&](const Compiled& one) {
    return std::equal(one.feeds.begin(), one.feeds.end(), feeds.begin(),
                      feeds.end(), [](const FeedSpec& a, const FeedSpec& b) {
                        return a.dtype == b.dtype && a.shape == b.shape &&
                               a.lod == b.lod;
                      });
  };
  const auto found = std::find_if(compiled_.begin(), compiled_.end(), same);
  if (found != compiled_.end()) {
    compiled_.splice(compiled_.begin(), compiled_, found);
  } else {
    const size_t most = model_->options().kept_plans;
    while (most > 0 && compiled_.size() >= most) {
      model_->Forget(std::move(compiled_.back().plan));
      compiled_.pop_back();
    }
    Compiled made;
    PD_ASSIGN_OR_RETURN(made.plan, model_->Compile(feeds));
    if (model_->options().profile)
      made.times = std::make_unique<StepTimes>(made.plan.get());
    made.feeds = std::move(feeds);
    compiled_.push_front(std::move(made));
    ForgetLarge();
  }
  for (size_t i = 0; i < fed_.size(); ++i) seen_[i] = fed_[i]->version();
  chosen_ = true;
  return absl::OkStatus();
}

absl::Status Engine::RunAlone() {
  if (!SameInputs()) {
    // The values of the last run go with its plan, which may be forgotten now.
    for (const auto& output : outputs_) output->TakeAway();
    PD_RETURN_IF_ERROR(ChoosePlan());
  }
  Compiled& now = compiled_.front();
  for (size_t i = 0; i < fed_.size(); ++i)
    now.plan->SetFeed(i, fed_[i]->data());
  Watch watch(now.plan.get(), now.times.get(), &output_hooks_, &input_hooks_);
  const bool watched = !output_hooks_.empty() || !input_hooks_.empty();
  const absl::Status ran =
      model_->Run(now.plan.get(),
                  watched ? static_cast<StepHook*>(&watch) : now.times.get());
  if (!ran.ok()) {
    for (const auto& output : outputs_) output->TakeAway();
    return ran;
  }
  ++runs_;
  for (size_t i = 0; i < outputs_.size(); ++i)
    PD_RETURN_IF_ERROR(outputs_[i]->Deliver(now.plan->fetch(i)));
  return absl::OkStatus();
}

void Engine::ForgetLarge() {
  const uint64_t most = model_->options().kept_bytes;
  if (most == 0) return;
  uint64_t bytes = 0;
  for (const Compiled& one : compiled_) bytes += one.plan->stats().arena_bytes;
  while (compiled_.size() > 1 && bytes > most) {
    bytes -= compiled_.back().plan->stats().arena_bytes;
    model_->Forget(std::move(compiled_.back().plan));
    compiled_.pop_back();
  }
}

void Engine::ForgetOthers() {
  while (compiled_.size() > 1) {
    model_->Forget(std::move(compiled_.back().plan));
    compiled_.pop_back();
  }
}

absl::StatusOr<uint64_t> Engine::Shrink() {
  for (const auto& output : outputs_) PD_RETURN_IF_ERROR(output->Keep());
  uint64_t bytes = 0;
  for (Compiled& one : compiled_) {
    bytes += one.plan->stats().arena_bytes;
    model_->Forget(std::move(one.plan));
  }
  compiled_.clear();
  chosen_ = false;
  return bytes;
}

void Engine::LogProfile() const {
  for (const Compiled& one : compiled_) {
    if (one.times == nullptr || runs_ == 0) continue;
    LogInfo("profile of '%s', %d runs:", model_->path(), runs_);
    LogInfo("%-28s %-24s %6s %12s", "op", "kernel", "steps", "ms");
    for (const StepTimes::Share& share : one.times->ByOpType())
      LogInfo("%-28s %-24s %6d %12.3f", share.op_type, share.implementation,
              share.steps, share.seconds * 1e3);
  }
}

}  // namespace inference
}  // namespace pd
