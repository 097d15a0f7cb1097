// SPDX-License-Identifier: Apache-2.0
// Several observers of one training run, told in their order.
#ifndef PD_LIBCORE_TRAIN_OBSERVER_LIST_H_
#define PD_LIBCORE_TRAIN_OBSERVER_LIST_H_

#include <string>
#include <utility>
#include <vector>

#include "libcore/train/trainer.h"

namespace pd {

/// Hands everything on. Only the first one with a BatchObserver sees batches;
/// the first stop signal and the first failure hold.
class ObserverList : public TrainObserver {
 public:
  /// They outlive the list.
  explicit ObserverList(std::vector<TrainObserver*> observers)
      : observers_(std::move(observers)) {}

  absl::Status OnStart(const TrainStart& start) override;
  void OnEpoch(int64_t epoch, int64_t epochs, int64_t batches,
               int64_t done) override;
  void OnStep(const StepReport& report) override;
  bool WantsGradients(int64_t step) override;
  void OnGradients(int64_t step,
                   const std::vector<ParameterGradient>& gradients) override;
  void OnLog(const std::string& line) override;
  void OnEvaluationStep(int64_t batches, int64_t of) override;
  void OnEvaluation(int64_t step, const EvaluationResult& result) override;
  EvaluationObserver* BatchObserver() override;
  void OnCheckpoint(const std::string& folder) override;
  void OnPlan(int64_t records, const Plan& plan) override;
  absl::Status Failure() override;
  int StopSignal() override;

 private:
  std::vector<TrainObserver*> observers_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_OBSERVER_LIST_H_
