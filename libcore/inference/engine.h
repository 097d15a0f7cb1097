// SPDX-License-Identifier: Apache-2.0
// A predictor without its API: variables, and plans by the shapes of inputs.
// One thread at a time runs it. Errors are absl::Status.
#ifndef PD_LIBCORE_INFERENCE_ENGINE_H_
#define PD_LIBCORE_INFERENCE_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/exec/step_times.h"
#include "libcore/inference/shared_model.h"
#include "libcore/inference/variable.h"

namespace pd {
namespace inference {

class Engine {
 public:
  explicit Engine(std::shared_ptr<SharedModel> model);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Shares the model; has variables and plans of its own.
  std::unique_ptr<Engine> Clone() const {
    return std::make_unique<Engine>(model_);
  }
  /// InvalidArgument for a clone's stream where the config had none, and the
  /// other way round.
  absl::Status CheckStream(const void* stream) const;
  const SharedModel& model() const { return *model_; }
  /// FailedPrecondition, with the nearest name, for a name that is none.
  absl::StatusOr<std::shared_ptr<Variable>> Input(const std::string& name);
  absl::StatusOr<std::shared_ptr<Variable>> Output(const std::string& name);
  const std::vector<std::shared_ptr<Variable>>& inputs() const {
    return inputs_;
  }
  const std::vector<std::shared_ptr<Variable>>& outputs() const {
    return outputs_;
  }

  /// FailedPrecondition for an input without elements, and when another thread
  /// runs this predictor; InvalidArgument for an input of another type than
  /// the model declares; the errors of compiling and running.
  absl::Status Run();
  /// `hook` sees the variables of each op in every run, with the op's type and
  /// their names; outputs after it, or inputs before it.
  using Hook =
      std::function<void(const std::string& op_type, const std::string& name,
                         const Tensor& value)>;
  void AddOutputHook(Hook hook) { output_hooks_.push_back(std::move(hook)); }
  void AddInputHook(Hook hook) { input_hooks_.push_back(std::move(hook)); }
  /// Forgets the plans but for the last one used.
  void ForgetOthers();
  /// Forgets all plans; outputs stay. Gives the bytes that they had.
  absl::StatusOr<uint64_t> Shrink();

 private:
  struct Compiled {
    std::vector<FeedSpec> feeds;
    std::unique_ptr<Plan> plan;
    std::unique_ptr<StepTimes> times;  // null unless profiled
  };
  absl::Status RunAlone();
  bool SameInputs() const;
  absl::StatusOr<std::vector<FeedSpec>> Feeds() const;
  absl::Status ChoosePlan();
  void ForgetLarge();
  void LogProfile() const;

  const std::shared_ptr<SharedModel> model_;
  std::vector<std::shared_ptr<Variable>> inputs_, outputs_;
  std::vector<Variable*> fed_;    // those that the outputs need
  std::vector<uint64_t> seen_;    // their versions at the last choice
  std::list<Compiled> compiled_;  // the last one used is first
  bool chosen_ = false;           // the first one fits seen_
  uint64_t runs_ = 0;
  std::vector<Hook> output_hooks_, input_hooks_;
  std::atomic<bool> running_{false};
};

}  // namespace inference
}  // namespace pd

#endif  // PD_LIBCORE_INFERENCE_ENGINE_H_
