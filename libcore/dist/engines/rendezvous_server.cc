// SPDX-License-Identifier: Apache-2.0
#include "libcore/dist/engines/rendezvous_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"

namespace pd {
namespace {

constexpr size_t kMostBytes = 1 << 20;  // of a request
constexpr size_t kMostKeys = 1 << 20;
// Beats come each second. While another process is in trouble, one that has
// missed two is the cause.
constexpr double kMissedSeconds = 2.5;
// While another process is in trouble, one that lives and is not after so long
// is elsewhere.
constexpr double kElsewhereSeconds = 5;

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

RendezvousServer::~RendezvousServer() {
  http_.stop();
  if (thread_.joinable()) thread_.join();
}

absl::Status RendezvousServer::Start(Meeting* meeting) {
  size_ = meeting->size;
  silence_seconds_ = meeting->silence_seconds;
  using Request = httplib::Request;
  using Response = httplib::Response;
  http_.Put(R"(/member/(\d+))",
            [this](const Request& in, Response& out) { Enter(in, out); });
  http_.Get("/members", [this](const Request&, Response& out) { List(out); });
  http_.Put(R"(/key/(.+))",
            [this](const Request& in, Response& out) { SetKey(in, out); });
  http_.Get(R"(/key/(.+))",
            [this](const Request& in, Response& out) { GetKey(in, out); });
  http_.Put(R"(/beat/(\d+))",
            [this](const Request& in, Response& out) { Beat(in, out); });
  http_.set_payload_max_length(kMostBytes);
  // Not SO_REUSEPORT, with which two runs would share a port in silence.
  http_.set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  errno = 0;
  bool bound = true;
  if (meeting->port == 0) {
    meeting->port = http_.bind_to_any_port(meeting->host);
    bound = meeting->port > 0;
  } else {
    bound = http_.bind_to_port(meeting->host, meeting->port);
  }
  if (!bound)
    return ErrnoToStatus(errno == 0 ? EADDRINUSE : errno,
                         absl::StrCat("rank 0 cannot listen on '",
                                      meeting->host, ":", meeting->port, "'"));
  thread_ = std::thread([this] { http_.listen_after_bind(); });
  return absl::OkStatus();
}

void RendezvousServer::Enter(const httplib::Request& request,
                             httplib::Response& response) {
  int rank = -1;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!absl::SimpleAtoi(request.matches[1].str(), &rank) || rank >= size_) {
    response.status = 400;
    response.set_content(absl::StrCat(size_, " processes are expected"),
                         "text/plain");
    return;
  }
  const auto [member, is_new] = members_.insert({rank, Member{}});
  if (!is_new && member->second.host != request.body) {
    response.status = 409;
    response.set_content(member->second.host, "text/plain");
    return;
  }
  member->second.host = request.body;
  member->second.seen = Clock::now();
}

void RendezvousServer::List(httplib::Response& response) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text;
  for (const auto& [rank, member] : members_)
    absl::StrAppend(&text, rank, " ", member.host, "\n");
  response.set_content(text, "text/plain");
}

void RendezvousServer::SetKey(const httplib::Request& request,
                              httplib::Response& response) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (keys_.size() >= kMostKeys) {
    response.status = 507;
    return;
  }
  keys_[request.matches[1].str()] = request.body;
}

void RendezvousServer::GetKey(const httplib::Request& request,
                              httplib::Response& response) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = keys_.find(request.matches[1].str());
  if (found == keys_.end())
    response.status = 404;
  else
    response.set_content(found->second, "application/octet-stream");
}

void RendezvousServer::Beat(const httplib::Request& request,
                            httplib::Response& response) {
  const std::lock_guard<std::mutex> lock(mutex_);
  int rank = -1;
  const auto found = absl::SimpleAtoi(request.matches[1].str(), &rank)
                         ? members_.find(rank)
                         : members_.end();
  if (found == members_.end()) {
    response.status = 400;
    return;
  }
  Member& member = found->second;
  const Clock::time_point now = Clock::now();
  member.seen = now;
  if (request.body == "trouble" && !member.trouble) {
    member.trouble = true;
    member.trouble_since = now;
  }
  member.left |= request.body == "left";
  member.failed |= request.body == "failed";
  response.set_content(Gone(now), "text/plain");
}

std::string RendezvousServer::Gone(Clock::time_point now) {
  if (!gone_.empty()) return gone_;
  const bool trouble =
      std::any_of(members_.begin(), members_.end(),
                  [](const auto& item) { return item.second.trouble; });
  const double most =
      trouble ? std::min(kMissedSeconds, silence_seconds_) : silence_seconds_;
  // Of several, the one that fell silent first is the cause.
  const Member* first = nullptr;
  int first_rank = 0;
  for (const auto& [rank, member] : members_) {
    if (member.left || member.failed) continue;
    if (Seconds(now - member.seen) <= most) continue;
    if (first != nullptr && first->seen <= member.seen) continue;
    first = &member;
    first_rank = rank;
  }
  if (first != nullptr)
    return gone_ =
               absl::StrCat("rank ", first_rank, " on ", first->host,
                            " is gone: it has been silent for ",
                            static_cast<int>(Seconds(now - first->seen)), " s");
  for (const auto& [rank, member] : members_)
    if (member.failed)
      return absl::StrCat("rank ", rank, " on ", member.host,
                          " has ended with an error");
  const bool long_enough =
      std::any_of(members_.begin(), members_.end(), [&](const auto& item) {
        return item.second.trouble &&
               Seconds(now - item.second.trouble_since) > kElsewhereSeconds;
      });
  for (const auto& [rank, member] : members_)
    if (long_enough && (member.left || !member.trouble))
      return absl::StrCat("rank ", rank, " on ", member.host,
                          member.left ? " has come to its end"
                                      : " lives and does something else");
  return "";
}

}  // namespace pd
