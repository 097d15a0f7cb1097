// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/launcher.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cmd/common/exit_status.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Clock = std::chrono::steady_clock;

// How long processes may take to end by themselves after one has failed, and
// after they were told to.
constexpr std::chrono::seconds kGrace(15), kTerminate(5);

volatile std::sig_atomic_t g_signal = 0;

// The terminal sends its signals to the processes itself.
void OnSignal(int signal, siginfo_t* info, void*) {
  if (info->si_code != SI_KERNEL) g_signal = signal;
}

void PassSignalsOn() {
  struct sigaction action {};
  action.sa_sigaction = OnSignal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

// Ports that are free now, all different.
absl::StatusOr<std::vector<int>> FreePorts(int count) {
  std::vector<int> sockets, ports;
  absl::Status status;
  for (int i = 0; i < count && status.ok(); ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (fd < 0 || bind(fd, generic, length) != 0 ||
        getsockname(fd, generic, &length) != 0)
      status = ErrnoToStatus(errno, "cannot get a port of this machine");
    if (fd >= 0) sockets.push_back(fd);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int fd : sockets) close(fd);
  if (!status.ok()) return status;
  return ports;
}

struct Process {
  pid_t pid = -1;
  int errors = -1;   // its standard error; -1: it has ours
  std::string line;  // of it, not complete yet
  bool running = false;
  int status = 0;  // as waitpid gives it
};

class Launcher {
 public:
  ~Launcher() {
    for (Process& process : processes_)
      if (process.errors >= 0) close(process.errors);
  }

  absl::Status Start(int count, char* const* argv) {
    PD_ASSIGN_OR_RETURN(const std::vector<int> ports, FreePorts(count));
    for (const int port : ports)
      endpoints_.push_back(absl::StrCat("127.0.0.1:", port));
    for (int rank = 0; rank < count; ++rank) {
      const absl::Status started = StartOne(rank, argv);
      if (started.ok()) continue;
      Signal(SIGKILL);
      return started;
    }
    return absl::OkStatus();
  }

  absl::Status Wait() {
    while (Running() > 0) {
      Relay(100);
      if (g_signal != 0) {
        Signal(g_signal);
        g_signal = 0;
      }
      Reap();
      if (first_failed_ >= 0) EndOthers();
    }
    Relay(0);
    return Outcome();
  }

 private:
  std::vector<std::string> Environment(int rank) const {
    const std::string own = endpoints_[static_cast<size_t>(rank)];
    return {absl::StrCat("PADDLE_TRAINER_ID=", rank),
            absl::StrCat("PADDLE_TRAINERS_NUM=", endpoints_.size()),
            absl::StrCat("PADDLE_TRAINER_ENDPOINTS=",
                         absl::StrJoin(endpoints_, ",")),
            absl::StrCat("PADDLE_CURRENT_ENDPOINT=", own)};
  }

  absl::Status StartOne(int rank, char* const* argv) {
    int pipe_ends[2] = {-1, -1};
    if (rank > 0 && pipe2(pipe_ends, O_CLOEXEC) != 0)
      return ErrnoToStatus(errno, "cannot make a pipe");
    std::vector<std::string> words = Environment(rank);
    for (char** word = environ; *word != nullptr; ++word)
      if (std::strncmp(*word, "PADDLE_TRAINER", 14) != 0 &&
          std::strncmp(*word, "PADDLE_CURRENT_ENDPOINT=", 24) != 0)
        words.push_back(*word);
    std::vector<char*> environment;
    for (std::string& word : words) environment.push_back(word.data());
    environment.push_back(nullptr);
    const pid_t parent = getpid(), pid = fork();
    if (pid < 0) return ErrnoToStatus(errno, "cannot start a process");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(kExitFailed);
      if (rank > 0) {
        const int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, STDIN_FILENO);
        dup2(pipe_ends[1], STDERR_FILENO);
      }
      execve("/proc/self/exe", argv, environment.data());
      _exit(kExitFailed);
    }
    if (rank > 0) {
      close(pipe_ends[1]);
      fcntl(pipe_ends[0], F_SETFL, O_NONBLOCK);
    }
    processes_.push_back({pid, pipe_ends[0], "", true, 0});
    return absl::OkStatus();
  }

  int Running() const {
    return static_cast<int>(
        std::count_if(processes_.begin(), processes_.end(),
                      [](const Process& process) { return process.running; }));
  }

  void Signal(int signal) const {
    for (const Process& process : processes_)
      if (process.running) kill(process.pid, signal);
  }

  // Passes lines on for at most `milliseconds`.
  void Relay(int milliseconds) {
    std::vector<pollfd> polls;
    for (const Process& process : processes_)
      if (process.errors >= 0) polls.push_back({process.errors, POLLIN, 0});
    if (poll(polls.data(), polls.size(), milliseconds) <= 0) return;
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      Process& process = processes_[rank];
      char bytes[4096];
      ssize_t n = 0;
      while (process.errors >= 0 &&
             (n = read(process.errors, bytes, sizeof(bytes))) > 0) {
        process.line.append(bytes, static_cast<size_t>(n));
        for (size_t end; (end = process.line.find('\n')) != std::string::npos;
             process.line.erase(0, end + 1))
          Print(rank, process.line.substr(0, end));
      }
      if (process.errors < 0 || (n < 0 && errno == EAGAIN)) continue;
      if (!process.line.empty()) Print(rank, process.line);
      process.line.clear();
      close(process.errors);
      process.errors = -1;
    }
  }

  static void Print(size_t rank, const std::string& line) {
    const std::string text = absl::StrCat("rank ", rank, ": ", line, "\n");
    (void)!write(STDERR_FILENO, text.data(), text.size());
  }

  void Reap() {
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      Process& process = processes_[rank];
      if (!process.running ||
          waitpid(process.pid, &process.status, WNOHANG) != process.pid)
        continue;
      process.running = false;
      if (process.status == 0 || first_failed_ >= 0) continue;
      first_failed_ = static_cast<int>(rank);
      failed_at_ = Clock::now();
    }
  }

  void EndOthers() {
    const auto passed = Clock::now() - failed_at_;
    if (passed > kGrace + kTerminate)
      Signal(SIGKILL);
    else if (passed > kGrace)
      Signal(SIGTERM);
  }

  absl::Status Outcome() const {
    if (first_failed_ < 0) return absl::OkStatus();
    const int status = processes_[static_cast<size_t>(first_failed_)].status;
    if (WIFSIGNALED(status))
      return Unavailable("rank %d was ended by signal %d (%s)", first_failed_,
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
    const std::string text = absl::StrCat(
        "rank ", first_failed_, " has ended with status ", WEXITSTATUS(status));
    switch (WEXITSTATUS(status)) {
      case kExitNo:
        return AnswerNo(text);
      case kExitUsage:
        return UsageError(InvalidArgument("%s", text));
      case kExitInterrupted:
        return StoppedBySignal(SIGINT, text);
      case kExitTerminated:
        return StoppedBySignal(SIGTERM, text);
      default:
        return Unavailable("%s", text);
    }
  }

  std::vector<std::string> endpoints_;
  std::vector<Process> processes_;
  int first_failed_ = -1;
  Clock::time_point failed_at_;
};

