// SPDX-License-Identifier: Apache-2.0
// A program that is an environment of reinforcement learning. It speaks in .npy
// arrays: it writes the first observation of an episode; then, for each action
// that it reads, the reward, whether the episode is over, and the observation
// that follows; after the end of an episode the first observation of the next.
#ifndef PD_LIBCORE_DATA_ENVIRONMENT_H_
#define PD_LIBCORE_DATA_ENVIRONMENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/child_process.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/data/array_stream.h"

namespace pd {

/// An observation or an action of one environment; no extent is -1.
struct EnvironmentTensor {
  DType dtype = DType::kFloat32;
  Shape shape = {1};

  size_t bytes() const {
    return static_cast<size_t>(NumElements(shape)) * SizeOf(dtype);
  }
};

struct EnvironmentProgram {
  std::string command, folder;  ///< for /bin/sh -c, in that folder
  std::string set;              ///< PD_SET of its environment
  EnvironmentTensor observation, action;
  double timeout = 60;  ///< seconds without an answer
};

/// Which of the environments it is.
struct EnvironmentStart {
  int64_t number = 0;                           ///< PD_ENVIRONMENT
  uint32_t seed = 0;                            ///< PD_SEED
  std::function<bool()> interrupted = nullptr;  ///< as ChildProcessOptions
};

/// How an episode stands after a step; the program's numbers.
enum class EpisodeEnd : uint8_t {
  kNone = 0,
  kEnded = 1,   ///< nothing can come after
  kCutOff = 2,  ///< it would have gone on
};

/// Errors name the program, the episode and the step. One thread uses it; Stop
/// may be called by another.
class Environment {
 public:
  /// `program` outlives the environment.
  static absl::StatusOr<std::unique_ptr<Environment>> Start(
      const EnvironmentProgram& program, const EnvironmentStart& start);

  /// The observation before the next step: after Begin, and Receive.
  const std::byte* observation() const { return observation_.data; }
  /// Reads the first observation where an episode begins.
  absl::Status Begin();
  /// Sends an action. Several environments compute their answers at a time.
  absl::Status Send(const std::byte* action);
  /// Reads the answer.
  absl::Status Receive();
  double reward() const { return reward_; }
  EpisodeEnd end() const { return end_; }

  void Stop() { child_->Stop(); }

 private:
  Environment(const EnvironmentProgram& program, int64_t number,
              std::unique_ptr<ChildProcess> child);
  absl::Status At(const absl::Status& status) const;
  absl::Status Read(const ExpectedArray& expected, const Shape& shape,
                    StreamedArray* array);
  absl::Status ReadObservation();

  const EnvironmentProgram& program_;
  const int64_t number_;
  std::unique_ptr<ChildProcess> child_;
  ArrayStream arrays_;
  StreamedArray observation_, scalar_;
  std::vector<char> message_;  // an action as an array, and where it begins:
  size_t action_at_ = 0;
  double reward_ = 0;
  EpisodeEnd end_ = EpisodeEnd::kEnded;  // an episode is to begin
  int64_t episode_ = 0, step_ = 0;
};

}  // namespace pd

#endif  // PD_LIBCORE_DATA_ENVIRONMENT_H_
