// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/file_target.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/path.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // as the kernel follows
constexpr std::chrono::seconds kReaderWait(10);

// The links of /proc/PID/fd are no paths: what they say may be deleted or
// never have had a name.
bool IsProcessLink(const std::string& link) {
  struct statfs info;
  return ::statfs(FolderOf(link).c_str(), &info) == 0 &&
         info.f_type == PROC_SUPER_MAGIC;
}

// 1 for /dev/stdout; -1 where the link is another process's or no descriptor.
int OwnDescriptor(const std::string& link) {
  std::error_code error;
  const fs::path folder = fs::canonical(FolderOf(link), error);
  const fs::path own = fs::canonical("/proc/self/fd", error);
  int descriptor = -1;
  if (error || folder != own ||
      !absl::SimpleAtoi(fs::path(link).filename().string(), &descriptor))
    return -1;
  return descriptor;
}

// Waits for a reader, so that a pipe that nobody reads is an error and no
// process that hangs.
absl::StatusOr<int> OpenPipe(const FileTarget& target) {
  const auto end = std::chrono::steady_clock::now() + kReaderWait;
  for (;;) {
    const int fd =
        ::open(target.place.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
      return fd;
    }
    if (errno != ENXIO && errno != EINTR)
      return ErrnoToStatus(errno, absl::StrCat("cannot write ", target.shown));
    if (std::chrono::steady_clock::now() > end)
      return DeadlineExceeded(
          "cannot write %s: it is a pipe, and nobody opened it for reading "
          "within %d seconds",
          target.shown, kReaderWait.count());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace

absl::StatusOr<FileTarget> ResolveTarget(const std::string& path) {
  FileTarget target;
  if (path == kStandardStream) {
    target.kind = FileTarget::Kind::kDirect;
    target.shown = "standard output";
    target.descriptor = STDOUT_FILENO;
    return target;
  }
  target.shown = absl::StrCat("'", path, "'");
  target.place = path;
  const std::string what = absl::StrCat("cannot write ", target.shown);
  for (int links = 0;; ++links) {
    struct stat info;
    if (::lstat(target.place.c_str(), &info) != 0) {
      if (errno == ENOENT) return target;  // whoever makes it says the rest
      return ErrnoToStatus(errno, what);
    }
    if (S_ISDIR(info.st_mode))
      return InvalidArgument("cannot write %s: it is a directory",
                             target.shown);
    const bool link = S_ISLNK(info.st_mode);
    if (!link || IsProcessLink(target.place)) {
      if (!S_ISREG(info.st_mode)) target.kind = FileTarget::Kind::kDirect;
      if (link) target.descriptor = OwnDescriptor(target.place);
      return target;
    }
    if (links == kMostLinks) return ErrnoToStatus(ELOOP, what);
    std::error_code error;
    const fs::path next = fs::read_symlink(target.place, error);
    if (error) return ErrnoToStatus(error.value(), what);
    // Relative to the link's folder; an absolute path takes its place.
    target.place = (fs::path(target.place).parent_path() / next).string();
  }
}

absl::StatusOr<int> OpenDirect(const FileTarget& target) {
  struct stat info;
  if (target.descriptor < 0 && ::stat(target.place.c_str(), &info) == 0 &&
      S_ISFIFO(info.st_mode))
    return OpenPipe(target);
  const int fd = target.descriptor >= 0
                     ? ::fcntl(target.descriptor, F_DUPFD_CLOEXEC, 3)
                     : ::open(target.place.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot write ", target.shown));
  return fd;
}

bool IsDirectTarget(const std::string& path) {
  const auto target = ResolveTarget(path);
  return target.ok() && target->direct();
}

absl::Status CheckPrefix(const std::string& prefix, absl::string_view what) {
  // A folder of that name may stand beside the files.
  if (!IsDirectTarget(prefix)) return absl::OkStatus();
  return InvalidArgument(
      "cannot write %s to %s, which takes one file: it has several; expected a "
      "path that their names begin with",
      what, ResolveTarget(prefix)->shown);
}

}  // namespace pd
