// SPDX-License-Identifier: Apache-2.0
// Runs the programs that make parameters follow others, after steps.
#ifndef PD_LIBCORE_TRAIN_COPY_RUNNER_H_
#define PD_LIBCORE_TRAIN_COPY_RUNNER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "libcore/exec/session.h"
#include "libcore/train/train_program.h"

namespace pd {

class CopyRunner {
 public:
  /// Compiles the programs, which outlive the runner; the session's variables
  /// exist.
  absl::Status Compile(const std::vector<CopyProgram>& copies,
                       Session* session);

  /// Runs those that follow step `step`, counted from 1.
  absl::Status Run(int64_t step);

  bool empty() const { return copies_.empty(); }

 private:
  struct Copy {
    std::unique_ptr<Plan> plan;
    int64_t every = 1;
  };
  std::vector<Copy> copies_;
};

}  // namespace pd

#endif  // PD_LIBCORE_TRAIN_COPY_RUNNER_H_
