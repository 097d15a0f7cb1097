// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/launcher.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cmd/common/exit_status.h"
#include "cmd/common/worker_logs.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/log_marks.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Clock = std::chrono::steady_clock;

// How long processes may take to end by themselves after one has failed,
// beyond the time in which they notice, and after they were told to.
constexpr std::chrono::seconds kGrace(5), kTerminate(5);

volatile std::sig_atomic_t g_signal = 0;   // to be passed on
volatile std::sig_atomic_t g_stopped = 0;  // a signal has come

// The terminal sends its signals to the processes itself.
void OnSignal(int signal, siginfo_t* info, void*) {
  g_stopped = 1;
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

// Both ends of what a process writes to: a terminal of its own where ours is
// one and `drawn`, so that it draws as on ours.
absl::Status OpenErrors(bool drawn, int ends[2]) {
  if (!drawn || isatty(STDERR_FILENO) == 0)
    return pipe2(ends, O_CLOEXEC) == 0
               ? absl::OkStatus()
               : ErrnoToStatus(errno, "cannot make a pipe");
  winsize size{};
  termios plain{};
  ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
  tcgetattr(STDERR_FILENO, &plain);
  cfmakeraw(&plain);
  if (openpty(&ends[0], &ends[1], nullptr, &plain, &size) != 0)
    return ErrnoToStatus(errno, "cannot make a terminal for rank 0");
  for (int i = 0; i < 2; ++i) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  return absl::OkStatus();
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
  Launcher(const ProcessOptions& options, WorkerLogs* logs)
      : grace_(kGrace + std::chrono::seconds(
                            static_cast<int64_t>(options.silence_timeout))),
        logs_(*logs) {}
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

  // Processes that have ended by themselves, well or not.
  int Left() const {
    return static_cast<int>(
        std::count_if(processes_.begin(), processes_.end(),
                      [](const Process& p) { return WIFEXITED(p.status); }));
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
    int ends[2] = {-1, -1};
    const bool reads = rank > 0 || logs_.wanted();
    if (reads) PD_RETURN_IF_ERROR(OpenErrors(rank == 0, ends));
    std::vector<std::string> words = Environment(rank);
    if (logs_.wanted()) words.push_back(absl::StrCat(kFilesLines, "=1"));
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
      if (rank > 0) dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
      if (reads) dup2(ends[1], STDERR_FILENO);
      execve("/proc/self/exe", argv, environment.data());
      _exit(kExitFailed);
    }
    if (reads) {
      close(ends[1]);
      fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    processes_.push_back({pid, ends[0], "", true, 0});
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
        // Rank 0 draws within its lines.
        if (rank == 0)
          (void)!write(STDERR_FILENO, bytes, static_cast<size_t>(n));
        process.line.append(bytes, static_cast<size_t>(n));
        for (size_t end; (end = process.line.find('\n')) != std::string::npos;
             process.line.erase(0, end + 1))
          Take(rank, process.line.substr(0, end));
        // A bar is drawn for as long as the run takes.
        const size_t drawn = rank == 0 ? process.line.rfind('\r') : 0;
        if (drawn != std::string::npos) process.line.erase(0, drawn);
      }
      if (process.errors < 0 || (n < 0 && errno == EAGAIN)) continue;
      if (!process.line.empty()) Take(rank, process.line);
      process.line.clear();
      close(process.errors);
      process.errors = -1;
    }
  }

  void Take(size_t rank, std::string line) {
    const bool shown = line.empty() || line[0] != kFiledOnly;
    if (!shown) line.erase(0, 1);
    if (rank > 0 && shown) {
      const std::string text = absl::StrCat("rank ", rank, ": ", line, "\n");
      (void)!write(STDERR_FILENO, text.data(), text.size());
    }
    const std::string settled = SettledLine(line);
    if (!settled.empty() || line.empty()) logs_.Add(rank, settled);
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
    if (passed > grace_ + kTerminate)
      Signal(SIGKILL);
    else if (passed > grace_)
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

  const std::chrono::seconds grace_;
  WorkerLogs& logs_;
  std::vector<std::string> endpoints_;
  std::vector<Process> processes_;
  int first_failed_ = -1;
  Clock::time_point failed_at_;
};

// The block that paddle.distributed.launch prints first.
void LogConfiguration(const ProcessOptions& options, char* const* argv) {
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
      {"log_dir", options.log_dir.empty() ? "None" : options.log_dir},
      {"nproc_per_node", absl::StrCat(*options.processes)},
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

// The command line, for another number of processes.
std::vector<std::string> WordsFor(int processes, char* const* argv) {
  std::vector<std::string> words;
  for (char* const* word = argv; *word != nullptr; ++word) {
    words.emplace_back(*word);
    if (absl::StartsWith(words.back(), "--processes="))
      words.back() = absl::StrCat("--processes=", processes);
    else if (words.size() > 1 && words[words.size() - 2] == "--processes")
      words.back() = absl::StrCat(processes);
  }
  return words;
}

bool Resumes(char* const* argv) {
  for (; *argv != nullptr; ++argv)
    if (std::strcmp(*argv, "--resume") == 0) return true;
  return false;
}

}  // namespace

absl::Status LaunchProcesses(const ProcessOptions& options, char* const* argv) {
  PassSignalsOn();
  LogConfiguration(options, argv);
  const bool resumes = Resumes(argv);
  WorkerLogs logs(options.log_dir, options.log_needs, resumes);
  auto processes = static_cast<int>(*options.processes);
  for (int64_t restart = 0;; ++restart) {
    std::vector<std::string> words = WordsFor(processes, argv);
    // Before the rest, in which "--" may end the options.
    if (restart > 0 && !resumes) words.emplace(words.begin() + 1, "--resume");
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    Launcher launcher(options, &logs);
    PD_RETURN_IF_ERROR(launcher.Start(processes, pointers.data()));
    absl::Status status = launcher.Wait();
    if (status.ok() || ExitCode(status) != kExitFailed || g_stopped != 0 ||
        restart >= options.max_restarts)
      return status;
    const int left = std::max(1, launcher.Left());
    const std::string again = absl::StrFormat(
        "%s; %d of %d are started again (restart %d of %d)", status.message(),
        left, processes, restart + 1, options.max_restarts);
    LogWarning("%s", again);
    for (int rank = 0; rank < processes; ++rank)
      logs.Add(static_cast<size_t>(rank), again);
    processes = left;
  }
}

}  // namespace pd
