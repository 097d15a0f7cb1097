// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/nan_check.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/half.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/device_non_finite.h"
#include "libcore/exec/nan_witness.h"
#include "libcore/ir/op_names.h"
#include "libcore/ops/non_finite.h"
#include "libcore/tensor/magnitude.h"

namespace pd {
namespace {

constexpr char kFoundPayload[] = "pdkit/nan_found";

template <typename T>
NonFiniteCounts Count(const T* values, int64_t n) {
  NonFiniteCounts counts;
  for (int64_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(values[i]);
    if (std::isfinite(x)) continue;
    ++(std::isnan(x) ? counts.nan : counts.inf);
    counts.minus_only = counts.minus_only && std::isinf(x) && x < 0;
  }
  return counts;
}

template <typename T>
NonFiniteCounts CountComplex(const std::complex<T>* values, int64_t n) {
  NonFiniteCounts counts;
  counts.minus_only = false;
  for (int64_t i = 0; i < n; ++i) {
    const T re = values[i].real(), im = values[i].imag();
    if (std::isnan(re) || std::isnan(im))
      ++counts.nan;
    else if (std::isinf(re) || std::isinf(im))
      ++counts.inf;
  }
  return counts;
}

double Largest(const Tensor& tensor) {
  if (tensor.is_array() || tensor.is_sparse()) {
    double most = 0;
    for (const Tensor& element : tensor.elements()) {
      const double one = Largest(element);
      if (!(one <= most)) most = one;
      if (std::isnan(most)) break;
    }
    return most;
  }
  if (tensor.raw() == nullptr || tensor.kind() == VarKind::kStepScopes)
    return 0;
  return LargestMagnitude(tensor.dtype(), tensor.raw(), tensor.physical_size());
}

NonFiniteCounts CountNonFinite(const Tensor& tensor) {
  NonFiniteCounts counts;
  const auto add = [&](const Tensor& part) {
    if (part.raw() == nullptr) return;
    const NonFiniteCounts more = pd::CountNonFinite(ToArray(part));
    if (more.all() == 0) return;
    counts.nan += more.nan;
    counts.inf += more.inf;
    counts.minus_only = counts.minus_only && more.minus_only;
  };
  if (!tensor.is_array() && !tensor.is_sparse()) add(tensor);
  for (const Tensor& element : tensor.elements()) add(element);
  return counts;
}

}  // namespace

NonFiniteCounts CountNonFinite(const Array& array) {
  switch (array.dtype) {
    case DType::kFloat16:
      return Count(array.data<Float16>(), array.size());
    case DType::kBFloat16:
      return Count(array.data<BFloat16>(), array.size());
    case DType::kFloat32:
      return Count(array.data<float>(), array.size());
    case DType::kFloat64:
      return Count(array.data<double>(), array.size());
    case DType::kComplex64:
      return CountComplex(array.data<std::complex<float>>(), array.size());
    case DType::kComplex128:
      return CountComplex(array.data<std::complex<double>>(), array.size());
    default:
      return {};
  }
}

namespace {

// Ops before this one may write infinities into gradients: dynamic loss scaling
// looks for them and takes them away.
size_t EndOfScaledGradients(const std::vector<OpDesc>& ops) {
  for (size_t i = ops.size(); i-- > 0;)
    if (NonFiniteFactsOf(ops[i].type).clears_infinities) return i + 1;
  return 0;
}
bool WritesScaledGradients(const OpDesc& op) {
  return (RoleOf(op) & kRoleBackward) != 0 ||
         NonFiniteFactsOf(op.type).finds_infinities;
}

}  // namespace

bool AllFinite(const Tensor& tensor) {
  // A NaN or Inf may lie in a layout's padding only.
  return std::isfinite(Largest(tensor)) || CountNonFinite(tensor).all() == 0;
}

NanCheck::NanCheck(const Plan* plan, std::shared_ptr<const NanRules> rules)
    : plan_(plan), rules_(std::move(rules)) {}
NanCheck::~NanCheck() = default;

absl::StatusOr<std::unique_ptr<NanCheck>> NanCheck::Create(
    const Plan* plan, std::shared_ptr<const NanRules> rules) {
  if (rules == nullptr) {
    PD_ASSIGN_OR_RETURN(NanRules from, NanRules::FromEnvironment());
    rules = std::make_shared<NanRules>(std::move(from));
  }
  std::unique_ptr<NanCheck> check(new NanCheck(plan, rules));
  check->Prepare();
  PD_RETURN_IF_ERROR(check->PrepareDevice());
  return check;
}

void NanCheck::Prepare() {
  std::vector<OpDesc> ops;
  for (size_t i = 0; i < plan_->steps().size(); ++i)
    ops.push_back(plan_->variables(i).op);
  const std::set<std::string> masks = MaskVariables(ops);
  const size_t scaled = EndOfScaledGradients(ops);
  steps_.resize(ops.size());
  std::vector<std::vector<bool>> able(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool skipped = rules_->Skips(ops[i]) ||
                         NonFiniteFactsOf(ops[i].type).writes_nothing ||
                         (i < scaled && WritesScaledGradients(ops[i]));
    for (const auto& [name, tensor] : plan_->variables(i).outputs) {
      Watched watched;
      watched.tensor = tensor;
      watched.name = &name;
      watched.skipped = skipped || rules_->Skips(ops[i], name);
      watched.infinities = rules_->AllowsInfinities(ops[i], name);
      watched.mask = masks.count(name) > 0;
      watched.followed = rules_->follows(name);
      able[i].push_back(!watched.skipped && !watched.infinities &&
                        !watched.mask && rules_->watches(name));
      steps_[i].push_back(watched);
    }
  }
  const auto needed = ValuesToCheck(*plan_, able);
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (size_t k = 0; k < steps_[i].size(); ++k) {
      Watched& watched = steps_[i][k];
      watched.quick = watched.followed || needed[i][k] ||
                      (!able[i][k] && rules_->watches(*watched.name));
    }
    steps_[i].erase(std::remove_if(steps_[i].begin(), steps_[i].end(),
                                   [](const Watched& w) { return w.skipped; }),
                    steps_[i].end());
  }
}

