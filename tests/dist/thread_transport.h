// SPDX-License-Identifier: Apache-2.0
// A transport between threads of one process, for tests of what is built on
// transports.
#ifndef PD_TESTS_DIST_THREAD_TRANSPORT_H_
#define PD_TESTS_DIST_THREAD_TRANSPORT_H_

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/communicator.h"
#include "libcore/dist/transport.h"

namespace pd {

/// Messages on their way, by sender and receiver.
class Mailboxes {
 public:
  void Put(int from, int to, std::string message) {
    const std::lock_guard<std::mutex> lock(mutex_);
    boxes_[{from, to}].push_back(std::move(message));
    arrived_.notify_all();
  }
  std::string Take(int from, int to) {
    std::unique_lock<std::mutex> lock(mutex_);
    auto& box = boxes_[{from, to}];
    arrived_.wait(lock, [&] { return !box.empty(); });
    std::string message = std::move(box.front());
    box.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, int>, std::deque<std::string>> boxes_;
};

class ThreadTransport : public Transport {
 public:
  ThreadTransport(Mailboxes* boxes, int rank, int size)
      : boxes_(boxes), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  /// Bytes to the others, so far.
  int64_t sent() const { return sent_; }

  absl::Status Broadcast(int root, void* data, size_t bytes) override {
    for (int r = 0; rank_ == root && r < size_; ++r)
      if (r != root) PD_RETURN_IF_ERROR(Send(r, data, bytes));
    return rank_ == root ? absl::OkStatus() : Receive(root, data, bytes);
  }
  absl::Status AllGather(const void* in, size_t bytes, void* out) override {
    for (int r = 0; r < size_; ++r) PD_RETURN_IF_ERROR(Send(r, in, bytes));
    for (int r = 0; r < size_; ++r)
      PD_RETURN_IF_ERROR(Receive(
          r, static_cast<char*>(out) + static_cast<size_t>(r) * bytes, bytes));
    return absl::OkStatus();
  }
  absl::Status AllToAll(const void* in, const std::vector<size_t>& sends,
                        void* out,
                        const std::vector<size_t>& receives) override {
    const char* from = static_cast<const char*>(in);
    char* to = static_cast<char*>(out);
    for (int r = 0; r < size_; ++r) {
      const size_t bytes = sends[static_cast<size_t>(r)];
      PD_RETURN_IF_ERROR(Send(r, from, bytes));
      from += bytes;
    }
    for (int r = 0; r < size_; ++r) {
      const size_t bytes = receives[static_cast<size_t>(r)];
      PD_RETURN_IF_ERROR(Receive(r, to, bytes));
      to += bytes;
    }
    return absl::OkStatus();
  }
  absl::Status Send(int to, const void* data, size_t bytes) override {
    if (to != rank_) sent_ += static_cast<int64_t>(bytes);
    boxes_->Put(rank_, to, std::string(static_cast<const char*>(data), bytes));
    return absl::OkStatus();
  }
  absl::Status Receive(int from, void* data, size_t bytes) override {
    const std::string message = boxes_->Take(from, rank_);
    if (message.size() != bytes)
      return Internal("%d bytes came, %d were expected", message.size(), bytes);
    std::memcpy(data, message.data(), bytes);
    return absl::OkStatus();
  }
  absl::Status Barrier() override {
    char all[64] = "";
    return AllGather("", 1, all);
  }
  absl::StatusOr<std::unique_ptr<Transport>> Group(
      const std::vector<int>&, const std::string&) override {
    return Unimplemented("groups of threads");
  }

 private:
  Mailboxes* boxes_;
  int rank_, size_;
  int64_t sent_ = 0;
};

/// Runs `work` in `size` threads, as the processes of a communicator. The most
/// bytes that one of them has sent.
inline int64_t RunTogether(
    int size, const std::function<void(const Communicator&)>& work) {
  Mailboxes boxes;
  std::vector<std::unique_ptr<ThreadTransport>> transports;
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    transports.push_back(std::make_unique<ThreadTransport>(&boxes, r, size));
  for (auto& transport : transports)
    threads.emplace_back([&work, t = transport.get()] {
      const Communicator communicator(t);
      work(communicator);
    });
  for (std::thread& thread : threads) thread.join();
  int64_t most = 0;
  for (const auto& transport : transports)
    most = std::max(most, transport->sent());
  return most;
}

}  // namespace pd

#endif  // PD_TESTS_DIST_THREAD_TRANSPORT_H_
