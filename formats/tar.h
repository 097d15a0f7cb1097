// SPDX-License-Identifier: Apache-2.0
// tar archives, plain or gzip, read once from front to back: ustar, GNU's long
// names, pax headers. A plain archive's contents are views of the mapped file;
// of a compressed one only what Read is called for gets memory of its own.
#ifndef PD_FORMATS_TAR_H_
#define PD_FORMATS_TAR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "formats/gunzip_stream.h"
#include "libcore/base/file.h"

namespace pd {

/// One entry of an archive.
struct TarMember {
  std::string name;     ///< without "./" before it and "/" behind
  uint64_t size = 0;    ///< bytes of content
  bool file = false;    ///< a regular file; not a folder, a link or a device
  bool sparse = false;  ///< stored with holes, which Read refuses
};

class TarReader {
 public:
  /// An archive in memory or mapped.
  explicit TarReader(FileBytes file);

  /// The next entry; null behind the last. DataLoss when the archive is
  /// truncated or damaged; messages say at which byte of the unpacked archive.
  absl::StatusOr<const TarMember*> Next();
  /// The content of the entry that Next gave; once. DataLoss when the archive
  /// ends inside, InvalidArgument when the entry is not a regular file,
  /// Unimplemented for a sparse one.
  absl::StatusOr<FileBytes> Read();

 private:
  absl::Status Header(const char* block);
  absl::Status Extension(char type, uint64_t size);
  absl::Status Pax(absl::string_view records);
  absl::StatusOr<bool> Block(char* block);
  absl::StatusOr<FileBytes> Take(uint64_t size);
  absl::Status Skip(uint64_t size);
  absl::Status Finish();
  void Forget();

  FileBytes file_;
  std::unique_ptr<GunzipStream> gzip_;  // null for a plain archive
  uint64_t offset_ = 0;                 // of the unpacked archive
  uint64_t unread_ = 0;                 // bytes of content up to the next entry
  uint64_t padding_ = 0;                // behind them
  TarMember member_;
  // From headers that describe the next entry.
  std::string long_name_;
  bool has_size_ = false, sparse_ = false, ended_ = false;
  uint64_t pax_size_ = 0;
};

/// Whether bytes begin as an archive of POSIX or GNU tar does.
bool IsTar(absl::string_view bytes);

/// True when the bytes, gzip or not, begin with a tar header.
bool LooksLikeTar(const FileBytes& file);

/// Calls `visit` for each regular file in the archive at `path`, which may Read
/// it. Messages name the path, and the member where one is at hand.
absl::Status ForEachTarFile(
    const std::string& path,
    const std::function<absl::Status(const TarMember&, TarReader*)>& visit);

/// A file out of an archive.
struct TarFile {
  std::string name;
  FileBytes content;
};

/// The files whose names `wanted` accepts, in the order of the archive, which
/// is read once. Held in memory where the archive is compressed.
absl::StatusOr<std::vector<TarFile>> ReadTarFiles(
    const std::string& path,
    const std::function<bool(absl::string_view name)>& wanted);

/// The last file called `name`, as tarfile has it. NotFound names `path`.
absl::StatusOr<FileBytes> FindTarFile(const std::vector<TarFile>& files,
                                      absl::string_view name,
                                      const std::string& path);

}  // namespace pd

#endif  // PD_FORMATS_TAR_H_