absl::Status NanCheck::PrepareDevice() {
  int64_t values = 0;
  for (size_t i = 0; i < steps_.size(); ++i)
    for (Watched& watched : steps_[i])
      if (plan_->steps()[i].on_device &&
          plan_->steps()[i].implementation != "late" &&
          IsFloating(watched.tensor->dtype()))
        watched.number = values++;
  if (values == 0) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(
      non_finite_,
      DeviceNonFinite::Create(plan_->place(), static_cast<size_t>(values)));
  return absl::OkStatus();
}

absl::Status NanCheck::Judge(const Watched& watched, const OpDesc& op) {
  const double largest = Largest(*watched.tensor);
  if (watched.followed && !(largest <= largest_)) largest_ = largest;
  if (std::isfinite(largest)) return absl::OkStatus();
  if (watched.infinities && !std::isnan(largest)) return absl::OkStatus();
  const NonFiniteCounts counts = CountNonFinite(*watched.tensor);
  if (counts.all() == 0 || (watched.mask && counts.minus_only) ||
      (watched.infinities && counts.nan == 0))
    return absl::OkStatus();
  return Report(watched, op, counts.nan, counts.inf);
}

absl::Status NanCheck::Report(const Watched& watched, const OpDesc& op,
                              int64_t nan, int64_t inf) {
  found_.op = op;
  found_.variable = *watched.name;
  found_.nan = nan;
  found_.inf = inf;
  return NanFound(absl::StrCat(
      "'", *watched.name, "' holds ", nan, " NaN and ", inf, " Inf among ",
      Name(watched.tensor->dtype()), ToString(watched.tensor->shape())));
}

