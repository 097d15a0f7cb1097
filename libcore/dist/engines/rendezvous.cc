// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/engines/rendezvous.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <netdb.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/dist/engines/rendezvous_server.h"

namespace pd {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kOk = 200, kNotFound = 404, kConflict = 409;

std::string Self() {
  char host[256] = "";
  if (gethostname(host, sizeof(host) - 1) != 0) host[0] = '\0';
  return absl::StrCat(host[0] == '\0' ? "unknown" : host, " (process ",
                      getpid(), ")");
}

// Waits between questions: short at first, then longer.
class Patience {
 public:
  explicit Patience(double seconds)
      : end_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(seconds))) {}
  /// False when the time is up.
  bool Wait() {
    if (Clock::now() >= end_) return false;
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, milliseconds(200));
    return true;
  }

 private:
  Clock::time_point end_;
  milliseconds pause_{5};
};

}  // namespace

absl::StatusOr<std::string> AddressTowards(const std::string& host, int port) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  const int failed =
      getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failed != 0)
    return Unavailable("cannot find host '%s': %s", host, gai_strerror(failed));
  std::string address;
  for (addrinfo* a = found; a != nullptr && address.empty(); a = a->ai_next) {
    const int socket_fd = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_fd < 0) continue;
    sockaddr_storage own = {};
    socklen_t length = sizeof(own);
    char text[NI_MAXHOST] = "";
    // A datagram socket finds its own address without sending anything.
    if (connect(socket_fd, a->ai_addr, a->ai_addrlen) == 0 &&
        getsockname(socket_fd, reinterpret_cast<sockaddr*>(&own), &length) ==
            0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text,
                    sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0)
      address = text;
    close(socket_fd);
  }
  freeaddrinfo(found);
  if (address.empty()) return Unavailable("no route to host '%s'", host);
  return address;
}

Rendezvous::Rendezvous(const Meeting& meeting) : meeting_(meeting) {}

absl::StatusOr<std::unique_ptr<Rendezvous>> Rendezvous::Open(
    const Meeting& meeting) {
  std::unique_ptr<Rendezvous> table(new Rendezvous(meeting));
  if (meeting.rank == 0) {
    table->server_ = std::make_unique<RendezvousServer>();
    PD_RETURN_IF_ERROR(table->server_->Start(&table->meeting_));
  }
  if (meeting.own_address.empty()) {
    PD_ASSIGN_OR_RETURN(table->meeting_.own_address,
                        AddressTowards(meeting.host, table->meeting_.port));
  }
  return table;
}

Rendezvous::~Rendezvous() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (beats_.joinable()) beats_.join();
}

absl::Status Rendezvous::Request(const std::string& method,
                                 const std::string& path,
                                 const std::string& body, int* status,
                                 std::string* answer) {
  httplib::Client http(meeting_.host, meeting_.port);
  http.set_connection_timeout(milliseconds(2000));
  http.set_read_timeout(milliseconds(2000));
  const httplib::Result result =
      method == "PUT" ? http.Put(path, body, "application/octet-stream")
                      : http.Get(path);
  if (!result)
    return Unavailable("rank 0 does not answer at '%s:%d' (%s)", meeting_.host,
                       meeting_.port, httplib::to_string(result.error()));
  *status = result->status;
  *answer = result->body;
  return absl::OkStatus();
}

absl::Status Rendezvous::Join() {
  Patience patience(meeting_.rendezvous_seconds);
  int status = 0;
  std::string answer;
  const std::string entry = absl::StrCat("/member/", meeting_.rank);
  absl::Status asked = Request("PUT", entry, Self(), &status, &answer);
  while (!asked.ok() && patience.Wait())
    asked = Request("PUT", entry, Self(), &status, &answer);
  if (!asked.ok())
    return Annotate(asked, absl::StrCat("waited ", meeting_.rendezvous_seconds,
                                        " s for the other processes"));
  if (status == kConflict)
    return AlreadyExists("rank %d is %s already; this process is %s",
                         meeting_.rank, answer, Self());
  if (status != kOk)
    return InvalidArgument("rank 0 refuses rank %d of %d: %s", meeting_.rank,
                           meeting_.size, answer);
  std::vector<std::string> lines;
  do {
    PD_RETURN_IF_ERROR(Request("GET", "/members", "", &status, &answer));
    lines = absl::StrSplit(answer, '\n', absl::SkipEmpty());
    if (static_cast<int>(lines.size()) == meeting_.size)
      return absl::OkStatus();
  } while (patience.Wait());
  std::set<int> there;
  for (const std::string& line : lines) {
    int rank = 0;
    if (absl::SimpleAtoi(line.substr(0, line.find(' ')), &rank))
      there.insert(rank);
  }
  std::vector<int> missing;
  for (int r = 0; r < meeting_.size; ++r)
    if (there.count(r) == 0) missing.push_back(r);
  return Unavailable(
      "%d of %d processes came within %g s: rank %s of %d did not (there are: "
      "%s)",
      there.size(), meeting_.size, meeting_.rendezvous_seconds,
      absl::StrJoin(missing, ", "), meeting_.size, absl::StrJoin(lines, ", "));
}