// The block that paddle.distributed.launch prints first.
void LogConfiguration(int processes, char* const* argv) {
  std::vector<std::string> arguments;
  for (char* const* word = argv + 1; *word != nullptr; ++word)
    arguments.push_back(absl::StrCat("'", *word, "'"));
  LogVerbose("----- Configuration Arguments -----");
  const std::pair<const char*, std::string> lines[] = {
      {"gpus", "None"},
      {"heter_worker_num", "None"},
      {"heter_workers", ""},
      {"http_port", "None"},
      {"ips", "127.0.0.1"},
      {"log_dir", "None"},
      {"nproc_per_node", absl::StrCat(processes)},
      {"server_num", "None"},
      {"servers", ""},
      {"training_script", argv[0]},
      {"training_script_args",
       absl::StrCat("[", absl::StrJoin(arguments, ", "), "]")},
      {"worker_num", "None"},
      {"workers", ""}};
  for (const auto& [name, value] : lines) LogVerbose("%s: %s", name, value);
  LogVerbose("-----");
}

}  // namespace

absl::Status LaunchProcesses(int processes, int64_t restarts,
                             char* const* argv) {
  PassSignalsOn();
  LogConfiguration(processes, argv);
  std::vector<char*> words;
  for (char* const* word = argv; *word != nullptr; ++word)
    words.push_back(*word);
  std::string resume = "--resume";
  const bool resumes =
      std::any_of(words.begin(), words.end(),
                  [&](const char* word) { return word == resume; });
  words.push_back(nullptr);
  for (int64_t restart = 0;; ++restart) {
    Launcher launcher;
    PD_RETURN_IF_ERROR(launcher.Start(processes, words.data()));
    absl::Status status = launcher.Wait();
    if (status.ok() || ExitCode(status) != kExitFailed || restart >= restarts)
      return status;
    LogWarning("%s; all are started again (%d of %d)", status.message(),
               restart + 1, restarts);
    if (restart > 0 || resumes) continue;
    words.back() = resume.data();
    words.push_back(nullptr);
  }
}

}  // namespace pd
