// SPDX-License-Identifier: Apache-2.0
// A thread for each connection, up to a limit, beyond which connections wait in
// the kernel's queue.
#ifndef PD_LIBCORE_SERVE_HTTP_CONNECTION_THREADS_H_
#define PD_LIBCORE_SERVE_HTTP_CONNECTION_THREADS_H_

#include <httplib.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "libcore/serve/http/connection.h"

namespace pd {
namespace serve {

class ConnectionThreads : public httplib::TaskQueue {
 public:
  ConnectionThreads(int most, ServerState* state)
      : most_(static_cast<size_t>(most)), state_(state) {}

  /// Waits while all threads are busy.
  void enqueue(std::function<void()> work) override;
  /// Returns when all connections are closed.
  void shutdown() override;

 private:
  void Work();

  const size_t most_;
  ServerState* const state_;
  std::mutex mutex_;
  std::condition_variable wake_;  // of threads and of who waits for one
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  std::function<void()> next_;
  bool stop_ = false;
};

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_HTTP_CONNECTION_THREADS_H_
