// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/file_input.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <limits>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/file_target.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kFirstBytes = size_t{1} << 16;
constexpr std::chrono::seconds kWriterWait(10);
constexpr int kLookMilliseconds = 50;

absl::Status CannotRead(const FileInput& input) {
  return ErrnoToStatus(errno, absl::StrCat("cannot read ", input.shown));
}

absl::StatusOr<FileInput> OpenStandardInput() {
  static std::atomic<bool> taken{false};
  if (taken.exchange(true))
    return FailedPrecondition(
        "standard input ('-') was read already: it can be given once only");
  FileInput input;
  input.shown = "standard input";
  input.fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  if (input.fd < 0) return CannotRead(input);
  return input;
}

// Devices give bytes without end (/dev/zero) or whole disks. A terminal ends
// when its user says so, and /dev/null at once.
absl::Status CheckDevice(const FileInput& input, const struct stat& info) {
  const bool device = S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode);
  const bool null = S_ISCHR(info.st_mode) && info.st_rdev == ::makedev(1, 3);
  if (!device || null || ::isatty(input.fd) == 1) return absl::OkStatus();
  return InvalidArgument("%s is a device; expected a file or a pipe",
                         input.shown);
}

absl::Status CheckKind(FileInput* input) {
  struct stat info;
  if (::fstat(input->fd, &info) != 0) return CannotRead(*input);
  if (S_ISDIR(info.st_mode))
    return InvalidArgument("%s is a directory; expected a file", input->shown);
  PD_RETURN_IF_ERROR(CheckDevice(*input, info));
  struct statfs system;
  // A pipe without a name has had its writer from its beginning.
  input->awaits_writer = S_ISFIFO(info.st_mode) &&
                         ::fstatfs(input->fd, &system) == 0 &&
                         system.f_type != PIPEFS_MAGIC;
  return absl::OkStatus();
}

size_t MostBytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page = ::sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page <= 0) return std::numeric_limits<size_t>::max() / 2;
  return static_cast<size_t>(pages) / 2 * static_cast<size_t>(page);
}

// Bytes that grow where they are as far as the heap can.
class GrowingBytes {
 public:
  ~GrowingBytes() { std::free(data_); }

  // Room for at least one more byte.
  absl::Status MakeRoom(const FileInput& input) {
    if (size_ < capacity_) return absl::OkStatus();
    const size_t most = MostBytes();
    if (size_ >= most)
      return ResourceExhausted(
          "%s has given %d bytes and does not end; at most half of the "
          "machine's memory is read",
          input.shown, size_);
    const size_t wanted = std::min(most, std::max(kFirstBytes, capacity_ * 2));
    void* grown = std::realloc(data_, wanted);
    if (grown == nullptr)
      return ResourceExhausted("out of memory after %d bytes of %s", size_,
                               input.shown);
    data_ = static_cast<std::byte*>(grown);
    capacity_ = wanted;
    return absl::OkStatus();
  }
  std::byte* end() { return data_ + size_; }
  size_t room() const { return capacity_ - size_; }
  size_t size() const { return size_; }
  void Added(size_t n) { size_ += n; }

  FileBytes Release() {
    FileBytes file;
    file.size = size_;
    if (void* fitting = std::realloc(data_, std::max<size_t>(size_, 1)))
      data_ = static_cast<std::byte*>(fitting);
    file.data = std::shared_ptr<const std::byte>(data_, [](const std::byte* p) {
      std::free(const_cast<std::byte*>(p));
    });
    data_ = nullptr;
    return file;
  }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

// A named pipe reads as empty until somebody has opened it for writing. False
// when its writer has come and gone without a byte.
absl::StatusOr<bool> MayCome(const FileInput& input, Clock::time_point until) {
  struct pollfd look = {input.fd, POLLIN, 0};
  if (::poll(&look, 1, kLookMilliseconds) > 0)
    return (look.revents & POLLIN) != 0;
  if (Clock::now() < until) return true;
  return DeadlineExceeded(
      "%s is a pipe, and nobody opened it for writing within %d seconds",
      input.shown, kWriterWait.count());
}

}  // namespace

absl::StatusOr<FileInput> OpenInput(const std::string& path) {
  FileInput input;
  if (path == kStandardStream) {
    PD_ASSIGN_OR_RETURN(input, OpenStandardInput());
  } else {
    input.shown = absl::StrCat("'", path, "'");
    // Without O_NONBLOCK a pipe that nobody writes would stop us here.
    input.fd =
        ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (input.fd < 0)
      return ErrnoToStatus(errno, absl::StrCat("cannot open ", input.shown));
  }
  absl::Status status = CheckKind(&input);
  if (path == kStandardStream) {
    input.awaits_writer = false;  // whoever opened it has waited
  } else if (status.ok() && !input.awaits_writer) {
    const int flags = ::fcntl(input.fd, F_GETFL);
    if (::fcntl(input.fd, F_SETFL, flags & ~O_NONBLOCK) != 0)
      status = CannotRead(input);
  }
  if (status.ok()) return input;
  ::close(input.fd);
  return status;
}

absl::StatusOr<size_t> ReadSome(FileInput* input, std::byte* to, size_t room) {
  const Clock::time_point until = Clock::now() + kWriterWait;
  for (;;) {
    const ssize_t n = ::read(input->fd, to, room);
    if (n > 0) {
      input->awaits_writer = false;
      return static_cast<size_t>(n);
    }
    if (n == 0) {
      if (!input->awaits_writer) return 0;
      PD_ASSIGN_OR_RETURN(input->awaits_writer, MayCome(*input, until));
    } else if (errno == EAGAIN) {  // it has a writer, who has nothing yet
      input->awaits_writer = false;
      struct pollfd look = {input->fd, POLLIN, 0};
      ::poll(&look, 1, -1);
    } else if (errno != EINTR) {
      return CannotRead(*input);
    }
  }
}

absl::StatusOr<FileBytes> ReadStream(FileInput input) {
  GrowingBytes bytes;
  for (;;) {
    PD_RETURN_IF_ERROR(bytes.MakeRoom(input));
    PD_ASSIGN_OR_RETURN(const size_t n,
                        ReadSome(&input, bytes.end(), bytes.room()));
    if (n == 0) return bytes.Release();
    bytes.Added(n);
  }
}

}  // namespace pd
