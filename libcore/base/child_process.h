// SPDX-License-Identifier: Apache-2.0
// A program whose standard output is read. It runs under /bin/sh in a process
// group of its own, so that a Ctrl-C is not its, and all that it started can be
// ended with it. Its standard input is empty, or what is written to it; the
// last lines of its standard error explain why it failed.
#ifndef PD_LIBCORE_BASE_CHILD_PROCESS_H_
#define PD_LIBCORE_BASE_CHILD_PROCESS_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pd {

struct ChildProcessOptions {
  std::string command;  ///< for /bin/sh -c
  std::string folder;   ///< it runs there; "": where this process is
  /// Set besides this process's environment.
  std::vector<std::pair<std::string, std::string>> environment = {};
  double timeout = 300;      ///< seconds without a byte, or to end in
  bool takes_input = false;  ///< its standard input is written to, not empty
  /// Asked ten times a second while the program is waited for: where it gives
  /// true, whoever waits gets Cancelled. May be null.
  std::function<bool()> interrupted = nullptr;
};

/// One thread uses it; Stop may be called by another.
class ChildProcess {
 public:
  /// NotFound where there is no such folder; the errors of the system.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const ChildProcessOptions& options);

  /// Ends whatever still runs: SIGTERM to the group, SIGKILL two seconds later.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Reads 1 to `size` bytes of the standard output; gives 0 at its end.
  /// DeadlineExceeded after the timeout, Cancelled after Stop.
  absl::StatusOr<size_t> Read(char* to, size_t size);

  /// Writes all of it to the standard input, of a program that takes any.
  /// DataLoss when the program has ended or closed it; DeadlineExceeded,
  /// Cancelled as Read.
  absl::Status Write(const char* from, size_t size);

  /// Waits for the program's end once Read gave 0. DataLoss with the exit
  /// status or the signal and the last lines of standard error when it failed;
  /// DeadlineExceeded, Cancelled as Read.
  absl::Status Finish();

  /// Makes a Read or Finish under way give Cancelled, and every later one.
  void Stop();

 private:
  // A descriptor that is closed with its owner.
  class Descriptor {
   public:
    ~Descriptor() { Close(); }
    Descriptor() = default;
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    void Set(int fd) { fd_ = fd; }
    void Close();
    int get() const { return fd_; }

   private:
    int fd_ = -1;
  };

  explicit ChildProcess(const ChildProcessOptions& options)
      : options_(options) {}
  absl::Status Spawn();
  absl::Status SpawnInto(int in, int out, int err);
  // The streams that can be read or written at once.
  struct Ready {
    bool input = false, output = false, error = false;
  };
  // Waits for standard output, or where it is to be written for standard input,
  // and for standard error; none is ready after `seconds`.
  absl::StatusOr<Ready> Wait(double seconds, bool write) const;
  absl::Status InputClosed();
  absl::Status AwaitEnd(double until, bool* ended);
  void ReadErrors();
  std::string LastWords() const;
  bool HasEnded(absl::Status* how);
  void End();

  const ChildProcessOptions options_;
  pid_t pid_ = -1;
  Descriptor in_, out_, err_, wake_;
  std::string errors_;  // the end of what it wrote to standard error
  std::atomic<bool> stopped_{false};
};

}  // namespace pd

#endif  // PD_LIBCORE_BASE_CHILD_PROCESS_H_