absl::Status NanCheck::AfterOnDevice(size_t step) {
  for (const Watched& watched : steps_[step]) {
    if (watched.number < 0 || (level_ == Level::kQuick && !watched.quick))
      continue;
    PD_RETURN_IF_ERROR(
        non_finite_->Add(*watched.tensor, static_cast<size_t>(watched.number)));
    asked_device_ = true;
  }
  return non_finite_ == nullptr ? absl::OkStatus() : non_finite_->Start();
}

absl::Status NanCheck::Finish(const absl::Status& ran) {
  if (!std::exchange(asked_device_, false)) return ran;
  PD_ASSIGN_OR_RETURN(const NonFinite* all, non_finite_->Found());
  PD_RETURN_IF_ERROR(non_finite_->Clear());
  if (!ran.ok() && !IsNanFound(ran)) return ran;
  for (size_t i = 0; i < steps_.size(); ++i) {
    for (const Watched& watched : steps_[i]) {
      if (watched.number < 0) continue;
      const NonFinite& one = all[watched.number];
      float largest = 0;
      std::memcpy(&largest, &one.largest, sizeof(largest));
      if (watched.followed && !(static_cast<double>(largest) <= largest_))
        largest_ = static_cast<double>(largest);
      const bool meant = (watched.infinities && one.nan == 0) ||
                         (watched.mask && one.nan == 0 && one.plus == 0);
      if (one.nan + one.inf == 0 || meant) continue;
      found_.step = i;
      found_.block = 0;
      found_.index = static_cast<size_t>(plan_->variables(i).index);
      return Annotate(Report(watched, plan_->variables(i).op, one.nan, one.inf),
                      DescribeStep(plan_->steps()[i]));
    }
  }
  return ran;
}

absl::Status NanCheck::After(size_t step) {
  if (level_ == Level::kOff) return absl::OkStatus();
  const StepInfo& info = plan_->steps()[step];
  const bool late = info.implementation == "late";
  if (info.on_device && !late) return AfterOnDevice(step);
  for (Watched watched : steps_[step]) {
    if (level_ == Level::kQuick && !watched.quick) continue;
    Tensor here;
    if (plan_->place() != nullptr) {
      PD_ASSIGN_OR_RETURN(here, plan_->OnHost(*watched.tensor));
      watched.tensor = &here;
    }
    const absl::Status status = Judge(watched, plan_->variables(step).op);
    if (status.ok()) continue;
    found_.step = step;
    found_.block = 0;
    found_.index = static_cast<size_t>(plan_->variables(step).index);
    return status;
  }
  return absl::OkStatus();
}

absl::Status NanCheck::AfterInBlock(const BlockStep& step) {
  if (level_ == Level::kOff || rules_->Skips(*step.op) ||
      NonFiniteFactsOf(step.op->type).writes_nothing)
    return absl::OkStatus();
  for (const auto& [name, variable] : *step.outputs) {
    Watched watched;
    watched.name = &name;
    if (level_ == Level::kQuick && !rules_->watches(name)) continue;
    watched.tensor = variable.tensor;
    Tensor here;
    if (plan_->place() != nullptr) {
      PD_ASSIGN_OR_RETURN(here, plan_->OnHost(*variable.tensor));
      watched.tensor = &here;
    }
    if (std::isfinite(Largest(*watched.tensor))) continue;
    if (rules_->Skips(*step.op, name)) continue;
    watched.infinities = rules_->AllowsInfinities(*step.op, name);
    const absl::Status status = Judge(watched, *step.op);
    if (status.ok()) continue;
    found_.block = step.block;
    found_.index = step.index;
    return status;
  }
  return absl::OkStatus();
}

absl::Status NanFound(const std::string& message) {
  absl::Status status = FailedPrecondition("%s", message);
  status.SetPayload(kFoundPayload, absl::Cord());
  return status;
}

bool IsNanFound(const absl::Status& status) {
  return status.GetPayload(kFoundPayload).has_value();
}

}  // namespace pd
