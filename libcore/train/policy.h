// SPDX-License-Identifier: Apache-2.0
// The network of a job as it acts in the environments of a data set: the layer
// that chooses actions, in the form of evaluation, with the weights of the
// moment.
#ifndef PD_LIBCORE_TRAIN_POLICY_H_
#define PD_LIBCORE_TRAIN_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/data/loader.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.h"
#include "libcore/train/train_program.h"

namespace pd {
namespace job {
class DataSet;  // libcore/nn/job_data.pb.h
}

class Policy : public Actor {
 public:
  /// Has `loader`, of the data set `set`, act by it; null where the set is of
  /// no environment. The session's variables exist, and the plan that decides
  /// how they lie is compiled. The session outlives the policy, the policy the
  /// loader's epochs. InvalidArgument with its place in the job for a layer
  /// that is not there, or does not give what the job says.
  static absl::StatusOr<std::unique_ptr<Policy>> Attach(
      const LoadedJob& job, const job::DataSet& set,
      const TrainProgram& program, Session* session, Loader* loader);

  absl::Status Act(const std::byte* observations, uint64_t seed, uint64_t call,
                   std::byte* actions) override;

 private:
  Policy() = default;
  std::unique_ptr<Plan> plan_;
  std::string layer_;
  DType dtype_ = DType::kFloat32;
  int64_t elements_ = 0;  // of the actions of all environments
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_POLICY_H_
