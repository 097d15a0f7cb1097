// SPDX-License-Identifier: Apache-2.0
// Files: reading whole or mapped, and writing so that the old file survives
// every failure (written aside, synced, renamed). "-" is standard input or
// output.
#ifndef PD_LIBCORE_BASE_FILE_H_
#define PD_LIBCORE_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pd {

/// A file's bytes. `data` keeps the mapping or the buffer alive.
struct FileBytes {
  std::shared_ptr<const std::byte> data;
  size_t size = 0;
  absl::string_view view() const {
    return {reinterpret_cast<const char*>(data.get()), size};
  }
};

/// The whole file, memory-mapped where the file allows it; pipes, terminals
/// and standard input ("-", once) are read to their end. NotFound,
/// PermissionDenied, InvalidArgument for a directory or a device,
/// DeadlineExceeded for a named pipe that nobody writes, ResourceExhausted for
/// a stream that does not end; messages name the path.
absl::StatusOr<FileBytes> ReadFile(const std::string& path);

/// Writes a file beside its target and renames it on Commit(). Without Commit
/// the target stays as it was and the temporary file is removed.
class AtomicFile {
 public:
  /// Opens a temporary file beside `path`, or beside what it is a symbolic
  /// link to. Standard output ("-"), devices, pipes and open descriptors are
  /// written directly (file_target.h).
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(
      const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends bytes (buffered). ResourceExhausted when the disk is full;
  /// FailedPrecondition for bytes on a terminal that are no text.
  absl::Status Append(absl::string_view bytes);
  /// Bytes appended so far.
  uint64_t size() const { return size_; }
  /// Flushes, syncs and renames over the target.
  absl::Status Commit();

 private:
  AtomicFile() = default;
  absl::Status Flush();
  absl::Status Write(absl::string_view bytes);

  std::string shown_, place_, temporary_;
  int fd_ = -1;
  bool direct_ = false, terminal_ = false;
  uint64_t size_ = 0;
  std::string buffer_;
};

/// AtomicFile around one Append.
absl::Status WriteFile(const std::string& path, absl::string_view bytes);

/// The error that AtomicFile would give, before the work whose result `path`
/// shall hold. Writes nothing, and wakes nobody who reads from a pipe.
absl::Status CheckWritable(const std::string& path);

/// Makes the folder and its parents; OK when it is there already.
absl::Status MakeDirectories(const std::string& path);

/// Holds a folder for one process at a time, as long as it lives; the system
/// lets go when the process ends, however it ends.
class FolderLock {
 public:
  /// FailedPrecondition when another process holds the folder.
  static absl::StatusOr<std::unique_ptr<FolderLock>> Take(
      const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

/// Flushes a folder's entries to disk.
absl::Status SyncDirectory(const std::string& path);

}  // namespace pd

#endif  // PD_LIBCORE_BASE_FILE_H_
