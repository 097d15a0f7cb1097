// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/worker_logs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/log.h"

namespace pd {

std::string SettledLine(absl::string_view line) {
  const size_t wiped = line.rfind('\r');
  if (wiped != absl::string_view::npos) line.remove_prefix(wiped + 1);
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      text += line[i];
      continue;
    }
    // ESC [ parameters, up to a letter.
    if (i + 1 < line.size() && line[i + 1] == '[') ++i;
    while (i + 1 < line.size() && (line[i + 1] < '@' || line[i + 1] > '~')) ++i;
    ++i;
  }
  return text;
}

WorkerLogs::~WorkerLogs() {
  for (size_t rank = 0; rank < files_.size(); ++rank) {
    Flush(rank);
    if (files_[rank].fd >= 0) close(files_[rank].fd);
  }
}

void WorkerLogs::Add(size_t rank, absl::string_view line) {
  if (folder_.empty()) return;
  if (files_.size() <= rank) files_.resize(rank + 1);
  absl::StrAppend(&files_[rank].waiting, line, "\n");
  Flush(rank);
}

void WorkerLogs::Fail(const std::string& path, int error) {
  LogWarning("the processes' lines are not kept: %s",
             std::string(
                 ErrnoToStatus(error, absl::StrCat("cannot write '", path, "'"))
                     .message()));
  folder_.clear();
}

bool WorkerLogs::MakeFolder() {
  if (made_) return true;
  std::error_code error;
  if (folder_.empty() ||
      (!needs_.empty() && !std::filesystem::is_directory(needs_, error)))
    return false;
  std::filesystem::create_directories(folder_, error);
  if (error) {
    Fail(folder_, error.value());
    return false;
  }
  return made_ = true;
}

void WorkerLogs::Flush(size_t rank) {
  File& file = files_[rank];
  if (file.waiting.empty() || !MakeFolder()) return;
  const std::string path = absl::StrCat(folder_, "/workerlog.", rank);
  if (file.fd < 0)
    file.fd = open(
        path.c_str(),
        O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND | (append_ ? 0 : O_TRUNC),
        0666);
  if (file.fd < 0) return Fail(path, errno);
  while (!file.waiting.empty()) {
    const ssize_t written =
        write(file.fd, file.waiting.data(), file.waiting.size());
    if (written < 0 && errno != EINTR) return Fail(path, errno);
    if (written > 0) file.waiting.erase(0, static_cast<size_t>(written));
  }
}

}  // namespace pd
