// SPDX-License-Identifier: Apache-2.0
// One connection as cpp-httplib reads and writes it. Its own stream forgets
// what has come of the next request, looks for it a hundred times a second, and
// lets a client that sends a byte now and then hold a thread for ever.
#ifndef PD_LIBCORE_SERVE_HTTP_CONNECTION_H_
#define PD_LIBCORE_SERVE_HTTP_CONNECTION_H_

#include <httplib.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>

#include "libcore/serve/http.h"

namespace pd {
namespace serve {

/// State of the server that all its connections look at.
struct ServerState {
  std::atomic<bool> draining{false};
  std::atomic<bool> crowded{false};  ///< one more waits for a thread
};

class Connection : public httplib::Stream {
 public:
  Connection(int socket, const HttpOptions& options, const ServerState& state)
      : socket_(socket), options_(options), state_(state) {}

  /// Waits for the first byte of a request. False when the client is gone, has
  /// been idle for too long, or the server drains.
  bool AwaitRequest();
  /// The head of the request has been read.
  void BeginBody() { in_head_ = false; }
  /// True when a read has failed for want of bytes in time.
  bool timed_out() const { return timed_out_; }
  /// Closes so that the client gets what was written even where it is sending
  /// still.
  void Close();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;
  // True when `events` has come before `deadline`.
  bool Poll(short events, Clock::time_point deadline) const;

  const int socket_;
  const HttpOptions& options_;
  const ServerState& state_;
  std::array<char, 16384> buffer_;
  size_t begin_ = 0, end_ = 0;  // what has been received and not read
  Clock::time_point deadline_;  // of the request that is being received
  bool in_head_ = true, timed_out_ = false;
  size_t head_bytes_ = 0;
};

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_HTTP_CONNECTION_H_
