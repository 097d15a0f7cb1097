// SPDX-License-Identifier: Apache-2.0
#include "libcore/check/nan_guard.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "libcore/base/clock.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/half.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"
#include "libcore/tensor/magnitude.h"

namespace pd {
namespace {

// Copies take at most this share of the time.
constexpr double kCopyShare = 0.002;
constexpr size_t kGradientSteps = 16;

void CopyBytes(void* to, const void* from, size_t bytes) {
  constexpr int64_t kGrain = 1 << 20;
  ParallelFor(static_cast<int64_t>(bytes), kGrain,
              [&](int64_t begin, int64_t end) {
                std::memcpy(static_cast<char*>(to) + begin,
                            static_cast<const char*>(from) + begin,
                            static_cast<size_t>(end - begin));
              });
}

double NormOf(const Array& array) {
  double sum = 0;
  const absl::Status added = DispatchTypes<float, double, Float16, BFloat16>(
      array.dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        for (int64_t i = 0; i < array.size(); ++i) {
          const double x = static_cast<double>(array.data<T>()[i]);
          sum += x * x;
        }
        return absl::OkStatus();
      });
  return added.ok() ? std::sqrt(sum) : 0;
}

bool SameForm(const Tensor& a, const Tensor& b) {
  return a.raw() != nullptr && b.raw() != nullptr && a.dtype() == b.dtype() &&
         a.shape() == b.shape() && SameLayout(a.layout(), b.layout()) &&
         a.kind() == VarKind::kLodTensor && b.kind() == VarKind::kLodTensor;
}

// The kind that each variable of the programs is of.
std::function<std::string(const std::string&)> KindsOf(
    const GuardedPrograms& programs) {
  std::set<std::string> parameters, state;
  for (const ProgramDesc* program : programs.programs)
    for (const VarDesc& var : program->global().vars)
      if (var.persistable)
        (var.is_parameter ? parameters : state).insert(var.name);
  return
      [losses = programs.losses, parameters, state](const std::string& name) {
        if (losses.count(name) > 0) return std::string("loss");
        if (parameters.count(name) > 0) return std::string("parameters");
        if (state.count(name) > 0) return std::string("state");
        return std::string(
            absl::StrContains(name, kGradSuffix) ? "gradients" : "activations");
      };
}

}  // namespace

const std::vector<std::string>& WatchKinds() {
  static const auto* kinds = new std::vector<std::string>{
      "loss", "gradients", "parameters", "state", "activations"};
  return *kinds;
}

void NanGuard::Begin(Session* session, GuardedPrograms programs) {
  session_ = session;
  programs_ = std::move(programs);
  std::set<std::string> written;
  for (const ProgramDesc* program : programs_.programs)
    for (const OpDesc& op : program->global().ops)
      for (const auto& [slot, names] : op.outputs)
        for (const std::string& name : names) {
          const VarDesc* var = program->global().FindVar(name);
          if (var != nullptr && var->persistable) written.insert(name);
        }
  written_.assign(written.begin(), written.end());
  kind_of_ = KindsOf(programs_);
  NanRules rules = options_.rules;
  rules.Follow(programs_.gradients);
  if (!options_.watch.empty())
    rules.Watch(
        [watch = options_.watch, kind_of = kind_of_](const std::string& name) {
          return watch.count(kind_of(name)) > 0;
        });
  rules_ = std::make_shared<const NanRules>(std::move(rules));
  PlanOptions plans;
  plans.check_nan_inf = true;
  plans.nan_rules = rules_;
  session->set_plan_options(plans);
}

bool NanGuard::CopyIsDue(int64_t step) const {
  if (copied_step_ < 0 || repeating_) return true;
  // Behind a step that was looked at, everything is known to be good.
  if (step % options_.every != 0) return false;
  return copy_seconds_ <= kCopyShare * (SteadySeconds() - copied_at_);
}

// Steps that are looked at in part may leave bad variables; their copies would
// be no good.
bool NanGuard::VariablesAreGood() const {
  if (options_.watch.empty() && options_.every == 1) return true;
  for (const std::string& name : written_) {
    const Scope::Entry* entry = session_->scope().Peek(name);
    if (entry != nullptr && !AllFinite(entry->tensor)) return false;
  }
  return true;
}

