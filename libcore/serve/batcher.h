// SPDX-License-Identifier: Apache-2.0
// The queue of one version of a model, and the threads that answer it, each
// with an engine of its own over the same weights. Requests that agree but for
// the first axis are joined into one run where that has been proved to change
// no answer.
#ifndef PD_LIBCORE_SERVE_BATCHER_H_
#define PD_LIBCORE_SERVE_BATCHER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/inference/shared_model.h"
#include "libcore/ir/array.h"
#include "libcore/serve/batch_sizes.h"
#include "libcore/serve/join_proof.h"
#include "libcore/serve/metrics.h"
#include "libcore/serve/runner.h"

namespace pd {
namespace serve {

struct BatchOptions {
  int64_t max_batch = 8;  ///< rows of a joined run; 1: none is joined
  /// Seconds that a request waits for others. 0: those that are there are
  /// joined, as far as that saves time.
  double max_delay = 0;
  int64_t max_queue = 256;       ///< requests that wait
  double max_wait_seconds = 10;  ///< in the queue
  int workers = 1;               ///< threads with an engine each
};

class Batcher {
 public:
  /// Runs `example`, where it is not empty, in each engine first, so that the
  /// first request does not wait for the model to be compiled.
  Batcher(std::shared_ptr<inference::SharedModel> model,
          const BatchOptions& options, std::shared_ptr<ModelMetrics> metrics,
          const NamedArrays& example = {});
  ~Batcher() { Close(); }

  /// Waits for the answer. ResourceExhausted: the queue is full;
  /// DeadlineExceeded: no run took it in max_wait_seconds; Aborted: Close was
  /// called before; else the engine's errors, Unavailable where it had not
  /// enough memory. `inputs` stay until it returns.
  absl::StatusOr<Outputs> Answer(const NamedArrays& inputs);
  /// Refuses from now on, and returns when everything accepted is answered.
  void Close();

 private:
  using Clock = std::chrono::steady_clock;
  struct Request {
    const NamedArrays* inputs = nullptr;
    std::string key;  // "": it is joined with none
    int64_t rows = 0;
    Clock::time_point arrival;
    bool taken = false, done = false;
    absl::StatusOr<Outputs> answer = absl::UnknownError("");
    std::condition_variable wake;
  };
  using Batch = std::vector<Request*>;

  void Work(Runner* runner);
  bool Wait(std::unique_lock<std::mutex>* lock);
  Batch Take();
  void Run(const Batch& batch, Runner* runner);
  void Finish(const Batch& batch);

  const std::shared_ptr<inference::SharedModel> model_;
  const BatchOptions options_;
  const std::shared_ptr<ModelMetrics> metrics_;
  JoinProof proof_;
  BatchSizes sizes_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Request*> queue_;
  bool closed_ = false;
  std::mutex closing_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<std::thread> threads_;
};

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_BATCHER_H_
