// SPDX-License-Identifier: Apache-2.0
// Where the processes of an engine meet and see who is gone: a small table over
// HTTP, which rank 0 serves. Every process shows a sign of life each second;
// one that has shown none for too long, or said that it failed, is gone.
#ifndef PD_LIBCORE_DIST_ENGINES_RENDEZVOUS_H_
#define PD_LIBCORE_DIST_ENGINES_RENDEZVOUS_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/dist/transport.h"

namespace pd {

class RendezvousServer;

/// The address of this machine on the way to `host`, as text: a host's own name
/// often means the loopback interface to itself. Unavailable without a route.
absl::StatusOr<std::string> AddressTowards(const std::string& host, int port);

class Rendezvous {
 public:
  /// Serves the table on meeting.host:port (port 0: any that is free) where
  /// this is rank 0. Unavailable: the port cannot be had.
  static absl::StatusOr<std::unique_ptr<Rendezvous>> Open(
      const Meeting& meeting);
  ~Rendezvous();

  /// Waits until all processes are there. Unavailable names the ranks that
  /// did not come, AlreadyExists two processes of one rank.
  absl::Status Join();
  const Meeting& meeting() const { return meeting_; }
  int port() const { return meeting_.port; }
  /// This process's address as the others reach it.
  const std::string& own_address() const { return meeting_.own_address; }

  absl::Status Set(const std::string& key, const std::string& value);
  /// Waits until somebody sets it; Unavailable after rendezvous_seconds.
  absl::StatusOr<std::string> Get(const std::string& key);

  /// See Engine.
  void Watch(std::function<void(const std::string&)> lost);
  std::string WhoIsGone();
  /// Tells the others that this process ends as it should, or does not.
  void SayGoodbye(bool failed);

 private:
  explicit Rendezvous(const Meeting& meeting);
  // "": nothing is wrong. `trouble`: an operation of ours has failed.
  absl::StatusOr<std::string> Beat(bool trouble);
  void BeatUntilStopped();
  void LetOthersLearn() const;
  absl::Status Request(const std::string& method, const std::string& path,
                       const std::string& body, int* status,
                       std::string* answer);

  Meeting meeting_;
  std::unique_ptr<RendezvousServer> server_;  // of rank 0
  std::function<void(const std::string&)> lost_;
  std::thread beats_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
};

/// The part of an engine that is about its table.
class EngineWithTable : public Engine {
 public:
  void Watch(std::function<void(const std::string&)> lost) override {
    table_->Watch(std::move(lost));
  }
  std::string WhoIsGone() override { return table_->WhoIsGone(); }

 protected:
  /// For destructors: tells the others where the run did not go well.
  void EndTable() {
    if (table_ != nullptr && !left_) table_->SayGoodbye(true);
  }

  std::unique_ptr<Rendezvous> table_;
  bool left_ = false;
};

/// The body of a library's MakeEngineFn.
template <typename T>
Engine* MakeEngine(const Meeting& meeting, absl::Status* error) {
  auto engine = std::make_unique<T>();
  *error = engine->Connect(meeting);
  return error->ok() ? engine.release() : nullptr;
}

}  // namespace pd

#endif  // PD_LIBCORE_DIST_ENGINES_RENDEZVOUS_H_
