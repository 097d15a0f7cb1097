// SPDX-License-Identifier: Apache-2.0
// A step of a quasi-Newton method: runs the program that makes a batch's loss
// and gradients at the points that the method asks for.
#ifndef PD_LIBCORE_TRAIN_NEWTON_RUNNER_H_
#define PD_LIBCORE_TRAIN_NEWTON_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/exec/session.h"
#include "libcore/train/plan_cache.h"
#include "libcore/train/train_program.h"

namespace pd {

class NewtonRunner {
 public:
  /// The arguments outlive the runner; `program->newton` is set, and the
  /// variables have values. `on_plan` may be null.
  static absl::StatusOr<std::unique_ptr<NewtonRunner>> Create(
      Session* session, const TrainProgram* program, const Loader& loader,
      const std::function<void(int64_t records, const Plan& plan)>& on_plan);

  absl::Status Compile(const std::vector<BatchField>& fields);

  /// One step; gives the loss before it. All evaluations have the random
  /// numbers of `context`, and the statistics of layers follow each of them.
  absl::StatusOr<float> Run(const Batch& batch, const RunContext& context,
                            double learning_rate);

 private:
  struct Parameter {
    std::string name;
    Array value;            // of the next evaluation
    float* data = nullptr;  // its elements
  };

  NewtonRunner(Session* session, const TrainProgram* program)
      : session_(session), program_(*program) {}

  absl::StatusOr<double> Evaluate(const Batch& batch, const RunContext& context,
                                  const std::vector<float>& x,
                                  std::vector<float>* gradient);
  absl::Status SetParameters(const std::vector<float>& x);
  absl::StatusOr<LbfgsState> State();

  Session* const session_;
  const TrainProgram& program_;
  std::unique_ptr<PlanCache> plans_;
  std::vector<Parameter> parameters_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_NEWTON_RUNNER_H_
