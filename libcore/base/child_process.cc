// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "libcore/base/clock.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr double kSecondsToEnd = 2;

// A child has nothing of its parent but the three streams.
class SpawnSetting {
 public:
  SpawnSetting() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    // Signals that this process ignores would stay ignored.
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                              POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnSetting() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSetting(const SpawnSetting&) = delete;
  SpawnSetting& operator=(const SpawnSetting&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

// This environment with `added` in place of variables of those names.
std::vector<std::string> EnvironmentWith(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool replaced =
        std::any_of(added.begin(), added.end(), [&](const auto& variable) {
          return absl::StartsWith(*entry, absl::StrCat(variable.first, "="));
        });
    if (!replaced) all.emplace_back(*entry);
  }
  for (const auto& [name, value] : added)
    all.push_back(absl::StrCat(name, "=", value));
  return all;
}

absl::Status NotWanted() {
  return absl::CancelledError("the program's output is not wanted any more");
}

}  // namespace

void ChildProcess::Descriptor::Close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const ChildProcessOptions& options) {
  if (!options.folder.empty() && !IsFolder(options.folder))
    return NotFound("there is no folder '%s' to run in", options.folder);
  std::unique_ptr<ChildProcess> child(new ChildProcess(options));
  PD_RETURN_IF_ERROR(child->Spawn());
  return child;
}

absl::Status ChildProcess::Spawn() {
  int in[2], out[2], err[2];
  Descriptor in_end, out_end, err_end;
  // A pipe that nobody reads would end this process by SIGPIPE.
  if (options_.takes_input) {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0)
      return ErrnoToStatus(errno, "cannot make a pipe");
    in_.Set(in[0]);
    in_end.Set(in[1]);
  }
  if (::pipe2(out, O_CLOEXEC) != 0)
    return ErrnoToStatus(errno, "cannot make a pipe");
  out_.Set(out[0]);
  out_end.Set(out[1]);
  if (::pipe2(err, O_CLOEXEC) != 0)
    return ErrnoToStatus(errno, "cannot make a pipe");
  err_.Set(err[0]);
  err_end.Set(err[1]);
  wake_.Set(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake_.get() < 0) return ErrnoToStatus(errno, "cannot make an eventfd");
  ::fcntl(out_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(err_.get(), F_SETFL, O_NONBLOCK);
  // Larger pieces at a time; where that is not allowed, the usual ones will do.
  constexpr int kPipeBytes = 1 << 20;
  ::fcntl(out_.get(), F_SETPIPE_SZ, kPipeBytes);
  return SpawnInto(in_end.get(), out_end.get(), err_end.get());
}

absl::Status ChildProcess::SpawnInto(int in, int out, int err) {
  SpawnSetting setting;
  auto* actions = &setting.actions;
  if (in >= 0)
    posix_spawn_file_actions_adddup2(actions, in, 0);
  else
    posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions, out, 1);
  posix_spawn_file_actions_adddup2(actions, err, 2);
  // Descriptors that a library opened without O_CLOEXEC.
  posix_spawn_file_actions_addclosefrom_np(actions, 3);
  if (!options_.folder.empty())
    posix_spawn_file_actions_addchdir_np(actions, options_.folder.c_str());
  std::vector<std::string> variables = EnvironmentWith(options_.environment);
  std::vector<char*> environment;
  for (std::string& variable : variables)
    environment.push_back(variable.data());
  environment.push_back(nullptr);
  std::string shell = "/bin/sh", option = "-c", command = options_.command;
  char* const arguments[] = {shell.data(), option.data(), command.data(),
                             nullptr};
  const int error =
      ::posix_spawn(&pid_, shell.c_str(), actions, &setting.attributes,
                    arguments, environment.data());
  if (error == 0) return absl::OkStatus();
  pid_ = -1;
  return ErrnoToStatus(error, "cannot start /bin/sh");
}

ChildProcess::~ChildProcess() { End(); }

void ChildProcess::Stop() {
  stopped_.store(true);
  const uint64_t one = 1;
  // It fails only where it is readable anyway.
  (void)!::write(wake_.get(), &one, sizeof(one));
}

absl::StatusOr<ChildProcess::Ready> ChildProcess::Wait(double seconds,
                                                       bool write) const {
  constexpr double kMost = 3600, kSecondsBetweenLooks = 0.1;
  const double until = SteadySeconds() + seconds;
  const bool looks = options_.interrupted != nullptr;
  for (;;) {
    pollfd fds[] = {{err_.get(), POLLIN, 0},
                    {wake_.get(), POLLIN, 0},
                    {write ? in_.get() : out_.get(),
                     static_cast<short>(write ? POLLOUT : POLLIN), 0}};
    const double left = std::clamp(until - SteadySeconds(), 0.0,
                                   looks ? kSecondsBetweenLooks : kMost);
    const int ready = ::poll(fds, 3, static_cast<int>(left * 1000) + 1);
    if (stopped_.load()) return NotWanted();
    if (ready < 0 && errno != EINTR)
      return ErrnoToStatus(errno, "cannot wait for a program's output");
    Ready streams;
    streams.error = ready > 0 && fds[0].revents != 0;
    (write ? streams.input : streams.output) = ready > 0 && fds[2].revents != 0;
    if (streams.error || streams.input || streams.output) return streams;
    if (looks && options_.interrupted()) return NotWanted();
    if (SteadySeconds() >= until) return streams;
  }
}

