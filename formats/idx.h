// SPDX-License-Identifier: Apache-2.0
// The idx format of MNIST: two zero bytes, a type code, the rank, big-endian
// 32-bit extents, then the elements, big-endian too. Plain or gzip.
#ifndef PD_FORMATS_IDX_H_
#define PD_FORMATS_IDX_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/file.h"
#include "libcore/ir/array.h"

namespace pd {

/// The header of an idx file.
struct IdxHeader {
  DType dtype = DType::kUInt8;
  Shape shape;
  size_t header_bytes = 0;
  size_t data_bytes = 0;
};

/// An idx file whose header has been read and whose elements have not.
struct IdxFile {
  std::string path;
  FileBytes file;  ///< as on disk
  bool gzip = false;
  IdxHeader header;
};

/// Whether bytes begin as an idx file does, unpacked.
bool IsIdx(absl::string_view bytes);

/// The header at the start of `bytes`, which may be only the file's first
/// bytes. DataLoss when it is too short or no idx header.
absl::StatusOr<IdxHeader> ParseIdxHeader(absl::string_view bytes);

/// Opens the file and checks that its header fits its length (exactly when
/// plain; as far as gzip's ratio tells otherwise). Messages name the path.
absl::StatusOr<IdxFile> OpenIdxFile(const std::string& path);

/// The elements: a view of the mapped file where it holds plain bytes,
/// inflated or byte-swapped otherwise. DataLoss when they do not fit the
/// header.
absl::StatusOr<Array> ReadIdxData(const IdxFile& file);

/// ReadIdxData, of a gzip file `elements` at a time, each time an array of one
/// axis: a small file of many zeros takes no memory. No call where there are no
/// elements.
absl::Status ScanIdxData(const IdxFile& file, int64_t elements,
                         const std::function<void(const Array&)>& see);

/// OpenIdxFile and ReadIdxData.
absl::StatusOr<Array> ReadIdx(const std::string& path);

}  // namespace pd

#endif  // PD_FORMATS_IDX_H_
