// SPDX-License-Identifier: Apache-2.0
// Files `workerlog.N` of a folder, as paddle.distributed.launch names them: the
// lines that the process of rank N has written to standard error.
#ifndef PD_CMD_COMMON_WORKER_LOGS_H_
#define PD_CMD_COMMON_WORKER_LOGS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace pd {

/// A line as it is when it comes to its end: the text behind the last carriage
/// return, without control sequences of a terminal. Nothing where all of it
/// was a bar that has been wiped away.
std::string SettledLine(absl::string_view line);

class WorkerLogs {
 public:
  /// Nothing is filed where `folder` is empty. It is made as soon as `needs`
  /// is a folder, so that a run that does not begin leaves nothing; at once
  /// where that is empty. `append`: behind what the files have.
  WorkerLogs(std::string folder, std::string needs, bool append)
      : folder_(std::move(folder)), needs_(std::move(needs)), append_(append) {}
  ~WorkerLogs();
  WorkerLogs(const WorkerLogs&) = delete;
  WorkerLogs& operator=(const WorkerLogs&) = delete;

  bool wanted() const { return !folder_.empty(); }
  /// Adds a line, without its end, to the file of `rank`. The first failure is
  /// a warning, and ends the filing.
  void Add(size_t rank, absl::string_view line);

 private:
  struct File {
    int fd = -1;
    std::string waiting;  // for the folder
  };
  bool MakeFolder();
  void Flush(size_t rank);
  void Fail(const std::string& path, int error);

  std::string folder_;  // empty: no more
  const std::string needs_;
  const bool append_;
  bool made_ = false;
  std::vector<File> files_;  // by rank
};

}  // namespace pd

#endif  // PD_CMD_COMMON_WORKER_LOGS_H_
