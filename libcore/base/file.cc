// SPDX-License-Identifier: Apache-2.0
#include "libcore/base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/file_input.h"
#include "libcore/base/file_remains.h"
#include "libcore/base/file_target.h"
#include "libcore/base/mapped_copy.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kPartBytes = size_t{1} << 25;  // written at a time

absl::StatusOr<FileBytes> ReadOpenFile(const FileInput& input) {
  struct stat info;
  if (::fstat(input.fd, &info) != 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot read ", input.shown));
  // Of standard input somebody may have read the beginning.
  if (!S_ISREG(info.st_mode) || info.st_size == 0 ||
      ::lseek(input.fd, 0, SEEK_CUR) != 0)
    return ReadStream(input);
  const size_t size = static_cast<size_t>(info.st_size);
  void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, input.fd, 0);
  if (mapped == MAP_FAILED) return ReadStream(input);
  FileBytes file;
  file.size = size;
  RememberMapping(mapped, size, input.fd);
  file.data = std::shared_ptr<const std::byte>(
      static_cast<const std::byte*>(mapped), [size](const std::byte* p) {
        ForgetMapping(p);
        ::munmap(const_cast<std::byte*>(p), size);
      });
  return file;
}

// Text as terminals take it. Other bytes set colours and titles, and some
// terminals answer them as if somebody had typed.
bool IsTerminalText(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return c == '\n' || c == '\t' || c == '\r' ||
           !absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
}

}  // namespace

absl::StatusOr<FileBytes> ReadFile(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileInput input, OpenInput(path));
  auto file = ReadOpenFile(input);
  ::close(input.fd);
  return file;
}

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(
    const std::string& path) {
  PD_ASSIGN_OR_RETURN(FileTarget target, ResolveTarget(path));
  std::unique_ptr<AtomicFile> file(new AtomicFile);
  file->direct_ = target.direct();
  if (target.direct()) {
    PD_ASSIGN_OR_RETURN(file->fd_, OpenDirect(target));
    file->terminal_ = ::isatty(file->fd_) == 1;
  } else {
    RemoveRemainsOf(target.place);
    PD_ASSIGN_OR_RETURN(TemporaryFile temporary,
                        MakeTemporary(target.place, target.shown));
    file->fd_ = temporary.fd;
    file->temporary_ = std::move(temporary.path);
  }
  file->shown_ = std::move(target.shown);
  file->place_ = std::move(target.place);
  return file;
}

// Closed last, which lets go of the lock on the temporary file.
AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (fd_ >= 0) ::close(fd_);
}

absl::Status AtomicFile::Append(absl::string_view bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() < kBufferBytes) {
    buffer_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }
  PD_RETURN_IF_ERROR(Flush());
  if (bytes.size() >= kBufferBytes) return Write(bytes);
  buffer_.append(bytes.data(), bytes.size());
  return absl::OkStatus();
}

absl::Status AtomicFile::Flush() {
  PD_RETURN_IF_ERROR(Write(buffer_));
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status AtomicFile::Write(absl::string_view rest) {
  if (terminal_ && !IsTerminalText(rest))
    return FailedPrecondition(
        "%s is a terminal, and the bytes to write are no text: redirect it to "
        "a file or a pipe",
        shown_);
  while (!rest.empty()) {
    const absl::string_view part = rest.substr(0, kPartBytes);
    if (part.size() == kPartBytes) {
      const size_t copied = CopyFromMapping(part, fd_);
      rest.remove_prefix(copied);
      if (copied == part.size()) continue;
    }
    const ssize_t n =
        ::write(fd_, rest.data(), std::min(rest.size(), kPartBytes));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      return ErrnoToStatus(errno, absl::StrCat("cannot write ", shown_));
    rest.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  PD_RETURN_IF_ERROR(Flush());
  const std::string what = absl::StrCat("cannot write ", shown_);
  if (!direct_) {
    if (::fsync(fd_) != 0 ||
        std::rename(temporary_.c_str(), place_.c_str()) != 0)
      return ErrnoToStatus(errno, what);
    temporary_.clear();
  }
  if (::close(std::exchange(fd_, -1)) != 0) return ErrnoToStatus(errno, what);
  if (direct_) return absl::OkStatus();
  const auto parent = std::filesystem::path(place_).parent_path();
  return SyncDirectory(parent.empty() ? "." : parent.string());
}

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  PD_ASSIGN_OR_RETURN(auto file, AtomicFile::Create(path));
  PD_RETURN_IF_ERROR(file->Append(bytes));
  return file->Commit();
}

absl::Status CheckWritable(const std::string& path) {
  PD_ASSIGN_OR_RETURN(const FileTarget target, ResolveTarget(path));
  if (!target.direct()) return AtomicFile::Create(path).status();
  const std::string what = absl::StrCat("cannot write ", target.shown);
  if (target.descriptor < 0) {
    if (::access(target.place.c_str(), W_OK) != 0)
      return ErrnoToStatus(errno, what);
    return absl::OkStatus();
  }
  const int flags = ::fcntl(target.descriptor, F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) != 0)
    return ErrnoToStatus(EBADF, what);
  return absl::OkStatus();
}

absl::Status MakeDirectories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    return ErrnoToStatus(error.value(),
                         absl::StrCat("cannot make folder '", path, "'"));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FolderLock>> FolderLock::Take(
    const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/.lock");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0)
    return ErrnoToStatus(errno, absl::StrCat("cannot write '", path, "'"));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(fd);
    if (error == EWOULDBLOCK)
      return FailedPrecondition("'%s' is in use by another process", folder);
    return ErrnoToStatus(error, absl::StrCat("cannot lock '", path, "'"));
  }
  return std::unique_ptr<FolderLock>(new FolderLock(fd));
}

FolderLock::~FolderLock() { ::close(fd_); }

absl::Status SyncDirectory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return ErrnoToStatus(errno,
                         absl::StrCat("cannot open folder '", path, "'"));
  // Some file systems cannot sync a folder; the rename is still atomic there.
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0 && error != EINVAL)
    return ErrnoToStatus(error, absl::StrCat("cannot sync '", path, "'"));
  return absl::OkStatus();
}

}  // namespace pd
