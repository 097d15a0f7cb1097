// SPDX-License-Identifier: Apache-2.0
// The table that rank 0 serves; see rendezvous.h.
//   PUT /member/R   body: host and process number     409: the rank is taken
//   GET /members    the ranks that are there, "R host" a line
//   PUT /key/NAME, GET /key/NAME                      404: not there yet
//   PUT /beat/R     body: "", "trouble", "left" or "failed"; the answer names
//                   who is gone, or is empty
#ifndef PD_LIBCORE_DIST_ENGINES_RENDEZVOUS_SERVER_H_
#define PD_LIBCORE_DIST_ENGINES_RENDEZVOUS_SERVER_H_

#include <httplib.h>

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "libcore/dist/transport.h"

namespace pd {

class RendezvousServer {
 public:
  ~RendezvousServer();
  /// Listens; a port of 0 becomes the one that was free.
  absl::Status Start(Meeting* meeting);

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    std::string host;  // "node7 (process 4711)"
    Clock::time_point seen;
    Clock::time_point trouble_since;
    bool trouble = false, left = false, failed = false;
  };

  void Enter(const httplib::Request& request, httplib::Response& response);
  void List(httplib::Response& response);
  void SetKey(const httplib::Request& request, httplib::Response& response);
  void GetKey(const httplib::Request& request, httplib::Response& response);
  void Beat(const httplib::Request& request, httplib::Response& response);
  // The sentence about the process that is gone, or "".
  std::string Gone(Clock::time_point now);

  int size_ = 0;
  double silence_seconds_ = 0;
  httplib::Server http_;
  std::thread thread_;
  std::mutex mutex_;
  std::map<int, Member> members_;
  std::map<std::string, std::string> keys_;
  std::string gone_;  // the first finding stays
};

}  // namespace pd

#endif  // PD_LIBCORE_DIST_ENGINES_RENDEZVOUS_SERVER_H_
