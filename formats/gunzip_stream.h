// SPDX-License-Identifier: Apache-2.0
// A gzip file read from its beginning, some bytes at a time: for archives that
// are larger unpacked than anybody wants in memory. Whole files are faster by
// Gunzip (gzip.h).
#ifndef PD_FORMATS_GUNZIP_STREAM_H_
#define PD_FORMATS_GUNZIP_STREAM_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"
#include "libcore/base/file.h"

namespace pd {

class GunzipStream {
 public:
  explicit GunzipStream(FileBytes file);
  ~GunzipStream();
  GunzipStream(const GunzipStream&) = delete;
  GunzipStream& operator=(const GunzipStream&) = delete;

  /// The next bytes of the content: `size` of them, fewer only at its end.
  /// DataLoss when the file is truncated or damaged.
  absl::StatusOr<size_t> Read(char* to, size_t size);
  /// Compressed bytes that are not read yet.
  size_t left() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace pd

#endif  // PD_FORMATS_GUNZIP_STREAM_H_