absl::Status Rendezvous::Set(const std::string& key, const std::string& value) {
  int status = 0;
  std::string answer;
  PD_RETURN_IF_ERROR(
      Request("PUT", absl::StrCat("/key/", key), value, &status, &answer));
  if (status == kOk) return absl::OkStatus();
  return Unavailable("rank 0 refuses '%s' of %d bytes (HTTP %d)", key,
                     value.size(), status);
}

absl::StatusOr<std::string> Rendezvous::Get(const std::string& key) {
  Patience patience(meeting_.rendezvous_seconds);
  int status = 0;
  std::string answer;
  do {
    PD_RETURN_IF_ERROR(
        Request("GET", absl::StrCat("/key/", key), "", &status, &answer));
    if (status == kOk) return answer;
    if (status != kNotFound)
      return Unavailable("rank 0 refuses '%s' (HTTP %d)", key, status);
  } while (patience.Wait());
  return Unavailable("no process has set '%s' within %g s", key,
                     meeting_.rendezvous_seconds);
}

absl::StatusOr<std::string> Rendezvous::Beat(bool trouble) {
  int status = 0;
  std::string answer;
  PD_RETURN_IF_ERROR(Request("PUT", absl::StrCat("/beat/", meeting_.rank),
                             trouble ? "trouble" : "", &status, &answer));
  return answer;
}

void Rendezvous::Watch(std::function<void(const std::string&)> lost) {
  PD_INVARIANT(!beats_.joinable());
  lost_ = std::move(lost);
  beats_ = std::thread([this] { BeatUntilStopped(); });
}

void Rendezvous::BeatUntilStopped() {
  Clock::time_point answered = Clock::now();
  std::unique_lock<std::mutex> lock(mutex_);
  while (!wake_.wait_for(lock, milliseconds(1000), [this] { return stop_; })) {
    lock.unlock();
    const auto gone = Beat(false);
    if (gone.ok()) answered = Clock::now();
    std::string found = gone.ok() ? *gone : "";
    const double silent =
        std::chrono::duration<double>(Clock::now() - answered).count();
    if (!gone.ok() && silent > meeting_.silence_seconds)
      found = absl::StrCat("rank 0 on ", meeting_.host,
                           " is gone: ", std::string(gone.status().message()));
    lock.lock();
    if (found.empty() || stop_) continue;
    lock.unlock();
    LetOthersLearn();
    lost_(found);
    return;
  }
}

std::string Rendezvous::WhoIsGone() {
  // Two beats that are missed, and then the time in which a process that lives
  // would have said that it is in trouble too.
  Patience patience(8);
  do {
    const auto gone = Beat(true);
    if (!gone.ok())
      return absl::StrCat("rank 0 on ", meeting_.host, " is gone");
    if (gone->empty()) continue;
    LetOthersLearn();
    return *gone;
  } while (patience.Wait());
  return "";
}

// Rank 0 serves the table: it stays for two beats of the others, which would
// take it for the process that is gone.
void Rendezvous::LetOthersLearn() const {
  if (server_ != nullptr) std::this_thread::sleep_for(milliseconds(2200));
}

void Rendezvous::SayGoodbye(bool failed) {
  int status = 0;
  std::string answer;
  (void)Request("PUT", absl::StrCat("/beat/", meeting_.rank),
                failed ? "failed" : "left", &status, &answer);
}

}  // namespace pd
