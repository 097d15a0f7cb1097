// SPDX-License-Identifier: Apache-2.0
// Whole-buffer gzip (RFC 1952) through libdeflate, about twice as fast as
// zlib. A gzip file says how long it is only at its end and only modulo 2^32,
// so what is allocated is bounded by what deflate can expand to.
#ifndef PD_FORMATS_GZIP_H_
#define PD_FORMATS_GZIP_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"

namespace pd {

/// True when the bytes begin with gzip's magic.
bool IsGzip(absl::string_view bytes);

/// The content of a gzip file, all members joined. DataLoss when it is
/// truncated, damaged or followed by something else than zeros;
/// ResourceExhausted when the content is longer than `max_bytes`.
absl::StatusOr<FileBytes> Gunzip(absl::string_view bytes,
                                 size_t max_bytes = size_t{1} << 40);

/// As Gunzip for a file of one member whose content is known to be
/// `size` bytes: DataLoss unless it is exactly that.
absl::StatusOr<FileBytes> GunzipExactly(absl::string_view bytes, size_t size);

/// The first `size` bytes of the content, fewer if it is shorter, for reading
/// a header before room for the rest is made. DataLoss when damaged.
absl::StatusOr<FileBytes> GunzipHead(absl::string_view bytes, size_t size);

/// The bytes as a gzip file of one member.
absl::StatusOr<std::string> Gzip(absl::string_view bytes);

/// True when `size` bytes of content can come out of `compressed` bytes of
/// deflate (at most 1032 to 1).
bool PlausibleInflatedSize(size_t compressed, size_t size);

/// ReadFile, and Gunzip where the file is gzip. Messages name the path.
absl::StatusOr<FileBytes> ReadFileGunzip(const std::string& path);

}  // namespace pd

#endif  // PD_FORMATS_GZIP_H_
