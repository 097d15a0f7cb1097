// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/observer_list.h"

#include "libcore/base/status_macros.h"

namespace pd {

absl::Status ObserverList::OnStart(const TrainStart& start) {
  for (TrainObserver* observer : observers_)
    PD_RETURN_IF_ERROR(observer->OnStart(start));
  return absl::OkStatus();
}

void ObserverList::OnEpoch(int64_t epoch, int64_t epochs, int64_t batches,
                           int64_t done) {
  for (TrainObserver* observer : observers_)
    observer->OnEpoch(epoch, epochs, batches, done);
}

void ObserverList::OnStep(const StepReport& report) {
  for (TrainObserver* observer : observers_) observer->OnStep(report);
}

bool ObserverList::WantsGradients(int64_t step) {
  bool wanted = false;
  for (TrainObserver* observer : observers_)
    wanted |= observer->WantsGradients(step);
  return wanted;
}

void ObserverList::OnGradients(
    int64_t step, const std::vector<ParameterGradient>& gradients) {
  for (TrainObserver* observer : observers_)
    if (observer->WantsGradients(step)) observer->OnGradients(step, gradients);
}

void ObserverList::OnLog(const std::string& line) {
  for (TrainObserver* observer : observers_) observer->OnLog(line);
}

void ObserverList::OnEvaluationStep(int64_t batches, int64_t of) {
  for (TrainObserver* observer : observers_)
    observer->OnEvaluationStep(batches, of);
}

void ObserverList::OnEvaluation(int64_t step, const EvaluationResult& result) {
  for (TrainObserver* observer : observers_)
    observer->OnEvaluation(step, result);
}

EvaluationObserver* ObserverList::BatchObserver() {
  for (TrainObserver* observer : observers_)
    if (EvaluationObserver* batches = observer->BatchObserver()) return batches;
  return nullptr;
}

void ObserverList::OnCheckpoint(const std::string& folder) {
  for (TrainObserver* observer : observers_) observer->OnCheckpoint(folder);
}

void ObserverList::OnPlan(int64_t records, const Plan& plan) {
  for (TrainObserver* observer : observers_) observer->OnPlan(records, plan);
}

absl::Status ObserverList::Failure() {
  for (TrainObserver* observer : observers_)
    PD_RETURN_IF_ERROR(observer->Failure());
  return absl::OkStatus();
}

int ObserverList::StopSignal() {
  for (TrainObserver* observer : observers_)
    if (const int signal = observer->StopSignal(); signal != 0) return signal;
  return 0;
}

}  // namespace pd