void ChildProcess::ReadErrors() {
  constexpr size_t kMostKept = 8192;
  char bytes[4096];
  for (;;) {
    const ssize_t got = ::read(err_.get(), bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) err_.Close();
    if (got <= 0) return;
    errors_.append(bytes, static_cast<size_t>(got));
    if (errors_.size() > 2 * kMostKept)
      errors_.erase(0, errors_.size() - kMostKept);
  }
}

absl::StatusOr<size_t> ChildProcess::Read(char* to, size_t size) {
  for (;;) {
    PD_ASSIGN_OR_RETURN(const Ready ready, Wait(options_.timeout, false));
    if (!ready.output && !ready.error)
      return DeadlineExceeded("it has written nothing for %g seconds%s",
                              options_.timeout, LastWords());
    if (ready.error) ReadErrors();
    if (!ready.output) continue;
    const ssize_t got = ::read(out_.get(), to, size);
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR && errno != EAGAIN)
      return ErrnoToStatus(errno, "cannot read a program's output");
  }
}

absl::Status ChildProcess::Write(const char* from, size_t size) {
  PD_INVARIANT(options_.takes_input);
  while (size > 0) {
    // Most often there is room.
    const ssize_t sent =
        ::send(in_.get(), from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) {
      from += sent;
      size -= static_cast<size_t>(sent);
      continue;
    }
    if (errno == EPIPE || errno == ECONNRESET) return InputClosed();
    if (errno != EINTR && errno != EAGAIN)
      return ErrnoToStatus(errno, "cannot write to a program");
    PD_ASSIGN_OR_RETURN(const Ready ready, Wait(options_.timeout, true));
    if (!ready.input && !ready.error)
      return DeadlineExceeded("it has read nothing for %g seconds%s",
                              options_.timeout, LastWords());
    if (ready.error) ReadErrors();
  }
  return absl::OkStatus();
}

// The program has closed its input, most often since it has ended.
absl::Status ChildProcess::InputClosed() {
  bool ended = false;
  PD_RETURN_IF_ERROR(AwaitEnd(SteadySeconds() + kSecondsToEnd, &ended));
  if (!ended)
    return DataLoss("it has closed its standard input%s", LastWords());
  return DataLoss("it has ended%s", LastWords());
}

// Leaves the process as it is, so that its number stays its own.
bool ChildProcess::HasEnded(absl::Status* how) {
  if (pid_ <= 0) return true;
  siginfo_t info;
  std::memset(&info, 0, sizeof(info));
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info,
               WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno == EINTR) return false;
    pid_ = -1;  // this process takes no notice of its children's ends
    return true;
  }
  if (info.si_pid == 0) return false;
  if (info.si_code == CLD_EXITED && info.si_status == 127)
    *how = DataLoss("it ended with status 127, as what is not found does");
  else if (info.si_code == CLD_EXITED && info.si_status != 0)
    *how = DataLoss("it ended with status %d", info.si_status);
  else if (info.si_code != CLD_EXITED)
    *how = DataLoss("it was ended by signal %d (%s)", info.si_status,
                    ::strsignal(info.si_status));
  return true;
}

// Waits for the program's end; its failure, if it failed.
absl::Status ChildProcess::AwaitEnd(double until, bool* ended) {
  absl::Status how;
  for (;;) {
    *ended = HasEnded(&how);
    if (*ended) break;
    if (SteadySeconds() >= until) return absl::OkStatus();
    constexpr double kSecondsBetweenLooks = 0.005;
    PD_ASSIGN_OR_RETURN(const Ready ready, Wait(kSecondsBetweenLooks, false));
    if (ready.error) ReadErrors();
    // Its output is not read here, and ready at once.
    if (ready.output && !ready.error)
      ::usleep(static_cast<useconds_t>(kSecondsBetweenLooks * 1e6));
  }
  if (err_.get() >= 0) ReadErrors();
  if (how.ok()) return how;
  return absl::Status(how.code(), absl::StrCat(how.message(), LastWords()));
}

absl::Status ChildProcess::Finish() {
  out_.Close();
  in_.Close();
  bool ended = false;
  PD_RETURN_IF_ERROR(AwaitEnd(SteadySeconds() + options_.timeout, &ended));
  if (ended) return absl::OkStatus();
  return DeadlineExceeded(
      "it has closed its output and has not ended for %g seconds%s",
      options_.timeout, LastWords());
}

std::string ChildProcess::LastWords() const {
  constexpr size_t kMostLines = 8, kMostBytes = 300;
  std::vector<std::string> lines = absl::StrSplit(errors_, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  if (lines.empty()) return "";
  std::string text = "; the end of its standard error:";
  const size_t first = lines.size() - std::min(lines.size(), kMostLines);
  for (size_t i = first; i < lines.size(); ++i)
    absl::StrAppend(&text, "\n  ", Printable(lines[i].substr(0, kMostBytes)));
  return text;
}

void ChildProcess::End() {
  in_.Close();
  out_.Close();  // a program that goes on writing ends by SIGPIPE
  err_.Close();
  if (pid_ <= 0) return;
  absl::Status how;
  if (!HasEnded(&how)) {
    ::kill(-pid_, SIGTERM);
    const double until = SteadySeconds() + kSecondsToEnd;
    while (!HasEnded(&how) && SteadySeconds() < until) ::usleep(2000);
  }
  // All that it has started ends too. The group has its number as long as the
  // program has not been waited for.
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace pd
