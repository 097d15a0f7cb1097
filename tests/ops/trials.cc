// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/trials.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pd {
namespace {

constexpr size_t kMostDeaths = 30;

// The most memory that the process has had, in bytes.
size_t PeakMemory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

// An op that allocates far too much fails by itself and spares the machine.
void LimitAddresses() {
  constexpr rlim_t kMost = rlim_t{8} << 30;
  const rlimit limit = {kMost, kMost};
  if (!kSanitized) setrlimit(RLIMIT_AS, &limit);
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof(buffer))) > 0;)
    text.append(buffer, static_cast<size_t>(n));
  return text;
}

}  // namespace

// The state that a dead child leaves.
struct Trials::Shared {
  int done = 0;  // trials that were begun
  bool endless = false;
  char name[1000] = {};
};

void Trials::Say(absl::string_view text) const {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  if (::write(pipe_, line.data(), line.size()) < 0) _exit(3);
}

void Trials::Add(absl::string_view name, const Trial& trial) {
  if (++count_ <= skip_) return;
  // Each takes ten times as long with sanitizers: a part of them stands for all
  // where PD_ALL_TRIALS does not ask for every one.
  static const bool all = std::getenv("PD_ALL_TRIALS") != nullptr;
  if (kSanitized && !all && count_ % 16 != 0) return;
  shared_->done = count_;
  const size_t size = std::min(name.size(), sizeof(shared_->name) - 1);
  std::memcpy(shared_->name, name.data(), size);
  shared_->name[size] = '\0';
  const size_t before = PeakMemory();
  // An endless loop ends by a signal.
  alarm(shared_->endless ? 1 : seconds_);
  const std::string wrong = trial();
  alarm(0);
  if (!wrong.empty()) Say(absl::StrCat(name, ": ", wrong));
  const size_t taken = PeakMemory() - before;
  if (!kSanitized && bytes_ > 0 && taken > bytes_)
    Say(absl::StrCat(name, ": took ", taken >> 20, " MB of memory"));
}

void Trials::MayBeEndless(bool may) { shared_->endless = may; }

std::vector<std::string> Trials::Run(const Enumerate& enumerate,
                                     unsigned seconds, size_t bytes) {
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {"no memory to share with a child"};
  auto* const shared = new (memory) Shared;
  std::vector<std::string> wrong;
  for (size_t deaths = 0; deaths < kMostDeaths;) {
    int ends[2];
    if (pipe(ends) != 0) return {"no pipe to a child"};
    const pid_t child = fork();
    if (child < 0) return {"no child process"};
    if (child == 0) {
      close(ends[0]);
      Trials trials;
      trials.shared_ = shared;
      trials.skip_ = shared->done;
      trials.pipe_ = ends[1];
      trials.seconds_ = seconds;
      trials.bytes_ = bytes;
      LimitAddresses();
      enumerate(&trials);
      _exit(0);
    }
    close(ends[1]);
    const std::string said = ReadAll(ends[0]);
    close(ends[0]);
    for (const auto line : absl::StrSplit(said, '\n', absl::SkipEmpty()))
      wrong.emplace_back(line);
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    if (shared->endless && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
      continue;
    ++deaths;
    wrong.push_back(absl::StrCat(
        shared->name,
        WIFSIGNALED(status)
            ? absl::StrCat(": ended by ", strsignal(WTERMSIG(status)))
            : absl::StrCat(": exit status ", WEXITSTATUS(status))));
  }
  munmap(memory, sizeof(Shared));
  return wrong;
}

}  // namespace pd