void NanGuard::TakeCopies() {
  const double begin = SteadySeconds();
  size_t i = 0;
  for (const std::string& name : written_) {
    // Not lent: on a GPU the variables stay where they are between copies.
    Scope::Entry* entry = session_->scope().Peek(name);
    if (entry == nullptr) continue;
    if (i == copies_.size()) copies_.push_back({entry, {}});
    Copy& copy = copies_[i++];
    if (copy.variable == entry && SameForm(copy.value, entry->tensor))
      CopyBytes(copy.value.raw(), entry->tensor.raw(), copy.value.bytes());
    else
      copy = {entry, CloneOf(entry->tensor)};
  }
  copies_.resize(i);
  copied_at_ = SteadySeconds();
  copy_seconds_ = copied_at_ - begin;
}

bool NanGuard::BeforeStep(int64_t step, const std::vector<Plan*>& plans,
                          int64_t run) {
  const bool look = repeating_ || (step + 1) % options_.every == 0;
  for (Plan* plan : plans)
    if (plan->nan_check() != nullptr)
      plan->nan_check()->set_level(!look        ? NanCheck::Level::kOff
                                   : repeating_ ? NanCheck::Level::kAll
                                                : NanCheck::Level::kQuick);
  if ((run > 0 && !repeating_) || !CopyIsDue(step)) return false;
  if (!copies_.empty() && copied_step_ >= 0 && !repeating_ &&
      !VariablesAreGood())
    return false;
  TakeCopies();
  copied_step_ = step;
  copied_run_ = run;
  return true;
}

std::unique_ptr<StepHook> NanGuard::HookFor(const Plan& plan, int64_t step) {
  const bool watches = options_.on_watch != nullptr && !options_.watch.empty();
  if ((options_.look == nullptr && !watches) || repeating_ ||
      (step + 1) % options_.every != 0)
    return nullptr;
  return MakeObserverHook(
      plan, [this, watches](const OpDesc& op, const std::string& variable,
                            const Tensor& value) {
        if (options_.look != nullptr) options_.look(op, variable, value);
        if (watches) Watch(variable, value);
      });
}

void NanGuard::Watch(const std::string& variable, const Tensor& value) {
  const std::string kind = kind_of_(variable);
  if (options_.watch.count(kind) == 0 || !IsFloating(value.dtype()) ||
      value.is_array() || value.raw() == nullptr)
    return;
  if (kind == "gradients" && programs_.gradients.count(variable) == 0) return;
  WatchedKind& watched = kinds_[kind];
  watched.kind = kind;
  const double norm = NormOf(ToArray(value));
  watched.norm = std::hypot(watched.norm, norm);
  const double largest =
      LargestMagnitude(value.dtype(), value.raw(), value.physical_size());
  if (!(largest <= watched.largest)) {
    watched.largest = largest;
    watched.largest_in = variable;
  }
}

void NanGuard::AfterStep(int64_t step, const std::vector<Plan*>& plans) {
  if (!kinds_.empty()) {
    std::vector<WatchedKind> kinds;
    for (const std::string& kind : WatchKinds())
      if (kinds_.count(kind) > 0) kinds.push_back(kinds_[kind]);
    kinds_.clear();
    options_.on_watch(step + 1, kinds);
  }
  double largest = 0;
  for (Plan* plan : plans)
    if (plan->nan_check() != nullptr)
      largest = std::max(largest, plan->nan_check()->TakeLargest());
  if (largest == 0 || repeating_) return;
  gradients_.emplace_back(step + 1, largest);
  if (gradients_.size() > kGradientSteps) gradients_.pop_front();
}

void NanGuard::Rewind() {
  for (const Copy& copy : copies_) {
    Tensor* variable = &copy.variable->tensor;
    if (SameForm(copy.value, *variable))
      CopyBytes(variable->raw(), copy.value.raw(), copy.value.bytes());
    else
      *variable = CloneOf(copy.value);
    if (copy.variable->device != nullptr)
      copy.variable->device->WrittenByHost();
  }
  repeating_ = true;
}

absl::Status NanGuard::Explain(const Plan& plan, NanQuery query) {
  query.session = session_;
  query.rules = rules_;
  query.layers = programs_.layers;
  NanFinding brief = BriefFinding(query, plan);
  PD_ASSIGN_OR_RETURN(finding_, FindNan(query));
  if (!finding_.has_value()) finding_ = std::move(brief);
  finding_->gradients.assign(gradients_.begin(), gradients_.end());
  ExplainCauses(&*finding_);
  return absl::OkStatus();
}

}  // namespace pd
