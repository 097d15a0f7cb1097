// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/http/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pd {
namespace serve {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMostHeadBytes = 64 << 10;
constexpr milliseconds kSlice(50);       // between looks at the state
constexpr milliseconds kDrainIdle(500);  // a client may be about to send
constexpr milliseconds kCrowdedIdle(200);
constexpr milliseconds kLinger(2000);

std::chrono::steady_clock::duration ToDuration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

bool Connection::Poll(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::duration_cast<milliseconds>(
        deadline - Clock::now() + milliseconds(1));
    pollfd one{socket_, events, 0};
    const int found =
        poll(&one, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (found > 0) return true;
    if (found == 0 || errno != EINTR) return false;
  }
}

bool Connection::AwaitRequest() {
  in_head_ = true;
  head_bytes_ = 0;
  const auto begin = Clock::now();
  auto end = begin + ToDuration(options_.idle_seconds);
  bool draining = false;
  while (begin_ == end_) {
    if (!draining && state_.draining) {
      draining = true;
      end = std::min(end, Clock::now() + kDrainIdle);
    }
    if (state_.crowded) end = std::min(end, begin + kCrowdedIdle);
    const auto now = Clock::now();
    if (now >= end) return false;
    if (!Poll(POLLIN, std::min(end, now + kSlice))) continue;
    const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(got);
  }
  deadline_ = Clock::now() + ToDuration(options_.receive_seconds);
  return true;
}

ssize_t Connection::read(char* to, size_t size) {
  if (begin_ == end_) {
    for (;;) {
      if (!Poll(POLLIN, deadline_)) {
        timed_out_ = true;
        return -1;
      }
      const ssize_t got = recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got <= 0) return got;
      begin_ = 0;
      end_ = static_cast<size_t>(got);
      break;
    }
  }
  const size_t part = std::min(size, end_ - begin_);
  if (in_head_ && (head_bytes_ += part) > kMostHeadBytes) return -1;
  std::memcpy(to, buffer_.data() + begin_, part);
  begin_ += part;
  return static_cast<ssize_t>(part);
}

ssize_t Connection::write(const char* from, size_t size) {
  for (;;) {
    const ssize_t sent = send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent;
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return -1;
    if (!Poll(POLLOUT, Clock::now() + ToDuration(options_.receive_seconds)))
      return -1;
  }
}

void Connection::Close() {
  // To close while bytes come would reset the connection, and the client might
  // lose the answer that says why.
  shutdown(socket_, SHUT_WR);
  const auto end = Clock::now() + kLinger;
  while (Clock::now() < end && Poll(POLLIN, end) &&
         recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT) > 0) {
  }
  close(socket_);
}

bool Connection::is_readable() const {
  return begin_ < end_ || Poll(POLLIN, deadline_);
}

bool Connection::is_writable() const { return Poll(POLLOUT, deadline_); }

// Nothing here asks where a client is.
void Connection::get_remote_ip_and_port(std::string&, int&) const {}
void Connection::get_local_ip_and_port(std::string&, int&) const {}

}  // namespace serve
}  // namespace pd
