// SPDX-License-Identifier: Apache-2.0
// zip archives in memory. An entry is unpacked only when the zip's sizes and
// the file's length agree, so a small file cannot ask for more memory than
// deflate could have packed into it.
#ifndef PD_FORMATS_ZIP_ARCHIVE_H_
#define PD_FORMATS_ZIP_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"

namespace pd {

/// Whether bytes begin as a zip does, with entries or without.
bool IsZip(absl::string_view bytes);

/// The name of the first entry of bytes that begin as a zip does; "" where
/// there is none.
absl::string_view FirstZipName(absl::string_view bytes);

/// An entry that is being unpacked.
class ZipEntry {
 public:
  ZipEntry(ZipEntry&&) noexcept;
  ~ZipEntry();

  /// Bytes of content.
  uint64_t size() const;
  /// The next `size` bytes. DataLoss when fewer are there.
  absl::Status Read(std::byte* to, size_t size);
  /// DataLoss unless all was read and its checksum is right.
  absl::Status Finish();

 private:
  friend class ZipArchive;
  struct State;
  explicit ZipEntry(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class ZipArchive {
 public:
  /// DataLoss when the bytes are no whole zip.
  static absl::StatusOr<ZipArchive> Open(const FileBytes& file);
  ZipArchive(ZipArchive&&) noexcept;
  ~ZipArchive();

  int64_t count() const;
  /// The name of entry `index` in [0, count()). DataLoss when it has none.
  absl::StatusOr<std::string> Name(int64_t index) const;
  /// Starts to unpack an entry. DataLoss when its sizes cannot be, or the
  /// entries opened so far take more bytes than the file has; Unimplemented
  /// when it is encrypted or packed by another method than deflate.
  absl::StatusOr<ZipEntry> OpenEntry(int64_t index);
  /// The whole content of the entry `name`. NotFound when there is none.
  absl::StatusOr<FileBytes> Read(absl::string_view name);

 private:
  struct State;
  explicit ZipArchive(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace pd

#endif  // PD_FORMATS_ZIP_ARCHIVE_H_
